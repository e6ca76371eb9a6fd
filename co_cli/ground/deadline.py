"""When the work for one query ends: its time is up, or the client has left."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

SECONDS = 5.0
"""What comparing notes with a query may take."""


class QueryDeadline:
    """The end of one query, from the start of its request on. Any thread may cancel it."""

    def __init__(self, shared: bool = False) -> None:
        """`shared`: others wait for what this query uses, so reading files ends with it, too."""
        self.shared, self.cancelled = shared, False
        self._ends = time.monotonic() + SECONDS

    @property
    def left(self) -> float:
        """Seconds; 0 if it has passed."""
        return 0.0 if self.cancelled else max(0.0, self._ends - time.monotonic())


REQUESTED: ContextVar[QueryDeadline | None] = ContextVar("deadline", default=None)


@contextmanager
def serving() -> Generator[QueryDeadline]:
    """One request to a server: every search in it, also in other threads, has this deadline."""
    deadline = QueryDeadline(shared=True)
    before = REQUESTED.set(deadline)
    try:
        yield deadline
    finally:
        REQUESTED.reset(before)


def make_deadline() -> QueryDeadline:
    """The deadline of a query: that of the request to a server, or a new one."""
    return REQUESTED.get() or QueryDeadline()
