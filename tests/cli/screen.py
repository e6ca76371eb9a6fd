"""Run `co` on a terminal, look at what it drew, and press keys. Windows has no such terminals: tests are skipped."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NO_TERMINAL = "Windows has no such terminals"
ESCAPES = re.compile(r"\x1b\[[0-9;]*[mK]")
ERASED = re.compile(r"[^\n]*\r\x1b\[K")


def on_terminal(folder: Path, *arguments: str, columns: int = 80, **environ: str) -> str:
    """What the command drew, escape sequences included, with plain line ends and without progress that was erased."""
    pty, fcntl, termios = (pytest.importorskip(name, reason=NO_TERMINAL) for name in ("pty", "fcntl", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", **environ}
    command = [sys.executable, "-m", "co_cli", *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env)
    os.close(theirs)
    drawn = b""
    while True:
        try:
            block = os.read(ours, 65_536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not block:
            break
        drawn += block
    process.wait(120)
    os.close(ours)
    return ERASED.sub("", drawn.decode("utf-8").replace("\r\n", "\n"))


def plain(drawn: str) -> str:
    """The text on the screen, without escape sequences."""
    return ESCAPES.sub("", drawn)


def widest(drawn: str) -> int:
    """The widest line, in columns."""
    lines = re.split(r"[\r\n]", ESCAPES.sub("", drawn))
    return max(sum(_columns(letter) for letter in line) for line in lines)


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


@contextmanager
def terminal(folder: Path, *arguments: str, **environ: str) -> Generator[Any]:
    """`co` on a terminal of 80 columns, for keys that are pressed."""
    child: Any = pytest.importorskip("pexpect", reason=NO_TERMINAL).spawn(
        sys.executable,
        ["-m", "co_cli", *arguments],
        cwd=str(folder),
        env={**os.environ, "TERM": "dumb", **environ},  # type: ignore[arg-type]
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=120,
    )
    child.delaybeforesend = None
    try:
        yield child
    finally:
        child.close(force=True)
