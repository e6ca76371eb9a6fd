"""The `memories/` folder as the plain files that a neighbour's memory protocol reads and writes.

A neighbour names files as it likes; the index reads Markdown. So `notes.txt` is kept as `notes.txt.md`, is listed as
`notes.txt`, and is found by both names. Links are never followed; hidden and excluded names do not exist here. What a
neighbour creates says in its frontmatter who wrote it; a block that says nothing else is not shown to it, so that the
lines it counts are the lines it wrote.

A write happens inside `writing()`: under the vault's lock, based on what was read, indexed before the lock is free.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Generator, Sequence
from typing import Literal, NamedTuple

from co_cli.errors import FrontmatterError, IndexUnavailableError, InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders, sync_folder
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import BINARY_PROBE, UTF_16, read_note
from co_cli.notes.refs import name_key
from co_cli.sources.origin import ENDING, RARE_ENDINGS
from co_cli.sources.walking import IGNORE_FILE, scan_origin
from co_cli.typed import whole

ROOT = "memories"
UNLISTED = "node_modules"
ANOTHER_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
Kind = Literal["file", "folder", "link", "other"]


class Place(NamedTuple):
    """Where a name leads: what is there, or where it would be made."""

    path: str
    kind: Literal["file", "folder", "nothing"]
    twin: str = ""
    """The path of what has the same name but for case or normalisation: on some systems they are one."""
    barred: str = ""
    """Why nothing can be there."""


class MemoryFile(NamedTuple):
    """A file as its neighbour sees it, and what is needed to write it back."""

    path: str
    text: str
    """Lines end in `\\n`; bytes that are no UTF-8 are lone surrogates."""
    data: bytes
    newline: str
    sealed: bool
    """Its frontmatter says who wrote it and nothing else, and is not part of `text`."""


class Listed(NamedTuple):
    """One entry of a folder."""

    name: str
    """Below the folder that was listed."""
    size: int
    is_folder: bool
    changed: float


class MemoryFiles:
    """The files below `memories/` of one vault."""

    def __init__(self, kb: KnowledgeBase, provenance: str = "agent") -> None:
        self.kb, self.store, self.provenance = kb, kb.store, provenance
        self._seal = f"---\nprovenance: {provenance}\n---\n"

    # -- finding ----------------------------------------------------------------------------------------------------

    def locate(self, names: Sequence[str]) -> Place:
        """Follow names down from `memories/`."""
        if os.path.islink(os.path.join(self.store.root, ROOT)):
            return _nothing(ROOT, names, barred="leads through a link")
        if not names:
            return Place(ROOT, "folder")
        if any(name.startswith(".") for name in names):
            return _nothing(ROOT, names, barred="is hidden: a name must not start with a dot")
        folder = ROOT
        for depth, name in enumerate(names[:-1]):
            entries = self._entries(folder)
            found = _same(entries, name)
            if found is None:
                place = _nothing(folder, names[depth:], _twin(folder, entries, (name,)))
                return place._replace(barred=self._why_excluded(place.path))
            folder = f"{folder}/{found}"
            if entries[found] != "folder":
                what = "a link" if entries[found] == "link" else f"the file {shown(folder)}"
                return _nothing(folder, names[depth + 1 :], barred=f"leads through {what}")
        return self._last(folder, names[-1])

    def _last(self, folder: str, name: str) -> Place:
        wanted = (name,) if is_note_name(name) else (name, name + ENDING)
        entries = self._entries(folder)
        for candidate in wanted:
            found = _same(entries, candidate)
            if found is None:
                continue
            kind, path = entries[found], f"{folder}/{found}"
            if kind == "link" or kind == "other":
                return Place(path, "nothing", barred="is a link" if kind == "link" else "is no regular file")
            barred = self._why_excluded(path, kind == "folder")
            return Place(path, "nothing", barred=barred) if barred else Place(path, kind)
        place = _nothing(folder, (name,), _twin(folder, entries, wanted))
        return place._replace(barred=self._why_excluded(place.path))

    def listing(self, folder: str, depth: int = 2) -> tuple[int, list[Listed]]:
        """Everything down to this depth by name, and the bytes of all files below, however deep."""
        listed: list[Listed] = []
        total = self._list(folder, "", depth, listed, self._excluder())
        return total, sorted(listed, key=lambda entry: entry.name.split("/"))

    def contents(self, folder: str) -> tuple[list[str], list[str]]:
        """The notes of a folder and the folders in it, under the names they have on disk."""
        excluded = self._excluder()
        notes: list[str] = []
        folders: list[str] = []
        for name, kind in sorted(self._entries(folder).items()):
            wanted = kind == "folder" or (kind == "file" and is_note_name(name))
            if (
                wanted
                and not name.startswith(".")
                and not (excluded and excluded(f"{folder}/{name}", kind == "folder"))
            ):
                (folders if kind == "folder" else notes).append(name)
        return notes, folders

    def below(self, folder: str) -> list[str]:
        """Every file below a folder, as paths inside the vault."""
        root = os.path.join(self.store.root, "")
        found = [
            os.path.join(inner, name)[len(root) :].replace(os.sep, "/")
            for inner, _, names in os.walk(self.store.absolute(folder))
            for name in names
        ]
        return sorted(found)

    # -- reading and writing ----------------------------------------------------------------------------------------

    def read(self, path: str) -> MemoryFile:
        """A file as text. Raises InvalidInputError if it is none."""
        data = self.store.read(path)
        if data.startswith(UTF_16) or b"\0" in data[:BINARY_PROBE]:
            raise InvalidInputError(f"{shown(path)} is not UTF-8 text")
        text = data.decode("utf-8", "surrogateescape")
        sealed = text.startswith(self._seal)
        text = text[len(self._seal) :] if sealed else text
        newline = "\n"
        if "\r\n" in text and text.count("\r\n") == text.count("\n"):
            newline, text = "\r\n", text.replace("\r\n", "\n")
        return MemoryFile(path, text, data, newline, sealed)

    def encoded(self, text: str, file: MemoryFile | None = None) -> bytes:
        """What a new file with this text, or this file with that text, has on disk."""
        text = text.replace("\0", "")
        if file is None:
            return self._sealed(whole(text)).encode()
        text = text.replace("\n", file.newline) if file.newline != "\n" else text
        return (self._sealed(text) if file.sealed else text).encode("utf-8", "surrogateescape")

    @contextlib.contextmanager
    def writing(self) -> Generator[None]:
        """Hold the vault; afterwards, when nobody waits for us any more, give what was written its vectors."""
        with self.store.lock():
            yield
        with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync brings it in
            self.kb.index.embed_saved()

    def create(self, path: str, text: str) -> bool:
        """Write a new file and index it; False if there is one."""
        data = self.store.safe(self._checked(path, self.encoded(text)))
        self.store.refuse_name(path)
        _refuse_loading(path, b"", data)
        full = self.store.absolute(path)
        make_folders(os.path.dirname(full))
        if not create_exclusively(full, data):
            return False
        self._index(path)
        return True

    def change(self, file: MemoryFile, text: str) -> None:
        """Give a file this text, if it still says what was read."""
        before, after = _speaker(file.path, file.data), self.encoded(text, file)
        if _speaker(file.path, after) not in (before, self.provenance):
            raise InvalidInputError("`provenance` says who wrote a note: leave it as it is")
        _refuse_loading(file.path, file.data, after)
        if after != file.data:
            self.store.replace(file.path, self._checked(file.path, after), based_on=file.data)
            self._index(file.path)

    def write_over(self, path: str, text: str) -> None:
        """Give a file another text altogether; what it said goes to the trash."""
        before = self.store.read(path)
        data = self.store.safe(self._checked(path, self.encoded(text)), before)
        _refuse_loading(path, before, data)
        self.store.keep_copy(path)
        self.store.replace(path, data, based_on=before)
        self._index(path)

    def trash(self, place: Place) -> None:
        """Move a file, or a folder with all that is in it, to the trash."""
        gone = self.below(place.path) if place.kind == "folder" else [place.path]
        self.store.trash(place.path)
        self._forget(gone)

    def move(self, place: Place, path: str) -> bool:
        """Move a file or a folder; False if something is there already."""
        self.store.refuse_name(path)
        source, target = self.store.absolute(place.path), self.store.absolute(path)
        before = self.below(place.path) if place.kind == "folder" else [place.path]
        make_folders(os.path.dirname(target))
        if not _move(source, target, place.kind == "folder"):
            return False
        sync_folder(os.path.dirname(target))
        sync_folder(os.path.dirname(source))
        self._forget(before)
        for moved in self.below(path) if place.kind == "folder" else [path]:
            self._index(moved)
        return True

    # -- inside -----------------------------------------------------------------------------------------------------

    def _sealed(self, text: str) -> str:
        """With frontmatter that says who wrote it."""
        front = read_frontmatter(text)
        if front.body > front.start and not front.problem:
            with contextlib.suppress(FrontmatterError):  # what cannot be edited safely is text like any other
                return set_fields(text, {"provenance": self.provenance})
        return self._seal + text

    def _checked(self, path: str, data: bytes) -> bytes:
        limit = self.kb.settings.knowledge_max_note_bytes
        if len(data) > limit:
            raise InvalidInputError(
                f"{shown(path)} would have {len(data):,} bytes; the limit is {limit:,}: split it into several files"
            )
        return data

    def _index(self, path: str) -> None:
        if is_note_name(path):
            with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync brings it in
                self.kb.index.index_file(None, path, embed=False)

    def _forget(self, paths: list[str]) -> None:
        with contextlib.suppress(IndexUnavailableError):
            self.kb.index.forget_files([path for path in paths if is_note_name(path)])

    def _entries(self, folder: str) -> dict[str, Kind]:
        """The real names of a folder; asking for one by name would find it in any case on some systems."""
        try:
            with os.scandir(self.store.absolute(folder)) as entries:
                return {entry.name: _kind(entry) for entry in entries}
        except FileNotFoundError:
            return {}

    def _list(
        self, folder: str, prefix: str, depth: int, listed: list[Listed], excluded: Callable[[str, bool], bool] | None
    ) -> int:
        total = 0
        try:
            with os.scandir(self.store.absolute(folder)) as scanned:
                entries = list(scanned)
        except FileNotFoundError:
            return 0
        names = {entry.name for entry in entries}
        for entry in entries:
            kind, path = _kind(entry), f"{folder}/{entry.name}"
            if entry.name.startswith(".") or entry.name == UNLISTED or kind not in ("file", "folder"):
                continue
            if excluded and excluded(path, kind == "folder"):
                continue
            try:
                state = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed while we looked
            if kind == "folder":
                size = self._list(path, f"{prefix}{entry.name}/", depth - 1, listed, excluded)
            else:
                size = state.st_size
            total += size
            if depth > 0:
                name = entry.name if kind == "folder" else shown_name(entry.name, names)
                listed.append(Listed(prefix + name, size, kind == "folder", state.st_mtime))
        return total

    def _excluder(self) -> Callable[[str, bool], bool] | None:
        """Reading patterns takes a walk: only for those who exclude something."""
        patterns = self.kb.settings.knowledge_exclude
        if not patterns and not os.path.exists(os.path.join(self.store.root, IGNORE_FILE)):
            return None
        return scan_origin(self.store.root, patterns).excluded

    def _why_excluded(self, path: str, is_folder: bool = False) -> str:
        excluded = self._excluder()
        if excluded is None:
            return ""
        parts = path.split("/")
        folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        if any(excluded(folder, True) for folder in folders) or excluded(path, is_folder):
            return "is excluded from this vault"
        return ""


def is_note_name(name: str) -> bool:
    """Does the index read a file of this name?"""
    return name.endswith(ENDING) or name.endswith(RARE_ENDINGS)


def shown_name(name: str, siblings: set[str]) -> str:
    """`notes.txt.md` is the file that was created as `notes.txt`, unless there is such a file as well."""
    short = name.removesuffix(ENDING)
    return short if short != name and ANOTHER_ENDING.search(short) and short not in siblings else name


def shown(path: str) -> str:
    """A path inside the vault as a neighbour writes it."""
    folder, _, name = path.rpartition("/")
    return f"/{folder}/{shown_name(name, set())}" if folder else f"/{path}"


def _nothing(folder: str, names: Sequence[str], twin: str = "", barred: str = "") -> Place:
    path = "/".join((folder, *names))
    return Place(path if not names or is_note_name(path) else path + ENDING, "nothing", twin, barred)


def _same(entries: dict[str, Kind], name: str) -> str | None:
    if name in entries:
        return name
    composed = unicodedata.normalize("NFC", name)
    return next((entry for entry in entries if unicodedata.normalize("NFC", entry) == composed), None)


def _twin(folder: str, entries: dict[str, Kind], names: Sequence[str]) -> str:
    keys = {name_key(name) for name in names}
    return next((f"{folder}/{entry}" for entry in entries if name_key(entry) in keys), "")


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _move(source: str, target: str, is_folder: bool) -> bool:
    """Never over a file that appeared since we looked, where the system can promise that."""
    if os.path.lexists(target) and not os.path.samefile(source, target):
        return False
    if not is_folder and not os.path.lexists(target):
        try:
            os.link(source, target)
        except FileExistsError:
            return False
        except OSError:
            os.rename(source, target)  # no hard links on this file system
            return True
        os.unlink(source)
        return True
    os.rename(source, target)
    return True


def _speaker(path: str, data: bytes) -> str:
    return read_note(path, data).provenance


def _refuse_loading(path: str, before: bytes, after: bytes) -> None:
    """What a neighbour writes may come from a page that it read: it must not put itself beside every prompt."""
    if read_note(path, after).metadata.get("loading") not in (None, read_note(path, before).metadata.get("loading")):
        raise InvalidInputError("`loading` puts a note beside prompts, and is for the person to say: leave it out")
