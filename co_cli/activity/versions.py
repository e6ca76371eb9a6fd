"""The history of each document: its head, and every head it had before. Written inside the caller's transaction.

A head is compared by its hash, so recording the same thing twice, or everything again after search.db was deleted,
adds nothing. A move keeps the history, and so do a removal and a return. What somebody types in the page is saved many
times: all of that is one version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.activity.events import Head, Indexed, masked
from co_cli.index.names import fold_name
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.refs import without_ending

ADD_VAULT = "insert into vaults (root) values (:root) on conflict do nothing"
FIND_VAULT = "select id, seen from vaults where root = :root"
SET_SEEN = "update vaults set seen = :at where id = :vault"

ADD = """
insert into documents (vault_id, path) select :vault, value from json_each(:paths) where true
on conflict (vault_id, path) do update set gone = gone returning id
"""
FIND = "select id, hash, title, gone, updated from documents where vault_id = :vault and path = :path"
SET_HEAD = """
update documents set hash = :hash, title = :title, size = :size, updated = :at, gone = null where id = :id
"""
SET_TITLE = "update documents set title = :title where id = :id"
SET_GONE = "update documents set gone = :at where id = :id"
SET_PATH = "update documents set path = :path, gone = null where id = :id"
SAME_CONTENT = """
select path from documents where vault_id = :vault and hash = :hash and gone is null and path <> :path limit 20
"""
ADD_VERSION = """
insert into versions (document_id, at, what, hash, title, size, before, front_end)
select id, :at, :what, hash, title, size, :before, :front_end from documents where id = :id
"""
LAST_VERSION = """
select id, at, what, front_end from versions where document_id = :id order by at desc, id desc limit 1
"""
SAVE_AGAIN = """
update versions set (at, hash, title, size) = (select :at, hash, title, size from documents where id = :id)
where id = :version
"""
PAGE, EDITING = "web", 600.0
"""The page saves while somebody types: its saves are one version until there was none for this many seconds."""

MERGE = (
    "update versions set document_id = :id where document_id = :other",
    """
    insert into uses (document_id, recalls, recalled, opens, opened, led)
    select :id, recalls, recalled, opens, opened, led from uses where document_id = :other
    on conflict (document_id) do update set
        recalls = recalls + excluded.recalls, opens = opens + excluded.opens,
        recalled = nullif(max(ifnull(recalled, 0), ifnull(excluded.recalled, 0)), 0),
        opened = nullif(max(ifnull(opened, 0), ifnull(excluded.opened, 0)), 0),
        led = nullif(max(ifnull(led, 0), ifnull(excluded.led, 0)), 0)
    """,
    "delete from uses where document_id = :other",
    "update or replace judgements set document_id = :id where document_id = :other",
    "update or replace conversations set document_id = :id where document_id = :other",
    "update facets set document_id = :id where document_id = :other",
    "delete from documents where id = :other",
)

HEAD = """
select documents.id, path, hash, title, size, updated, gone, ifnull(recalls, 0), recalled, ifnull(opens, 0), opened
from documents join vaults on vaults.id = vault_id left join uses on uses.document_id = documents.id
where root = :root and path = :path
"""
HISTORY = """
select at, what, hash, title, size, before, front_end from versions
where document_id = :id order by at desc, id desc limit :limit
"""
MOVED_TO = """
select documents.path from versions join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and before = :path order by at desc, versions.id desc limit 1
"""

CHANGED = """
select documents.id, at, what, path, documents.title, before, gone from versions
join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and at >= :since and what <> 'seen' order by at desc, versions.id desc
"""
GONE = """
select path, title from documents join vaults on vaults.id = vault_id
where root = :root and gone is not null order by gone desc
"""
ROOTS = "select root from vaults"
IN_BOTH = """
select ours.id, theirs.id from documents as ours
join documents as theirs on theirs.vault_id = :new and theirs.path = ours.path where ours.vault_id = :old
"""
DROP_FIRST_LOOK = """
delete from versions where document_id = :other and what = 'seen'
and hash = (select hash from documents where id = :id and gone is null)
"""
TAKE_HEAD = """
update documents set (hash, title, size, updated, gone) =
    (select hash, title, size, updated, gone from documents where id = :other)
