"""The HNSW index of each table of vectors, built when there are too many vectors to compare each.

A parallel build takes all of its memory from the server's shared memory, of which a container may have little. So it
gets what the vectors need, and what does not fit is built by one process. A build that fails leaves no index behind,
and its reason as the comment of the table, where every process sees it.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import psycopg

from co_cli.index.postgres.postgres_statements import Connection, fetch
from co_cli.index.postgres.vector_tables import EXACT
from co_cli.notes.logbook import logger

log = logger("engine")
BUILD_LOCK = 7_165_064_744_911_534
"""The advisory lock of whoever builds."""
GRAPH_BYTES, LEAST_MEMORY, MOST_MEMORY = 1_600, 128 << 20, 2 << 30
"""What a vector takes besides its numbers; and memory for a build: with less, PostgreSQL uses one process."""
NO_ROOM = "53"
"""How the codes of errors begin that say that memory or disk space is used up."""

UNINDEXED = """
select relname, format_type(atttypid, null) = 'halfvec', atttypmod, obj_description(pg_class.oid, 'pg_class')
from pg_class join pg_attribute on attrelid = pg_class.oid
where relnamespace = %(store)s::regnamespace and relkind = 'r' and attname = 'embedding' and not exists (
    select from pg_index join pg_class as made on made.oid = indexrelid
    where indrelid = pg_class.oid and made.relname = pg_class.relname || '_hnsw' and indisvalid
)
"""
BUILD = """
create index concurrently {table}_hnsw on {store}.{table} using hnsw ({embedding} halfvec_cosine_ops)
with (m = 32, ef_construction = 200)
"""
"""With pgvector's own values, .87 of the ten nearest of 100,000 close sentences are found, with these .955."""


class UnindexedTable(NamedTuple):
    """A table with many vectors and no index that can be used."""

    store: str
    name: str
    embedding: str
    """The indexed expression."""
    vectors: int
    memory: int
    """Bytes for a build."""
    problem: str | None
    """Why the last one failed."""


def find_unindexed(connection: Connection, store: str) -> list[UnindexedTable]:
    found: list[UnindexedTable] = []
    for name, packed, dimensions, problem in fetch(connection, UNINDEXED, {"store": store}):
        vectors = fetch(connection, f"select count(*) from {store}.{name}")[0][0]
        if vectors > EXACT:
            embedding = "embedding" if packed else f"(embedding::halfvec({dimensions}))"
            memory = min(max(vectors * (2 * dimensions + GRAPH_BYTES), LEAST_MEMORY), MOST_MEMORY)
            found.append(UnindexedTable(store, name, embedding, vectors, memory, problem))
    return found


def index_vectors(connection: Connection, store: str) -> None:
    """Build what is missing, unless another process does."""
    if not fetch(connection, "select pg_try_advisory_lock(%(key)s)", {"key": BUILD_LOCK})[0][0]:
        return
    try:
        for table in find_unindexed(connection, store):
            problem = _build(connection, table)
            comment = "null" if problem is None else "'" + problem.replace("'", "''") + "'"
            fetch(connection, f"comment on table {store}.{table.name} is {comment}")
            if problem:
                log.warning("%s", slow_text(table._replace(problem=problem)))
            else:
                fetch(connection, f"analyze {store}.{table.name}")
    finally:
        if not connection.broken:
            fetch(connection, "reset maintenance_work_mem; reset max_parallel_maintenance_workers")
            fetch(connection, "select pg_advisory_unlock(%(key)s)", {"key": BUILD_LOCK})


def slow_text(table: UnindexedTable) -> str:
    return f"{table.vectors:,} vectors are compared one by one: {table.problem or 'their HNSW index is not built yet'}"


def _build(connection: Connection, table: UnindexedTable) -> str | None:
    """Build one index, by one process if there is no shared memory for several. Returns why it failed."""
    problem = None
    for workers in ("default", "0"):
        fetch(connection, f"set maintenance_work_mem = '{table.memory >> 10}kB'")
        fetch(connection, f"set max_parallel_maintenance_workers = {workers}")
        try:
            _drop(connection, table)
            fetch(connection, BUILD.format(store=table.store, table=table.name, embedding=table.embedding))
            return None
        except psycopg.OperationalError as error:
            if connection.broken:
                raise
            problem = f"the HNSW index could not be built: {' '.join(str(error).split())[:300]}"
            with contextlib.suppress(psycopg.errors.LockNotAvailable):  # then the next build does
                _drop(connection, table)
            if not str(error.sqlstate).startswith(NO_ROOM):
                break
    return problem


def _drop(connection: Connection, table: UnindexedTable) -> None:
    """Drop an index of a build that failed or was stopped: it is not used, but kept up to date."""
    fetch(connection, f"drop index concurrently if exists {table.store}.{table.name}_hnsw")
