"""Folders of Markdown into copies with the same names and places: Obsidian, basic-memory, and our own exports.

Names stay as they are, because `[[wikilinks]]` use them. Files that are not Markdown are counted, not copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from co_cli.importers.archive import Export
from co_cli.importers.items import Item, as_text
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import BINARY_PROBE, UTF_16
from co_cli.notes.refs import ENDINGS

UNSAFE = re.compile(r"[\\\0-\x1f\x7f\ud800-\udfff]")
"""A backslash is a separator elsewhere, control characters do harm in a terminal, and names are UTF-8."""


def read_own(export: Export) -> Iterator[Item]:
    """What `co data export` wrote: a folder of notes or a zip of one, identified by their paths."""
    if export.single:
        export.fail(export.path, "this is one file: name its folder or the zip")
        return
    notes = [member for member in export.members if member.name.lower().endswith(ENDINGS)]
    for member in notes:
        place = export.place(member)
        data = None if UNSAFE.search(member.name) else export.read(member)
        if UNSAFE.search(member.name):
            export.fail(place, "the name has a backslash or an odd character; rename it")
        elif data is not None and data.startswith(UTF_16):
            export.fail(place, "UTF-16; save it as UTF-8 there, then import it again")
        elif data is not None and b"\0" in data[:BINARY_PROBE]:
            export.fail(place, "not a text file")
        elif data is not None:
            text, name = data.decode("utf-8", "surrogateescape"), member.name
            yield Item(place, name, "note", text, member.base, path=name, modified=member.modified)
    others = Counter(one.ending or "no ending" for one in {*export.members} - {*notes})
    if notes and others:
        listed = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(6))
        export.remarks.append(f"Not copied, because they are not Markdown: {listed}")


def read_obsidian(export: Export) -> Iterator[Item]:
    """Every note of the vault, in a folder of its name and identified by its path."""
    name = UNSAFE.sub("-", export.name).strip(". ") or "vault"
    for file in read_own(export):
        yield file._replace(id=f"{name}/{file.id}", path=f"articles/{name}/{file.path}")


def read_basic_memory(export: Export) -> Iterator[Item]:
    """Every note of the project, identified by its permalink, which stays when the file moves."""
    for file in read_obsidian(export):
        permalink = read_frontmatter(file.text).metadata.get("permalink")
        yield file._replace(id=as_text(permalink).strip() or file.id)
