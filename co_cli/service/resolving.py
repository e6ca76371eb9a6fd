"""What a person or a model wrote as a ref, into the path of a note.

Takes a ref, a ref with lines, a bare name, a path or a file name; refuses the rest with the closest refs.
"""

from __future__ import annotations

import os

from co_cli.errors import InvalidInputError, UnknownRefError, VaultError
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.notes.refs import ENDINGS, FOLDERS, path_of, source_ref, without_lines
from co_cli.notes.store import NoteStore

CLOSE_ENOUGH = 60
MOST_SUGGESTED = 3


def resolve(ref: str, store: NoteStore, index: KnowledgeIndex | None) -> str:
    asked = without_lines(ref.strip())
    for path in _readings(asked, store.root):
        try:
            if store.exists(path):
                return path
        except VaultError:
            continue
    if index and _is_text(asked):
        known = index.path_of(asked)
        if known and store.exists(known):
            return known
        for path in _readings(asked, store.root):
            alike = [found for found in index.paths_like(path) if store.exists(found)]
            if len(alike) == 1:
                return alike[0]
    raise UnknownRefError(ref, _closest(asked, index.titles() if index else {}))


def resolve_trashed(ref: str, store: NoteStore) -> str:
    asked = without_lines(ref.strip())
    homes = list(dict.fromkeys(home for _, home in store.trashed()))
    for path in _readings(asked, store.root):
        if path in homes:
            return path
    refs = {source_ref(home): home for home in homes}
    if not refs:
        raise InvalidInputError(f"no note {ref!r} in the trash: it is empty")
    raise UnknownRefError(ref, _closest(asked, refs) or list(refs)[:MOST_SUGGESTED])


def _is_text(asked: str) -> bool:
    """False for a file name that is not UTF-8, which the index cannot hold."""
    return asked.encode("utf-8", "replace").decode() == asked


def _readings(asked: str, root: str) -> list[str]:
    """The paths that this could mean, likeliest first."""
    path = path_of(asked)
    if path is not None:
        return [path]
    name = asked.replace("\\", "/")
    if os.path.isabs(asked):
        inside = os.path.relpath(os.path.realpath(asked), root).replace(os.sep, "/")
        return [] if inside.startswith("..") else [inside]
    if os.path.exists(asked):  # from where the person stands
        inside = os.path.relpath(os.path.realpath(asked), root).replace(os.sep, "/")
        if not inside.startswith("..") and os.path.isfile(asked):
            return [inside]
    if not name.lower().endswith(ENDINGS):
        name += ".md"
    return [name, *(f"{folder}/{name}" for folder in FOLDERS.values())]


def _closest(asked: str, refs: dict[str, str]) -> list[str]:
    from rapidfuzz import fuzz, process

    name = asked.rsplit(":", 1)[-1]
    by_name = {ref: ref.rsplit(":", 1)[-1] for ref in refs}
    found = process.extract(
        name, by_name, scorer=fuzz.WRatio, limit=MOST_SUGGESTED, score_cutoff=CLOSE_ENOUGH, processor=str.casefold
    )
    return [ref for _, _, ref in found]
