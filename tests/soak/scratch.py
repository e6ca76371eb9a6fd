"""A temporary folder for soaks and for all that they start. Nothing of it is left, however they end.

Ctrl-C may strike at any moment, and again while the folder is being removed; the processes that were begun may still be
writing there; and what Python's own server of processes needs would stay behind where `co` ends without a farewell.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
ATTEMPTS = 5


@contextlib.contextmanager
def scratch() -> Generator[Path]:
    """The folder, in which everything temporary of this process is made until it goes."""
    signals = _heard()
    before = {number: signal.getsignal(number) for number in signals}
    elsewhere, folder, unraisable = tempfile.tempdir, "", sys.unraisablehook
    try:
        try:
            _asked.clear()
            sys.unraisablehook = _hardly_raised
            for number in signals:
                signal.signal(number, _stop_once)
            folder = tempfile.mkdtemp(prefix="co-soak-")
            tempfile.tempdir = os.path.realpath(folder)
            yield Path(tempfile.tempdir)
        except Exception:
            stop_if_asked()  # what was interrupted may call it something else: an import that failed, if it was numpy's
            raise
        finally:
            _ignore(signals)
    finally:  # from here on undisturbed: whoever comes here by Ctrl-C, or met it on the way, ignores the next
        tempfile.tempdir, sys.unraisablehook = elsewhere, unraisable
        _remove(folder)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def held_back() -> Generator[None]:
    """Ctrl-C waits until this is over. The other threads of a process hear it too, so a mask alone would not do."""
    heard: list[int] = []
    before = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in _heard()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in heard[:1]:
            signal.raise_signal(number)


def _heard() -> list[Any]:
    """What stops us; not what somebody has us ignore, as nohup does. Only the main thread can be told."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]


def stop_if_asked() -> None:
    """Raise what Ctrl-C raised before, if it came to nothing: Python drops it where it tidies up itself, as it does
    after an import.
    """
    if _asked:
        raise KeyboardInterrupt


def _stop_once(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, or a request to end: once. A second must not interrupt the tidying up."""
    _asked.append(number)
    _ignore(_heard())
    raise KeyboardInterrupt


def _hardly_raised(dropped: Any) -> None:
    if not isinstance(dropped.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)


_asked: list[int] = []


def _ignore(signals: list[Any]) -> None:
    for number in signals:
        signal.signal(number, signal.SIG_IGN)


def _remove(folder: str) -> None:
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for process in active_children():  # one that was begun when Ctrl-C struck is in nobody's hands
            process.kill()
            process.join()
    for _ in range(ATTEMPTS):
        if not os.path.lexists(folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
