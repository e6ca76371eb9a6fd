"""The vault's `memories/` folder as the files of another memory protocol.

Such a protocol names files as it likes, while the index reads Markdown: `notes.txt` is stored as `notes.txt.md` and
found by both names. Names match in any case and Unicode form. Links are never followed; hidden and excluded names are
refused. Frontmatter that only says `provenance: agent` is hidden: a model counts its own lines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Sequence
from typing import Literal

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import FrontmatterError, InvalidInputError, KnowledgeError, NoteConflictError
from co_cli.ground.values import to_utf8
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import read_note
from co_cli.notes.refs import name_key
from co_cli.sources.origin import ENDING, THE_VAULT
from co_cli.sources.walk import IgnoreRules, entries_of, may_list, path_of, scan_origin
from co_cli.vault.vault import sync_origin

Kind = Literal["file", "folder", "missing"]
ROOT = "memories"
AGENT_ONLY = "---\nprovenance: agent\n---\n"


class MemoryFiles:
    """The files below `memories/` of one vault."""

    def __init__(self, kb: LocalKnowledgeBase) -> None:
        self.kb, self.store = kb, kb.store

    def paths(self) -> list[str]:
        """Every note in `memories/` that is not hidden, excluded or a link."""
        return self._scan()[0]

    def locate(self, names: Sequence[str], new: Kind = "file") -> tuple[str, Kind]:
        """Follow names down from `memories/`: exactly, else in any case and Unicode form, else to a new file or folder.

        Returns the path, and what is there. Raises InvalidInputError for names that cannot be used.
        """
        files, rules = self._scan()
        folders = {ROOT, *(path[: slash.start()] for path in files for slash in re.finditer("/", path))}
        known = {name_key(path): path for path in (*files, *folders)} | {path: path for path in (*files, *folders)}
        path = ROOT
        for depth, name in enumerate(names, 1):
            stored = name if depth < len(names) or THE_VAULT.wants(name) else name + ENDING
            wanted = [f"{path}/{name}", f"{path}/{stored}"]
            found = [known.get(form) for form in (*wanted, *map(name_key, wanted))]
            path = next(filter(None, found), wanted[new == "file"])
        if path in folders or path in files:
            return path, "folder" if path in folders else "file"
        if not may_list(self.store.root, path, rules):
            raise InvalidInputError(f"Path /{'/'.join((ROOT, *names))} cannot be used: hidden, excluded or a link")
        return path, "missing"

    def read(self, path: str) -> tuple[str, bytes]:
        """A file as text, where lines end in `\\n`, and as bytes. Raises InvalidInputError if it is not UTF-8."""
        data = self.store.read(path)
        text = data.decode("utf-8", "replace")
        if text.encode() != data or "\0" in text:
            raise InvalidInputError(f"/{path} is not UTF-8 text; save it as UTF-8 first")
        text = text.removeprefix(AGENT_ONLY)
        return text.replace(_line_end(text), "\n"), data

    @contextlib.contextmanager
    def writing(self) -> Generator[None]:
        """Hold the vault's lock, then update the index: a search finds what was written when this returns."""
        with self.store.lock():
            yield
        with contextlib.suppress(KnowledgeError):  # the files are the truth: the next sync reads them
            sync_origin(self.kb.vault, self.kb.index.origin)
            self.kb.index.embed_saved()

    def write(self, path: str, text: str, old: bytes | None = None) -> bytes:
        """Create a file, or replace the old one. Returns what was written, with secrets masked.

        Raises NoteConflictError if a new file exists, or an old one changed; InvalidInputError for what a model may not
        write: a note that is too long, and frontmatter that names another author, adds the note to prompts or changes
        its limit.
        """
        original, text = (old or b"").decode(), to_utf8(text).replace("\0", "")
        text = text.replace("\n", _line_end(original.removeprefix(AGENT_ONLY)))
        if old is None or original.startswith(AGENT_ONLY):
            text = _with_provenance(text)
        data, limit = text.encode(), self.kb.settings.knowledge_max_note_bytes
        if len(data) > limit:
            raise InvalidInputError(f"/{path} would be over {limit:,} bytes: split it into several files")
        before, after = read_note(path, old or b""), read_note(path, data)
        if after.provenance not in (before.provenance, "agent"):
            raise InvalidInputError("`provenance` says who wrote a note: leave it as it is")
        marked = before.metadata.get("loading")
        if after.metadata.get("loading") not in (marked, None if marked != "never" else marked):
            raise InvalidInputError("`loading` adds a note to prompts, which only the user decides: leave it as it is")
        if before.limit and (after.limit != before.limit or len(after.body.strip()) > before.limit):
            raise InvalidInputError(
                f"/{path} has a limit of {before.limit:,} characters: leave it, and shorten the text"
            )
        data = self.store.safe(data, old or b"")
        if old is not None:
            self.store.replace(path, data, based_on=old)
            return data
        self.kb.vault.require_room()
        self.store.refuse_name(path)
        make_folders(os.path.dirname(self.store.absolute(path)))
        self.store.touch(path)
        if not create_exclusively(self.store.absolute(path), data):
            raise NoteConflictError(f"File /{path} already exists")
        return data

    def move(self, old: str, new: str) -> bool:
        """Move a file or a folder; False if the target exists."""
        self.store.refuse_name(new)
        return self.store.move(old, new)

    def _scan(self) -> tuple[list[str], IgnoreRules | None]:
        scan = scan_origin(self.kb.index.origin, self.kb.index.exclude)
        paths = [path_of(folder, name) for folder, listing in scan.listings.items() for name in entries_of(listing)]
        return [path for path in paths if path.startswith(f"{ROOT}/")], scan.excluded


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"


def _with_provenance(text: str) -> str:
    """The text with frontmatter that says who wrote it."""
    front = read_frontmatter(text)
    if front.body > front.start and not front.problem:
        with contextlib.suppress(FrontmatterError):  # what cannot be edited safely is plain text
            return set_fields(text, {"provenance": "agent"})
    return AGENT_ONLY + text
