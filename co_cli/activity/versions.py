"""What became of each document: a head, and every head it had before. Written inside the caller's transaction.

An upsert compares hashes, so telling it the same thing twice, or everything again after search.db was deleted, writes
nothing down. A move keeps the history, and so do a removal and a return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

FIND_VAULT = "select id, seen from vaults where root = :root"
ADD_VAULT = "insert into vaults (root) values (:root)"
SEEN = "update vaults set seen = :at where id = :vault and seen is null"

FIND = "select id, hash, title, size, gone, updated from documents where vault_id = :vault and path = :path"
ADD = "insert into documents (vault_id, path) values (:vault, :path)"
SET_HEAD = """
update documents set hash = :hash, title = :title, size = :size, updated = :at, gone = null where id = :id
"""
SET_TITLE = "update documents set title = :title where id = :id"
SET_GONE = "update documents set gone = :at where id = :id"
SET_PATH = "update documents set path = :path, gone = null where id = :id"
LIKE_THIS = """
select id, path from documents where vault_id = :vault and hash = :hash and gone is null and path <> :path limit 20
"""
"""Of many that say the same, such as empty files, nobody can tell which one went where."""
PUT_VERSION = """
insert into versions (document_id, at, what, hash, title, size, before)
values (:id, :at, :what, :hash, :title, :size, :before)
"""

HAD = "select 1 from versions where document_id = :id and hash = :hash limit 1"

JOIN_VERSIONS = "update versions set document_id = :id where document_id = :other"
JOIN_USES = """
insert into uses (document_id, recalls, recalled, opens, opened)
select :id, recalls, recalled, opens, opened from uses where document_id = :other
on conflict (document_id) do update set
    recalls = recalls + excluded.recalls, opens = opens + excluded.opens,
    recalled = nullif(max(ifnull(recalled, 0), ifnull(excluded.recalled, 0)), 0),
    opened = nullif(max(ifnull(opened, 0), ifnull(excluded.opened, 0)), 0)
"""
DROP_USES = "delete from uses where document_id = :other"
JOIN_JUDGEMENTS = "update or replace judgements set document_id = :id where document_id = :other"
DROP_DOCUMENT = "delete from documents where id = :other"

HEAD = """
select documents.id, path, hash, title, size, updated, gone, ifnull(recalls, 0), recalled, ifnull(opens, 0), opened
from documents join vaults on vaults.id = vault_id left join uses on uses.document_id = documents.id
where root = :root and path = :path
"""
HISTORY = """
select at, what, hash, title, size, before from versions where document_id = :id order by at desc, id desc limit :limit
"""

WENT = """
select documents.path from versions join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and before = :path order by at desc limit 1
"""


class Head(NamedTuple):
    """A document as the index has it now."""

    path: str
    hash: str
    title: str
    size: int | None = None


class Upserted(NamedTuple):
    """What telling of a document did."""

    path: str
    outcome: str
    """created, updated, restored, moved or skipped"""
    why: str


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


def vault_id(connection: apsw.Connection, root: str) -> tuple[int, bool]:
    """The vault's number, and whether all of its documents were written down once."""
    found = connection.execute(FIND_VAULT, {"root": root}).fetchone()
    if found is not None:
        return int(str(found[0])), found[1] is not None
    connection.execute(ADD_VAULT, {"root": root})
    return connection.last_insert_rowid(), False


def document_id(connection: apsw.Connection, vault: int, path: str) -> int:
    found = connection.execute(FIND, {"vault": vault, "path": path}).fetchone()
    if found is not None:
        return int(str(found[0]))
    connection.execute(ADD, {"vault": vault, "path": path})
    return connection.last_insert_rowid()


def upsert(
    connection: apsw.Connection,
    vault: int,
    head: Head,
    at: float,
    first: str = "created",
    there: Callable[[str], bool] = lambda path: True,
) -> Upserted:
    """Make this the document's head, unless it is already.

    `first` is what a document that was never heard of is said to be: `seen`, if it was there before us. `there` says
    whether a path is still there: if a document with the same hash has lost its own, this is where it went.
    """
    known = connection.execute(FIND, {"vault": vault, "path": head.path}).fetchone()
    if known is None or known[1] is None:
        for _, path in connection.execute(LIKE_THIS, {"vault": vault, "hash": head.hash, "path": head.path}).fetchall():
            if not there(str(path)):
                move(connection, vault, str(path), head.path, at)
                return Upserted(head.path, "moved", f"from {path}")
        number = document_id(connection, vault, head.path)
        _set_head(connection, number, head, at, first)
        return Upserted(head.path, "created", "it was not known")
    number, known_hash, title, _, gone, updated = known
    if at < max(float(str(updated)), float(str(gone or 0.0))):
        return _late(connection, int(str(number)), head, at)
    if gone is not None:
        _set_head(connection, int(str(number)), head, at, "restored")
        return Upserted(head.path, "restored", "it had been removed")
    if known_hash == head.hash:
        if title != head.title:  # taken from the file's name, which changed
            connection.execute(SET_TITLE, {"id": number, "title": head.title})
        return Upserted(head.path, "skipped", "its hash is that of the head")
    _set_head(connection, int(str(number)), head, at, "updated")
    return Upserted(head.path, "updated", "its hash is another")


