"""kill -9, at any moment: fifty times here, `python -m tests.soak kill` for as long as you like."""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.index.sqlite.files import fresh_path
from tests.soak import killing
from tests.soak.comparing import differences
from tests.soak.contract import Trial
from tests.soak.ledger import Ledger, files_of
from tests.soak.processes import processes
from tests.soak.vaults import open_vault
from tests.vault import Vault

KILLS = 50


def test_fifty_kills_lose_nothing_and_the_next_process_heals_the_index(tmp_path: Path) -> None:
    trial = Trial("kill", tmp_path, seed=9, rounds=KILLS)
    killing.run(trial)

    assert trial.faults == []
    assert trial.counts["kills"] == KILLS
    assert trial.counts["in the middle of something"] > KILLS / 2, "the kills came too late to prove anything"
    assert trial.counts["saves acknowledged"] > KILLS / 2


def test_a_vault_without_a_note_is_not_said_to_lack_vectors(tmp_path: Path) -> None:
    with open_vault(tmp_path) as kb:
        assert kb.search("oaks").degraded == ["this vault was never synced: run `co index sync`"]


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda vault: vault.delete("memories/oak.md"), "was acknowledged with oak and has None"),
        (lambda vault: vault.write("memories/oak.md", "oak is hal"), "is half a note"),
        (lambda vault: vault.write("memories/elm.md", vault.read("memories/oak.md")), "nobody saved it"),
    ],
)
def test_what_a_kill_might_do_to_a_note_would_be_seen(vault: Vault, harm: object, fault: str) -> None:
    from random import Random

    from tests.soak.vaults import sealed_text

    ledger = Ledger()
    vault.write("memories/oak.md", sealed_text(Random(1), "oak"))
    ledger.hear(("done", "remember", "memories/oak.md", "oak"))
    assert ledger.check(files_of(vault.root)) == []

    assert callable(harm)
    harm(vault)

    assert any(fault in problem for problem in ledger.check(files_of(vault.root)))


@pytest.mark.parametrize(
    "harm",
    [
        "delete from passages where id = (select max(id) from passages)",
        "delete from docs_vec where rowid = (select max(rowid) from passages)",
        "delete from docs_fts where rowid = (select max(id) from passages)",
        "update docs set hash = 'x' where id = (select max(id) from docs)",
        "update vaults set notes = 5",
    ],
)
def test_an_index_that_differs_from_the_files_in_one_row_is_seen(tmp_path: Path, harm: str) -> None:
    with open_vault(tmp_path) as kb:
        kb.remember("Oaks live long.")
        kb.remember("Elms fall ill in a wet spring.")
        kb.sync()
        assert differences([kb]) == []

        with kb.engine.database.writing() as connection:
            connection.execute(harm)

        assert differences([kb]) != []


def stamp(kb: KnowledgeBase) -> object:
    """Another number whenever a vector is written."""
    with kb.engine.database.reading() as connection:
        return connection.execute("select vector_stamp from vaults").get


def test_a_kill_between_the_two_steps_of_a_swap_keeps_what_was_embedded(tmp_path: Path) -> None:
    with open_vault(tmp_path) as kb:
        kb.remember("Oaks live long.")
        kb.sync()
        path = kb.engine.database.path
        made = stamp(kb)
    Path(path).rename(fresh_path(path))  # as it is after the old one went and before the new one came

    with open_vault(tmp_path) as kb:
        assert kb.search("oaks").hits[0].ref == "memory:oaks-live-long"
        assert stamp(kb) == made, "it was embedded again"
        assert kb.sync().touched == 0
    assert not Path(fresh_path(path)).exists()


def test_what_a_killed_rebuild_left_is_swept_by_the_next_process_but_not_while_another_rebuilds(tmp_path: Path) -> None:
    from co_cli.notes.files import locked

    with open_vault(tmp_path) as kb:
        kb.sync()
    left = [Path(fresh_path(kb.engine.database.path) + ending) for ending in ("", "-wal")]
    for file in left:
        file.write_bytes(b"half")

    with locked(f"{kb.engine.database.path}.lock"), open_vault(tmp_path) as busy:
        busy.sync()
        assert all(file.exists() for file in left)
    with open_vault(tmp_path) as next_one:
        next_one.sync()

    assert not any(file.exists() for file in left)


def die_while_sweeping(pipe: Connection, place: str) -> None:
    removed: list[object] = []

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.remove" and "search.db.new" in str(arguments[0]) and os.path.exists(str(arguments[0])):
            if removed:
                os.kill(os.getpid(), signal.SIGKILL)
            removed.append(arguments[0])

    sys.addaudithook(hear)
    open_vault(Path(place)).sync()


def test_whoever_is_killed_while_it_sweeps_leaves_it_to_the_next(tmp_path: Path) -> None:
    with open_vault(tmp_path) as kb:
        kb.sync()
    left = [Path(fresh_path(kb.engine.database.path) + ending) for ending in ("", "-wal", "-shm")]
    for file in left:
        file.write_bytes(b"half")
    with processes(die_while_sweeping, [(str(tmp_path),)]) as (victim,):
        assert victim.end() == -signal.SIGKILL
    assert 0 < sum(file.exists() for file in left) < 3

    with open_vault(tmp_path) as next_one:
        next_one.sync()

    assert not any(file.exists() for file in left)


def test_an_activity_db_that_a_kill_left_without_tables_is_finished_and_not_set_aside(tmp_path: Path) -> None:
    import apsw

    with open_vault(tmp_path) as kb:
        kb.sync()
    path = tmp_path / "data" / "activity.db"
    for file in path.parent.glob("activity.db*"):
        file.unlink()
    connection = apsw.Connection(str(path))
    connection.pragma("auto_vacuum", 2)
    connection.pragma("journal_mode", "wal")
    connection.close()

    with open_vault(tmp_path) as kb:
        kb.search("oaks", track=True)
        assert kb.activity.flush()
    assert kb.activity.database.set_aside is None
    assert list(path.parent.glob("activity.db.2*")) == []


def test_a_sync_sweeps_what_killed_writers_left_and_leaves_what_may_still_be_written(
    vault: Vault, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    (vault.root / "articles" / "trees").mkdir(parents=True)
    old = [vault.root / "memories" / ".co-tmp-1", vault.root / "articles" / "trees" / ".co-tmp-2"]
    for file in old:
        file.write_text("half")
        os.utime(file, (10**9, 10**9))
    young = vault.write("memories/.co-tmp-3", "half")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        assert [file.exists() for file in (*old, young)] == [False, False, True]
        os.utime(young, (10**9, 10**9))
        assert kb.sync().touched == 0, "it is swept though nothing changed"
    assert not young.exists()
    assert vault.notes() == ["memories/oak.md"]
