"""Ctrl-C at every line of a write: the note is the old one or the new one, and nothing else is left."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from co_cli.notes import files

OLD, NEW = b"Oaks live long.", b"Oaks live very long."


class CtrlC:
    """Strikes at the n-th line that runs in `files`."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, argument: Any) -> CtrlC | None:
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def during(self, write: Callable[[], object]) -> bool:
        """Whether it struck. In a thread, because a strike leaves the interpreter's idea of errors in a mess."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._during, write).result()

    def _during(self, write: Callable[[], object]) -> bool:
        sys.settrace(self)
        try:
            write()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def replace_old(path: str, data: bytes) -> bool:
    return files.replace_text(path, data, OLD)


def replace_several(path: str, data: bytes) -> object:
    return files.replace_all({path: data})


@pytest.mark.parametrize("write", [files.replace, replace_several, files.create_exclusively, replace_old])
def test_wherever_ctrl_c_strikes_no_text_is_lost_and_only_one_that_may_be_somebody_s_is_left(
    tmp_path: Path, write: Callable[[str, bytes], object]
) -> None:
    folder = tmp_path / "memories"
    folder.mkdir()
    path, line, struck = folder / "oak.md", 0, True
    while struck:
        line += 1
        for name in os.listdir(folder):
            os.unlink(folder / name)
        if write is not files.create_exclusively:
            path.write_bytes(OLD)

        struck = CtrlC(line).during(lambda: write(str(path), NEW))
        files.discard_unfinished()

        left = [folder / name for name in os.listdir(folder) if name != "oak.md"]
        assert len(left) <= (write is replace_old)
        assert all(file.read_bytes() in (OLD, NEW) for file in left)
        assert not path.exists() or path.read_bytes() in (OLD, NEW)
    assert line > 15
    assert path.read_bytes() == NEW


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="needs POSIX signals to end a wait")
def test_wherever_ctrl_c_strikes_the_same_thread_can_take_the_lock_again(tmp_path: Path) -> None:
    target, taken = str(tmp_path / "lock"), list[int]()
    for line in range(1, 40):
        with contextlib.suppress(KeyboardInterrupt):
            sys.settrace(CtrlC(line))
            try:
                with files.locked(target):
                    pass
            finally:
                sys.settrace(None)
        signal.alarm(60)  # ends the test if the lock was left closed
        with files.locked(target):
            signal.alarm(0)
            taken.append(line)

    assert taken == list(range(1, 40))
