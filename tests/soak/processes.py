"""Real processes that come to harm: they start quickly, talk over a pipe, and are killed without a word.

On Linux and macOS they are forks of one server that has everything imported; Windows starts each anew, as does whoever
has a temporary folder with a very long name.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from multiprocessing import resource_tracker
from typing import Any

from tests.soak.scratch import held_back

PATIENCE = 60.0
"""Seconds after which a process that says nothing is a fault."""
LONGEST_PLACE = 60
"""Letters of the temporary folder: the socket of the server lies in it, and its name may have about a hundred."""
PRELOADED = ["tests.soak.warm", "tests.soak.killing", "tests.soak.crowding"]


class Process:
    """One process and the pipe to it."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = _context()
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
        with _deaf():
            self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def says(self, seconds: float = PATIENCE) -> Any:
        """The next thing that it says; None if it ended, or said nothing for too long."""
        try:
            return self.pipe.recv() if self.pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def rest(self) -> list[Any]:
        """Everything that it still said."""
        found: list[Any] = []
        while (said := self.says()) is not None:
            found.append(said)
        return found

    def kill(self) -> None:
        """SIGKILL: it has no say in it. What it said before can still be read."""
        self._process.kill()
        self._process.join()

    def end(self) -> int | None:
        """Wait for it to end by itself. Its exit code; None if it had to be killed."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        self.close()
        return code

    def close(self) -> None:
        if self._process.is_alive():
            self.kill()
        self.pipe.close()


@contextlib.contextmanager
def processes(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> Generator[list[Process]]:
    """One for each tuple of arguments; none is left when this ends, however it ends."""
    begun: list[Process] = []
    try:
        for given in arguments:
            begun.append(Process(target, *given))
        yield begun
    finally:
        for process in begun:
            process.close()


@contextlib.contextmanager
def _deaf() -> Generator[None]:
    """Whoever is begun meanwhile never hears Ctrl-C, which is for us: we end them, and they print nothing about it.

    What we hear meanwhile counts when they are begun and known: half begun, nobody could end them.
    """
    with held_back():
        if sys.platform == "win32":
            yield
            return
        resource_tracker.ensure_running()  # it hears nothing either, and would take the next line back
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context() -> multiprocessing.context.SpawnContext | multiprocessing.context.ForkServerContext:
    if sys.platform == "win32" or len(tempfile.gettempdir()) > LONGEST_PLACE:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context
