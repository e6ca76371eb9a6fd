"""The vault's `memories/` folder as the files of another memory protocol.

Such a protocol names files as it likes, while the index reads Markdown: `notes.txt` is stored as `notes.txt.md`, listed
as `notes.txt`, and found by both names. Names match in any case and Unicode form. Links are never followed; hidden and
excluded names are refused. Frontmatter that only says `provenance: agent` is hidden: a model counts its own lines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Sequence
from typing import Literal, NamedTuple

from co_cli.errors import FrontmatterError, InvalidInputError, KnowledgeError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.knowledge_index import SAVE_SECONDS
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders, sync_folder
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import BINARY_PROBE, UTF_16, read_note
from co_cli.notes.refs import name_key
from co_cli.sources.origin import ENDING, THE_VAULT
from co_cli.sources.walk import IgnoreRules, entries_of, may_list, path_of, scan_origin
from co_cli.values import to_utf8

ROOT = "memories"
PROVENANCE = "agent"
AGENT_ONLY = f"---\nprovenance: {PROVENANCE}\n---\n"
OTHER_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\.md\Z")


class Entry(NamedTuple):
    """What a path leads to, or where it would be created."""

    path: str
    kind: Literal["file", "folder", "missing"]


class MemoryFile(NamedTuple):
    """A file as a protocol sees it, and what is needed to write it back byte for byte."""

    path: str
    text: str
    """Lines end in `\\n`; bytes that are not UTF-8 are lone surrogates."""
    data: bytes
    newline: str
    hides_frontmatter: bool


class MemoryFiles:
    """The files below `memories/` of one vault, for one command: ignore files are read once."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.store = kb, kb.store

    def paths(self) -> list[str]:
        """Every note in `memories/` that is not hidden, excluded or a link."""
        return self._scan()[0]

    def locate(self, names: Sequence[str]) -> Entry:
        """Follow names down from `memories/`: exactly, else in any case and Unicode form, else to a new path.

        Raises InvalidInputError for names that cannot be used.
        """
        files, rules = self._scan()
        folders = {ROOT, *(path[: slash.start()] for path in files for slash in re.finditer("/", path))}
        known = {path: path for path in (*files, *folders)}
        similar = {name_key(path): path for path in known}
        path, given = ROOT, "/".join(("", ROOT, *names))
        for depth, name in enumerate(names, 1):
            if path in known and path not in folders:
                raise InvalidInputError(f"Path {given} leads through the file {shown(path)}")
            wanted = [f"{path}/{name}", f"{path}/{note_name(name) if depth == len(names) else name}"]
            found = [*map(known.get, wanted), *(similar.get(name_key(one)) for one in wanted)]
            path = next(filter(None, found), wanted[1])
        if path not in known and not may_list(self.store.root, path, rules):
            raise InvalidInputError(f"Path {given} cannot be used: it is hidden, excluded or a link")
        return Entry(path, "folder" if path in folders else "file" if path in known else "missing")

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

    @contextlib.contextmanager
    def writing(self) -> Generator[None]:
        """Hold the vault's lock, then update the index: a search finds what was written when this returns."""
        with self.store.lock():
            yield
        with contextlib.suppress(KnowledgeError):  # the files are the truth: the next sync reads them
            self.kb.index.sync(seconds=SAVE_SECONDS)

    def write(self, path: str, text: str, old: MemoryFile | None = None, keep_old: bool = False) -> bytes:
        """Create a file, or replace the old one and with `keep_old` put a copy of it into the trash.

        Returns what was written, with secrets masked. Raises NoteConflictError if a new file exists, or an old one
        changed.
        """
        data = self._encode(path, text, old)
        if old is None:
            self.store.refuse_name(path)
            make_folders(os.path.dirname(self.store.absolute(path)))
            if not create_exclusively(self.store.absolute(path), data):
                raise NoteConflictError(f"File {shown(path)} already exists")
            return data
        if keep_old:
            self.store.keep(path, old.data)
        if data != old.data:
            self.store.replace(path, data, based_on=old.data)
        return data

    def move(self, old: str, new: str) -> bool:
        """Move a file or a folder; False if the target exists."""
        self.store.refuse_name(new)
        source, target = self.store.absolute(old), self.store.absolute(new)
        if os.path.lexists(target) and not os.path.samefile(source, target):
            return False
        make_folders(os.path.dirname(target))
        os.rename(source, target)
        sync_folder(os.path.dirname(target))
        sync_folder(os.path.dirname(source))
        return True

    def _encode(self, path: str, text: str, old: MemoryFile | None) -> bytes:
        """The bytes to write. Refuses what a model may not write: a note that is too long, and frontmatter that names
        another author or adds the note to prompts.
        """
        text = text.replace("\n", old.newline if old else "\n")
        if old is None or old.hides_frontmatter:
            text = _with_provenance(text)
        data, limit = text.encode("utf-8", "surrogateescape"), self.kb.settings.knowledge_max_note_bytes
        if len(data) > limit:
            problem = f"would have {len(data):,} bytes; the limit is {limit:,}: split it into several files"
            raise InvalidInputError(f"{shown(path)} {problem}")
        before, after = read_note(path, old.data if old else b""), read_note(path, data)
        if after.provenance not in (before.provenance, PROVENANCE):
            raise InvalidInputError("`provenance` says who wrote a note: leave it as it is")
        if after.metadata.get("loading") not in (None, before.metadata.get("loading")):
            raise InvalidInputError("`loading` adds a note to prompts, which only the user decides: leave it out")
        return self.store.safe(data, old.data if old else b"")

    def _scan(self) -> tuple[list[str], IgnoreRules | None]:
        scan = scan_origin(self.kb.index.origin, self.kb.index.exclude)
        paths = [path_of(folder, name) for folder, listing in scan.listings.items() for name in entries_of(listing)]
        return [path for path in paths if path.startswith(f"{ROOT}/")], scan.excluded


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
