"""The PostgreSQL engine: one database for a team, with pgvector for words and vectors.

Everything derived is in a schema of its own, a store. `co_cli.stores` says which one answers; a rebuild fills another
and changes that row, or fills its vaults again next to those of others. A store that nobody reads any more is dropped
by the next rebuild.
"""

from __future__ import annotations

import contextlib
import re
import select
import threading
import time
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from co_cli.ground.errors import IndexUnavailableError, SettingsError
from co_cli.index.engine import DERIVATION, Engine, ReadTransaction, WriteTransaction
from co_cli.index.postgres.postgres_statements import FEW, ROLE, STALLED_SECONDS, Connection, VisibleOrigins, fetch
from co_cli.index.postgres.replica import Replica
from co_cli.index.postgres.stores import (
    DAMAGE,
    FRESH,
    SCHEMA,
    advisory_lock,
    as_owner,
    drop_store,
    forget_swapped,
    has_others,
    keep_cache,
    make_role,
    make_store,
    swap_origins,
)
from co_cli.index.postgres.vector_index import find_unindexed, index_vectors, slow_text
from co_cli.index.postgres.vector_tables import PostgresVectors
from co_cli.index.postgres.word_tables import PostgresWords
from co_cli.index.stored import IndexedFile, ReadyVectors
from co_cli.index.tables.note_rows import NoteRows, find_miscounts
from co_cli.index.tables.spaces import origin_by_id
from co_cli.notes.logbook import logger
from co_cli.sources.origin import Origin

log = logger("engine")
VERSION = zlib.crc32(SCHEMA.encode(), DERIVATION)
"""Any change of the schema changes the version."""
OLDEST_PGVECTOR = (0, 8)
WAIT_SECONDS = 10
CONNECT: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": WAIT_SECONDS,
    "keepalives_idle": WAIT_SECONDS,
    "keepalives_interval": WAIT_SECONDS,
    "keepalives_count": 2,
    "tcp_user_timeout": 3_000 * WAIT_SECONDS,
}
"""How to connect: a database whose machine is gone is noticed after 30 seconds."""
MOST_CONNECTIONS = 16
STORE_LOCK, REBUILD_LOCK = 7_165_064_744_911_531, 7_165_064_744_911_532
"""Advisory locks: writers share the first, and a rebuild that catches up has it alone; one rebuild at a time."""
EMBEDDING_LOCK = 1_668_246_389
"""The first half of the key of whoever makes vectors of a vault; the vault is the other."""
POLL = 0.1
"""Seconds between two tries to get it."""

NOT_ALLOWED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile)

SHARES_SESSIONS = (
    "is a connection pool that shares sessions, such as pgbouncer in transaction mode, which co cannot use: "
    "set pool_mode = session for this database, or let the setting `engine` name PostgreSQL itself"
)
READ_ONLY = "isolation level repeatable read read only"
CONFIGURE = f"""
set lock_timeout = '{WAIT_SECONDS}s'; set jit = off; set hnsw.ef_search = 600; set hnsw.iterative_scan = relaxed_order;
set client_min_messages = warning; set idle_in_transaction_session_timeout = '60s'
"""
"""What only reads makes nobody wait, so that it may be silent for longer: a model may read between two statements."""
WRITE = f"""
set local idle_in_transaction_session_timeout = '{STALLED_SECONDS}s'; select pg_advisory_xact_lock_shared({STORE_LOCK})
"""
PREPARED = f"""
select 1 from information_schema.role_table_grants where table_schema = 'co_cli' and grantee = '{ROLE}'
"""
PREPARE = """
create schema if not exists co_cli;
create table if not exists co_cli.stores (version bigint primary key, store text not null);
create extension if not exists vector;
grant usage on schema co_cli to {role};
grant select on co_cli.stores to {role}
"""
STORE = "select store from co_cli.stores where version = %(version)s"
USE_STORE = """
insert into co_cli.stores (version, store) values (%(version)s, %(store)s)
on conflict (version) do update set store = excluded.store
"""
FORGET_STORE = "delete from co_cli.stores where version = %(version)s and store = %(store)s"
SNAPSHOT = "select pg_current_snapshot()::text"
UNUSED = """
select nspname from pg_namespace
where starts_with(nspname, 'co_store_') and nspname not in (select store from co_cli.stores)
"""
SIZE = """
select coalesce(sum(pg_total_relation_size(oid)), 0) from pg_class
where relnamespace = %(store)s::regnamespace and relkind = 'r'
"""


