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


VECTOR_DAMAGE = {
    "a place that does not exist": "update docs_vec_rowids set chunk_id = chunk_id + 64",
    "a shortened block": "update docs_vec_vector_chunks00 set vectors = substr(vectors, 1, 100)",
    "a vector marked as free": "update docs_vec_chunks set validity = x'0e' || substr(validity, 2)",
    "a wrong number": "update docs_vec_chunks set rowids = x'21' || substr(rowids, 2)",
    "a wrong part": "update docs_vec_chunks set partition00 = '1/entity'",
}
"""Damage to the tables of sqlite-vec that SQLite's own check does not see."""


def spoil_vectors(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()
