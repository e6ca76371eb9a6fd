"""What a disk, another program or a bug may do to a database file."""

from __future__ import annotations

from pathlib import Path

import apsw

PAGE = 4096


def spoil_table(path: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "delete")
    page = int(str(connection.execute("select rootpage from sqlite_schema where name = :name", {"name": table}).get))
    connection.close()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * PAGE)
        stream.write(b"\xff" * PAGE)
