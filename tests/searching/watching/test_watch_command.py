"""`co index watch` prints what changed, and stops at Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.searching.watching.test_watching import PATIENCE


class Running:
    """A `co index watch` whose lines are waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        assert self.process.stdout
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            return self.process.stdout.readline().rstrip("\n")
        finally:
            timer.cancel()

    def end(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


@contextmanager
def running(folder: Path, *arguments: str) -> Generator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "index", "watch", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait()


@pytest.mark.medium
def test_a_line_is_printed_for_each_batch_and_ctrl_c_ends_it(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with running(co.folder) as watch:
        assert re.fullmatch(r"\d\d:\d\d:\d\d  1 new: memory:oak", watch.line())
        vault.write("memories/oak.md", "Oaks live very long.")
        assert watch.line().endswith("  1 changed: memory:oak")
        vault.delete("memories/oak.md")
        assert watch.line().endswith("  1 removed: memories/oak.md")

        assert watch.end() == (0, "", "")


@pytest.mark.medium
def test_json_is_one_object_a_line(co: Co, vault: Vault) -> None:
    with running(co.folder, "--json", "--poll") as watch:
        told = json.loads(watch.line())
        assert (told["event"], told["text"]) == ("polling", "checking files every 2 s")
        vault.write("memories/oak.md", "Oaks live long.")
        told = json.loads(watch.line())

        assert (told["event"], told["added"], told["changed"]) == ("changed", ["memory:oak"], [])
        assert told["at"].endswith("Z")
        assert watch.end()[0] == 0
