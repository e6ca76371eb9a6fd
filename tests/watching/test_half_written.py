"""A file that somebody is writing is not indexed before they are done, as far as that can be known."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.settling import LONGEST_WAIT, OPEN, QUIET, Settling, is_open_for_writing
from co_cli.service.watching import LONGEST
from tests.vault import Vault
from tests.watching.conftest import Heard, Watch

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a file is open for writing")


def held_open(path: Path, chunk: Callable[[int], str]) -> None:
    """With pauses that look like the end."""
    with path.open("w") as stream:
        for number in range(8):
            stream.write(chunk(number))
            stream.flush()
            time.sleep(QUIET * 1.5)


def reopened(path: Path, chunk: Callable[[int], str]) -> None:
    """For longer than changes are waited for that keep coming."""
    started, number = time.monotonic(), 0
    while time.monotonic() - started < LONGEST + 0.5:
        with path.open("a") as stream:
            stream.write(chunk(number))
        number += 1
        time.sleep(QUIET / 5)


@pytest.mark.parametrize("write", [pytest.param(held_open, marks=on_linux), reopened])
def test_a_file_that_is_written_slowly_is_indexed_once_and_whole(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard, write: Callable[[Path, Callable[[int], str]], None]
) -> None:
    watch(kb, heard)
    early: list[str] = []
    moments: list[float] = []

    def chunk(number: int) -> str:
        if number % 4 == 0:
            early.extend(hit.ref for hit in kb.search("zqx0", backend="fts5").hits)
        moments.append(time.monotonic())
        return f"Chapter {number} tells of zqx{number}.\n" + "Long ago. " * 500 + "\n\n"

    vault.write("memories/other.md", "Another note is saved meanwhile.")
    write(vault.path("articles/book.md"), chunk)
    heard.until(lambda: "articles/book.md" in heard.touched("added"))
    longest = max(later - sooner for sooner, later in pairwise(moments))
    if write is reopened and longest > QUIET / 2:
        pytest.skip("the machine is so busy that the writer itself paused: nobody could tell that from the end")

    assert early == [], "parts of it were indexed while it was written"
    assert heard.touched().count("articles/book.md") == 1
    assert "memories/other.md" in heard.touched("added")
    for number in (0, len(moments) - 1):
        assert kb.search(f"zqx{number}", backend="fts5").hits


def test_a_file_counts_as_written_after_a_moment_without_a_change(tmp_path: Path) -> None:
    file = tmp_path / "oak.md"
    file.write_text("Oaks.")
    saved = file.stat().st_mtime
    now = [saved + QUIET / 2]
    settling = Settling(clock=lambda: now[0])

    assert settling.waits(str(file))
    now[0] = saved + QUIET
    assert not settling.waits(str(file))


def test_one_that_grows_while_it_is_waited_for_is_given_more_time(tmp_path: Path) -> None:
    file = tmp_path / "oak.md"
    now = [1e9]
    settling = Settling(clock=lambda: now[0])

    def grow(age: float) -> None:
        file.write_text((file.read_text() if file.exists() else "") + "more ")
        os.utime(file, (now[0] - age, now[0] - age))

    grow(QUIET / 2)
    assert settling.waits(str(file))
    now[0] += 1
    grow(QUIET * 1.5)
    assert settling.waits(str(file)), "it was seen growing"
    now[0] += 1
    assert not settling.waits(str(file))
    grow(QUIET * 1.5)
    assert not settling.waits(str(file)), "what was learnt of it went with the wait"


def test_nobody_is_waited_for_forever(tmp_path: Path) -> None:
    file = tmp_path / "log.md"
    now = [1e9]
    settling = Settling(clock=lambda: now[0])
    answers: list[bool] = []
    for _ in range(int(LONGEST_WAIT) + 2):
        file.write_text(f"{now[0]}")
        os.utime(file, (now[0], now[0]))
        answers.append(settling.waits(str(file)))
        now[0] += 1

    assert answers.count(False) == 1
    assert answers[0]
    assert answers[-1]


def test_a_file_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    assert not Settling().waits(str(tmp_path / "gone.md"))


@on_linux
def test_the_system_tells_who_holds_a_file_open_for_writing(tmp_path: Path) -> None:
    file = tmp_path / "oak.md"
    file.write_text("Oaks.")
    with file.open():
        assert not is_open_for_writing(str(file))
    with file.open("a"):
        assert is_open_for_writing(str(file))
        old = time.time() - OPEN - 1
        os.utime(file, (old, old))
        assert not Settling().waits(str(file)), "it is held open all day, and was not written to for a while"
    assert not is_open_for_writing(str(file))
    assert not is_open_for_writing(str(tmp_path / "gone.md"))
