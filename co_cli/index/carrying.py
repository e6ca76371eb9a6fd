"""Bring notes over into a new search.db that no file gives back: those that are kept though their file is gone, and all
of an origin that is not there now, as on a drive that is not mounted.

Their text is as it was indexed. They are noted as unlisted and with no hash, so that a sync reads a file again that is
back, and goes on reporting one that is not.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from typing import Any

import apsw

from co_cli.index.connection import APPLICATION, BUSY_MS, DAMAGE, Database, fetch
from co_cli.index.names import name_number
from co_cli.index.rows import COUNT, FIND_DOC, PUT_FILE, PUT_UNLISTED, PUT_WORDS
from co_cli.index.vanishing import too_many
from co_cli.index.vault_database import ADD_VAULT, find_vault
from co_cli.index.vectors import let_wait
from co_cli.sources.origin import Origin, kind_of

ORIGINS = "select id, root, kind, name, only from vaults order by id"
NOTES = "select * from docs where vault_id = :vault order by id"
OF_NOTE = {
    "passages": "select * from passages where doc_id = :doc order by id",
    "names": "select * from names where doc_id = :doc",
    "links": "select * from links where doc_id = :doc",
    "supersessions": "select * from supersessions where doc_id = :doc",
}
OF_ANOTHER_MAKE = (apsw.SQLError, apsw.ConstraintError, apsw.CantOpenError, apsw.BusyError, *DAMAGE)


def carry_notes(old: str, fresh: Database) -> int:
    """Carry over what `fresh` does not have and no file gives back. Returns how many notes that were.

    Of a vault only what vanished: what it forgets is in its trash. An old search.db that is of another make, or
    damaged, gives what can be read of it: nothing, at worst.
    """
    carried = 0
    with contextlib.suppress(*OF_ANOTHER_MAKE), _reading(old) as connection:
        for number, *named in fetch(connection, ORIGINS):
            origin = Origin(named[1], named[0], named[2], named[3])
            there = os.path.exists(origin.path)
            notes = _rows(connection, NOTES, {"vault": number})
            # what is there a sync has read, or was told not to
            gone = [note for note in notes if not there or not _is_there(origin, note)]
            present = sum(note["missing"] is None for note in notes)
            lost = sum(note["missing"] is None for note in gone)
            keeps = kind_of(origin).keeps_missing or too_many(origin.root, lost, present)
            for note in gone:
                if not keeps and note["missing"] is None:
                    continue
                note["missing"] = note["missing"] or (time.time() if there else None)
                rows = {
                    table: _rows(connection, statement, {"doc": note["id"]}) for table, statement in OF_NOTE.items()
                }
                # all is read: what is damaged in the old one is no fault of this. One that does not fit here is no
                # reason to lose the others
                with contextlib.suppress(apsw.SQLError, apsw.ConstraintError), fresh.writing() as writer:
                    carried += _put_note(writer, origin, note, rows)
    return carried


def _is_there(origin: Origin, note: dict[str, Any]) -> bool:
    return os.path.lexists(os.path.join(origin.root, *str(note["path"]).split("/")))


@contextlib.contextmanager
def _reading(path: str) -> Generator[apsw.Connection]:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MS)
        if connection.pragma("application_id") == APPLICATION:
            yield connection
    finally:
        connection.close()


def _put_note(
    fresh: apsw.Connection, origin: Origin, note: dict[str, Any], rows: dict[str, list[dict[str, Any]]]
) -> bool:
    vault = find_vault(fresh, origin)
    if vault < 0:
        fresh.execute(ADD_VAULT, origin._asdict())
        vault = fresh.last_insert_rowid()
    path = str(note["path"])
    if fresh.execute(FIND_DOC, {"vault": vault, "path": path}).get is not None:
        return False
    doc = _put(fresh, "docs", {**note, "id": None, "vault_id": vault, "hash": ""})
    passages: list[int] = []
    for row in rows.pop("passages"):
        passages.append(_put(fresh, "passages", {**row, "id": None, "doc_id": doc}))
        fresh.execute(PUT_WORDS, {**row, "id": passages[-1]})
    for table, found in rows.items():
        for row in found:
            if isinstance(row.get("name"), str):
                row["name"] = name_number(row["name"])  # names were text once
            _put(fresh, table, {**row, "vault_id": vault, "doc_id": doc}, "insert or ignore")  # two may share a number
    fresh.execute(PUT_FILE, {"vault": vault, "path": path, "hash": "", "skipped": None, "problem": None})
    fresh.execute(PUT_UNLISTED, {"vault": vault, "path": path})
    fresh.execute(COUNT, {"vault": vault, "notes": 1, "passages": len(passages)})
    let_wait(fresh, vault, passages)
    return True


def _rows(connection: apsw.Connection, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = connection.execute(statement, values)
    for row in cursor:
        found.append(dict(zip((column[0] for column in cursor.get_description()), row, strict=True)))
    return found


def _put(connection: apsw.Connection, table: str, row: dict[str, Any], verb: str = "insert") -> int:
    """Table and columns are those of our own schema."""
    columns = ", ".join(row)
    connection.execute(f"{verb} into {table} ({columns}) values ({', '.join(f':{name}' for name in row)})", row)
    return connection.last_insert_rowid()
