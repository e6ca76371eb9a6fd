"""Find the note that a person or a model means by a ref, a name or a path; unknown ones get the closest refs."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from co_cli.activity import record_refs
from co_cli.ground.errors import (
    InvalidInputError,
    KnowledgeError,
    NoteDeletedError,
    NoteFileError,
    NoteForgottenError,
    NoteMissingError,
    UnknownRefError,
    VaultError,
)
from co_cli.ground.hits import Filters
from co_cli.ground.paths import is_inside, path_inside
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import moment_text, to_utf8
from co_cli.index.links import Backlink, Link
from co_cli.index.names import fold_name, names_of
from co_cli.index.stored import StoredNote, Validity
from co_cli.index.tokens import fold
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.encoding import NotTextError
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ENDINGS, FOLDERS, path_of, source_ref, without_ending, without_lines
from co_cli.notes.store import NoteStore
from co_cli.sources.documents.formats import showing
from co_cli.sources.origin import CHECKPOINT, CHECKPOINTS, VAULT, Origin, adapter_of
from co_cli.sources.walk import would_list
from co_cli.vault.origins import Origins
from co_cli.vault.skills import Skills
from co_cli.vault.vault import Vault

MIN_SIMILARITY, MIN_PART = 66, 75
"""For the name as a whole, and for a name that is asked for by a part: `ana` is not near to `anatomy`."""
SHORTEST_GUESS = 3
"""Letters of a ref that is compared with others: one or two letters are part of nearly every name."""
MAX_SUGGESTIONS = 3
ESCAPED = re.compile(r"\\(?:x(?!00)[0-9a-f]{2}|u(?!d[89a-f])[0-9a-f]{4}|U000[0-9a-f]{5})")
"""A character that cannot be seen, as a terminal shows it."""


@dataclass(frozen=True, slots=True)
class Trashed:
    """A forgotten note, or a copy of a text that a note had."""

    path: str
    """Its path in its vault before it was forgotten."""
    trash: str
    """Its path in that vault now."""
    tier: str | None = None
    """The tier of that vault; None for the open one."""
    title: str = ""
    forgotten: str = ""
    """When, as an ISO date."""
    copy: bool = False
    """The note was not forgotten: this text was replaced, or it could not be written."""
    dropped: bool = False
    """It is not in the trash: a force-push to the git repository of a team dropped it. `trash` is what git calls it."""

    @property
    def why(self) -> str:
        """How it came there."""
        return "dropped by a force-push, committed" if self.dropped else "copy kept" if self.copy else "forgotten"

    @property
    def name(self) -> str:
        """What `co note restore` takes."""
        return f"{self.tier}:{self.path}" if self.tier else self.path

    @property
    def ref(self) -> str:
        return f"{self.tier}:{source_ref(self.path)}" if self.tier else source_ref(self.path)


class Lookup:
    """Opens notes of the vault, of other tiers and of linked sources. Works without an index, too."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self.store = vault, vault.store
        if vault.authority:
            vault.authority.catch_up()

    @cached_property
    def index(self) -> KnowledgeIndex | None:
        """None if it cannot be opened."""
        return self._vault.working_index()

    def summaries(self, filters: Filters, limit: int = -1) -> list[NoteSummary]:
        """Notes of the index, newest first."""
        now = time.time()
        with self._vault.engine.reading() as snapshot:
            rows = self._vault.index.notes.docs(filters, limit)
            validities = snapshot.validities([row.id for row in rows], now)
        outdated = {note: validity.problem(now) for note, validity in validities.items()}
        return [
            NoteSummary(
                row.ref,
                row.source,
                os.path.join(row.root, *row.path.split("/")),
                row.title,
                row.tags,
                row.category,
                moment_text(row.created),
                row.description,
                row.missing is not None,
                outdated.get(row.id),
            )
            for row in rows
        ]

    def open(self, ref: str) -> tuple[Origin, Note]:
        """The origin of a note, and the note as its file is now. Raises UnknownRefError with the closest refs."""
        if ref.startswith("skill:"):
            skills = Skills(self._vault)
            skill = skills.find(ref)
            return skill.origin, skills.open(skill)[0]
        origin, path = self.locate(ref)
        adapter = adapter_of(origin)
        largest = adapter.largest(os.path.basename(path), self._vault.index.of(origin).limit)
        try:
            with showing():
                return origin, adapter.read(origin, path, NoteStore(origin.root, largest=largest).read(path))
        except NotTextError as error:
            raise InvalidInputError(f"{path} is not a note: {error}") from None

    def file_of(self, ref: str) -> str:
        """The path of a note's file, which is not read."""
        origin, path = self.locate(ref)
        return os.path.join(origin.root, *path.split("/"))

    def outdated(self, notes: Sequence[Note]) -> list[str | None]:
        """Why each of these notes is not valid now; None if it is valid."""
        return outdated(notes, self.index)

    def open_own(self, ref: str, action: str) -> Note:
        """A note of this vault. Files of linked sources are never written."""
        origin, note = self.open(ref)
        if origin != self._vault.index.origin:
            file = os.path.join(origin.root, note.path)
            raise InvalidInputError(f"{note.ref} cannot be {action} here: it belongs to a linked source; edit {file}")
        return note

    def in_linked_folder(self, ref: str) -> bool:
        """Whether a note is in a folder that was added, and its owner may edit it there. Refuses a read-only one."""
        origin, path = self.locate(ref)
        entry = next((added for added in Origins(self._vault).entries() if added.origin == origin), None)
        if entry is not None and entry.read_only:
            file = os.path.join(origin.root, *path.split("/"))
            raise InvalidInputError(f"{file} cannot be changed here: {origin.label} was added with --read-only")
        return entry is not None and origin.source != "skill"

    def in_other_tier(self, ref: str) -> tuple[str, str] | None:
        """The tier of a note that is in another tier's vault, and its ref there; None if it is not."""
        if self._vault.sources.tiers is None:
            return None
        origin, note = self.open(ref)
        return (origin.tier, note.ref.removeprefix(f"{origin.tier}:")) if origin.tier else None

    def locate(self, ref: str) -> tuple[Origin, str]:
        """The origin of a note and its path there: a linked source that the ref names, the vault, then other tiers."""
        origin, path = self._locate(ref)
        record_refs(f"{origin.label}/{path}" if origin.name else source_ref(path))
        return origin, path

    def _locate(self, ref: str) -> tuple[Origin, str]:
        if "\0" in ref:
            raise UnknownRefError(ref, [])
        if ref.startswith("skill:"):
            skill = Skills(self._vault).find(ref)
            return skill.origin, skill.inside
        if ref.startswith(f"{CHECKPOINT}:"):
            return locate_checkpoint(self._vault.root, ref)
        for origin in self._vault.index.linked:
            path = self._path_in(origin, ref)
            if path is not None:
                return origin, path
        try:
            return Origin(VAULT, self.store.root), self._locate_own(ref)
        except UnknownRefError:
            found = self._locate_elsewhere(_forms(ref)[-1])
            if found is None:
                raise
            return found

    def _locate_elsewhere(self, asked: str) -> tuple[Origin, str] | None:
        """A note by its path inside a linked source, else by its title, alias or file name anywhere."""
        for origin in self._vault.index.linked:
            path = path_of(asked) if origin.tier else adapter_of(origin).path(origin, asked)
            if path is not None and not os.path.isabs(path) and self._is_listed(origin, path):
                return origin, path
        if self.index is None or to_utf8(asked) != asked:
            return None
        names = [name for name in (fold_name(asked), fold_name(without_ending(asked))) if name]
        for origins in ([self._vault.index.origin], self._vault.index.linked):  # the vault's own notes come first
            found = [
                (origin, note)
                for origin in origins
                for note in self.index.of(origin).notes.find("name", *names)
                if self._is_listed(origin, note.path)
            ]
            if len({(note.root, note.path) for _, note in found}) > 1:
                refs = ", ".join(f"{origin.tier}:{note.ref}" if origin.tier else note.ref for origin, note in found)
                raise InvalidInputError(f"{asked!r} is the name of several notes: {refs}")
            if found:
                return found[0][0], found[0][1].path
        return None

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """The links of a note and the links to it. `targets` are `note.links` of a file newer than the index."""
        origin, path = self.locate(ref)
        links, backlinks = self._vault.index.of(origin).notes.links(path, targets)
        if origin.tier:
            links = [replace(link, ref=link.ref and f"{origin.tier}:{link.ref}") for link in links]
            backlinks = [replace(link, ref=f"{origin.tier}:{link.ref}") for link in backlinks]
        return links, backlinks

    def trashed(self) -> list[Trashed]:
        """The trash of this vault, newest first, then those of the other tiers' vaults."""
        stores = [(self.store, None)]
        stores += [(NoteStore(origin.root), origin.tier) for origin in self._vault.index.linked if origin.tier]
        return [
            Trashed(path, trash, tier, _title_of(store, trash, path), *store.trashed_at(trash))
            for store, tier in stores
            for trash, path in store.trashed()
        ]

    def dropped(self) -> list[Trashed]:
        """Notes of a team vault that force-pushes to its git repository dropped."""
        authority = self._vault.authority
        texts = {text: authority.dropped_text(text) for text in authority.dropped()} if authority else {}
        return [
            Trashed(text.path, text.name, None, _title_in(text.path, data), moment_text(text.moment), dropped=True)
            for text, data in texts.items()
        ]

    def dropped_text(self, name: str) -> bytes | None:
        """The text of a dropped note by what git calls it; None if there is none."""
        authority = self._vault.authority
        found = next((text for text in authority.dropped() if text.name == name), None) if authority else None
        return authority.dropped_text(found) if authority and found else None

    def trashed_copy(self, ref: str) -> tuple[str, str]:
        """The newest copy of a note in this vault's trash, or the one at this path there; and where it was.

        One that a force-push dropped is found as if it were in the trash. Raises UnknownRefError with the closest ones.
        """
        if "\0" in ref:
            raise UnknownRefError(ref, [])
        dropped = self.dropped()
        titles = {note.trash: fold_name(note.title) for note in dropped}
        trashed = [*self.store.trashed(), *((note.trash, note.path) for note in dropped)]
        newest = {path: kept for kept, path in reversed(trashed)}
        for kept, path in trashed:
            if kept == ref:
                return kept, path
        for form in _forms(ref):
            for path in (*_possible_paths(form, self.store.root), _inside(form, self.store.root)):
                if path in newest:
                    return newest[path], path
        named = {
            path: kept
            for path, kept in newest.items()
            if fold_name(ref) in (_names_in(self.store, kept, path) if kept not in titles else (titles[kept],))
        }
        if len(named) > 1:
            paths = ", ".join(map(source_ref, named))
            raise InvalidInputError(f"{ref!r} is the name of several notes in the trash: {paths}")
        for path, kept in named.items():
            return kept, path
        refs = [source_ref(path) for path in newest]
        if not refs:
            raise InvalidInputError(f"no note {ref!r} in the trash: it is empty")
        closest = _closest(_forms(ref)[-1], refs)
        if not closest:
            raise InvalidInputError(f"no note {ref!r} in the trash: `co list --trash` lists what is there")
        raise UnknownRefError(ref, closest)

    def _locate_own(self, ref: str) -> str:
        store = self.store
        for form in _forms(ref):
            for path in _possible_paths(form, store.root):
                if _exists(store, path):
                    return path
            index = self.index
            known = [note.path for note in index.notes.find("ref", form) if store.exists(note.path)] if index else []
            if known:
                return known[0]
        asked, index = _forms(ref)[-1], self.index
        if index and to_utf8(asked) == asked:
            similar = [index.notes.find("path_key", fold(path)) for path in _possible_paths(asked, store.root)]
            for notes in similar:
                there = [note.path for note in notes if store.exists(note.path)]
                if len(there) == 1:
                    return there[0]
            for note in chain(index.notes.find("ref", asked), *similar):
                if note.missing is not None:
                    file = os.path.join(index.root, *note.path.split("/"))
                    raise NoteMissingError(note.ref, file, moment_text(note.missing))
                store.check_there()
        trashed = {path: kept for kept, path in reversed(store.trashed())}
        for path in _possible_paths(asked, store.root):
            if path in trashed:
                when, copy = store.trashed_at(trashed[path])
                raise NoteDeletedError(source_ref(path), when) if copy else NoteForgottenError(source_ref(path))
        notes = index.notes.docs() if index else []
        raise UnknownRefError(ref, _starting(asked, notes) or _closest(asked, [note.ref for note in notes]))

    def _path_in(self, origin: Origin, ref: str) -> str | None:
        """The path that a ref means inside a linked source; None if the ref is of another one."""
        paths = [_path_of_ref(origin, form, self.store.root) for form in _forms(ref)]
        for path in paths:
            if path is not None and self._is_listed(origin, path):
                return path
        path = paths[-1]
        if path is None:
            return None
        if not os.path.isdir(origin.root):
            raise NoteFileError(f"{origin.label} is not there now: {origin.path}; is it mounted?")
        known = self.index.of(origin).notes.ref_of(path) if self.index else None
        if known and not os.path.lexists(os.path.join(origin.root, *path.split("/"))):
            raise NoteFileError(
                f"{known} is gone from {origin.path}; `co source refresh {origin.label} --drop-missing` forgets it"
            )
        if not origin.tier and _forms(ref)[-1].startswith(origin.label):
            raise InvalidInputError(f"{origin.label} has no {path!r}: `co source tree {origin.label}` shows its files")
        return None

    def _is_listed(self, origin: Origin, path: str) -> bool:
        """Whether a walk would list this file: hidden and excluded files cannot be opened by a ref."""
        try:
            listed = self.index.of(origin).opens(path) if self.index else bool(would_list(origin, [path]))
        except VaultError:
            return False
        return listed and _exists(NoteStore(origin.root), path)


