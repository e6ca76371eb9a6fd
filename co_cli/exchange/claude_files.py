"""A file of Claude's memory folder, or a CLAUDE.md, into a note.

A memory file has frontmatter with `name`, `description` and a type (`user`, `feedback`, `project`, `reference`); those
of the memory tool have none, and any ending. `MEMORY.md` is an index of the others, unless something else stands in it.
"""

from __future__ import annotations

import os
import re

from co_cli.exchange.archive import Export, Member
from co_cli.exchange.items import Entry, Left, Text, as_object, as_text
from co_cli.notes.note import NotTextError, read_note
from co_cli.service.saving import title_from
from co_cli.typed import whole

TEXTS = (".md", ".markdown", ".txt", ".xml")
LARGEST = 2_000_000
MEMORY_FOLDERS = ("memory", "memories")
INSTRUCTIONS = ("claude.md", "claude.local.md")
INDEX_LINE = re.compile(r"\s*[-*+]\s+\[[^\]\n]*\]\([^)\n]*\)|\s*[-*+]\s+\[\[|\s*#|\s*$")


def memory_members(export: Export) -> list[Member]:
    """The texts that are Claude's memory: of a folder that has memory folders only what lies in them."""
    texts = [member for member in export.members if member.ending in TEXTS]
    marked = [
        member
        for member in texts
        if member.base.lower() in INSTRUCTIONS
        or any(part.lower() in MEMORY_FOLDERS for part in member.name.split("/")[:-1])
    ]
    return marked or texts


def memory_file(export: Export, member: Member) -> Entry:
    place = export.place(member)
    home, rest = _known_as(export, member)
    try:
        note = read_note(f"memories/{rest}", export.read(member, LARGEST))
    except NotTextError:
        return Left(place, "file", rest, "it is no text")
    text = note.body.strip()
    if not text:
        return Left(place, "memory", note.title, "it is empty")
    if member.base == "MEMORY.md" and all(INDEX_LINE.match(line) for line in text.splitlines()):
        return Left(place, "memory", "MEMORY.md", "it is only an index of the other files")
    if member.base.lower() in INSTRUCTIONS:
        return Text(place, f"{home}/{rest}", "document", f"{home}: {member.base}", text, folder="claude")
    described = note.metadata
    named = as_text(described.get("name")).strip() or as_text(described.get("title")).strip()
    kind = as_text(as_object(described.get("metadata")).get("type")) or as_text(described.get("type"))
    return Text(
        place=place,
        id=f"{home}/{rest}",
        noun="memory",
        title=named or title_from(text),
        text=text,
        source="memory",
        tags=note.tags,
        category=kind.strip() or None,
        fields={"description": note.description} if note.description else {},
    )


def _known_as(export: Export, member: Member) -> tuple[str, str]:
    """The project's name and the file's: the same from whichever folder above it was imported."""
    where = f"{export.name}/{member.name}" if export.archive else os.path.realpath(member.where)
    parts = whole(where).replace(os.sep, "/").split("/")
    if member.base.lower() in INSTRUCTIONS:
        return parts[-2] if len(parts) > 1 else export.name, parts[-1]
    for place in range(len(parts) - 2, 0, -1):
        if parts[place].lower() in MEMORY_FOLDERS and parts[place - 1]:
            return parts[place - 1], "/".join(parts[place + 1 :])
    return export.name if not export.single else parts[-2], whole(member.name)
