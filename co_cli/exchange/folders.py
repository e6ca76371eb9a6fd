"""Folders of Markdown, an Obsidian vault or a basic-memory project, into copies that keep their names and their places.

The names stay as they are, below a folder named after the vault: `[[wikilinks]]` go by names. What is not Markdown is
counted and told, not copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from co_cli.exchange.archive import Export, Member, Unreadable
from co_cli.exchange.items import Copy, Entry, Left, Own, Remark, Trouble, as_text
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import UTF_16, NotTextError, decode
from co_cli.notes.refs import ENDINGS
from co_cli.typed import whole

LONGEST_NAME = 255
NOT_HERE = re.compile(r"[\\\0-\x1f\x7f]")
"""Not in a name of ours: a backslash is a separator elsewhere, and control characters are a trap."""


def read_obsidian(export: Export, largest: int) -> Iterator[Entry]:
    """Every note of the vault, known again by its path."""
    yield from _copies(export, largest, by_permalink=False)


def read_basic_memory(export: Export, largest: int) -> Iterator[Entry]:
    """Every note of the project, known again by its permalink, which stays when the file moves."""
    yield from _copies(export, largest, by_permalink=True)


def read_own_folder(export: Export, largest: int) -> Iterator[Entry]:
    """The notes of a folder that `co export` wrote, or of a vault."""
    for member, data in _notes(export, largest):
        if isinstance(data, bytes):
            yield Own(export.place(member), member.name, data, member.modified)
        else:
            yield data


def path_problem(path: str) -> str:
    """Why a path from an export cannot be one of ours; empty if it can."""
    parts = path.split("/")
    if whole(path) != path:
        return "a name that is not UTF-8"
    if not path.lower().endswith(ENDINGS):
        return "a name that is no note's: it does not end in .md"
    if any(part in ("", ".", "..") or part.startswith(".") for part in parts) or path.startswith("/"):
        return "a path that leads elsewhere, or is hidden"
    if any(len(part.encode()) > LONGEST_NAME for part in parts):
        return f"a name of more than {LONGEST_NAME} bytes; shorten it there"
    if NOT_HERE.search(path):
        return "a name with a backslash or a control character; rename it there"
    return ""


def _copies(export: Export, largest: int, by_permalink: bool) -> Iterator[Entry]:
    name = NOT_HERE.sub("-", export.name).strip(". ") or "vault"
    for member, data in _notes(export, largest):
        if not isinstance(data, bytes):
            yield data
            continue
        identity = f"{name}/{member.name}"
        if by_permalink:
            permalink = read_frontmatter(data.decode("utf-8", "replace")).metadata.get("permalink")
            identity = as_text(permalink).strip() or identity
        yield Copy(export.place(member), identity, f"articles/{name}/{member.name}", data, member.modified)


def _notes(export: Export, largest: int) -> Iterator[tuple[Member, bytes | Entry]]:
    """Each Markdown file with its bytes, or with why it is left; at the end what else there was."""
    if export.single:
        only = export.members[0]
        yield only, Trouble(export.path, "one file: name the folder that it lies in, or the zip")
        return
    others: Counter[str] = Counter()
    notes = 0
    for member in export.members:
        place = export.place(member)
        if not member.name.lower().endswith(ENDINGS):
            others[member.ending or "no ending"] += 1
            continue
        notes += 1
        problem = path_problem(member.name)
        if problem:
            yield member, Trouble(whole(place), problem)
            continue
        try:
            data = export.read(member, largest)
            decode(data)
        except (Unreadable, NotTextError) as error:
            yield member, Trouble(place, str(error))
            continue
        if data.startswith(UTF_16):
            yield member, Trouble(place, "UTF-16; save it as UTF-8 there, then import it again")
        elif not data.strip():
            yield member, Left(place, "note", member.base, "it is empty")
        else:
            yield member, data
    if others and notes:
        told = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(6))
        yield export.members[0], Remark(f"Not copied, because they are no Markdown: {told}")
    if not notes:
        where = Trouble(export.path, "no notes in it (.md)")
        yield Member(export.path, 0, None, export.path), where
