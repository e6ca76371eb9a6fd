"""Events into rows of activity.db: a queue and a thread for long-lived processes, and the spool of brief ones.

Recording never waits: a full queue drops and counts. The thread pauses before each batch, so that a busy hour is a few
transactions.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import os
import queue
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import SPOOL, Cited, Event, Indexed, Opened, SearchEvent
from co_cli.activity.judgements import infer_judgements
from co_cli.activity.query_log import count_uses, log_searches
from co_cli.activity.versions import put_everything, put_heads
from co_cli.errors import IndexDamagedError, KnowledgeError
from co_cli.notes.files import locked

if TYPE_CHECKING:
    from co_cli.activity import Activity

MOST_WAITING = 10_000
PAUSE_SECONDS = 0.5
PATIENCE = 10.0
"""Seconds that closing waits for the last batch."""


class EventWriter:
    """Writes the events of one Activity. The thread starts with the first event that is put in the queue."""

    def __init__(self, activity: Activity, pause: float = PAUSE_SECONDS, most: int = MOST_WAITING) -> None:
        self._activity, self._pause = activity, pause
        self.database = ActivityDatabase(activity.data_dir)
        self.database.on_set_aside = activity.on_set_aside
        self._queue: queue.Queue[Event | None] = queue.Queue(most)
        self._hurry = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, event: Event) -> None:
        """Leave an event to the thread."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._activity.drop(1, RuntimeError("too many events at once"))
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="co-activity", daemon=True)
                self._thread.start()
                atexit.register(self.close)  # an agent opens its knowledge base once and never closes it

    def write(self, events: Sequence[Event]) -> None:
        """Write the spool and these events now. What fails is dropped and counted."""
        for last in (False, True):
            try:
                self.read_spool()
                if events:
                    with self.database.writing() as connection:
                        write_events(connection, events)
                return
            except (KnowledgeError, apsw.Error, OSError) as error:
                if last or not isinstance(error.__cause__, IndexDamagedError):
                    self._activity.drop(len(events), error)
                    return
                # else it was moved aside, and the second attempt makes a new one

    def flush(self, seconds: float) -> bool:
        """Wait until the queue is empty. False if it took longer, or something was lost."""
        before = self._activity.dropped
        self._hurry.set()
        with self._queue.all_tasks_done:
            done = self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, seconds)
        self._hurry.clear()
        return done and self._activity.dropped == before

    def close(self) -> None:
        """Write the last batch; what is left after PATIENCE counts as lost."""
        atexit.unregister(self.close)
        if self._thread is not None and not self.flush(PATIENCE):
            left = self._queue.qsize()
            if left:
                self._activity.drop(left, TimeoutError("activity.db was busy for too long"))
        if self._thread is not None:
            self._hurry.set()
            with contextlib.suppress(queue.Full):
                self._queue.put_nowait(None)
            self._thread.join(PATIENCE)
            self._thread = None
        self.database.close()

    def read_spool(self) -> None:
        """Write what brief processes appended to the spool. It gets another name first: nobody appends to that."""
        spool = os.path.join(self._activity.data_dir, SPOOL)
        if not os.path.isdir(self._activity.data_dir):
            return
        with locked(f"{spool}.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(spool, f"{spool}.{time.time_ns():x}")
            for name in sorted(os.listdir(self._activity.data_dir)):
                if name.startswith(f"{SPOOL}.") and not name.endswith(".lock"):
                    file = os.path.join(self._activity.data_dir, name)
                    with open(file, "rb") as stream:
                        events = [event for line in stream if (event := _read_line(line)) is not None]
                    if events:
                        with self.database.writing() as connection:
                            write_events(connection, events)
                    os.unlink(file)

    def _run(self) -> None:
        event = self._queue.get()
        while event is not None:
            self._hurry.wait(self._pause)  # more may come, and share the transaction
            batch: list[Event] = []
            while event is not None:
                batch.append(event)
                try:
                    event = self._queue.get_nowait()
                except queue.Empty:
                    break
            self.write(batch)
            for _ in batch:
                self._queue.task_done()
            if event is not None:
                event = self._queue.get()


def write_events(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Inside the caller's transaction."""
    searches = [event for event in events if isinstance(event, SearchEvent)]
    opened = [event for event in events if isinstance(event, Opened)]
    log_searches(connection, searches)
    count_uses(connection, searches, opened)
    infer_judgements(connection, [event for event in events if isinstance(event, (Opened, Cited))])
    changes = [event for event in events if isinstance(event, Indexed)]
    for event in changes:
        put_heads(connection, event)
    for event in changes:  # last: the events themselves know more about what they changed
        put_everything(connection, event)


def _read_line(line: bytes) -> SearchEvent | Opened | None:
    """None for a line that a full disk has cut off."""
    try:
        kind, *values = ast.literal_eval(line.decode("utf-8", "replace"))
        return SearchEvent(*values) if kind == "s" else Opened(*values) if kind == "o" else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
