"""Fold what was spooled into activity.db, each line once, also when a process is killed in between.

The spool gets another name first, so that nobody who comes later appends to it, and how far it was read is written in
the same transaction as what it said. Somebody may still hold the old name open: a file goes only some seconds later.
"""

from __future__ import annotations

import ast
import contextlib
import os
import time
from typing import Any

from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import SPOOL, Opened, Searched
from co_cli.activity.writing import write_events

RESTED_SECONDS = 5.0
NUMBER, TEXT, MAYBE = (float, int), (str,), (str, type(None))
OPENED = (TEXT, NUMBER, TEXT)
SEARCHED = (TEXT, NUMBER, TEXT, MAYBE, TEXT, TEXT, NUMBER, NUMBER, MAYBE, (tuple,), (tuple,))
"""The types of an event's values, one after the other."""
FOLDED = "select folded from spools where name = :name"
PUT_FOLDED = """
insert into spools (name, folded) values (:name, :folded)
on conflict (name) do update set folded = excluded.folded
"""
FORGET = "delete from spools where name = :name"


def fold_spool(database: ActivityDatabase, data_dir: str, rest: float = RESTED_SECONDS) -> int:
    """How many events were folded in. `rest` is for how long a file stays after it got another name."""
    path = os.path.join(data_dir, SPOOL)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, f"{path}.{time.time_ns():x}-{os.getpid():x}")
    return sum(_fold(database, os.path.join(data_dir, name), rest) for name in waiting(data_dir))


def waiting(data_dir: str) -> list[str]:
    """Spools that have been renamed, oldest first."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(data_dir) if name.startswith(f"{SPOOL}."))
    return []


def _fold(database: ActivityDatabase, path: str, rest: float) -> int:
    name = os.path.basename(path)
    count = 0
    with database.writing() as connection:
        begun = int(str(connection.execute(FOLDED, {"name": name}).get or 0))
        try:
            rested = time.time() - os.stat(path).st_ctime > rest  # since it was renamed
            with open(path, "rb") as stream:
                stream.seek(begun)
                data = stream.read()
        except FileNotFoundError:
            return 0  # another process was quicker
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            events = [event for line in whole.splitlines() if (event := read_line(line)) is not None]
            write_events(connection, events)
            connection.execute(PUT_FOLDED, {"name": name, "folded": begun + len(whole)})
            count = len(events)
    if rested:
        _discard(database, path)
    return count


def _discard(database: ActivityDatabase, path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
        with database.writing() as connection:
            connection.execute(FORGET, {"name": os.path.basename(path)})


def read_line(line: bytes) -> Searched | Opened | None:
    """None for a line that nobody could have meant: torn by a full disk, or of another program."""
    try:
        kind, *values = ast.literal_eval(line.decode("utf-8", "replace"))
        return _event(kind, values)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _event(kind: object, values: list[Any]) -> Searched | Opened | None:
    """Of the right length, and each value of its type."""
    expected = SEARCHED if kind == "s" else OPENED if kind == "o" else ()
    if not expected or len(values) != len(expected) or not all(map(isinstance, values, expected)):
        return None
    if kind == "o":
        return Opened(*values)
    if not _pairs(values[-1], TEXT) or not _pairs(values[-2], NUMBER):
        return None
    return Searched(*values)


def _pairs(value: tuple[Any, ...], second: tuple[type, ...]) -> bool:
    return all(
        type(pair) is tuple and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], second)
        for pair in value
    )
