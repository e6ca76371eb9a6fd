"""A large sync by a `co` command embeds in a second process while it reads; and nothing depends on that process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from co_cli.embedding.static_file import SPACE as STATIC
from co_cli.index import second_process, sync
from co_cli.index.meaning import begin_space, embed_again
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


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0, first: str = "", then: str = "") -> Path:
    """In place of Python a program that leaves its number as a mark and ends; returns where the mark is."""
    program, mark = folder / "python", folder / "mark"
    program.write_text(f"#!/bin/sh\n{first}\necho $$ > '{mark}'\n{then}\nexit {code}\n")
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


def test_a_second_process_that_cannot_be_started_costs_nothing(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))  # as after an upgrade of Python

    assert len(kb.sync().added) == NOTES

    assert (vectors(kb), waiting(kb)) == (NOTES, 0)


@unix
def test_one_core_gets_no_second_process(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0}, raising=False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    mark = stand_in(tmp_path, monkeypatch)

    kb.sync()

    assert not mark.exists()


@unix
def test_who_wants_words_alone_gets_no_second_process_and_no_space(
    large: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    mark = stand_in(tmp_path, monkeypatch)

    with KnowledgeBase.open(large.root, data_dir) as kb:
        kb.sync()

        assert not mark.exists()
        assert (kb.index.spaces().active, waiting(kb)) == (None, 0)


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
def test_a_sync_waits_until_it_has_ended(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    mark = stand_in(tmp_path, monkeypatch, first="cat > /dev/null\nsleep 0.3")

    kb.sync()

    assert mark.exists()


@unix
def test_one_that_does_not_end_is_killed(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_process, "command", "sync")
    monkeypatch.setattr(second_process, "PATIENCE", 3.0)
    mark = stand_in(tmp_path, monkeypatch, then=f"exec sleep {PATIENCE}")

    kb.sync()

    assert not _runs(int(mark.read_text()))
    assert (vectors(kb), waiting(kb)) == (NOTES, 0)


@unix
def test_it_is_out_of_reach_of_the_terminal_and_of_packages_in_the_current_folder() -> None:
    process = start_beside(["-c", "import os, sys; print(os.getsid(0), sys.flags.safe_path)"])
    out, _ = process.communicate(timeout=PATIENCE)

    assert out.decode().split() == [str(process.pid), "True"]


@unix
def test_a_vault_that_another_space_answers_for_gets_no_second_process(
    large: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_space(kb.index.rows, STATIC._replace(provider="openai", model="another"), with_vec0=False)
    monkeypatch.setattr(this_process, "command", "sync")
    mark = stand_in(tmp_path, monkeypatch)

    kb.sync()

    assert not mark.exists()


def test_it_embeds_nothing_in_another_space_and_ends(large: Vault, kb: KnowledgeBase) -> None:
    begin_space(kb.index.rows, STATIC._replace(provider="openai", model="another"), with_vec0=False)
    for number in range(3):
        kb.index.index_file(f"memories/oak-{number}.md", embed=False)
    ended = threading.Event()
    late = threading.Timer(PATIENCE, ended.set)
    late.start()

    second_process.embed_until(kb.index.rows, 3, ended)
    late.cancel()

    assert not ended.is_set()
    assert (vectors(kb), waiting(kb)) == (0, 3)


@pytest.mark.parametrize(("size", "left"), [(NOTES + 1, 0), (5, NOTES - 5)])
def test_less_than_a_batch_waits_for_more_and_at_the_end_one_is_done(
    large: Vault, kb: KnowledgeBase, size: int, left: int
) -> None:
    kb.sync()
    active = kb.index.spaces().active
    assert active is not None
    embed_again(kb.index.rows, active, fresh=False)
    paused: list[int] = []

    class Ended(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            paused.append(waiting(kb))
            self.set()
            return True

    ended = Ended()
    if left:
        ended.set()

    second_process.embed_until(kb.index.rows, size, ended)

    assert (paused, waiting(kb)) == ([] if left else [NOTES], left)


def test_a_search_db_that_was_made_anew_learns_the_words_that_the_old_one_knew(large: Vault, kb: KnowledgeBase) -> None:
    for number in range(3):
        large.write(f"memories/wind-{number}.md", f"The zephyr blows from {number}.\n")
    kb.sync()
    active = kb.index.spaces().active
    assert active is not None
    ended = threading.Event()
    beside = threading.Thread(target=second_process.embed_until, args=(kb.index.rows, 3, ended))
    beside.start()
    try:
        embed_again(kb.index.rows, active, fresh=False)
        _until_nothing_waits(kb)
        for number in range(3):
            large.delete(f"memories/wind-{number}.md")
        kb.rebuild()
        for number in range(3):
            large.write(f"memories/sea-{number}.md", f"A zephyr over the sea: {number}.\n")
            kb.index.index_file(f"memories/sea-{number}.md", embed=False)
        _until_nothing_waits(kb)
    finally:
        ended.set()
        beside.join()

    with kb.index.rows.reading() as (connection, _):
        assert connection.execute("select count(*) from lexicon where word = 'zephyr'").get == 1


def _until_nothing_waits(kb: KnowledgeBase) -> None:
    end = time.monotonic() + PATIENCE
    while waiting(kb) and time.monotonic() < end:
        time.sleep(0.05)


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
