"""claude-mem's observations and summaries of sessions, from its database or from the JSON of its export script.

An observation becomes a memory, and a summary an article. Prompts are left out: `co data import claude-code` reads
them together with their answers. Older versions have fewer columns, so rows are read as objects.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import apsw

from co_cli.importers import items
from co_cli.importers.archive import MAX_VALUE, Export, Member
from co_cli.importers.items import Entry, Item, as_list, as_object, as_text, first_text
from co_cli.notes.refs import slugify
from co_cli.notes.similarity import body_hash

DATABASE = re.compile(r"(?:^|/)claude-mem\.db$")
EXPORTED = re.compile(r"\.json$", re.I)
TABLES = "select name from sqlite_schema where type = 'table' and name in ('observations', 'session_summaries')"
OBSERVATIONS = "select * from observations order by created_at_epoch, id"
SUMMARIES = "select * from session_summaries order by created_at_epoch, id"
BUSY_MS = 5000  # it may be in use
OWN_PROJECT = "observer-sessions"  # what claude-mem's own agent did
PARTS = ("investigated", "learned", "completed", "next_steps", "notes")


def read_claude_mem(export: Export) -> Iterator[Entry]:
    """`~/.claude-mem`, the `claude-mem.db` in it, or what its export script wrote."""
    named = export.single and not EXPORTED.search(export.path)
    databases = [member for member in export.members if named or DATABASE.search(member.name)]
    for member in databases:
        with export.reporting(member.name):
            yield from _database(export, member)
    for place, value in () if databases else export.values(EXPORTED):
        found = as_object(value)
        if "observations" in found:
            yield from _items(place, found)
        elif export.single:
            yield items.failed(place, "no export of claude-mem: it has no observations")


def _database(export: Export, member: Member) -> Iterator[Item]:
    if export.archive:
        raise ValueError("a database cannot be read in a zip; unpack it first")
    try:
        connection = apsw.Connection(_address(member.where), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            tables = {name for (name,) in connection.execute(TABLES)}
            if "observations" not in tables:
                raise ValueError("no database of claude-mem: it has no table of observations")
            for row in _rows(connection, OBSERVATIONS):
                yield from _items(member.name, {"observations": [row]})
            for row in _rows(connection, SUMMARIES) if "session_summaries" in tables else ():
                yield from _items(member.name, {"summaries": [row]})
            export.done += member.size
        finally:
            connection.close()
    except apsw.Error as error:
        raise ValueError(f"the database cannot be read ({error})") from None


def _address(path: str) -> str:
    """The file as a URI under which SQLite writes nothing beside it, and sees what claude-mem wrote a moment ago."""
    log = f"{path}-wal"
    in_use = os.path.exists(log) and os.path.getsize(log) > 0
    if in_use and not os.path.exists(f"{path}-shm"):
        raise ValueError("a copy of a database in use that lacks its -shm file; copy all three files")
    return f"{Path(path).absolute().as_uri()}?{'mode=ro&readonly_shm=1' if in_use else 'immutable=1'}"


def _rows(connection: apsw.Connection, query: str) -> Iterator[dict[str, object]]:
    cursor = connection.execute(query)
    for row in cursor:
        yield {name: value for (name, _), value in zip(cursor.get_description(), row, strict=True)}


def _items(place: str, found: dict[str, object]) -> Iterator[Item]:
    for make, key in ((_observation, "observations"), (_summary, "summaries")):
        for number, row in enumerate(map(as_object, as_list(found.get(key))), 1):
            if row.get("project") != OWN_PROJECT:
                yield make(f"{place}, {key[:-1]} {row.get('id') or number}", row)


def _observation(place: str, row: dict[str, object]) -> Item:
    facts = "\n".join(f"- {fact}" for fact in _listed(row.get("facts")))
    text = "\n\n".join(filter(None, (first_text(row, "narrative", "text"), facts))) or first_text(row, "subtitle")
    title, (project, folder) = first_text(row, "title"), _project(row)
    files = [*dict.fromkeys((*_listed(row.get("files_modified")), *_listed(row.get("files_read"))))]
    about = {"description": first_text(row, "subtitle") or None, "project": project or None, "files": files or None}
    identity, category = _identity(row, body_hash(title or text)), first_text(row, "type") or None
    tags = tuple(_listed(row.get("concepts")))
    return Item(place, identity, "memory", text, title, "memory", folder, tags, category, {**_dates(row), **about})


def _summary(place: str, row: dict[str, object]) -> Item:
    parts = [(key, first_text(row, key)) for key in PARTS]
    text = "\n\n".join(f"## {key.replace('_', ' ').capitalize()}\n\n{said}" for key, said in parts if said)
    title, (project, folder) = first_text(row, "request"), _project(row)
    fields = {**_dates(row), "project": project or None}
    return Item(place, _identity(row, "summary"), "document", text, title, "article", folder, fields=fields)


def _project(row: dict[str, object]) -> tuple[str, str]:
    """Its name, and the folder of its notes."""
    project = first_text(row, "merged_into_project", "project")
    return project, f"claude-mem/{slugify(project)}" if project else "claude-mem"


def _identity(row: dict[str, object], last: str) -> str:
    """The same on every machine, unlike the number of a row; claude-mem itself finds duplicates by these."""
    session = first_text(row, "memory_session_id", "sdk_session_id")
    return f"{session}/{row.get('created_at_epoch')}/{last}"


def _dates(row: dict[str, object]) -> dict[str, object]:
    return {"created": items.moment_of(row.get("created_at_epoch")) or items.moment_of(row.get("created_at"))}


def _listed(value: object) -> list[str]:
    """A list of texts, which the database keeps as JSON."""
    try:
        found = as_list(json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        found = [value]  # what an older version wrote
    return [text for text in (" ".join(as_text(entry).split()) for entry in found) if text]
