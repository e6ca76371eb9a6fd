"""Run a function in a process of its own and give up after some seconds, whatever that process is waiting for.

A thread would not do: a process whose thread waits for a broken disk cannot end. Where there is no `fork` a thread must
do. Nothing that goes wrong in there, not even a crash of the interpreter, reaches the caller.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO, TypeVar

T = TypeVar("T")

GRACE = 1
"""Seconds after which the process ends by itself, if nobody is left to end it."""
BEHIND = 10
"""Seconds for what is done after the caller has ended; where it cannot outlive the caller, `GRACE`."""
WHOLE = 1 << 40


def read_within(stream: BinaryIO, most: int, deadline: float) -> bytes:
    """What a stream has until its end, at most so many bytes; nothing if it does not end in time."""
    try:
        handle = stream.fileno()
    except OSError:  # it is in memory
        return stream.read(most)
    if sys.platform == "win32":
        return _run_in_thread(lambda: stream.read(most), deadline) or b""
    return _read_until_end(handle, most, deadline) or b""


def run_apart(work: Callable[[], str], deadline: float) -> str | None:
    """What the function returns, empty if it fails; None if it takes too long."""
    if sys.platform == "win32":
        return _run_in_thread(work, deadline)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, sending, int(max(0.0, deadline - time.monotonic())) + GRACE)
    os.close(sending)
    found = _read_until_end(receiving, WHOLE, deadline)
    if found is None:
        os.kill(child, signal.SIGKILL)  # without waiting: it may be stuck
        return None
    return found.decode("utf-8", "replace")


def leave_behind(work: Callable[[], None]) -> None:
    """Do something that nobody waits for, also after this process has ended."""
    if sys.platform == "win32":
        _run_in_thread(work, time.monotonic() + GRACE)
    elif os.fork() == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 0)
        _work(lambda: work() or "", silent, BEHIND)


if sys.platform != "win32":

    def _work(work: Callable[[], str], sending: int, seconds: int) -> None:
        """The child: it never returns, and prints nothing by itself."""
        try:
            end_after(seconds)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            data = work().encode("utf-8", "replace")
            while data:
                data = data[os.write(sending, data) :]
        finally:
            os._exit(0)

    def _read_until_end(handle: int, most: int, deadline: float) -> bytes | None:
        """None if the end does not come in time."""
        import select  # only here

        found = b""
        while select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(handle, min(1 << 16, most - len(found)))
            if not part:
                return found
            found += part
        return None


def end_after(seconds: int) -> None:
    """End this process by then, if it waits for something that does not come."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def _run_in_thread(work: Callable[[], T], deadline: float) -> T | None:
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    return found[0] if found else None
