"""Run `co` as a person or a program would, and keep what it said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from co_cli.cli.app import main


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Co:
    """`co("search", "oaks")` runs in this process, `co.process(...)` in one of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: str | bytes = b"") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
        given = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patch.object(sys, "stdin", given):
            try:
                code = main(arguments)
            except SystemExit as stop:  # argparse leaves this way
                code = int(stop.code or 0)
        return Ran(code, _text(out), _text(err))

    def process(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        env: dict[str, str] | None = None,
        python: tuple[str, ...] = (),
        before: Callable[[], None] | None = None,
    ) -> Ran:
        """`python` are options of the interpreter, such as `-X importtime`; `before` runs in the new process."""
        ran = subprocess.run(
            [sys.executable, *python, "-m", "co_cli", *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            timeout=120,
            preexec_fn=before,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace"))


def refs(co: Co, *arguments: str) -> list[str]:
    """What a search finds, best first."""
    return [hit["ref"] for hit in co("search", *arguments, "--json").json["hits"]]


def write_script(path: Path, lines: str) -> Path:
    """A shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def git(folder: Path, *arguments: str, at: int | str = 1_700_000_000, check: bool = True) -> None:
    """Run git as Ada, at a moment, and without the configuration of the person who runs the suite."""
    moment = f"{at} +0000" if isinstance(at, int) else at
    variables = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    variables |= dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=check, env={**os.environ, **variables}, capture_output=True
    )


def commit(folder: Path, message: str, at: int | str = 1_700_000_000) -> None:
    """Commit everything that is in a folder."""
    git(folder, "add", "-A", ".")
    git(folder, "commit", "-q", "-m", message, at=at)


def run_together(code: str, *arguments: Sequence[object]) -> None:
    """Run this code in a process for each of the arguments. Where it reads a line, it waits for the others to start."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, given)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for given in arguments
    ]
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [(process.returncode, err) for process, err in zip(running, said, strict=True)] == [(0, "")] * len(running)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "replace")
