"""Folders that are indexed without being copied: any folder of documents, or an Obsidian vault."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import unquote

from co_cli.ground.paths import open_regular
from co_cli.ground.reports import BINARY
from co_cli.notes.dates import read_moment
from co_cli.notes.note import Note, read_note, version_of
from co_cli.notes.refs import without_ending
from co_cli.sources.documents import read_document
from co_cli.sources.documents.formats import is_binary_name, is_picture, largest_size, missing_extra
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE, MARKDOWN, Origin, SourceAdapter

HEAVY = ("node_modules/", "__pycache__/", "venv/", "*.egg-info/", "*~", "#*#", "~$*", "*.part", "*.crdownload")
"""What tools leave behind, and unfinished files."""
APP_SETTINGS, TEMPLATE_SETTINGS = ".obsidian/app.json", ".obsidian/templates.json"
TEMPLATES = "templates"
"""Why they are left out."""
LARGEST_SETTINGS = 1_000_000
BUNDLE_LISTINGS = ("index.md", "log.md")
"""Names that the Open Knowledge Format keeps for listings: the concepts that they list are searched."""
BUNDLE_VERSION, CONCEPT = (
    re.compile(rb"\A---\r?\n(?:(?!---).*\n)*?" + name + rb":[ \t]*[^\s#]") for name in (b"okf_version", b"type")
)
LISTED = re.compile(rb"^[*-] \[[^\]\n]*\]\(<?([^<>)\n:#]+)>?\)", re.MULTILINE)
MOST_LISTED = 12
"""Files that are read to see whether a folder is a bundle."""
FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
"""The ending of a file that is not a note, and not of `v1.2` or `Mr. Lind`."""


class FolderAdapter(SourceAdapter):
    """Any folder, without what git ignores there. Binary files are listed but not read."""

    sources = ("folder",)

    def wants(self, name: str) -> bool:
        return True

    def unread(self, name: str) -> str | None:
        return BINARY if is_binary_name(name) else missing_extra(name)

    def largest(self, name: str, limit: int) -> int:
        return largest_size(name)

    def exclusions(self, origin: Origin) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
        listings = BUNDLE_LISTINGS if _is_bundle(origin.root) else ()
        return {"left by a tool, or unfinished": HEAVY, "a listing of an OKF bundle": listings}, (
            GIT_FILE,
            IGNORE_FILE,
        )

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        ref = f"{origin.label}/{path}"
        if path.lower().endswith(MARKDOWN):
            return replace(read_note(path, data), source="folder", ref=ref)
        name = path.rsplit("/", 1)[-1]
        document = read_document(name, data)
        return replace(
            read_note(path, b""),
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


class ObsidianAdapter(FolderAdapter):
    """An Obsidian vault: a folder without its templates and the files that its own settings exclude."""

    sources = ("obsidian",)

    def exclusions(self, origin: Origin) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
        patterns, _ = super().exclusions(origin)
        excluded = obsidian_patterns(_setting(origin.root, APP_SETTINGS))
        templates = template_patterns(_setting(origin.root, TEMPLATE_SETTINGS))
        return {**patterns, "excluded in Obsidian's settings": excluded, TEMPLATES: templates}, (IGNORE_FILE,)

    def path(self, origin: Origin, rest: str) -> str:
        """A ref leaves out `.md`, as links in Obsidian do, unless the rest could be a file: `paper.pdf.md`."""
        if rest.startswith("./") or rest.lower().endswith(MARKDOWN):
            return rest.removeprefix("./")
        note = f"{rest}.md"
        is_file, is_note = (os.path.lexists(os.path.join(origin.root, path)) for path in (rest, note))
        return note if not FILE.search(rest) or (is_note and not is_file) else rest

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        note = replace(super().read(origin, path, data), source="obsidian")
        if path.lower().endswith(MARKDOWN):
            short = without_ending(path)
            return replace(note, ref=f"{origin.label}/{path if FILE.search(short) else short}")
        return note if FILE.search(path) else replace(note, ref=f"{origin.label}/./{path}")


class PictureAdapter(FolderAdapter):
    """The pictures of a vault, which are searched beside its notes."""

    guards_missing = False

    def wants(self, name: str) -> bool:
        return is_picture(name)

    def exclusions(self, origin: Origin) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
        return {}, (IGNORE_FILE,)


def _is_bundle(root: str) -> bool:
    """Whether a folder says so, or its listing leads to concepts: the field with the version is optional."""
    listing = _setting(root, BUNDLE_LISTINGS[0])
    if listing.startswith(b"---"):
        return bool(BUNDLE_VERSION.match(listing))
    waiting, concepts = _listed(BUNDLE_LISTINGS[0], listing), 0
    for path in islice(waiting, MOST_LISTED):
        text = _setting(root, path)
        if posixpath.basename(path) == BUNDLE_LISTINGS[0]:
            waiting.extend(_listed(path, text))
        elif not CONCEPT.match(text):
            return False
        else:
            concepts += 1
    return concepts > 0


def _listed(listing: str, text: bytes) -> list[str]:
    """The first listings and concepts that a listing names."""
    found: list[str] = []
    for target in LISTED.findall(text):
        name = unquote(target.decode("utf-8", "replace"))
        path = posixpath.normpath(posixpath.join(posixpath.dirname(listing), name).lstrip("/"))
        path = path if posixpath.splitext(path)[1] else f"{path}/{BUNDLE_LISTINGS[0]}"
        if path.endswith(MARKDOWN) and not path.startswith("../"):
            found.append(path)
    return found[:3]


def _setting(root: str, file: str) -> bytes:
    try:
        with open_regular(os.path.join(root, file)) as stream:
            return stream.read(LARGEST_SETTINGS)
    except OSError:
        return b""


def template_patterns(template_settings: bytes) -> list[str]:
    """The folder of templates in Obsidian's templates.json."""
    try:
        folder: Any = json.loads(template_settings)["folder"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return []
    inside = folder.strip("/ ") if isinstance(folder, str) else ""
    return [f"/{_literal(inside)}/"] if inside else []


def obsidian_patterns(app_settings: bytes) -> list[str]:
    """The "excluded files" in Obsidian's app.json. Its regular expressions, written between slashes, are ignored."""
    try:
        settings: Any = json.loads(app_settings)
        filters = [
            pattern for pattern in settings["userIgnoreFilters"] if isinstance(pattern, str) and pattern.strip("/")
        ]
    except (ValueError, RecursionError, LookupError, TypeError):
        return []  # there are none, or Obsidian is just writing them
    literal = [pattern for pattern in filters if not (pattern.startswith("/") and pattern.endswith("/"))]
    return ["/" + _literal(pattern) for pattern in literal]


def _literal(text: str) -> str:
    """As a pattern that matches it alone."""
    return re.sub(r"([*?\[\]!#\\ ])", r"\\\1", text)
