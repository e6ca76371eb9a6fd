"""Events into rows of activity.db: those of the spool, and changes of the index."""

from __future__ import annotations

import ast
import contextlib
import os
import time
from collections.abc import Callable, Sequence

import apsw

from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import SPOOL, SPOOLED, Cited, Event, Indexed, Opened, SearchEvent, Spooled
from co_cli.activity.judgements import infer_judgements
from co_cli.activity.query_log import count_uses, log_searches
from co_cli.activity.versions import put_heads
from co_cli.errors import IndexDamagedError, KnowledgeError
from co_cli.notes.files import locked

WAS_READ = "select 1 from spool where name = :name"
SET_READ = "insert or replace into spool (id, name) values (1, :name)"


class EventWriter:
    """Writes to the activity.db of one data folder."""

    def __init__(self, data_dir: str, on_set_aside: Callable[[str], None] | None = None) -> None:
        self._data_dir, self.database = data_dir, ActivityDatabase(data_dir)
        self.database.on_set_aside = on_set_aside

    def write(self, events: Sequence[Event]) -> Exception | None:
        """Write the spool and these events. Returns why that failed, if it did."""
        for last in (False, True):
            try:
                self.read_spool()
                if events:
                    with self.database.writing() as connection:
                        _write(connection, events)
                break
            except (KnowledgeError, apsw.Error, OSError) as error:
                if last or not isinstance(error.__cause__, IndexDamagedError):
                    return error
                # else it was moved aside, and the second attempt makes a new one
        return None

    def read_spool(self) -> None:
        """Write the events of the spool. It is renamed first, so that nobody appends to what is read."""
        spool = os.path.join(self._data_dir, SPOOL)
        if not os.path.isdir(self._data_dir):
            return
        with locked(f"{spool}.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(spool, f"{spool}.{time.time_ns():x}")
            for name in sorted(os.listdir(self._data_dir)):
                if name.startswith(f"{SPOOL}.") and not name.endswith(".lock"):
                    file = os.path.join(self._data_dir, name)
                    with open(file, "rb") as stream:
                        events = [event for line in stream if (event := _read_line(line)) is not None]
                    with self.database.writing() as connection:
                        if not connection.execute(WAS_READ, {"name": name}).get:
                            _write_spooled(connection, events)
                            connection.execute(SET_READ, {"name": name})
                    os.unlink(file)


def _write_spooled(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Write these, but for events that no line of ours has: another version of this program may share the spool."""
    try:
        with connection:  # a savepoint
            _write(connection, events)
    except (TypeError, ValueError, apsw.ConstraintError, apsw.MismatchError):
        for event in events if len(events) > 1 else ():
            _write_spooled(connection, [event])


def _write(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Inside the caller's transaction."""
    searches = [event for event in events if isinstance(event, SearchEvent)]
    opened = [event for event in events if isinstance(event, Opened)]
    log_searches(connection, searches)
    count_uses(connection, searches, opened)
    infer_judgements(connection, [event for event in events if isinstance(event, (Opened, Cited))])
    for event in events:
        if isinstance(event, Indexed):
            put_heads(connection, event)


def _read_line(line: bytes) -> Spooled | None:
    """None for a line that a full disk has cut off."""
    try:
        kind, *values = ast.literal_eval(line.decode("utf-8", "replace"))
        return SPOOLED[kind](*values)
    except (ValueError, SyntaxError, TypeError, LookupError, RecursionError, MemoryError):
        return None
