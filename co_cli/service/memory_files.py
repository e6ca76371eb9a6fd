"""The vault's `memories/` folder as the files of another memory protocol: find, list, read and write them safely.

Such a protocol names files as it likes, while the index reads Markdown: `notes.txt` is stored as `notes.txt.md`, listed
as `notes.txt`, and found by both names. Links are never followed; hidden and excluded names do not exist. Frontmatter
that only says `provenance: agent` is not shown, so that a model counts the lines it wrote.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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
from co_cli.values import to_utf8

ROOT = "memories"
Kind = Literal["file", "folder", "other"]
OTHER_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\.md\Z")


class Place(NamedTuple):
    """What a name leads to, or where it would be created."""

    path: str
    kind: Literal["file", "folder", "nothing"]
    twin: str = ""
    """An existing path that differs only in case or normalisation: on some systems they are the same."""
    barred: str = ""
    """Why nothing can be created there."""


class MemoryFile(NamedTuple):
    """A file as a protocol sees it, and what is needed to write it back."""

    path: str
    text: str
    """Lines end in `\\n`; bytes that are not UTF-8 are lone surrogates."""
    data: bytes
    newline: str
    sealed: bool
    """Its frontmatter only says who wrote it, and is not part of `text`."""


class Entry(NamedTuple):
    path: str
    is_folder: bool
    size: int
    changed: float


class MemoryFiles:
    """The files below `memories/` of one vault."""

    def __init__(self, kb: KnowledgeBase, provenance: str = "agent") -> None:
        self.kb, self.store, self.provenance = kb, kb.store, provenance
        self._seal = f"---\nprovenance: {provenance}\n---\n"

    def locate(self, names: Sequence[str]) -> Place:
        """Follow names down from `memories/`."""
        path, kind = ROOT, "folder"
        excluded = self._excluded()
        if os.path.islink(os.path.join(self.store.root, ROOT)):
            return Place(_note_path(path, names), "nothing", barred="leads through a link")
        for depth, name in enumerate(names):
            rest = names[depth:]
            if name.startswith("."):
                return Place(_note_path(path, rest), "nothing", barred="is hidden: a name must not start with a dot")
            entries = self._entries(path)
            wanted = (name,) if len(rest) > 1 or is_note_name(name) else (name, name + ENDING)
            found = next((entry for want in wanted if (entry := _same(entries, want))), None)
            if found is None:
                keys = {name_key(want) for want in wanted}
                twin = next((f"{path}/{entry}" for entry in entries if name_key(entry) in keys), "")
                new = _note_path(path, rest)
                barred = "is excluded from this vault" if excluded(new, False) else ""
                return Place(new, "nothing", twin, barred)
            path, kind = f"{path}/{found}", entries[found]
            if kind == "other" or (kind == "file" and len(rest) > 1):
                through = "a link" if kind == "other" else f"the file {shown(path)}"
                return Place(_note_path(path, rest[1:]), "nothing", barred=f"leads through {through}")
            if excluded(path, kind == "folder"):
                return Place(_note_path(path, rest[1:]), "nothing", barred="is excluded from this vault")
        return Place(path, "folder" if kind == "folder" else "file")

    def walk(self, folder: str) -> Iterator[Entry]:
        """Every file and folder below a folder that is not hidden, excluded or a link; a folder before its content."""
        excluded, waiting = self._excluded(), [folder]
        while waiting:
            current = waiting.pop()
            for name, kind in self._entries(current).items():
                path = f"{current}/{name}"
                if name.startswith(".") or kind == "other" or excluded(path, kind == "folder"):
                    continue
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    state = os.lstat(self.store.absolute(path))
                    yield Entry(path, kind == "folder", state.st_size if kind == "file" else 0, state.st_mtime)
                    if kind == "folder":
                        waiting.append(path)

    def read(self, path: str) -> MemoryFile:
        """A file as text. Raises InvalidInputError if it is not text."""
        data = self.store.read(path)
        if data.startswith(UTF_16) or b"\0" in data[:BINARY_PROBE]:
            raise InvalidInputError(f"{shown(path)} is not UTF-8 text")
        text = data.decode("utf-8", "surrogateescape")
        sealed = text.startswith(self._seal)
        text = text.removeprefix(self._seal)
        newline = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
        return MemoryFile(path, text.replace(newline, "\n"), data, newline, sealed)

    def encode(self, text: str, file: MemoryFile | None = None) -> bytes:
        """The bytes of a new file with this text, or of an existing one with its text replaced."""
        text = text.replace("\0", "")
        if file is None:
            return self._with_seal(to_utf8(text)).encode()
        text = text.replace("\n", file.newline)
        return (self._with_seal(text) if file.sealed else text).encode("utf-8", "surrogateescape")

    @contextlib.contextmanager
    def writing(self) -> Generator[None]:
        """Hold the vault's lock, then embed what was written. A search finds it when this returns."""
        with self.store.lock():
            yield
        with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync reads them
            self.kb.index.embed_saved()

    def create(self, path: str, text: str, overwrite: bool = False) -> bool:
        """Write a file and index it; False if it exists. `overwrite` replaces one and puts a copy in the trash."""
        before = self.store.read(path) if overwrite else b""
        data = self.store.safe(self._checked(path, before, self.encode(text)), before)
        if overwrite:
            self.store.keep_copy(path)
            self.store.replace(path, data, based_on=before)
        else:
            self.store.refuse_name(path)
            make_folders(os.path.dirname(self.store.absolute(path)))
            if not create_exclusively(self.store.absolute(path), data):
                return False
        self._update_index([], [path])
        return True

    def change(self, file: MemoryFile, text: str) -> None:
        """Replace a file's text. Raises NoteConflictError if it changed since it was read."""
        data = self._checked(file.path, file.data, self.encode(text, file))
        if data != file.data:
            self.store.replace(file.path, data, based_on=file.data)
            self._update_index([], [file.path])

    def trash(self, place: Place) -> None:
        """Move a file, or a folder with its content, to the trash."""
        gone = self._files_of(place)
        self.store.trash(place.path)
        self._update_index(gone, [])

    def move(self, place: Place, path: str) -> bool:
        """Move a file or a folder; False if the target exists."""
        self.store.refuse_name(path)
        source, target, gone = self.store.absolute(place.path), self.store.absolute(path), self._files_of(place)
        if os.path.lexists(target) and not os.path.samefile(source, target):
            return False
        make_folders(os.path.dirname(target))
        os.rename(source, target)
        sync_folder(os.path.dirname(target))
        sync_folder(os.path.dirname(source))
        self._update_index(gone, self._files_of(place._replace(path=path)))
        return True

    def _files_of(self, place: Place) -> list[str]:
        if place.kind == "file":
            return [place.path]
        return [entry.path for entry in self.walk(place.path) if not entry.is_folder]

    def _with_seal(self, text: str) -> str:
        """The text with frontmatter that says who wrote it."""
        front = read_frontmatter(text)
        if front.body > front.start and not front.problem:
            with contextlib.suppress(FrontmatterError):  # what cannot be edited safely is plain text
                return set_fields(text, {"provenance": self.provenance})
        return self._seal + text

    def _checked(self, path: str, before: bytes, after: bytes) -> bytes:
        """Refuse what is too long, and frontmatter that claims another author or adds itself to prompts."""
        limit = self.kb.settings.knowledge_max_note_bytes
        if len(after) > limit:
            raise InvalidInputError(
                f"{shown(path)} would have {len(after):,} bytes; the limit is {limit:,}: split it into several files"
            )
        old, new = read_note(path, before), read_note(path, after)
        if new.provenance not in (old.provenance, self.provenance):
            raise InvalidInputError("`provenance` says who wrote a note: leave it as it is")
        if new.metadata.get("loading") not in (None, old.metadata.get("loading")):
            raise InvalidInputError("`loading` puts a note beside prompts, and is for the person to say: leave it out")
        return after

    def _update_index(self, gone: list[str], new: list[str]) -> None:
        with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync reads them
            self.kb.index.forget_files([path for path in gone if is_note_name(path)])
            for path in filter(is_note_name, new):
                self.kb.index.index_file(None, path, embed=False)

    def _entries(self, folder: str) -> dict[str, Kind]:
        """The real names in a folder; on some systems, opening a name also finds it in another case."""
        try:
            with os.scandir(self.store.absolute(folder)) as entries:
                return {entry.name: _kind(entry) for entry in entries}
        except FileNotFoundError:
            return {}

    def _excluded(self) -> Callable[[str, bool], bool]:
        """A test for paths that the vault excludes. Reading patterns takes a walk, which most vaults do not need."""
        patterns = self.kb.settings.knowledge_exclude
        if patterns or os.path.exists(os.path.join(self.store.root, IGNORE_FILE)):
            excluded = scan_origin(self.store.root, patterns).excluded
            if excluded:
                return excluded
        return lambda path, is_folder: False


def is_note_name(name: str) -> bool:
    """Does the index read files of this name?"""
    return name.endswith((ENDING, *RARE_ENDINGS))


def shown_name(name: str) -> str:
    """`notes.txt.md` was created as `notes.txt`."""
    return name.removesuffix(ENDING) if OTHER_ENDING.search(name) else name


def shown(path: str) -> str:
    """A path inside the vault as a model writes it."""
    folder, _, name = path.rpartition("/")
    return f"/{folder}/{shown_name(name)}" if folder else f"/{path}"


def _note_path(folder: str, names: Sequence[str]) -> str:
    path = "/".join((folder, *names))
    return path if not names or is_note_name(path) else path + ENDING


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _same(entries: Iterable[str], name: str) -> str | None:
    """The entry of this name, in either Unicode normal form."""
    if name in entries:
        return name
    composed = unicodedata.normalize("NFC", name)
    return next((entry for entry in entries if unicodedata.normalize("NFC", entry) == composed), None)
