"""The vault's `memories/` folder as the files of another memory protocol.

Such a protocol names files as it likes, while the index reads Markdown: `notes.txt` is stored as `notes.txt.md`, listed
as `notes.txt`, and found by both names. Names match in any case and Unicode form. Links are never followed; hidden and
excluded names are refused. Frontmatter that only says `provenance: agent` is hidden: a model counts its own lines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from co_cli.errors import FrontmatterError, IndexUnavailableError, InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders, sync_folder
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import BINARY_PROBE, UTF_16, read_note
from co_cli.notes.refs import name_key
from co_cli.sources.origin import ENDING, IGNORE_FILE, THE_VAULT
from co_cli.sources.walk import scan_origin
from co_cli.values import to_utf8

ROOT = "memories"
PROVENANCE = "agent"
AGENT_ONLY = f"---\nprovenance: {PROVENANCE}\n---\n"
OTHER_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\.md\Z")


class Entry(NamedTuple):
    """What a path leads to, or where it would be created."""

    path: str
    kind: Literal["file", "folder", "missing", "other"]
    size: int = 0
    changed: float = 0.0


class MemoryFile(NamedTuple):
    """A file as a protocol sees it, and what is needed to write it back byte for byte."""

    path: str
    text: str
    """Lines end in `\\n`; bytes that are not UTF-8 are lone surrogates."""
    data: bytes
    newline: str
    hides_frontmatter: bool


class MemoryFiles:
    """The files below `memories/` of one vault."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.store = kb, kb.store

    def locate(self, names: Sequence[str]) -> Entry:
        """Follow names down from `memories/`. Raises InvalidInputError for names that cannot be used."""
        link = os.path.islink(os.path.join(self.store.root, ROOT))
        found, excluded, problem = Entry(ROOT, "other" if link else "folder"), self._excluded(), ""
        for depth, name in enumerate(names, 1):
            if found.kind == "file":
                problem = f"leads through the file {shown(found.path)}"
            elif name.startswith("."):
                problem = "is hidden: a name must not start with a dot"
            elif found.kind != "other":
                found = self._find(found.path, name, depth == len(names))
                if excluded(found.path, found.kind == "folder"):
                    problem = "is excluded from this vault"
        problem = "leads through a link" if found.kind == "other" else problem
        if problem:
            raise InvalidInputError(f"Path {'/'.join(('', ROOT, *names))} {problem}")
        return found

    def walk(self, folder: str) -> Iterator[Entry]:
        """Every file and folder below a folder that is not hidden, excluded or a link; a folder before its content."""
        excluded, waiting = self._excluded(), [folder]
        while waiting:
            for entry in self._entries(waiting.pop()):
                if "/." in entry.path or entry.kind == "other" or excluded(entry.path, entry.kind == "folder"):
                    continue
                yield entry
                waiting += [entry.path] if entry.kind == "folder" else []

    def read(self, path: str) -> MemoryFile:
        """A file as text. Raises InvalidInputError if it is not text."""
        data = self.store.read(path)
        if data.startswith(UTF_16) or b"\0" in data[:BINARY_PROBE]:
            raise InvalidInputError(f"{shown(path)} is not UTF-8 text")
        text = data.decode("utf-8", "surrogateescape")
        hides = text.startswith(AGENT_ONLY)
        text = text.removeprefix(AGENT_ONLY)
        newline = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
        return MemoryFile(path, text.replace(newline, "\n"), data, newline, hides)

    def encode(self, path: str, text: str, file: MemoryFile | None) -> bytes:
        """The bytes to write for a new text, with secrets masked. Refuses what a model may not write.

        That is a note that is too long, and frontmatter that names another author or adds the note to prompts.
        """
        text = text.replace("\n", file.newline if file else "\n")
        if file is None or file.hides_frontmatter:
            text = _with_provenance(text)
        before, after = file.data if file else b"", text.encode("utf-8", "surrogateescape")
        limit = self.kb.settings.knowledge_max_note_bytes
        if len(after) > limit:
            problem = f"would have {len(after):,} bytes; the limit is {limit:,}: split it into several files"
            raise InvalidInputError(f"{shown(path)} {problem}")
        old, new = read_note(path, before), read_note(path, after)
        if new.provenance not in (old.provenance, PROVENANCE):
            raise InvalidInputError("`provenance` says who wrote a note: leave it as it is")
        if new.metadata.get("loading") not in (None, old.metadata.get("loading")):
            raise InvalidInputError("`loading` adds a note to prompts, which only the user decides: leave it out")
        return self.store.safe(after, before)

    @contextlib.contextmanager
    def writing(self) -> Generator[None]:
        """Hold the vault's lock, then embed what was written. A search finds it when this returns."""
        with self.store.lock():
            yield
        with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync reads them
            self.kb.index.embed_saved()

    def write(self, path: str, data: bytes, file: MemoryFile | None) -> bool:
        """Create a file, or replace one. False if a new one exists; raises NoteConflictError if an old one changed."""
        if file is None:
            self.store.refuse_name(path)
            make_folders(os.path.dirname(self.store.absolute(path)))
            if not create_exclusively(self.store.absolute(path), data):
                return False
        elif data != file.data:
            self.store.replace(path, data, based_on=file.data)
        self._update_index([], [path])
        return True

    def trash(self, place: Entry) -> None:
        """Move a file, or a folder with its content, to the trash."""
        gone = self._files_in(place)
        self.store.trash(place.path)
        self._update_index(gone, [])

    def move(self, place: Entry, path: str) -> bool:
        """Move a file or a folder; False if the target exists."""
        self.store.refuse_name(path)
        source, target, gone = self.store.absolute(place.path), self.store.absolute(path), self._files_in(place)
        if os.path.lexists(target) and not os.path.samefile(source, target):
            return False
        make_folders(os.path.dirname(target))
        os.rename(source, target)
        sync_folder(os.path.dirname(target))
        sync_folder(os.path.dirname(source))
        self._update_index(gone, self._files_in(place._replace(path=path)))
        return True

    def _files_in(self, place: Entry) -> list[str]:
        inside = self.walk(place.path) if place.kind == "folder" else [place]
        return [entry.path for entry in inside if entry.kind == "file" and is_note_name(entry.path)]

    def _update_index(self, gone: list[str], new: list[str]) -> None:
        with contextlib.suppress(IndexUnavailableError):  # the files are the truth: the next sync reads them
            self.kb.index.forget_files(gone)
            for path in new:
                self.kb.index.index_file(None, path, embed=False)

    def _find(self, folder: str, name: str, is_last: bool) -> Entry:
        """The entry of this name, else one whose name differs in case or Unicode form, else a place for a new one."""
        entries = {entry.path: entry for entry in self._entries(folder)}
        wanted = [f"{folder}/{name}", f"{folder}/{note_name(name) if is_last else name}"]
        keys = {name_key(path) for path in wanted}
        similar = [path for path in entries if name_key(path) in keys]
        return next((entries[path] for path in (*wanted, *similar) if path in entries), Entry(wanted[1], "missing"))

    def _entries(self, folder: str) -> list[Entry]:
        found: list[Entry] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.store.absolute(folder)) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    state = entry.stat(follow_symlinks=False)
                    kind = "folder" if S_ISDIR(state.st_mode) else "file" if S_ISREG(state.st_mode) else "other"
                    size = state.st_size if kind == "file" else 0
                    found.append(Entry(f"{folder}/{entry.name}", kind, size, state.st_mtime))
        return found

    def _excluded(self) -> Callable[[str, bool], bool]:
        """A test for paths that the vault excludes. Reading patterns takes a walk, which most vaults do not need."""
        patterns, excluded = self.kb.settings.knowledge_exclude, None
        if patterns or os.path.exists(os.path.join(self.store.root, IGNORE_FILE)):
            excluded = scan_origin(self.store.root, patterns).excluded
        return excluded or (lambda path, is_folder: False)


def is_note_name(name: str) -> bool:
    """Does the index read files of this name?"""
    return THE_VAULT.wants(name)


def note_name(name: str) -> str:
    return name if is_note_name(name) else name + ENDING


def shown(path: str) -> str:
    """A path inside the vault as a model writes it: `notes.txt.md` was created as `notes.txt`."""
    return "/" + (path.removesuffix(ENDING) if OTHER_ENDING.search(path) else path)


def clean_text(text: str) -> str:
    """What a model sent, as UTF-8 without NUL."""
    return to_utf8(text).replace("\0", "")


def _with_provenance(text: str) -> str:
    """The text with frontmatter that says who wrote it."""
    front = read_frontmatter(text)
    if front.body > front.start and not front.problem:
        with contextlib.suppress(FrontmatterError):  # what cannot be edited safely is plain text
            return set_fields(text, {"provenance": PROVENANCE})
    return AGENT_ONLY + text
