"""`co note review`: read all notes, check them, and leave out what the user has decided to keep.

The checks are in `review_checks.py`. Nothing is changed here; `decisions.py` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from co_cli.activity.extracted import FacetRow
from co_cli.activity.statistics import recalled_paths
from co_cli.ground.errors import ActivityUnavailableError, KnowledgeError
from co_cli.ground.values import OWN_SOURCES, moment_text
from co_cli.index.engine import ReadTransaction
from co_cli.index.names import fold_name
from co_cli.index.stored import Scope
from co_cli.notes.files import change_json, read_json
from co_cli.notes.similarity import likeness, words_of
from co_cli.notes.sync_copies import ALIKE, VAGUE, copy_of, versions_in
from co_cli.notes.wikilinks import Attachments
from co_cli.saving.proposals import proposals
from co_cli.searching.context import always_notes
from co_cli.sources.walk import path_of, place_of, second_versions
from co_cli.upkeep.review_checks import CHECKS, Kind, NoteVersion, ReviewInput, ReviewItem, proposed_items
from co_cli.upkeep.reviewed_note import ReviewedNote
from co_cli.vault.lookup import open_note
from co_cli.vault.vault import Vault

CheckProgress = Callable[[Kind, int, int], None]
"""The check that runs, how many notes it has looked at, and of how many."""


class Review(NamedTuple):
    """What was found, and what could not be checked."""

    items: list[ReviewItem]
    notes: int
    dismissed: int
    degraded: list[str]


def review(
    vault: Vault,
    now: float,
    tokens: Callable[[str], int],
    only: Sequence[str] = (),
    progress: CheckProgress = lambda kind, done, total: None,
) -> Review:
    """The findings by kind, the most serious first. `tokens` counts what a text costs a model."""
    with vault.engine.reading() as snapshot:
        notes = _read_notes(vault, snapshot, now)
        unknown = _unknown_names(vault, snapshot, notes)
    recalled, degraded = _recalled(vault) if not only or {"orphan", "never-recalled"} & set(only) else (None, [])
    waiting: list[FacetRow] = []
    try:
        waiting = proposals(vault) if not only or "proposed" in only else []
    except ActivityUnavailableError as error:
        degraded.append(f"proposed was skipped: {error}")
    given = ReviewInput(
        notes=notes,
        proposals=waiting,
        unknown=unknown,
        recalled=recalled,
        now=now,
        tokens=tokens,
        context_tokens=vault.settings.context_tokens,
        always=[(note.ref, tokens(note.text)) for note in always_notes(vault).notes],
        attachments=Attachments(vault.root),
        related=vault.settings.knowledge_duplicate_threshold,
        text_of=partial(_text_of, vault),
        versions=list(_versions(vault, notes)) if not only or "conflict" in only else [],
        rewrites=vault.settings.model is not None,
    )
    known = Dismissals(vault.settings.data_dir, vault.root).keys()
    found: list[ReviewItem] = []
    for kind, check in CHECKS.items():
        if not only or kind in only:
            progress(kind, 0, len(notes))
            found += check(replace(given, progress=partial(progress, kind)))
    items = [item for item in found if item.key not in known]
    return Review(items, len(notes), len(found) - len(items), degraded)


def proposed(vault: Vault) -> list[ReviewItem]:
    """The proposals that wait now. Unlike a review, this takes no time."""
    waiting = proposals(vault)
    bodies: dict[str, str] = {}
    for ref in {str(facet.detail["known"]) for facet in waiting if "known" in facet.detail}:
        with suppress(KnowledgeError):  # it is gone
            bodies[ref] = open_note(vault, ref).body
    return list(proposed_items(waiting, bodies))


class Dismissals:
    """Findings that the user keeps as they are, of one vault. A damaged file only means that they are shown again."""

    def __init__(self, data_dir: str, root: str) -> None:
        self._file, self._root = os.path.join(data_dir, "review.json"), root

    def keys(self) -> set[str]:
        return set(read_json(self._file).get(self._root, {}))

    def add(self, now: float, *keys: str) -> None:
        dated = dict.fromkeys(keys, moment_text(now))
        change_json(self._file, lambda known: known.setdefault(self._root, {}).update(dated))

    def remove(self, *keys: str) -> None:
        def change(known: dict[str, Any]) -> None:
            for key in keys:
                known.get(self._root, {}).pop(key, None)

        change_json(self._file, change)

    def move(self, moved: Callable[[str], str]) -> None:
        """Folders have moved: `moved` says where each one is now."""

        def change(known: dict[str, Any]) -> None:
            for root in [root for root in known if moved(root) != root]:
                known[moved(root)] = {**known.pop(root), **known.get(moved(root), {})}

        change_json(self._file, change)


def _read_notes(vault: Vault, snapshot: ReadTransaction, now: float) -> list[ReviewedNote]:
    stored = sorted(vault.index.notes.all(), key=lambda note: (note.created, note.path))
    ids = [note.id for note in stored]
    bodies: dict[int, list[str]] = {}
    for passage in snapshot.passages(notes=ids).values():
        bodies.setdefault(passage.note, []).append(passage.body)
    validities = snapshot.validities(ids, now)
    return [
        ReviewedNote(
            note.ref,
            note.source,
            note.path,
            note.title,
            note.created,
            note.tags,
            note.category,
            note.fingerprint,
            note.valid_until,
            bool(note.id in validities and validities[note.id].superseded_by),
            "\n\n".join(bodies.get(note.id, ())),
            note.frontmatter,
            note.links,
        )
        for note in stored
    ]


def _versions(vault: Vault, notes: Sequence[ReviewedNote]) -> Iterator[NoteVersion]:
    by_path = {note.path: note for note in notes}

    def text(path: str) -> str:
        return vault.store.read(path).decode("utf-8", "replace")

    for copy, path in second_versions(vault.index.odd()):
        if path in by_path:
            with suppress(KnowledgeError):  # one of them is gone
                yield NoteVersion(by_path[path], text(path), text(copy), copy)
    _, problems = vault.index.notes.reported()
    broken = {path for path, _ in problems}  # of frontmatter with markers in it, the fields and the markers are lost
    for note in notes:
        folder, name = place_of(note.path)
        first = by_path.get(path_of(folder, copy_of(name, VAGUE) or ""))
        with suppress(KnowledgeError):
            if first and (
                first.fingerprint == note.fingerprint or likeness(words_of(first.body), words_of(note.body), ALIKE)
            ):
                yield NoteVersion(first, text(first.path), text(note.path), note.path, (note.ref,))
            if ("<<<<<<<" in note.body or note.path in broken) and (both := versions_in(text(note.path))):
                yield NoteVersion(note, *both)


def _text_of(vault: Vault, note: ReviewedNote) -> str:
    try:
        return open_note(vault, note.ref).body
    except KnowledgeError:  # it is gone
        return ""


def _unknown_names(vault: Vault, snapshot: ReadTransaction, notes: Sequence[ReviewedNote]) -> set[str]:
    stored = snapshot.origin(vault.index.origin)
    scope = Scope(tuple((stored.id, source) for source in OWN_SOURCES) if stored else ())
    named = {name for note in notes for key in ("supersedes", "superseded_by") for name in note.names(key)}
    return {name for name in named if not (fold_name(name) and snapshot.named(scope, fold_name(name)))}


def _recalled(vault: Vault) -> tuple[set[str] | None, list[str]]:
    """Which notes a search has returned, if activity.db can tell."""
    skipped = "orphan and never-recalled were skipped"
    if not os.path.exists(vault.activity.database.path):
        return None, [f"{skipped}: no searches have been recorded"]
    try:
        with vault.activity.written().reading() as connection:
            return recalled_paths(connection, vault.root), []
    except ActivityUnavailableError as error:
        return None, [f"{skipped}: {error}"]