class PostgresTransaction(PostgresWords, PostgresVectors, NoteRows):
    """One transaction of a store."""

    def put_files(self, origin_id: int, files: Sequence[IndexedFile], ready: Sequence[ReadyVectors] = ()) -> int:
        if len(files) <= FEW and sum(len(file.passages) for file in files) <= FEW:
            with self.connection.pipeline():
                return super().put_files(origin_id, files, ready)
        waits = super().put_files(origin_id, files, ready)
        notes = origin_by_id(self, origin_id).notes
        if notes.bit_length() > (notes - len(files)).bit_length():
            # the vault has doubled: without counts the planner would read every note to find some
            self.fetch("set local role none")
            self.fetch("analyze (skip_locked) docs, passages, knowledge_files, unlisted")
            self.fetch(f"set local role {ROLE}")
        return waits


class OpenTransactions(threading.local):
    """The open transactions of one thread."""

    snapshot: PostgresTransaction | None = None
    writer: PostgresTransaction | None = None
    compact: bool = False
    """Whether to compact when the transaction ends."""


class PostgresEngine:
    """One database. The password comes from its address, from PGPASSWORD or from .pgpass."""

    def __init__(
        self,
        address: str,
        store: str | None = None,
        roots: Mapping[str, str] | None = None,
        replica: str | None = None,
    ) -> None:
        """`store` is one that is being filled; without, the one that answers.

        `roots` gives folders of this machine the names under which every machine knows them. `replica` is the address
        of a server that answers searches.
        """
        self.address, self.path, self.roots = address, masked(address), roots or {}
        self.visible = VisibleOrigins(self.roots)
        self._fixed = store
        self._last: str | None = None
        self._open = OpenTransactions()
        self._starting = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._replica_engine = self
        self.replica: Replica | None = None
        """Whether the replica keeps up."""
        if replica:
            self._replica_engine = PostgresEngine(replica, roots=roots)
            self._replica_engine.visible = self.visible
            self.replica = Replica(self._position, self._replica_engine._position)
        self.set_aside: str | None = None  # it has no file

    @contextlib.contextmanager
    def reading(self) -> Generator[ReadTransaction]:
        if current := self._open.writer or self._open.snapshot:
            yield current
            return
        answering = self._replica_engine if self.replica and self.replica.keeps_up() else self
        with answering._connection() as connection:
            answering._begin(connection, READ_ONLY, "lock table vaults in access share mode")
            self._open.snapshot = PostgresTransaction(connection, self.visible)
            try:
                yield self._open.snapshot
            finally:
                self._open.snapshot = None

    @contextlib.contextmanager
    def writing(self) -> Generator[WriteTransaction]:
        """Inside `transaction()` of the same thread, a part of it, which fails alone."""
        if current := self._open.writer:
            try:
                with current.connection.transaction():
                    yield current
            except BaseException:
                current.locked.clear()  # locks that were taken inside are lost
                current.known.clear()
                raise
            return
        with self._connection() as connection:
            self._begin(connection, "", WRITE)
            yield PostgresTransaction(connection, self.visible)
        if self.replica:
            self.replica.expect()

    @contextlib.contextmanager
    def transaction(self) -> Generator[Connection]:
        """One transaction for other tables of the database too; this thread reads and writes inside it.

        It is committed at the end, or rolled back by an error. Inside another one, that one.
        """
        if current := self._open.writer:
            yield current.connection
            return
        with self.writing() as writer:
            assert isinstance(writer, PostgresTransaction)
            self._open.writer = writer
            self._open.compact = False
            try:
                yield writer.connection
            finally:
                self._open.writer = None
        if self._open.compact:
            self.compact()

    @contextlib.contextmanager
    def asking(self) -> Generator[Connection]:
        """A connection to the database that is written to, where each statement stands alone. Waits for no lock.

        Inside `transaction()` of the same thread, its connection.
        """
        if current := self._open.writer:
            yield current.connection
            return
        with self._connection() as connection:
            yield connection

    def rebuild(self, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]) -> None:
        with self._connection() as connection, as_owner(connection), advisory_lock(connection, REBUILD_LOCK):
            for (unused,) in fetch(connection, UNUSED):
                drop_store(connection, unused)
            old = self._store(connection)
            if has_others(connection, old, self.visible.seen):
                try:
                    self._refill(connection, old, fill, catch_up)
                    return
                except (IndexUnavailableError, *DAMAGE) as error:
                    if not isinstance(error.__cause__ or error, DAMAGE):
                        raise
                    log.warning("the store is damaged, and other vaults are indexed again, too: %s", error)
            fresh = make_store(connection)
            engine = PostgresEngine(self.address, fresh, self.roots)
            try:
                keep_cache(connection, old, fresh)
                fill(engine)
                engine.compact()
                with advisory_lock(connection, STORE_LOCK):
                    catch_up(engine)
                    fetch(connection, USE_STORE, {"version": VERSION, "store": fresh})
            except BaseException:
                engine.close()
                drop_store(connection, fresh)
                raise
            engine.close()
            drop_store(connection, old)

    def _refill(
        self, connection: Connection, store: str, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]
    ) -> None:
        """Fill the vaults again under other names and swap the names: vaults of others stay as they are."""
        forget_swapped(connection, store)
        engine = PostgresEngine(self.address, store, self.roots)
        engine.visible = VisibleOrigins(self.roots, FRESH)
        try:
            fill(engine)
            engine.compact()
            with advisory_lock(connection, STORE_LOCK):
                catch_up(engine)
                swap_origins(connection, store)
        finally:
            engine.close()
            if not connection.broken:
                forget_swapped(connection, store)

    def compact(self) -> None:
        """Count what the planner needs to know, and index vectors that are too many to compare each.

        Inside `transaction()`, when it has ended: an index is built only after every transaction before it.
        """
        if self._open.writer:
            self._open.compact = True
            return
        with self._connection() as connection, as_owner(connection):
            store = self._store(connection)
            fetch(connection, f"set search_path = {store}, public")
            try:
                fetch(connection, "analyze (skip_locked) docs, passages, words, terms, names, links, waiting")
                fetch(connection, "select gin_clean_pending_list('words_by_terms')")
                index_vectors(connection, store)
            except psycopg.errors.LockNotAvailable as error:
                log.warning("%s; until its vectors are indexed, each is compared", explain(self.address, error))
            finally:
                fetch(connection, "reset search_path")

    @contextlib.contextmanager
    def embedding(self, origin: Origin, wait: float) -> Generator[None]:
        with self.reading() as snapshot:
            known = snapshot.origin(origin)
        bound, end = {"key": EMBEDDING_LOCK, "vault": known.id if known else 0}, time.monotonic() + wait
        with self._connection() as connection:
            while not fetch(connection, "select pg_try_advisory_lock(%(key)s, %(vault)s)", bound)[0][0]:
                if time.monotonic() >= end:
                    raise BlockingIOError
                time.sleep(POLL)
            try:
                yield
            finally:
                if not connection.broken:
                    fetch(connection, "select pg_advisory_unlock(%(key)s, %(vault)s)", bound)

    def erase(self) -> str | None:
        with self.writing() as writer:
            writer.drop_unused_cached()
        return f"PostgreSQL keeps deleted rows of {self.path} until `vacuumdb --full`, and in its own backups"

    def unindexed(self) -> str | None:
        with self._connection() as connection, as_owner(connection):
            tables = find_unindexed(connection, self._store(connection))
        return "; ".join(map(slow_text, tables)) or None

    def size(self) -> int:
        with self._connection() as connection:
            return int(fetch(connection, SIZE, {"store": self._store(connection)})[0][0])

    def revision(self) -> object:
        with self.reading() as snapshot:
            assert isinstance(snapshot, PostgresTransaction)
            return fetch(snapshot.connection, SNAPSHOT)

    def problem(self, discard: bool = False) -> str | None:
        try:
            with self.reading() as snapshot:
                assert isinstance(snapshot, PostgresTransaction)
                problem = find_miscounts(snapshot)
            if problem and discard:
                with self._connection() as connection, as_owner(connection):
                    fetch(connection, FORGET_STORE, {"version": VERSION, "store": self._store(connection)})
                self.close()
            return problem
        except IndexUnavailableError:
            return None  # not damaged, but out of reach

    def close(self) -> None:
        with self._starting:
            pool, self._pool = self._pool, None
        if pool:
            pool.close()
        if self.replica:
            self._replica_engine.close()

    def pool_use(self) -> dict[str, int]:
        """Connections that are used and free, and requests that wait for one."""
        with self._starting:
            found = self._pool.get_stats() if self._pool else {}
        size, free = found.get("pool_size", 0), found.get("pool_available", 0)
        return {"used": size - free, "free": free, "waiting": found.get("requests_waiting", 0)}

    def _position(self, statement: str) -> int:
        with self._connection() as connection:
            return fetch(connection, statement)[0][0] or 0

    @contextlib.contextmanager
    def _connection(self) -> Generator[Connection]:
        """A connection of the pool. What was begun is committed at the end, or rolled back by an error."""
        try:
            with self._start().connection() as connection:
                yield connection
        except (psycopg.OperationalError, PoolTimeout, *DAMAGE, *NOT_ALLOWED) as error:
            raise explain(self.address, error) from error

    def _start(self) -> ConnectionPool[Connection]:
        with self._starting:
            if self._pool is None:
                try:
                    with psycopg.connect(self.address, **CONNECT) as connection:
                        if self._fixed is None:
                            self._refuse_shared_sessions(connection)
                            self._prepare(connection)
                except psycopg.ProgrammingError as error:  # the address cannot be read
                    raise explain(self.address, error) from error
                self._pool = ConnectionPool(
                    self.address,
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    kwargs=CONNECT,
                    configure=self._configure,
                    check=_check,
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=WAIT_SECONDS,  # or the pauses between its tries get as long as the outage
                    open=True,
                )
            return self._pool

    def _refuse_shared_sessions(self, connection: Connection) -> None:
        """Refuse a pooler that gives each transaction another session: our settings and locks would be those of others.

        A pooler does not tell the process that answers, so that it is known by that. It shares sessions if another
        connection gets ours, or we get another one.
        """
        if connection.info.backend_pid == _process(connection):
            return
        with psycopg.connect(self.address, **CONNECT) as other:
            for _ in range(5):  # others may use it at the same time
                ours = _process(connection)
                with other.transaction():
                    if _process(other) == ours or _process(connection) != ours:
                        raise SettingsError(f"{self.path} {SHARES_SESSIONS}")

    def _configure(self, connection: Connection) -> None:
        fetch(connection, f"{CONFIGURE}; set role {ROLE}; set co_cli.roots = {_literal(self.visible.setting)}")

    def _prepare(self, connection: Connection) -> None:
        """Make what is not there: the schema, pgvector, and a first store."""
        with advisory_lock(connection, REBUILD_LOCK):
            make_role(connection)
            if not fetch(connection, PREPARED):
                fetch(connection, PREPARE.format(role=ROLE))
            ((found,),) = fetch(connection, "select extversion from pg_extension where extname = 'vector'")
            if tuple(map(int, found.split(".")[:2])) < OLDEST_PGVECTOR:
                raise IndexUnavailableError(f"{self.path} has pgvector {found}: `alter extension vector update`")
            if not fetch(connection, STORE, {"version": VERSION}):
                fetch(connection, USE_STORE, {"version": VERSION, "store": make_store(connection)})

    def _store(self, connection: Connection) -> str:
        if self._fixed is not None:
            return self._fixed
        found = fetch(connection, STORE, {"version": VERSION})
        if not found:  # another process found it damaged
            with as_owner(connection):
                self._prepare(connection)
            return self._store(connection)
        return found[0][0]

    def _begin(self, connection: Connection, how: str, lock: str) -> None:
        """Begin a transaction in the store that answers, in one round trip if that is the one that answered last."""
        while True:
            store = self._fixed or self._last or self._store(connection)
            lock = "select 1" if self._fixed and not how else lock  # nobody else writes to a store that is being filled
            seen = f"set local co_cli.roots = {_literal(self.visible.setting)}"
            begin = f"begin {how}; set local search_path = {store}, public; {seen}; {lock}; "
            begin += STORE % {"version": VERSION}
            try:
                cursor = connection.execute(begin.encode())
                while cursor.nextset():
                    pass
                self._last = None if self._fixed else cursor.fetchall()[0][0]
            except (psycopg.errors.UndefinedTable, IndexError):  # dropped after a rebuild
                self._last = None
            if self._fixed or self._last == store:
                return
            fetch(connection, "rollback")


