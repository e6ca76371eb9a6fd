"""Short versions of the soaks, and proof that each would see a fault."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import apsw
import pytest

from co_cli import KnowledgeBase
from co_cli.index.sqlite.database_files import fresh_path, swap
from co_cli.notes import files, store
from co_cli.notes.files import locked
from tests.command import Co
from tests.folder import Vault
from tests.soak import extract, power, scenarios, team
from tests.soak.__main__ import main
from tests.soak.checks import Ledger, differences, files_of, open_vault, sealed_text
from tests.soak.disk import listening
from tests.soak.runner import Trial, processes

pytestmark = pytest.mark.slow

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has other calls for files and folders")


# -- kill -9 -----------------------------------------------------------------------------------------------------------


def test_kills_lose_nothing_and_the_next_process_repairs_the_index(tmp_path: Path) -> None:
    trial = Trial("kill", tmp_path, seed=9, rounds=16)
    scenarios.kill(trial)

    assert trial.faults == []
    assert trial.counts["kills"] == 16
    assert trial.counts["in the middle of something"] > 6, "the kills came too late to prove anything"


@pytest.mark.postgres
def test_five_kills_of_a_teams_database_lose_no_acknowledged_save(tmp_path: Path) -> None:
    trial = Trial("team", tmp_path, seed=9, rounds=5)
    team.faults(trial, kinds=("database",))

    assert trial.faults == []
    assert trial.counts["kills of the database"] == 5
    assert trial.counts["saves acknowledged"] >= 10


def test_damage_to_a_note_is_seen(vault: Vault) -> None:
    ledger = Ledger()
    whole = sealed_text(random.Random(1), "oak")
    ledger.hear(("done", "remember", "memories/oak.md", "oak"))

    assert ledger.check({"memories/oak.md": whole.encode()}) == []
    for left, fault in (
        ({}, "was acknowledged with oak and has None"),
        ({"memories/oak.md": b"oak is hal"}, "is half a note"),
        ({"memories/oak.md": whole.encode(), "memories/elm.md": whole.encode()}, "nobody saved it"),
    ):
        assert any(fault in problem for problem in ledger.check(left))


HARM = (
    "delete from passages where id = (select max(id) from passages)",
    "delete from docs_vec where rowid = (select max(rowid) from passages)",
    "delete from docs_fts where rowid = (select max(id) from passages)",
    "update docs set hash = 'x' where id = (select max(id) from docs)",
    "update vaults set notes = 5",
)


def test_an_index_that_differs_from_the_files_in_one_row_is_seen(tmp_path: Path) -> None:
    for number, harm in enumerate(HARM):
        with open_vault(tmp_path / str(number)) as kb:
            kb.remember("Oaks live long.")
            kb.sync()
            assert differences(kb) == []

            with kb.engine.database.writing() as connection:
                connection.execute(harm)

            assert differences(kb) != [], harm


def test_a_kill_between_the_two_steps_of_a_swap_keeps_what_was_embedded(tmp_path: Path) -> None:
    def stamp(kb: KnowledgeBase) -> object:
        with kb.engine.database.reading() as connection:
            return connection.execute("select vector_stamp from vaults").get

    with open_vault(tmp_path) as kb:
        kb.remember("Oaks live long.")
        kb.sync()
        path, made = kb.engine.database.path, stamp(kb)
    Path(path).rename(fresh_path(path))  # the old file is gone and the new one not yet in place

    with open_vault(tmp_path) as kb:
        assert kb.search("oaks").hits[0].ref == "memory:oaks-live-long"
        assert stamp(kb) == made, "it was embedded again"
        assert kb.sync().touched == 0
    assert not Path(fresh_path(path)).exists()


def die_while_sweeping(pipe: Connection, place: str) -> None:
    removed: list[object] = []

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.remove" and "search.db.new" in str(arguments[0]) and os.path.exists(str(arguments[0])):
            if removed:
                os.kill(os.getpid(), signal.SIGKILL)
            removed.append(arguments[0])

    sys.addaudithook(hear)
    open_vault(Path(place)).sync()


def test_what_a_killed_rebuild_left_is_swept_unless_another_process_rebuilds(tmp_path: Path) -> None:
    with open_vault(tmp_path) as kb:
        kb.sync()
    path = kb.engine.database.path
    left = [Path(fresh_path(path) + ending) for ending in ("", "-wal", "-shm")]
    for file in left:
        file.write_bytes(b"half")

    with locked(f"{path}.lock"), open_vault(tmp_path) as busy:
        busy.sync()
        assert all(file.exists() for file in left)
    with processes(die_while_sweeping, [(str(tmp_path),)]) as (victim,):
        assert victim.end() == -signal.SIGKILL
    assert 0 < sum(file.exists() for file in left) < 3
    with open_vault(tmp_path) as kb:
        kb.sync()
    assert not any(file.exists() for file in left)


def test_a_first_search_db_that_a_kill_left_without_tables_is_made_again_and_not_set_aside(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    connection = apsw.Connection(str(data / "search.db.new"))
    connection.pragma("auto_vacuum", 2)
    connection.pragma("journal_mode", "wal")
    connection.close()

    with open_vault(tmp_path) as kb:
        kb.remember("Oaks live long.")
        assert kb.search("oaks").hits[0].ref == "memory:oaks-live-long"
    assert kb.engine.database.set_aside is None
    assert list(data.glob("search.db.*Z")) == []


def test_an_activity_db_that_a_kill_left_without_tables_is_finished_and_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "data" / "activity.db"
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.pragma("auto_vacuum", 2)
    connection.pragma("journal_mode", "wal")
    connection.close()

    with open_vault(tmp_path) as kb:
        kb.search("oaks", track=True)
        assert kb.activity.flush()
    assert kb.activity.database.set_aside is None
    assert list(path.parent.glob("activity.db.2*")) == []


def test_temporary_files_are_swept_when_they_are_old_ours_and_nobody_s(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(co("index", "status", "--json").json["search_db"]).parent
    vault.write("memories/oak.md", "Oaks live long.")
    name = ".co-tmp-1f-2e3d4c-abcdef"
    swept = [vault.write(f"{folder}{name}", "half") for folder in ("", "memories/", "articles/trees/")]
    swept.append(data / name)
    by_doctor = [vault.write(f".trash/20260101T000000Z/memories/{name}", "half"), data / "backups" / name]
    by_doctor.append(data / "search.db.new.20260101T000000.000000001Z")
    notes = [vault.write(f"{folder}/.co-tmp-mine.md", "mine") for folder in ("memories", ".trash/20260101T000000Z")]
    (vault.root / "memories" / ".co-tmp-1f-2e3d4c-ffffff").mkdir()
    (data / "backups").mkdir()
    for file in (*swept, *by_doctor):
        file.write_text("half")
    held = data / ".co-tmp-1f-2e3d4c-aaaaaa"
    assert co("index", "sync").code == 0
    assert all(file.exists() for file in (*swept, *by_doctor)), "they are young"

    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7200)
    with locked(str(held)):
        assert co("index", "sync").code == 0
        assert not any(file.exists() for file in swept)
        (kept,) = [path for path in vault.files() if "recovered-" in path]
        assert vault.read(kept) == "half", "it was in no note"
        assert co("doctor", "--fix").code == 0
        assert not any(file.exists() for file in by_doctor)
        assert [path for path in vault.files() if "recovered-" in path] == [kept], "the others had the same text"
        assert held.exists()
    assert all(file.exists() for file in notes)


def test_kills_in_the_middle_of_an_extraction_lose_and_double_no_facet(tmp_path: Path) -> None:
    trial = Trial("extract", tmp_path, seed=4, rounds=6)
    extract.kill(trial)

    assert trial.faults == []
    assert trial.counts["kills"] == 6
    assert trial.counts["in the middle of it"] > 2, "the kills came too late to prove anything"


# -- power cuts --------------------------------------------------------------------------------------------------------


@posix_only
def test_power_cuts_corrupt_no_index_and_lose_no_acknowledged_row(tmp_path: Path) -> None:
    trial = Trial("power", tmp_path, seed=3, rounds=60)
    power.cut_databases(trial)

    assert trial.faults == []
    assert trial.counts["cuts"] == 60
    assert trial.counts["rows acknowledged"] > 0


@posix_only
def test_with_synchronous_off_the_same_cuts_corrupt_both_databases(tmp_path: Path) -> None:
    found: list[str] = []
    for seed in range(6):  # one seed may miss either
        trial = Trial("power", tmp_path / str(seed), seed=seed, rounds=150)
        power.cut_databases(trial, synchronous="off")
        found += trial.faults
        noticed = [any(name in fault for fault in found) for name in ("search.db is", "activity.db")]
        if all(noticed):
            break
    assert noticed == [True, True], found


@posix_only
def test_cuts_lose_no_acknowledged_note_and_leave_none_half_written(tmp_path: Path) -> None:
    trial = Trial("names", tmp_path, seed=5, rounds=500)
    power.cut_notes(trial)

    assert trial.faults == []
    assert trial.counts["saves acknowledged"] >= 8


def write_without_sync(temporary: str, data: bytes, like: str | None = None) -> None:
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(handle, data)
    os.close(handle)


@posix_only
def test_leaving_out_one_step_of_saving_is_noticed(tmp_path: Path) -> None:
    steps: list[tuple[str, tuple[object, ...], Callable[..., None], str]] = [
        ("_write", (files,), write_without_sync, "is half a note"),
        ("sync_folder", (files,), lambda folder: None, "was acknowledged"),
        ("make_folders", (files, store), lambda folder: os.makedirs(folder, exist_ok=True), "was acknowledged"),
    ]
    for step, modules, careless, fault in steps:
        trial = Trial("names", tmp_path / step, seed=5, rounds=1_000)
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                patch.setattr(module, step, careless)
            power.cut_notes(trial)

        assert any(fault in found for found in trial.faults), step


@posix_only
def test_the_old_log_is_gone_for_good_before_a_new_search_db_takes_its_place(tmp_path: Path) -> None:
    """A log that came back next to another file would be read into it."""
    for name in ("search.db", "search.db-wal", "search.db.new"):
        (tmp_path / name).write_text(name)
    heard: list[tuple[str, str]] = []
    with listening(str(tmp_path), lambda request: heard.append((request.what, request.path))):
        swap(str(tmp_path / "search.db.new"), str(tmp_path / "search.db"))

    assert heard == [
        ("unlink", "search.db"),
        ("unlink", "search.db-wal"),
        ("sync folder", ""),
        ("rename", "search.db.new"),
        ("sync folder", ""),
    ]


# -- many processes ----------------------------------------------------------------------------------------------------


def test_eight_processes_write_and_search_two_vaults_in_one_search_db(tmp_path: Path) -> None:
    trial = Trial("crowd", tmp_path, seed=2, rounds=1)
    scenarios.crowd(trial, steps=12)

    assert trial.faults == []
    assert trial.counts["saves"] >= 16
    assert trial.counts["searches"] > 0


def save_each(pipe: Connection, place: str) -> None:
    with open_vault(Path(place)) as kb:
        for title, text in iter(pipe.recv, None):
            saved = kb.remember(text, title=title)
            pipe.send((saved.outcome, saved.path))


def test_agents_that_save_the_same_fact_or_title_at_once_make_one_note_or_several(tmp_path: Path) -> None:
    """They also create search.db and activity.db at the same moment."""
    (tmp_path / "vault").mkdir()
    with processes(save_each, [(str(tmp_path),)] * 4) as agents:
        for fact, saves in (
            ("same", [(None, "The key is kept with the heron by the old fjord.")] * 4),
            (
                "other",
                [("Where it is", f"{number} {'anchor basil cedar dune'.split()[number]}.") for number in range(4)],
            ),
        ):
            for agent, save in zip(agents, saves, strict=True):
                agent.pipe.send(save)
            answers = [agent.says() for agent in agents]
            outcomes = sorted(outcome for outcome, _ in answers)
            assert outcomes == (["created", *["duplicate"] * 3] if fact == "same" else ["created"] * 4)
    written = b"".join(files_of(tmp_path / "vault").values()).decode()
    assert len(files_of(tmp_path / "vault")) == 5
    assert all(text in written for _, text in saves)


def stay(pipe: Connection, place: str) -> None:
    with open_vault(Path(place)) as kb:
        kb.remember("Oaks live long.")
        for number in range(8):
            kb.sync()
            kb.search("oaks", track=True)
            kb.activity.flush()
            Path(kb.root, "memories", f"{number}.md").write_text(f"Elm {number}.")
            pipe.send((len(os.listdir("/proc/self/fd")), threading.active_count()))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_a_process_that_stays_holds_no_more_files_and_threads_with_time(tmp_path: Path) -> None:
    with processes(stay, [(str(tmp_path),)]) as (process,):
        held = [process.says() for _ in range(8)]

    assert max(held[4:]) <= max(held[:4])


# -- the command -------------------------------------------------------------------------------------------------------


@posix_only
def test_the_command_prints_faults_and_how_to_repeat_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["names", "--rounds", "60", "--seed", "4"]) == 0
    assert "60 rounds" in capsys.readouterr().out

    monkeypatch.setattr(files, "sync_folder", lambda folder: None)
    assert main(["names", "--rounds", "300", "--seed", "4"]) == 3
    out = capsys.readouterr().out
    assert "was acknowledged" in out
    again = out.rpartition("again: python -m tests.soak ")[2].split()
    assert again[:3] == ["names", "--seed", "4"]
    assert main(again) == 3