def open_note(vault: Vault, ref: str) -> Note:
    """Read a note from its file. Raises UnknownRefError with the closest refs."""
    return Lookup(vault).open(ref)[1]


def file_of(vault: Vault, ref: str) -> str:
    """The path of a note's file, which is not read."""
    return Lookup(vault).file_of(ref)


def locate_checkpoint(root: str, name: str) -> tuple[Origin, str]:
    """A checkpoint of a vault by its name or ref. Raises InvalidInputError with the names that there are."""
    origin = Origin(CHECKPOINT, os.path.join(root, CHECKPOINTS))
    wanted = name.strip().removeprefix(f"{CHECKPOINT}:").removesuffix(".md")
    names = os.listdir(origin.root) if os.path.isdir(origin.root) else ()
    there = sorted(without_ending(file) for file in names if file.endswith(".md"))
    if wanted not in there:
        known = f"the checkpoints are {', '.join(there)}" if there else "/checkpoint in `co chat` saves one"
        raise InvalidInputError(f"no checkpoint {wanted!r}: {known}")
    return origin, f"{wanted}.md"


def outdated(notes: Sequence[Note], index: KnowledgeIndex | None) -> list[str | None]:
    """Why each of these notes is not valid now, such as `superseded by memory:new`; None if it is valid."""
    now, by = time.time(), {note.ref: note.superseded_by for note in notes}
    if index and notes:
        by = index.notes.successors(by, now)
    return [Validity(now, *note.valid, by[note.ref]).problem(now) for note in notes]


