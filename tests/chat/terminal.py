"""`co chat` in a real terminal: keys go in, and what was drawn comes out."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pexpect

PROMPT = "› "
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
PATIENCE = 30
"""Seconds until a test gives up; a busy machine is no bug."""


class Terminal:
    """A chat on a terminal of 80 columns. `drawn` is everything since it began, without escape sequences."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 80, rows: int = 24, **environ: str) -> None:
        env = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **environ}
        self._raw: list[str] = []
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "co_cli", "chat", *arguments],
            cwd=str(folder),
            env=env,  # type: ignore[arg-type]
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        self._child.logfile_read = self
        self._child.delaybeforesend = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._child.close(force=True)

    def write(self, text: str) -> None:
        self._raw.append(text)

    def flush(self) -> None:
        """pexpect wants it of a log."""

    @property
    def raw(self) -> str:
        return "".join(self._raw)

    @property
    def drawn(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def see(self, text: str) -> None:
        """Wait until this is drawn after what was seen last."""
        self._child.expect_exact(text)

    def prompt(self) -> None:
        self.see(PROMPT)

    def type(self, line: str) -> None:
        """Type a line at the prompt and send it."""
        self._child.send(line + "\r")

    def press(self, key: str) -> None:
        self._child.send(key)

    def resize(self, rows: int, columns: int) -> None:
        self._child.setwinsize(rows, columns)

    def end(self) -> int:
        """Wait until the chat ended; its exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus)
