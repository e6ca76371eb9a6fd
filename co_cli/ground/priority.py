"""Work that gives way: a thread that makes vectors has a low priority, and pauses while this process searches."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

LOW = 10
"""As `nice` counts."""
LONGEST_PAUSE = 1.0
"""Seconds, or the work would never end where somebody always searches."""

_counting, _searches = threading.Lock(), 0
_idle = threading.Event()
_idle.set()
_thread = threading.local()


@contextmanager
def answering() -> Generator[None]:
    """Somebody waits for what is done here."""
    global _searches
    with _counting:
        _searches += 1
        _idle.clear()
    try:
        yield
    finally:
        with _counting:
            _searches -= 1
            if not _searches:
                _idle.set()


def lower_priority() -> None:
    """Let this thread give way from now on."""
    _thread.gives_way = True
    if sys.platform == "linux":  # elsewhere the threads of a process have one priority
        thread = threading.get_native_id()
        # nobody but root may raise what `nice` lowered further
        os.setpriority(os.PRIO_PROCESS, thread, max(LOW, os.getpriority(os.PRIO_PROCESS, thread)))


def gives_way() -> bool:
    """Whether this thread does."""
    return getattr(_thread, "gives_way", False)


def pause() -> None:
    """Wait until nothing is being answered."""
    _idle.wait(LONGEST_PAUSE)