def _names_in(store: NoteStore, trash: str, path: str) -> Collection[str]:
    """What a note in the trash was called."""
    with contextlib.suppress(KnowledgeError, NotTextError):
        return names_of(read_note(path, store.read(trash)))
    return ()


def _title_of(store: NoteStore, trash: str, path: str) -> str:
    with contextlib.suppress(KnowledgeError):
        return _title_in(path, store.read(trash))
    return ""


def _title_in(path: str, data: bytes) -> str:
    with contextlib.suppress(KnowledgeError, NotTextError):
        return read_note(path, data).title
    return ""


def _forms(ref: str) -> list[str]:
    """The ref as given, because a file name may end in a blank; then without blanks; then as a terminal showed it."""
    shown = ESCAPED.sub(lambda found: chr(int(found[0][2:], 16)), ref.strip())
    return list(dict.fromkeys(without_lines(form) for form in (ref, ref.strip(), shown)))


def _path_of_ref(origin: Origin, asked: str, vault: str) -> str | None:
    head = f"{origin.tier}:" if origin.tier else f"{origin.label}/"
    if asked.startswith(head) and len(asked) > len(head):
        return adapter_of(origin).path(origin, asked[len(head) :])
    if os.path.isabs(asked) or os.path.isfile(asked):
        if origin.root != vault and is_inside(os.path.realpath(asked), vault):
            return None
        inside = _inside(asked, origin.root)
        if inside is not None and origin.only in ("", inside):
            return inside
    return None