where id = :id and (select hash from documents where id = :other) is not null
"""
MOVE_VAULT = (
    "update documents set vault_id = :new where vault_id = :old",
    "update or ignore judgements set vault_id = :new where vault_id = :old",  # those of the new place are later
    "delete from judgements where vault_id = :old",
    "update searches set vault_id = :new where vault_id = :old",
    "update turns set vault_id = :new where vault_id = :old",
    "update extractions set vault_id = :new where vault_id = :old",
    "update vaults set seen = (select seen from vaults where id = :old) where id = :new and seen is null",
    "delete from vaults where id = :old",
)


class Known(NamedTuple):
    """A document with its head and how it was used."""

    id: int
    path: str
    hash: str | None
    title: str
    size: int | None
    updated: float | None
    gone: float | None
    recalls: int
    recalled: float | None
    opens: int
    opened: float | None


class Version(NamedTuple):
    """One head that a document had, or something that happened to it."""

    at: float
    what: str
    hash: str | None
    title: str
    size: int | None
    before: str | None
    front_end: str | None
    """That saved it; None if the file was changed outside of co."""


class Changed(NamedTuple):
    """What happened to a document since a moment."""

    at: float
    """The last time."""
    what: str
    """created, updated, moved, removed or restored"""
    path: str
    title: str
    before: str | None
    """The path that it had, if it was moved last."""


def vault_id(connection: apsw.Connection, root: str) -> int:
    return _vault(connection, root)[0]


def _vault(connection: apsw.Connection, root: str) -> tuple[int, bool]:
    """The vault's id, and whether a sync of it was recorded."""
    found = fetch(connection, FIND_VAULT, {"root": root})
    if not found:
        connection.execute(ADD_VAULT, {"root": root})
        found = fetch(connection, FIND_VAULT, {"root": root})
    [(number, seen)] = found
    return number, seen is not None


def document_id(connection: apsw.Connection, vault: int, path: str) -> int:
    return document_ids(connection, vault, [path])[0]


def document_ids(connection: apsw.Connection, vault: int, paths: Sequence[str]) -> list[int]:
    """The documents at these paths, which are added if they are unknown."""
    texts = [os.fspath(path) for path in paths]  # a line of the spool may have anything: TypeError
    values = {"vault": vault, "paths": json.dumps(texts, ensure_ascii=False)}
    return [number for (number,) in fetch(connection, ADD, values)]


def put_heads(connection: apsw.Connection, event: Indexed) -> None:
    """Record what a sync or a save changed. What the first sync of a vault finds was there before us: `seen`."""
    vault, seen = _vault(connection, event.root)
    for before, path in event.moved:
        _move(connection, vault, before, path, event)
    for head in event.heads:
        head = head._replace(title=masked(head.title))  # rows stay when the secret is out of the note
        _put_head(connection, event, vault, head, "created" if seen or event.saved_by else "seen")
    for path in event.removed:
        for number, _, _, gone, updated in fetch(connection, FIND, {"vault": vault, "path": path}):
            if gone is None and (updated or 0.0) <= event.at:
                connection.execute(SET_GONE, {"id": number, "at": event.at})
                _add_version(connection, number, event, "removed")
    if not seen and not event.saved_by:
        connection.execute(SET_SEEN, {"vault": vault, "at": event.at})


def _put_head(connection: apsw.Connection, event: Indexed, vault: int, head: Head, first: str) -> None:
    """`first` is what to call a document that was unknown."""
    known = fetch(connection, FIND, {"vault": vault, "path": head.path})
    number, known_hash, title, gone, updated = known[0] if known else (0, None, "", None, None)
    if known_hash is None:
        same = fetch(connection, SAME_CONTENT, {"vault": vault, "hash": head.hash, "path": head.path})
        before = next((path for (path,) in same if not os.path.lexists(os.path.join(event.root, path))), None)
        if before is not None:  # its file is gone, and this one has its content
            _move(connection, vault, before, head.path, event)
            return
        number, what = document_id(connection, vault, head.path), first
    elif event.at < max(updated, gone or 0.0):
        return  # another process recorded a later change first
    elif gone is not None:
        what = "restored"
    elif known_hash != head.hash:
        what = "updated"
    else:
        if title != head.title:  # taken from the file's name, which changed
            connection.execute(SET_TITLE, {"id": number, "title": head.title})
        return
    values = {"id": number, "hash": head.hash, "title": head.title, "size": head.size, "at": event.at}
    connection.execute(SET_HEAD, values)
    version = _being_edited(connection, number, event) if what == "updated" else None
    if version is None:
        _add_version(connection, number, event, what)
    else:
        connection.execute(SAVE_AGAIN, {"id": number, "version": version, "at": event.at})


