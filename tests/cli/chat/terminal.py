"""`co chat` in a real terminal: keys go in, and what was drawn comes out."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import pexpect

from co_cli.cli.app import main

PROMPT = "› "
CTRL_C, CTRL_D = "\x03", "\x04"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
PATIENCE = 120
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

    def begin(self) -> None:
        """A new conversation in a chat that had others: what was drawn before is forgotten."""
        self.type("/clear")
        self.see("Started a new conversation")
        self.prompt()
        self._raw.clear()

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

    def end(self) -> int:
        """Wait until the chat ended; its exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus)


def drawn_on_a_terminal(arguments: Sequence[str]) -> tuple[int, str]:
    """Run `co` in this process with a terminal for its input and output: the exit code, and what it drew."""
    ours, theirs = os.openpty()
    drawn: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(ours, 10_000):
                drawn.append(data)
        except OSError:
            """The other side is closed: Linux says it with an error."""

    reading = threading.Thread(target=read)
    reading.start()
    with (
        open(theirs, "w", encoding="utf-8") as out,
        open(os.dup(theirs), encoding="utf-8") as given,
        patch.multiple(sys, stdout=out, stdin=given),
    ):
        code = main(arguments)
    reading.join(PATIENCE)
    os.close(ours)
    return code, b"".join(drawn).decode("utf-8")
