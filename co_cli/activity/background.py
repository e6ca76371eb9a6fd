"""Write events to activity.db behind the back of a process that stays: a bounded queue, a thread, a batch at a time.

Whoever tells of an event never waits: a full queue drops and counts. The thread rests between batches, so that a busy
hour is a few transactions and a search hardly ever meets it.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque

import apsw

from co_cli.activity import Activity
from co_cli.activity.folding import fold_spool
from co_cli.activity.writing import Event, write_events
from co_cli.errors import IndexDamagedError, KnowledgeError

MOST_WAITING = 10_000
REST_SECONDS = 0.5
PATIENCE = 10.0
"""Seconds that closing waits for the last batch."""


def write_now(activity: Activity, events: list[Event]) -> None:
    """Fold in what was spooled, then write these. What fails is dropped and counted."""
    try:
        try:
            _write(activity, events)
        except IndexDamagedError:
            _write(activity, events)  # it was set aside: a new one is begun
    except (KnowledgeError, apsw.Error, OSError) as error:
        activity.drop(len(events), error)


def _write(activity: Activity, events: list[Event]) -> None:
    fold_spool(activity.database, activity.data_dir)
    if events:
        with activity.database.writing() as connection:
            write_events(connection, events)


class BackgroundWriter:
    """One thread for one Activity, begun with the first event."""

    def __init__(self, activity: Activity, rest: float = REST_SECONDS, most: int = MOST_WAITING) -> None:
        self._activity, self._rest, self._most = activity, rest, most
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._busy = self._closing = self._hurry = False
        self._thread: threading.Thread | None = None

    def put(self, event: Event) -> None:
        with self._changed:
            if len(self._waiting) >= self._most or self._closing:
                self._activity.drop(1, RuntimeError("too many events at once"))
                return
            self._waiting.append(event)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="co-activity", daemon=True)
                self._thread.start()
                atexit.register(self.close)  # an agent's knowledge base is opened once and never closed
            elif len(self._waiting) == 1:  # it waits for the first of a batch; the others do not wake it
                self._changed.notify_all()

    def flush(self, seconds: float = PATIENCE) -> bool:
        """Wait until nothing waits. False if it took longer, or something was lost."""
        before = self._activity.dropped
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)
            self._hurry = False
        return done and self._activity.dropped == before

    def close(self) -> None:
        """Write the last batch; after PATIENCE what is left is counted as lost."""
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(PATIENCE)
        with self._changed:
            left = len(self._waiting)
            self._waiting.clear()
        if left:
            self._activity.drop(left, TimeoutError("activity.db was busy for too long"))

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._waiting and not self._closing:
                    until = time.monotonic() + self._rest  # more may come, and share the transaction
                    while (left := until - time.monotonic()) > 0 and not (self._hurry or self._closing):
                        self._changed.wait(left)
                batch = list(self._waiting)
                self._waiting.clear()
                self._busy = True
            if batch:
                write_now(self._activity, batch)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if self._closing and not self._waiting:
                    return
