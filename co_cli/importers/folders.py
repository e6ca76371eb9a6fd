"""Markdown into copies with the same names and places: folders of Obsidian and basic-memory, and our own exports.

Names stay as they are, because `[[wikilinks]]` use them. Files that are not Markdown are counted, not copied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from co_cli.importers.archive import Export
from co_cli.importers.items import Item, as_object, first_text, skipped
from co_cli.importers.sessions import LINES
from co_cli.notes.encoding import BINARY_PROBE, UTF_16
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.refs import ENDINGS
from co_cli.sources.folder import APP_SETTINGS, LARGEST_SETTINGS, obsidian_patterns

UNSAFE = re.compile(r"[\\\0-\x1f\x7f\ud800-\udfff]")
"""A backslash is a separator elsewhere, control characters do harm in a terminal, and names are UTF-8."""
OWN_UNSAFE = UNSAFE if os.sep == "\\" else re.compile(r"[\0\ud800-\udfff]")
"""A note of a vault may have any other name."""


def read_own(export: Export) -> Iterator[Item]:
    """What `co data export` wrote: a folder, a zip or JSON Lines of notes, which are identified by their paths."""
    if not export.single or not LINES.search(export.path):
        yield from _read_files(export, own=True)
        return
    for place, value in export.values(LINES):
        found = as_object(value)
        path, text = found.get("path"), found.get("text")
        with export.reporting(place):
            if not isinstance(path, str) or not isinstance(text, str):
                raise ValueError("no note of `co data export`: it has no path, or no text")
            if not path.lower().endswith(ENDINGS) or path.startswith(".") or "/." in path:
                raise ValueError(f"{path} is not the path of a note")
            yield _item(path, text.encode("utf-8", "surrogateescape"), own=True)


def _read_files(export: Export, own: bool = False) -> Iterator[Item]:
    if export.single:
        export.fail(export.path, "this is one file: name its folder or the zip")
        return
    notes = [member for member in export.members if member.name.lower().endswith(ENDINGS)]
    for member in notes:
        with export.reporting(member.name):
            yield _item(member.name, export.read(member), member.modified, own)
    others = sorted({*export.members} - {*notes}) if notes else []
    export.receipts += [
        skipped(member.name, "file", member.name, "not Markdown, so it is not copied") for member in others
    ]


def _item(name: str, data: bytes, modified: float | None = None, own: bool = False) -> Item:
    if (OWN_UNSAFE if own else UNSAFE).search(name):
        raise ValueError("the name has a backslash or an odd character; rename it")
    wide = data.startswith(UTF_16)  # a vault may have such a note
    if (wide and not own) or (not wide and b"\0" in data[:BINARY_PROBE]):
        raise ValueError("not a text in UTF-8; save it as UTF-8 there, then import it again")
    text = data.decode("utf-8", "surrogateescape")
    return Item(name, name, "note", text, os.path.basename(name), path=name, modified=modified)


def read_obsidian(export: Export) -> Iterator[Item]:
    """Every note that the vault does not exclude, in a folder of its name and identified by its path."""
    if patterns := obsidian_patterns(export.read_hidden(APP_SETTINGS, LARGEST_SETTINGS)):
        from pathspec import GitIgnoreSpec  # 20 ms, which `co add` would pay too

        excluded = GitIgnoreSpec.from_lines(patterns)
        left_out = {member: None for member in export.members if excluded.match_file(member.name)}  # an ordered set
        export.members = [member for member in export.members if member not in left_out]
        export.receipts += [
            skipped(member.name, "file", member.name, "Obsidian's settings exclude it") for member in left_out
        ]
    name = UNSAFE.sub("-", export.name).strip(". ") or "vault"
    for file in _read_files(export):
        yield file._replace(id=f"{name}/{file.id}", path=f"articles/{name}/{file.path}")


def read_basic_memory(export: Export) -> Iterator[Item]:
    """Every note of the project, identified by its permalink, which stays when the file moves."""
    for file in read_obsidian(export):
        yield file._replace(id=first_text(read_frontmatter(file.text).metadata, "permalink") or file.id)