def masked(address: str) -> str:
    """An address without its password."""
    address = re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:***@", address)
    return re.sub(r"(?i)(password=)[^&\s]*", r"\1***", address)


def explain(address: str, error: Exception) -> IndexUnavailableError:
    """What is wrong and what to do, on one line without the password."""
    said = " ".join(str(error).split())
    for secret in re.findall(r"://[^:/@]*:([^@]+)@|(?i:password=)([^&\s]+)", address):
        said = said.replace("".join(secret), "***")
    cure = "is the server running, and is the setting `engine` right?"
    if isinstance(error, psycopg.errors.LockNotAvailable):
        cure = "another process is writing: try again"
    elif isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        cure = "this process was stopped or too slow, and others went on: try again"
    elif "password" in said:
        cure = "is the right one in PGPASSWORD, in the file that PGPASSWORD_FILE names, or in ~/.pgpass?"
    elif isinstance(error, NOT_ALLOWED):
        cure = f"an administrator has to run `create extension vector; create role {ROLE}; grant {ROLE} to YOU`"
    elif isinstance(error, DAMAGE):
        cure = "`co index rebuild` makes the index again"
    return IndexUnavailableError(f"{masked(address)} cannot be used: {said[:300]}; {cure}")


def _check(connection: Connection) -> None:
    """Ask the server only if it has said something unasked, such as that it shuts down."""
    if select.select([connection.fileno()], [], [], 0)[0]:
        ConnectionPool.check_connection(connection)


def _process(connection: Connection) -> int:
    """The process of the server that answers."""
    found = connection.execute("select pg_backend_pid()", prepare=False).fetchone()
    return found[0] if found else 0


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
