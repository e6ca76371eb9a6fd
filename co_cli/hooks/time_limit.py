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

GRACE = 1
"""Seconds after which the process ends by itself, if nobody is left to end it."""


def run_apart(work: Callable[[], str], seconds: float) -> str:
    """What the function returns; empty if it fails or takes too long."""
    if sys.platform == "win32":
        return _run_in_thread(work, seconds)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, sending, seconds)
    os.close(sending)
    return _read_until_end(receiving, child, time.monotonic() + seconds)


if sys.platform != "win32":

    def _work(work: Callable[[], str], sending: int, seconds: float) -> None:
        """The child: it never returns, and prints nothing by itself."""
        try:
            end_after(int(seconds) + GRACE)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            data = work().encode("utf-8", "replace")
            while data:
                data = data[os.write(sending, data) :]
        finally:
            os._exit(0)

    def _read_until_end(receiving: int, child: int, deadline: float) -> str:
        import select  # only here

        found = b""
        while select.select([receiving], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(receiving, 1 << 16)
            if not part:
                return found.decode("utf-8", "replace")
            found += part
        os.kill(child, signal.SIGKILL)  # without waiting: it may be stuck
        return ""


def end_after(seconds: int) -> None:
    """End this process by then, if it waits for something that does not come."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def _run_in_thread(work: Callable[[], str], seconds: float) -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else ""
