"""What a person or a model wrote as a ref, into the path of a note.

Takes a ref, a ref with lines, a bare name, a path or a file name; refuses the rest with the closest refs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from co_cli.errors import InvalidInputError, NoteFileError, NoteMissingError, UnknownRefError, VaultError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.refs import ENDINGS, FOLDERS, path_of, source_ref, without_lines
from co_cli.notes.store import NoteStore
from co_cli.sources.origin import VAULT, Origin, kind_of
from co_cli.sources.walking import would_list
from co_cli.values import moment_text

CLOSE_ENOUGH = 60
MOST_SUGGESTED = 3


def resolve(ref: str, store: NoteStore, index: KnowledgeIndex | None) -> str:
    for asked in _forms(ref):
        for path in _readings(asked, store.root):
            try:
                if store.exists(path):
                    return path
            except VaultError:
                continue
        known = index.path_of(asked) if index and _is_text(asked) else None
        if known and store.exists(known):
            return known
    asked = _forms(ref)[-1]
    if index and _is_text(asked):
        for path in _readings(asked, store.root):
            alike = [found for found in index.paths_like(path) if store.exists(found)]
            if len(alike) == 1:
                return alike[0]
        _require_present(index, index.path_of(asked), _readings(asked, store.root))
    raise UnknownRefError(ref, _closest(asked, index.titles() if index else {}))


def _forms(ref: str) -> list[str]:
    """As it stands, for a name may end in a blank; and as a person means what was copied with one."""
    return list(dict.fromkeys(without_lines(form) for form in (ref, ref.strip())))


def _require_present(index: KnowledgeIndex, known: str | None, paths: Sequence[str]) -> None:
    """Say of a note that is kept without its file that it is, rather than that there is none."""
    alike = [found for path in paths for found in index.paths_like(path)]
    for path in [known, *alike] if known else alike:
        missing = index.missing_since(path)
        if missing:
            ref, since = missing
            raise NoteMissingError(ref, os.path.join(index.root, *path.split("/")), moment_text(since))


def resolve_anywhere(
    ref: str, store: NoteStore, index: KnowledgeIndex | None, beside: Sequence[Origin]
) -> tuple[Origin, str]:
    """The origin that a note is of, the vault first, and its path there."""
    if "\0" in ref:
        raise UnknownRefError(ref, [])  # no file is called so, and no file system may be asked for it
    asked = _forms(ref)[-1]
    for origin in beside:
        exact = _path_in(origin, _forms(ref)[0], store.root)
        if exact is not None and _is_file(origin, exact, index):
            return origin, exact
        path = _path_in(origin, asked, store.root)
        if path is not None:
            if _is_file(origin, path, index):
                return origin, path
            if not os.path.isdir(origin.root):
                raise NoteFileError(f"{origin.label} is not there now: {origin.path}; is it mounted?")
            known = index.of(origin).ref_of(path) if index and _is_text(path) else None
            if known and not os.path.lexists(os.path.join(origin.root, *path.split("/"))):
                raise NoteFileError(
                    f"{known} is gone from {origin.path}; `co source refresh {origin.label} --drop-missing` forgets it"
                )
            if not origin.tier and asked.startswith(origin.label):
                raise InvalidInputError(
                    f"{origin.label} has no {path!r}: `co source tree {origin.label}` shows its files"
                )
    own = Origin(VAULT, store.root)
    try:
        return own, resolve(ref, store, index)
    except UnknownRefError:
        for origin in beside:  # a ref that names no tier may be of any of them
            path = path_of(asked) if origin.tier else None
            if path is not None and _is_file(origin, path, index):
                return origin, path
        raise


def _path_in(origin: Origin, asked: str, vault: str) -> str | None:
    """What a ref or a path means inside an origin; None if it is of another one, or of the vault."""
    head = f"{origin.tier}:" if origin.tier else f"{origin.label}/"
    if asked.startswith(head) and len(asked) > len(head):
        rest = asked[len(head) :]
        return kind_of(origin).path(origin, rest)
    if os.path.isabs(asked) or os.path.isfile(asked):
        if os.path.realpath(asked).startswith(vault + os.sep):
            return None
        inside = os.path.relpath(os.path.realpath(asked), origin.root).replace(os.sep, "/")
        if not inside.startswith("..") and (not origin.only or inside == origin.only):
            return inside
    return None


def _is_file(origin: Origin, path: str, index: KnowledgeIndex | None) -> bool:
    """One that a walk would list: hidden and excluded files are nobody's to open by a ref."""
    try:
        listed = index.of(origin).opens(path) if index else would_list(origin, path)
        return listed and NoteStore(origin.root).exists(path)
    except VaultError:
        return False


def resolve_trashed(ref: str, store: NoteStore) -> str:
    if "\0" in ref:
        raise UnknownRefError(ref, [])
    homes = list(dict.fromkeys(home for _, home in store.trashed()))
    for path in (path for asked in _forms(ref) for path in _readings(asked, store.root)):
        if path in homes:
            return path
    refs = {source_ref(home): home for home in homes}
    if not refs:
        raise InvalidInputError(f"no note {ref!r} in the trash: it is empty")
    raise UnknownRefError(ref, _closest(_forms(ref)[-1], refs) or list(refs)[:MOST_SUGGESTED])


def _is_text(asked: str) -> bool:
    """False for a file name that is not UTF-8, which the index cannot hold."""
    return asked.encode("utf-8", "replace").decode() == asked


def _readings(asked: str, root: str) -> list[str]:
    """The paths that this could mean, likeliest first."""
    path = path_of(asked)
    if path is not None:
        return [path]
    if os.path.isabs(asked):
        inside = os.path.relpath(os.path.realpath(asked), root).replace(os.sep, "/")
        return [] if inside.startswith("..") else [inside]
    if os.path.exists(asked):  # from where the person stands
        inside = os.path.relpath(os.path.realpath(asked), root).replace(os.sep, "/")
        if not inside.startswith("..") and os.path.isfile(asked):
            return [inside]
    full = asked if asked.lower().endswith(ENDINGS) else f"{asked}.md"
    names = dict.fromkeys((full, full.replace("\\", "/")))  # as it is called here, and as Windows writes it
    return [place for name in names for place in (name, *(f"{folder}/{name}" for folder in FOLDERS.values()))]


def _closest(asked: str, refs: dict[str, str]) -> list[str]:
    from rapidfuzz import fuzz, process

    name = asked.rsplit(":", 1)[-1]
    by_name = {ref: ref.rsplit(":", 1)[-1] for ref in refs}
    found = process.extract(
        name, by_name, scorer=fuzz.WRatio, limit=MOST_SUGGESTED, score_cutoff=CLOSE_ENOUGH, processor=str.casefold
    )
    return [ref for _, _, ref in found if ref != asked]
