"""A read replica: searches ask it as long as it keeps up. One that stopped replaying still answers, with old rows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from co_cli.ground.errors import IndexUnavailableError

EVERY_SECONDS = 1.0
LATE_SECONDS = 5.0
"""A replica must have replayed what the primary had written this many seconds ago."""
REST_SECONDS = 30.0
"""How long one that cannot be reached is left alone."""
WRITTEN = "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
REPLAYED = "select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"


class Replica:
    """Compares positions in the log of changes, not times: those of an idle primary would say nothing."""

    def __init__(self, primary: Callable[[str], int], replica: Callable[[str], int]) -> None:
        """Each asks its server for a position."""
        self._primary, self._replica = primary, replica
        self._written: deque[tuple[float, int]] = deque()
        self._asked: deque[tuple[float, int]] | None = None
        """The positions of the last comparison: no longer `_written` if this process has written something since."""
        self._lock = threading.Lock()  # not held while a server is asked
        self._next = 0.0
        self._replayed = 0
        self.behind = 0
        """Bytes of the log that it had not replayed when it last answered."""
        self.problem: str | None = None
        """Why the primary answers instead."""

    def expect(self) -> None:
        """This process has written something, which its next search has to find."""
        self._written = deque()  # a check that is under way may get an older position, and adds it to the old ones
        self._next = 0.0 if self._next - time.monotonic() < EVERY_SECONDS else self._next

    def keeps_up(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return self.problem is None and self._asked is self._written
        self._next = now + EVERY_SECONDS
        positions = self._written
        written = self._primary(WRITTEN)
        with self._lock:
            positions.append((now, written))
            while len(positions) > 1 and positions[1][0] <= now - LATE_SECONDS:
                positions.popleft()
            needed = positions[0][1]
        problem = None
        try:
            self._replayed = self._replica(REPLAYED)
        except IndexUnavailableError as error:
            self._next, problem = now + REST_SECONDS, str(error)
        if self._replayed > written:  # it was asked later
            written = self._primary(WRITTEN)
        foreign = self._replayed > written
        self.behind = written if foreign else written - self._replayed
        if problem is None and foreign:
            problem = "the replica has changes that this database never had: the primary answers"
        elif problem is None and self._replayed < needed:
            problem = f"the replica is {self.behind:,} bytes behind: the primary answers"
        with self._lock:
            self.problem, self._asked = problem, positions
        return problem is None