def _possible_paths(asked: str, root: str) -> list[str]:
    """The paths in the vault that a ref, a name or a path could mean, the likeliest first."""
    path = path_of(asked)
    if path is not None:
        source, _, name = asked.partition(":")  # `article:inbox/x` is `article:/inbox/x`, if there is no other
        other = path_of(f"{source}:{name[1:] if name.startswith('/') else '/' + name}")
        return [path, other] if other else [path]
    inside = _inside(asked, root)
    if os.path.isabs(asked):
        return [inside] if inside is not None else []
    if inside is not None and os.path.isfile(asked):  # relative to the current folder
        return [inside]
    full = asked if asked.lower().endswith(ENDINGS) else f"{asked}.md"
    names = dict.fromkeys((full, full.replace("\\", "/")))  # Windows separates with backslashes
    return [place for name in names for place in (name, *(f"{folder}/{name}" for folder in FOLDERS.values()))]


def _inside(file: str, root: str) -> str | None:
    """A file's path relative to a folder; None if it is outside."""
    return path_inside(os.path.realpath(file), root) or None


def _exists(store: NoteStore, path: str) -> bool:
    try:
        return store.exists(path)
    except VaultError:
        return False


def _starting(asked: str, notes: Iterable[StoredNote]) -> list[str]:
    """The notes whose title or file name begins with what was asked for."""
    start = fold_name(asked)
    if len(start) < SHORTEST_GUESS:
        return []
    names = ((note.ref, (note.title, note.ref.rpartition("/")[2].rpartition(":")[2])) for note in notes)
    found = [ref for ref, called in names if any(fold_name(name).startswith(start) for name in called)]
    return sorted(found)[:MAX_SUGGESTIONS]


def _closest(asked: str, refs: Iterable[str]) -> list[str]:
    name = asked.rsplit(":", 1)[-1]
    if len(name) < SHORTEST_GUESS:
        return []
    names = {ref: ref.rsplit(":" if "/" in name else "/", 1)[-1].rsplit(":", 1)[-1] for ref in refs}
    from rapidfuzz import fuzz, process  # 40 ms, only for a ref that no note has

    scored = process.extract(
        name, names, scorer=fuzz.WRatio, limit=None, score_cutoff=MIN_SIMILARITY, processor=str.casefold
    )
    file = name.rpartition("/")[2]
    near = [
        ref
        for known, score, ref in scored
        if ref != asked
        and fuzz.WRatio(file, known.rpartition("/")[2], processor=str.casefold) >= MIN_SIMILARITY
        and (
            (score >= MIN_PART and len(known) > len(name))
            or fuzz.ratio(name, known, processor=str.casefold) >= MIN_SIMILARITY
        )
    ]
    return near[:MAX_SUGGESTIONS]
