"""Which memories of a list say what a newer one in it gives another value. Asks the index about these pairs only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import Hit
from co_cli.notes.contradictions import Statement, contradicts, has_other_value, read_statement
from co_cli.notes.note import Note
from co_cli.notes.subjects import with_subject
from co_cli.vault.vault import Vault


def mark_older(vault: Vault, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, each with the newer one that contradicts it."""
    memories = ((hit.ref, hit.title, hit.snippet) for hit in hits if hit.source == "memory")
    newer = newer_notes(vault, memories)
    return [replace(hit, newer=newer.get(hit.ref)) for hit in hits] if newer else list(hits)


def newer_notes(vault: Vault, memories: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The refs of memories with the refs of newer ones. Each memory is its ref, its title, and how its text begins."""
    alike: dict[tuple[str, ...], dict[str, Statement]] = {}
    for ref, title, text in memories:
        said = read_statement(with_subject(title, text.rstrip("\u2026")))
        if said and not text.startswith("\u2026"):
            alike.setdefault(said.about, {})[ref] = said
    found: dict[str, str] = {}
    for said in alike.values():
        if any(has_other_value(first, second) for first, second in permutations(said.values(), 2)):
            for older, newer in combinations(_by_age(vault, said), 2):
                if _replaces(older, newer):
                    found[older[2]] = newer[2]  # the newest comes last
    return found


Dated = tuple[float, int, str, str, Note]
"""When a note was created and its file written, its ref, its folder, and the note."""


def _by_age(vault: Vault, refs: Iterable[str]) -> list[Dated]:
    """The notes that are valid, the oldest first."""
    from co_cli.vault.lookup import Lookup  # slow to import, and few searches find such a pair

    lookup, found = Lookup(vault), list[Dated]()
    for ref in refs:
        try:
            origin, note = lookup.open(ref)
            written = os.stat(os.path.join(origin.root, *note.path.split("/"))).st_mtime_ns
        except (KnowledgeError, OSError):
            continue  # it is gone since it was found
        found.append((note.created or written / 1e9, written, ref, origin.root, note))
    reasons = lookup.outdated([note for *_, note in found])
    valid = [dated for dated, why in zip(found, reasons, strict=True) if why is None]
    return sorted(valid, key=lambda dated: dated[:3])


def _replaces(older: Dated, newer: Dated) -> bool:
    """Whether a note of the same vault gives another value to what an older one says, and said since then."""
    (*_, root, old), (created, *_, other_root, new) = older, newer
    same = root == other_root and (old.updated or 0.0) <= created
    return same and contradicts(with_subject(old.title, old.body), with_subject(new.title, new.body))
