"""A note as one line of JSON, and back.

Where its fields and its text alone would not give the same bytes, the file itself is in the line too.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator

from co_cli.errors import InvalidInputError
from co_cli.exchange.archive import Export, Unreadable
from co_cli.exchange.folders import path_problem, read_own_folder
from co_cli.exchange.items import Entry, Own, Trouble, as_object, as_text, called, first_text
from co_cli.exchange.json_values import json_lines, json_values
from co_cli.notes.editing import render_note
from co_cli.notes.moments import moment_text
from co_cli.notes.note import Note
from co_cli.notes.refs import path_of


def note_line(note: Note, data: bytes) -> str:
    """One line without its end."""
    told: dict[str, object] = {
        "ref": note.ref,
        "path": note.path,
        "title": note.title,
        "kind": note.source,
        "body": note.body,
        "frontmatter": note.metadata,
        "tags": list(note.tags),
        "created": moment_text(note.created) if note.created is not None else None,
        "updated": moment_text(note.updated) if note.updated is not None else None,
        "links": list(note.links),
    }
    if _rendered(note.metadata, note.body) != data:
        try:
            told["file"] = data.decode("utf-8")
        except UnicodeDecodeError:
            told["file_base64"] = base64.b64encode(data).decode("ascii")
    line = json.dumps(told, ensure_ascii=False)
    return line if _encodes(line) else json.dumps(told)


def read_own(export: Export, largest: int) -> Iterator[Entry]:
    """What `co export` wrote: JSON Lines, a folder of notes or a zip of one."""
    if not export.single:
        yield from read_own_folder(export, largest)
        return
    member = export.members[0]
    place = export.place(member)
    try:
        with export.open(member) as stream:
            found = enumerate(json_values(stream), 1) if member.ending == ".json" else json_lines(stream)
            for number, value in found:
                yield own_entry(value, f"{place}, line {number}")
    except Unreadable as problem:
        yield Trouble(place, str(problem))


def own_entry(value: object, place: str) -> Entry:
    if isinstance(value, Unreadable):
        return Trouble(place, str(value))
    found = as_object(value)
    path = first_text(found, "path") or path_of(first_text(found, "ref")) or ""
    if not path:
        return Trouble(place, f"no note of ours: {called(value)} without a path")
    problem = path_problem(path)
    if problem:
        return Trouble(place, f"{path}: {problem}")
    data = _data(found)
    if data is None:
        return Trouble(place, f"{path}: no note of ours: it needs a body and frontmatter, or the file")
    return Own(place, path, data)


def _data(found: dict[str, object]) -> bytes | None:
    file = found.get("file")
    if isinstance(file, str):
        return file.encode("utf-8", "replace")
    if isinstance(found.get("file_base64"), str):
        try:
            return base64.b64decode(as_text(found["file_base64"]), validate=True)
        except (binascii.Error, ValueError):
            return None
    if not isinstance(found.get("body"), str):
        return None
    return _rendered(as_object(found.get("frontmatter")), as_text(found["body"]))


def _rendered(metadata: dict[str, object], body: str) -> bytes | None:
    try:
        text = render_note(metadata, body) if metadata else body
        return text.encode("utf-8")
    except (InvalidInputError, UnicodeEncodeError, ValueError, RecursionError):
        return None


def _encodes(line: str) -> bool:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
