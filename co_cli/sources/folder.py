"""Folders that are indexed without being copied: any folder of documents, or an Obsidian vault."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from co_cli.notes.dates import read_moment
from co_cli.notes.note import Note, read_note, version_of
from co_cli.notes.refs import without_ending
from co_cli.paths import open_regular
from co_cli.sources.documents import is_binary_name, largest_size, missing_extra, read_document
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE, MARKDOWN, Kind, Origin
from co_cli.values import BINARY

HEAVY = ("node_modules/", "__pycache__/", "venv/", "*.egg-info/", "*~", "#*#", "~$*", "*.part", "*.crdownload")
"""What tools leave behind, and unfinished files."""
APP_SETTINGS = ".obsidian/app.json"
LARGEST_SETTINGS = 1_000_000


class FolderKind(Kind):
    """Any folder, without what git ignores there. Binary files are listed but not read."""

    sources = ("folder",)

    def wants(self, name: str) -> bool:
        return True

    def unread(self, name: str) -> str | None:
        return BINARY if is_binary_name(name) else missing_extra(name)

    def largest(self, name: str, limit: int) -> int:
        return largest_size(name)

    def exclusions(self, origin: Origin) -> tuple[Sequence[str], Sequence[str]]:
        return HEAVY, (GIT_FILE, IGNORE_FILE)

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        ref = f"{origin.label}/{path}"
        if path.lower().endswith(MARKDOWN):
            return read_note(path, data)._replace(source="folder", ref=ref)
        name = path.rsplit("/", 1)[-1]
        document = read_document(name, data)
        return read_note(path, b"")._replace(
            source="folder",
            ref=ref,
            title=document.title or name,
            body=document.text,
            metadata=document.metadata,
            created=read_moment(document.metadata.get("created")),
            updated=read_moment(document.metadata.get("updated")),
            problem=document.problem,
            sections=document.headings,
            version=version_of(data),
        )


class ObsidianKind(Kind):
    """An Obsidian vault: its Markdown, without the files that its own settings exclude."""

    sources = ("obsidian",)

    def exclusions(self, origin: Origin) -> tuple[Sequence[str], Sequence[str]]:
        return _excluded_files(origin.root), (IGNORE_FILE,)

    def path(self, origin: Origin, rest: str) -> str:
        return rest if rest.lower().endswith(MARKDOWN) else f"{rest}.md"

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        return read_note(path, data)._replace(source="obsidian", ref=f"{origin.label}/{without_ending(path)}")


def _excluded_files(root: str) -> list[str]:
    try:
        with open_regular(os.path.join(root, APP_SETTINGS)) as stream:
            return obsidian_patterns(stream.read(LARGEST_SETTINGS))
    except OSError:
        return []


def obsidian_patterns(app_settings: bytes) -> list[str]:
    """The "excluded files" in Obsidian's app.json. Its regular expressions, written between slashes, are ignored."""
    try:
        settings: Any = json.loads(app_settings)
        filters = [one for one in settings["userIgnoreFilters"] if isinstance(one, str) and one.strip("/")]
    except (ValueError, RecursionError, LookupError, TypeError):
        return []  # there are none, or Obsidian is just writing them
    literal = [one for one in filters if not (one.startswith("/") and one.endswith("/"))]
    return ["/" + re.sub(r"([*?\[\]!#\\ ])", r"\\\1", one) for one in literal]