def _late(connection: apsw.Connection, number: int, head: Head, at: float) -> Upserted:
    """Somebody else told of a later head first: this one takes its place before it."""
    if connection.execute(HAD, {"id": number, "hash": head.hash}).get is None:
        _put_version(connection, number, at, "updated", head.hash, head.title, head.size)
    return Upserted(head.path, "skipped", "a later head is known")


def move(connection: apsw.Connection, vault: int, before: str, path: str, at: float) -> None:
    """Give a document another path. What stood there before it belongs to its history from now on."""
    known = connection.execute(FIND, {"vault": vault, "path": before}).fetchone()
    if known is None:
        return
    number = int(str(known[0]))
    other = connection.execute(FIND, {"vault": vault, "path": path}).fetchone()
    if other is not None:
        join(connection, number, int(str(other[0])))
    connection.execute(SET_PATH, {"id": number, "path": path})
    _put_version(connection, number, at, "moved", known[1], known[2], known[3], before)


def join(connection: apsw.Connection, number: int, other: int) -> None:
    """Make what is known of another document that of this one; the other is no more."""
    both = {"id": number, "other": other}
    for statement in (JOIN_VERSIONS, JOIN_USES, DROP_USES, JOIN_JUDGEMENTS, DROP_DOCUMENT):
        connection.execute(statement, both if ":id" in statement else {"other": other})


def remove(connection: apsw.Connection, vault: int, path: str, at: float) -> None:
    """Note that a document is gone; its history and use stay."""
    known = connection.execute(FIND, {"vault": vault, "path": path}).fetchone()
    if known is not None and known[4] is None and float(str(known[5] or 0.0)) <= at:
        connection.execute(SET_GONE, {"id": known[0], "at": at})
        _put_version(connection, int(str(known[0])), at, "removed", known[1], known[2], known[3])


def known(connection: apsw.Connection, root: str, path: str) -> Known | None:
    row = connection.execute(HEAD, {"root": root, "path": path}).fetchone()
    return None if row is None else Known._make(row)


def went(connection: apsw.Connection, root: str, path: str) -> str | None:
    """Where the document is now that once had this path."""
    row = connection.execute(WENT, {"root": root, "path": path}).fetchone()
    return None if row is None else str(row[0])


def versions(connection: apsw.Connection, document: int, limit: int) -> list[Version]:
    """Newest first."""
    rows = connection.execute(HISTORY, {"id": document, "limit": limit}).fetchall()
    return [Version._make(row) for row in rows]


def put_heads(
    connection: apsw.Connection,
    root: str,
    heads: Sequence[Head],
    at: float,
    *,
    moved: Sequence[tuple[str, str]] = (),
    removed: Sequence[str] = (),
    saved: bool = False,
    there: Callable[[str], bool] = lambda path: True,
) -> list[Upserted]:
    """What a sync or a save says.

    `saved` says that we wrote these ourselves: one that was not known is new. A sync of a vault that we never heard of
    tells of files that were there before us.
    """
    vault, seen = vault_id(connection, root)
    for before, path in moved:
        move(connection, vault, before, path, at)
    first = "created" if seen or saved else "seen"
    told = [upsert(connection, vault, head, at, first, there) for head in heads]
    for path in removed:
        remove(connection, vault, path, at)
    return told


def put_everything(connection: apsw.Connection, root: str, everything: Callable[[], Sequence[Head]], at: float) -> None:
    """The first time that we hear of a vault: whatever else it holds was there before us. Later, nothing."""
    vault, seen = vault_id(connection, root)
    if not seen:
        for head in everything():
            upsert(connection, vault, head, at, "seen")
        connection.execute(SEEN, {"vault": vault, "at": at})


def _set_head(connection: apsw.Connection, number: int, head: Head, at: float, what: str) -> None:
    values = {"id": number, "hash": head.hash, "title": head.title, "size": head.size, "at": at}
    connection.execute(SET_HEAD, values)
    _put_version(connection, number, at, what, head.hash, head.title, head.size)


def _put_version(
    connection: apsw.Connection,
    number: int,
    at: float,
    what: str,
    file_hash: apsw.SQLiteValue,
    title: apsw.SQLiteValue,
    size: apsw.SQLiteValue,
    before: str | None = None,
) -> None:
    connection.execute(
        PUT_VERSION,
        {"id": number, "at": at, "what": what, "hash": file_hash, "title": title, "size": size, "before": before},
    )