def _being_edited(connection: apsw.Connection, number: int, event: Indexed) -> int | None:
    """The last version of a document, if this save of the page continues it."""
    who = event.saved_by
    for version, at, what, front_end in fetch(connection, LAST_VERSION, {"id": number}):
        goes_on = who == front_end and what in ("created", "updated") and event.at - at < EDITING
        if who is not None and who.partition(":")[0] == PAGE and goes_on:
            return int(version)
    return None


def _move(connection: apsw.Connection, vault: int, before: str, path: str, event: Indexed) -> None:
    """Give a document another path. Whatever was there before becomes part of its history."""
    for number, *_ in fetch(connection, FIND, {"vault": vault, "path": before}):
        for other, *_ in fetch(connection, FIND, {"vault": vault, "path": path}):
            _merge(connection, number, other)
        connection.execute(SET_PATH, {"id": number, "path": path})
        _add_version(connection, number, event, "moved", before)


def _merge(connection: apsw.Connection, number: int, other: int) -> None:
    """Add the history and the use of another document to this one, and delete it."""
    for statement in MERGE:
        connection.execute(statement, {"id": number, "other": other} if ":id" in statement else {"other": other})


def _add_version(
    connection: apsw.Connection, number: int, event: Indexed, what: str, before: str | None = None
) -> None:
    row = {"id": number, "at": event.at, "what": what, "before": before, "front_end": event.saved_by}
    connection.execute(ADD_VERSION, row)


def known(connection: apsw.Connection, root: str, path: str) -> Known | None:
    rows = fetch(connection, HEAD, {"root": root, "path": path})
    return Known._make(rows[0]) if rows else None


def moved_to(connection: apsw.Connection, root: str, path: str) -> str | None:
    """The present path of the document that once had this one."""
    rows = fetch(connection, MOVED_TO, {"root": root, "path": path})
    return rows[0][0] if rows else None


def gone_named(connection: apsw.Connection, root: str, name: str) -> str | None:
    """The path of the document with this title or file name that was removed last."""
    wanted = fold_name(name)
    for path, title in fetch(connection, GONE, {"root": root}) if wanted else ():
        file = os.path.basename(path)
        if wanted in map(fold_name, (title, file, without_ending(file))):
            return str(path)
    return None


def versions(connection: apsw.Connection, document: int, limit: int) -> list[Version]:
    """Newest first."""
    return [Version._make(row) for row in fetch(connection, HISTORY, {"id": document, "limit": limit})]


def changed_since(connection: apsw.Connection, root: str, since: float) -> list[Changed]:
    """The documents that changed, each once, newest first."""
    found: dict[int, Changed] = {}
    for number, at, what, path, title, before, gone in fetch(connection, CHANGED, {"root": root, "since": since}):
        if number not in found:
            found[number] = Changed(at, what, path, title, before)
        elif what == "created" and gone is None:
            found[number] = found[number]._replace(what=what, before=None)
    return list(found.values())


def known_roots(connection: apsw.Connection) -> list[str]:
    """Every folder that something is known of."""
    return [root for (root,) in fetch(connection, ROOTS)]


def move_vault(connection: apsw.Connection, old: str, new: str) -> None:
    """Make everything known of one folder that of another; what was seen at the new place follows the old history."""
    vaults = {"old": vault_id(connection, old), "new": vault_id(connection, new)}
    for ours, theirs in fetch(connection, IN_BOTH, vaults):
        connection.execute(DROP_FIRST_LOOK, {"id": ours, "other": theirs})
        connection.execute(TAKE_HEAD, {"id": ours, "other": theirs})
        _merge(connection, ours, theirs)
    for statement in MOVE_VAULT:
        connection.execute(statement, {name: vaults[name] for name in vaults if f":{name}" in statement})
