"""Which files somebody is still writing, as far as that can be known.

A file that is read in the middle of a save would be found by half of its text, and by the other half not. Two things
give a writer away: the file changed a moment ago, or (where the system tells) somebody holds it open for writing. A
file that is seen growing is given more time each time. None is waited for forever: some are written to all day long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from co_cli.record import Record

QUIET = 0.2
"""Seconds without a change after which a file counts as written."""
LONGEST_QUIET = 2.0
"""The same for a file that is written slowly."""
OPEN = 10.0
"""Seconds without a change after which a file that is still held open counts as written all the same."""
LONGEST_WAIT = 30.0
"""After that it is read as it is, and again later."""
MANY = 10_000
AHEAD = 2.0
"""Seconds that the clock of a file system may be ahead of ours."""


class Seen(Record):
    """A file as it was when it was last left alone."""

    state: tuple[int, int, int]
    since: float
    quiet: float


class Settling:
    """Remembers which files it was asked about while they were written. Safe to share between threads."""

    def __init__(self, quiet: float = QUIET, clock: Callable[[], float] = time.time) -> None:
        self._quiet, self._clock = quiet, clock
        self._seen: dict[str, Seen] = {}
        self._lock = threading.Lock()

    def waits(self, path: str) -> bool:
        """Should this file be left alone for now? One that cannot be looked at need not: whoever reads it says why."""
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            with self._lock:
                self._seen.pop(path, None)
            return False
        state = (found.st_ino, found.st_size, found.st_mtime_ns)
        now = self._clock()
        with self._lock:
            before = self._seen.get(path)
        quiet = before.quiet if before else self._quiet
        if before and before.state != state and before.state[0] == state[0]:  # another inode is a save in one piece
            quiet = min(quiet * 2, LONGEST_QUIET)
        age, since = now - found.st_mtime, before.since if before else now
        written = -AHEAD < age < quiet or (age < OPEN and is_open_for_writing(path))
        with self._lock:
            if written and now - since < LONGEST_WAIT:
                self._seen[path] = Seen(state, since, quiet)
                if len(self._seen) > MANY:  # of a file that went away meanwhile nobody asks again
                    self._seen = {path: seen for path, seen in self._seen.items() if now - seen.since < LONGEST_WAIT}
                return True
            self._seen.pop(path, None)
        return False


def is_open_for_writing(path: str) -> bool:
    """Does anybody hold it open for writing? False where that cannot be known.

    Linux grants a read lease on a file only while nobody does. It is given back at once; whoever opens the file in
    between waits for that long, and the signal that we would be sent is one that is ignored by default.
    """
    if sys.platform != "linux":
        return False
    import fcntl
    import signal

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # somebody else's file, or a file system without leases
    finally:
        os.close(handle)
    return False
