"""A second process that embeds passages while this one reads files: what a first sync of a large vault takes by the
clock is halved nearly, where there are two cores.

The two share nothing but search.db, where one writes down what waits for a vector and the other takes it from. So
whatever becomes of the second one, nothing is lost: what still waits at the end is embedded here. Only a `co` command
starts it, never a program that uses the library.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.static import shared_embedder
from co_cli.embedding.static_file import SPACE as STATIC
from co_cli.index.connection import Database
from co_cli.index.meaning import BATCH, Batch, Known, begin_space, store
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import space_state
from co_cli.logbook import logger
from co_cli.places import this_process
from co_cli.processes import start_beside
from co_cli.sources.origin import Origin

ONE_CORE = {"OPENBLAS_NUM_THREADS": "1"}
"""The other one is busy reading files."""
PAUSE = 0.1
"""Seconds between two looks at what waits, while that is little."""
PATIENCE = 60.0
"""Seconds for its last batch, which takes one."""

log = logger("embedding")


@contextlib.contextmanager
def embedding_beside(rows: VaultDatabase, embedders: Embedders | None) -> Generator[None]:
    """While this is open and files are read, their passages get the vectors of the embedded model beside it."""
    if not _is_wanted(embedders) or not _begin(rows):
        yield
        return
    what = json.dumps([rows.database.path, rows.database.extension, rows.origin._asdict(), BATCH])
    process = None
    try:
        process = start_beside(["-m", "co_cli.index.second_process", what], ONE_CORE)
    except OSError as error:  # no room for one more, or Python was upgraded under a server that runs on
        log.info("no process embeds beside this sync: %s", error)
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _is_wanted(embedders: Embedders | None) -> bool:
    ours = this_process.command is not None and bool(sys.executable) and not getattr(sys, "frozen", False)
    return ours and _cores() > 1 and embedders is not None and embedders.space is not None


def _begin(rows: VaultDatabase) -> bool:
    """See that passages wait from now on. False if another space than the embedded model's answers for this vault."""
    with rows.reading() as (connection, vault):
        active = space_state(connection, vault).active
    active = active or begin_space(rows, STATIC, rows.database.extension is not None).active
    return active is not None and active.space.key == STATIC.key


def _end(process: subprocess.Popen[bytes]) -> None:
    """When its input ends it finishes what it is at."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it ended before
        process.stdin.close()
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if process.stdout:
        process.stdout.close()
    if code:
        log.info("the process that embeds beside a sync ended with %d; what it left is embedded now", code)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def embed_until(rows: VaultDatabase, size: int, ended: threading.Event) -> None:
    """Embed what waits, whenever there is a whole batch of it; when it is to end, one more of whatever size.

    Mostly that is all there is, and whoever began this need not import numpy for it.
    """
    known: Known = {}
    ending = False
    while not ending:
        ending = ended.is_set()
        with rows.reading() as (connection, vault):
            space = space_state(connection, vault).active
            if space is None or space.space.key != STATIC.key:
                return  # another one took over
            batch = Batch(connection, vault, space, size)
        if len(batch.rows) < size and not ending:
            ended.wait(PAUSE)
            continue
        batch.embed(shared_embedder(), None)
        if not store(rows, batch, known):
            return


def _run() -> None:
    path, extension, origin, size = json.loads(sys.argv[1])
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.buffer.read()  # until whoever began this closes it, or is gone
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    database = Database(path, extension)
    try:
        embed_until(VaultDatabase(database, Origin(**origin)), size, ended)
    finally:
        database.close()


if __name__ == "__main__":
    _run()
