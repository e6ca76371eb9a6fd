"""A large sync by a `co` command embeds in a second process while it reads; and nothing depends on that process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from co_cli.index import second_process, sync
from co_cli.knowledge_base import KnowledgeBase
from co_cli.places import this_process
from co_cli.processes import start_beside
from tests.vault import Vault

PATIENCE = 120.0
NOTES = 12
unix = pytest.mark.skipif(os.name == "nt", reason="a program that is a script, and signals, are Unix's")


@pytest.fixture
def large(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault that counts as large, read three notes at a time."""
    for number in range(NOTES):
        vault.write(f"memories/oak-{number}.md", f"Oak number {number} stands by the river.\n")
    monkeypatch.setattr(sync, "LARGE", 10)
    monkeypatch.setattr(sync, "BATCH", 3)
    monkeypatch.setattr(second_process, "BATCH", 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1}, raising=False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return vault


def vectors(kb: KnowledgeBase) -> int:
    with kb.index.rows.reading() as (connection, _):
        there = connection.execute("select 1 from sqlite_master where name = 'docs_vec'").get
        return int(connection.execute("select count(*) from docs_vec").get) if there else 0


def waiting(kb: KnowledgeBase) -> int:
    with kb.index.rows.reading() as (connection, _):
        return int(connection.execute("select count(*) from waiting").get)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """In place of Python a program that leaves a mark and ends; returns where the mark is."""
    program, mark = folder / "python", folder / "mark"
    program.write_text(f"#!/bin/sh\necho begun > '{mark}'\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return mark


def test_passages_get_their_vectors_while_other_files_are_still_read(
    large: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    seen: list[int] = []

    def progress(done: int, total: int) -> None:
        if (done, total) == (3, NOTES):  # this thread reads no further until somebody else has embedded these
            end = time.monotonic() + PATIENCE
            while not (found := vectors(kb)) and time.monotonic() < end:
                time.sleep(0.05)
            seen.append(found)

    kb.sync(progress)

    assert seen == [3]
    assert (vectors(kb), waiting(kb)) == (NOTES, 0)
    assert kb.search("trees at the water").hits


@unix
def test_a_second_process_that_fails_costs_nothing(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    mark = stand_in(tmp_path, monkeypatch, code=3)

    assert len(kb.sync().added) == NOTES

    assert mark.exists()
    assert (vectors(kb), waiting(kb)) == (NOTES, 0)


@unix
def test_a_program_that_uses_the_library_gets_no_process_beside_it(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = stand_in(tmp_path, monkeypatch)

    kb.sync()

    assert not mark.exists()
    assert (vectors(kb), waiting(kb)) == (NOTES, 0)


@unix
@pytest.mark.parametrize("notes", [9, 10])
def test_a_small_sync_starts_no_process(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: int
) -> None:
    for number in range(notes, NOTES):
        large.delete(f"memories/oak-{number}.md")
    monkeypatch.setattr(this_process, "command", "sync")
    mark = stand_in(tmp_path, monkeypatch)

    kb.sync()

    assert mark.exists() == (notes == 10)


@unix
def test_it_ends_with_whoever_began_it(large: Vault, kb: KnowledgeBase) -> None:
    kb.sync()
    rows = kb.index.rows
    what = json.dumps([rows.database.path, rows.database.extension, rows.origin._asdict(), 3])
    begins = f"""
import sys, time
sys.path[:] = {sys.path!r}
from co_cli.processes import start_beside
print(start_beside(["-m", "co_cli.index.second_process", {what!r}]).pid, flush=True)
time.sleep({PATIENCE})
"""
    parent = subprocess.Popen([sys.executable, "-c", begins], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())

    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()

    end = time.monotonic() + PATIENCE
    while _runs(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(child)


def test_it_finishes_when_its_input_ends(large: Vault, kb: KnowledgeBase) -> None:
    kb.sync()
    rows = kb.index.rows
    what = json.dumps([rows.database.path, rows.database.extension, rows.origin._asdict(), 3])

    process = start_beside(["-m", "co_cli.index.second_process", what])
    process.communicate(timeout=PATIENCE)

    assert process.returncode == 0


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")  # nobody may collect it
