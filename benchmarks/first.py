"""What the first sync costs beside a plain implementation of the same, and beside reading the files alone."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import apsw

from benchmarks.measuring import BenchRow
from benchmarks.plain_model import PlainModel
from benchmarks.vaults import Bar, BenchVault, bench_vault
from co_cli.ground.values import content_hash
from co_cli.notes.note import read_note

REPEATS = 3
GOAL, READING_GOAL = 0.2, 8.0

PLAIN_SCHEMA = """
create table docs (id integer primary key, path text, title text, body text, tags text);
create virtual table docs_fts using fts5 (
    title, body, tags, content = 'docs', content_rowid = 'id', tokenize = 'porter'
);
create trigger docs_added after insert on docs begin
    insert into docs_fts (rowid, title, body, tags) values (new.id, new.title, new.body, new.tags);
end;
create table vectors (id integer primary key, vector blob);
"""
PLAIN_DOC = "insert into docs (path, title, body, tags) values (:path, :title, :body, :tags)"
PLAIN_VECTOR = "insert into vectors (id, vector) values (:id, :vector)"


def bench_first(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """CPU time of all processes, which a busy machine tells as well, and the clock, by which two cores count."""
    taken: dict[str, list[tuple[float, float]]] = {"plain": [], "sync": [], "read": []}
    repeats = REPEATS if notes <= 2_000 else 1
    for round_ in range(repeats):
        with bench_vault(notes, seed=round_, synced=False) as vault:
            taken["plain"].append(_timed(lambda: plain_sync(vault)))
            taken["sync"].append(_timed(lambda: _sync(vault, bar)))
            taken["read"].append(_timed(lambda: read_all(vault)))
    if bar:
        bar.done()
    plain, sync, read = (median(cpu for cpu, _ in taken[name]) for name in ("plain", "sync", "read"))
    plain_clock, sync_clock, read_clock = (
        median(clock for _, clock in taken[name]) for name in ("plain", "sync", "read")
    )
    return [
        BenchRow(f"plain implementation, {notes:,} notes (CPU)", round(plain, 3), "s", 1.0),
        BenchRow("reading, hashing and parsing them alone", round(read, 3), "s", read / plain),
        BenchRow("first sync, words and vectors", round(sync, 3), "s", sync / plain, GOAL),
        BenchRow("first sync beside reading, hashing and parsing", round(sync, 3), "s", sync / read, READING_GOAL),
        BenchRow("plain implementation, by the clock", round(plain_clock, 3), "s", 1.0),
        BenchRow("first sync, by the clock", round(sync_clock, 3), "s", sync_clock / plain_clock, GOAL),
        BenchRow(
            "first sync beside reading, by the clock",
            round(sync_clock, 3),
            "s",
            sync_clock / read_clock if read_clock else None,
            READING_GOAL,
        ),
    ]


def plain_sync(vault: BenchVault) -> None:
    """As a weekend has it: pathlib, python-frontmatter, an insert a note, triggers, one text embedded at a time."""
    import frontmatter

    connection, model = apsw.Connection(os.path.join(vault.folder, "plain.db")), PlainModel()
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute(PLAIN_SCHEMA)
    for path in sorted(Path(vault.root).rglob("*.md")):
        note = frontmatter.loads(path.read_text(encoding="utf-8"))
        title, tags = str(note.get("title", path.stem)), " ".join(map(str, note.get("tags") or ()))  # pyright: ignore[reportUnknownArgumentType, reportArgumentType]
        values = {"path": str(path.relative_to(vault.root)), "title": title, "body": note.content, "tags": tags}
        connection.execute(PLAIN_DOC, values)
        vector = model.embed(f"{title}\n{note.content}\n{tags}")
        packed = struct.pack(f"<{len(vector)}f", *vector)
        connection.execute(PLAIN_VECTOR, {"id": connection.last_insert_rowid(), "vector": packed})
    connection.close()


def read_all(vault: BenchVault) -> None:
    for path in vault.paths:
        with open(path, "rb") as stream:
            data = stream.read()
        content_hash(data)
        read_note(os.path.relpath(path, vault.root), data)


def _sync(vault: BenchVault, bar: Bar | None) -> None:
    with vault.open() as kb:
        kb.sync(bar)


def _timed(task: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of this process and of those that it began, and seconds by the clock."""
    before, clock = _cpu(), time.perf_counter()
    task()
    return _cpu() - before, time.perf_counter() - clock


def _cpu() -> float:
    times = os.times()  # of this process it would tell hundredths of a second
    return time.process_time() + times.children_user + times.children_system
