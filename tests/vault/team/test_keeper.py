"""The keeper: saves become commits, others' pushes come in, and nothing is lost where both changed a note."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
import pytest

from co_cli.activity import acting
from co_cli.ground.errors import GitError, IndexUnavailableError
from co_cli.searching.note_details import note_history
from co_cli.server.metrics import gauges
from co_cli.upkeep.doctor import examine
from co_cli.upkeep.review import review
from co_cli.upkeep.verification import verify
from co_cli.vault.team.keeper import Keeper, LeaseLostError, server_name
from co_cli.vault.team.schema import CHANNEL
from co_cli.vault.team.takeover import IN_LFS
from tests.command import write_script
from tests.postgres import copy_schema, new_database
from tests.server.browser import PATIENCE, wait_for
from tests.soak.runner import Process
from tests.soak.team import open_server, save_until_killed
from tests.vault.team.servers import Team, commit, git, keep, kept_texts, team_of

pytestmark = pytest.mark.postgres
LINES = "One\n\nTwo\n\nThree\n"


def test_what_others_push_comes_in_and_is_searchable_on_every_server(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    team.push("memories/elm.md", "Elms like water.\n")
    team.push("memories/oak.md", None)
    team.push("pictures/map.svg", "<svg/>")
    keep(one)

    for kb, name in ((one, "one"), (two, "two")):
        assert [note.ref for note in kb.notes()] == ["memory:elm"]
        assert kb.note("memory:elm").body == "Elms like water.\n"
        assert (team.place / name / "pictures" / "map.svg").read_text() == "<svg/>"
        assert not (team.place / name / "memories" / "oak.md").exists()
        assert team_of(kb).differences() == []
    assert git(team.place / "one", "status", "--short") == "", "the clone of the keeper looks as after a pull"
    assert team_of(one).state().commit == git(team.remote, "rev-parse", "HEAD")


def test_a_large_push_is_indexed_and_a_large_removal_taken_out(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    for number in range(30):
        (team.clone / "memories" / f"note-{number}.md").write_text(f"Note {number} is about elms.\n")
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Many")
    git(team.clone, "push", "--quiet")
    keep(two)

    assert len(one.notes()) == 31
    assert verify(one.index).agrees
    git(team.clone, "rm", "--quiet", *(f"memories/note-{number}.md" for number in range(30)))
    git(team.clone, "commit", "--quiet", "-m", "None")
    git(team.clone, "push", "--quiet")
    keep(one)
    assert [note.ref for note in two.notes()] == ["memory:oak"]
    assert verify(two.index).agrees


def test_saves_and_pushes_to_different_lines_are_merged(team: Team) -> None:
    team.push("memories/list.md", LINES)
    one, two = team.server("one"), team.server("two")
    one.update("memory:list", LINES.replace("One", "First"))
    team.push("memories/list.md", LINES.replace("Three", "Third"))
    keep(two)

    assert team.pushed("memories/list.md") == "First\n\nTwo\n\nThird"
    assert one.note("memory:list").body == "First\n\nTwo\n\nThird\n"
    assert one.search("first third").hits[0].ref == "memory:list"
    assert git(team.remote, "log", "--format=%s", "-2").splitlines() == [
        "Save memories/list.md and 1 more",  # the replaced text is in the trash
        "By hand",
    ]


def test_texts_that_do_not_merge_are_both_kept_and_shown_for_review(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    seq = one.update("memory:oak", "Oaks live for a thousand years.").seq
    team.push("memories/oak.md", "Oaks live for five hundred years.\n")
    keep(two)

    (copy,) = [note.ref for note in one.notes() if note.ref != "memory:oak"]
    assert copy.startswith("memory:oak-conflict-")
    assert one.note("memory:oak").body == "Oaks live for five hundred years.\n"
    assert "thousand" in one.note(copy).body
    assert "thousand" in team.pushed(f"memories/{copy.removeprefix('memory:')}.md")
    found = review(one.vault, 0.0, len, only=["conflict"]).items
    assert [(item.kind, item.refs) for item in found] == [("conflict", (copy, "memory:oak"))]
    assert team_of(one).receipt(seq or 0).pushed


def test_a_push_that_our_save_contains_already_changes_nothing(team: Team) -> None:
    team.push("memories/list.md", LINES)
    one = team.server("one")
    one.update("memory:list", LINES.replace("One", "First").replace("Three", "Third"))
    team.push("memories/list.md", LINES.replace("Three", "Third"))
    keep(one)

    assert team.pushed("memories/list.md") == "First\n\nTwo\n\nThird"
    assert team_of(one).state().outbox == 0


def test_a_file_that_would_leave_the_vault_through_a_link_is_not_written(team: Team, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    one = team.server("one")
    (team.place / "one" / "evil").symlink_to(tmp_path / "outside")
    team.push("evil/note.md", "Not here.\n")
    team.push("memories/elm.md", "Elms like water.\n")
    keep(one)

    assert list((tmp_path / "outside").iterdir()) == []
    assert one.note("memory:elm").body == "Elms like water.\n"


@pytest.mark.parametrize("removed", ["here", "there"])
def test_a_note_that_one_side_removed_and_the_other_changed_stays(team: Team, removed: str) -> None:
    one = team.server("one")
    if removed == "here":
        one.forget("memory:oak")
    else:
        one.update("memory:oak", "Oaks grow.")
    team.push("memories/oak.md", "Oaks grow.\n" if removed == "here" else None)
    keep(one)

    assert team.pushed("memories/oak.md").endswith("Oaks grow.")
    assert one.note("memory:oak").body.strip() == "Oaks grow."
    assert team_of(one).differences() == []
    assert team_of(one).state().outbox == 0


def test_a_push_that_others_were_faster_than_is_merged_and_repeated(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = team.server("one")
    one.remember("Elms like water.")
    repository, push = team_of(one).repository, team_of(one).repository.push
    faster = iter(["Ashes burn well.\n"])

    def push_late(tip: str) -> bool:
        for text in faster:
            team.push("memories/ash.md", text)
        return push(tip)

    monkeypatch.setattr(repository, "push", push_late)
    keep(one)

    assert team.pushed("memories/elms-like-water.md").endswith("Elms like water.")
    assert one.search("burn").hits[0].ref == "memory:ash"
    assert git(team.remote, "log", "--format=%s", "--merges") == ""


def test_a_remote_that_cannot_be_reached_delays_the_push_and_no_save(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    away = team.remote.rename(team.place / "away.git")
    seqs = [one.remember(f"Fact {number}.", on_related="keep").seq or 0 for number in range(3)]
    keep(one)
    keep(one)

    state = team_of(two).state()
    assert (state.outbox, "notes.git" in str(state.problem)) == (3, True)
    first = team_of(one).receipt(seqs[0])
    assert first.committed
    assert not first.pushed
    assert two.search("fact").hits

    away.rename(team.remote)
    team.push("memories/elm.md", "Elms like water.\n")
    keep(two)
    assert team_of(one).receipt(seqs[0]).pushed
    assert team.pushed("memories/fact-2.md").endswith("Fact 2.")
    assert (team_of(one).state().outbox, team_of(one).state().problem) == (0, None)


def test_saves_that_wait_for_the_remote_are_committed_once_and_not_looked_at_one_by_one(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.vault.team.team_vault.AT_ONCE", 50)
    one = team.server("one")
    one.remember("Elms like water.")
    team.ask(
        "insert into team.changes (vault_id, path, data, author, saved_at, version)"
        " select vault_id, number || '.txt', data, 'person ' || number, saved_at, version"
        " from team.changes, generate_series(1, 120) as number"
    )
    repository, asked = team_of(one).repository, list[str]()
    run = repository.run
    monkeypatch.setattr(repository, "run", lambda *given, **more: asked.append(given[0]) or run(*given, **more))
    away = team.remote.rename(team.place / "away.git")
    keep(one)
    assert asked.count("fast-import") == 3
    asked.clear()
    keep(one)
    assert "fast-import" not in asked
    one.remember("Firs are green.")
    keep(one)
    assert asked.count("fast-import") == 1

    away.rename(team.remote)
    team.push("memories/ash.md", "Ashes burn well.\n")
    asked.clear()
    keep(one)
    assert len(asked) < 60
    authors, people = git(team.remote, "log", "--reverse", "--format=%an").splitlines(), range(1, 121)
    assert authors[2:] == [team_of(one).person(), *(f"person {number}" for number in people), team_of(one).person()]
    assert team_of(one).state().outbox == 0


def test_a_keeper_that_was_killed_after_its_push_has_pushed_once(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    keeper = Keeper(team_of(one))
    with keeper.lease() as lease:
        assert lease
        _, tip, _ = keeper._commit(lease)
        assert team_of(one).repository.push(str(tip))
    two.update("memory:elms-like-water", "Elms like a lot of water.")
    keep(two)

    assert git(team.remote, "log", "--format=%s").splitlines()[1] == "Save memories/elms-like-water.md"
    assert [note.ref for note in two.notes() if "conflict" in note.ref] == []
    assert team.pushed("memories/elms-like-water.md").endswith("Elms like a lot of water.")


def test_waiting_saves_of_alternating_authors_are_few_commits_in_the_order_of_each_note(
    team: Team,
) -> None:
    one = team.server("one")
    for number in range(6):
        acting.set(f"web:{('mara', 'jon')[number % 2]}")
        one.remember(f"Elm {number} likes water.", title=f"elm-{number}", on_related="keep")
    acting.set("web:jon")
    one.update("memory:elm-0", "Elm 0 likes wet feet.")
    keep(one)

    assert git(team.remote, "log", "--format=%an").splitlines() == ["jon", "mara", "jon", "Nils"]
    assert git(team.remote, "log", "--format=%an", "--", "memories/elm-0.md").splitlines() == ["jon", "mara"]
    assert git(team.remote, "log", "--format=%an", "--", "memories/elm-2.md") == "mara"
    assert team_of(one).state().outbox == 0


def save_and_push(pipe: Connection, folder: str, address: str) -> None:
    kb = open_server(Path(folder), address)
    pipe.send(kb.remember("Elms like water.").ref)
    keep(kb)


HOOK = """
mkdir {place}/pushing 2>/dev/null || exit 0
while [ ! -e {place}/go-on ]; do sleep 0.05; done
"""


@pytest.mark.parametrize("first", ["the killed one", "the next one"])
def test_a_keeper_that_is_killed_in_the_middle_of_its_push_loses_and_doubles_nothing(team: Team, first: str) -> None:
    team.server("one").close()
    two = team.server("two")
    write_script(team.remote / "hooks" / "pre-receive", HOOK.format(place=team.place))
    victim = Process(save_and_push, str(team.place / "one"), team.address)
    assert victim.says() == "memory:elms-like-water"
    wait_for((team.place / "pushing").exists)
    victim.kill()
    victim.close()
    if first == "the killed one":  # its git goes on
        (team.place / "go-on").touch()
        wait_for(lambda: "elms" in git(team.remote, "log", "--format=%s"))
    two.update("memory:elms-like-water", "Elms like a lot of water.")
    keep(two)
    (team.place / "go-on").touch()

    assert git(team.remote, "rev-list", "--count", "HEAD") == "3"
    assert team.pushed("memories/elms-like-water.md").endswith("Elms like a lot of water.")
    assert [note.ref for note in two.notes() if "conflict" in note.ref] == []
    assert team_of(two).state().outbox == 0
    assert verify(two.index).agrees


def test_one_server_keeps_at_a_time(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    with Keeper(team_of(one)).lease() as lease, Keeper(team_of(two)).lease() as refused:
        assert lease
        assert refused is None


def test_a_keeper_that_lost_its_lease_while_it_paused_writes_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = team.server("one"), team.server("two")
    keeper = Keeper(team_of(one))
    with ExitStack() as leases:
        with monkeypatch.context() as hasty:
            hasty.setattr("co_cli.vault.team.keeper.LEASE_SECONDS", 1)
            old = leases.enter_context(keeper.lease())
        assert old
        one.remember("Elms like water.")
        team.push("memories/ash.md", "Ashes burn well.\n")
        keep(two)
        one.remember("Beeches give shade.")
        before = git(team.remote, "rev-parse", "HEAD")
        team.push("memories/fir.md", "Firs are green.\n")

        with pytest.raises(LeaseLostError):
            keeper.round(old)
        assert git(team.remote, "rev-parse", "HEAD^") == before
        assert not (team.place / "one" / "memories" / "fir.md").exists()
        with pytest.raises(Exception, match=r"terminat|clos"):
            keeper._wait(old, threading.Event())
    keep(two)
    assert team.pushed("memories/beeches-give-shade.md").endswith("Beeches give shade.")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be frozen")
def test_a_frozen_keeper_is_replaced_within_seconds_and_writes_nothing_when_it_goes_on(team: Team) -> None:
    team.server("one").close()
    two, stop = team.server("two"), threading.Event()
    frozen = Process(save_until_killed, str(team.place / "one"), team.address, "one")
    wait_for(lambda: (team_of(two).state().keeper or "").endswith(f":{frozen.pid}"))
    os.kill(frozen.pid or 0, signal.SIGSTOP)
    with psycopg.connect(team.address, autocommit=True) as others:
        for number in range(2_000):  # more than the buffer to a client that reads nothing
            others.execute(f"notify {CHANNEL}, '{number}'")
    keeper = threading.Thread(target=Keeper(team_of(two)).run, args=(stop,))
    keeper.start()
    try:
        began = time.monotonic()
        wait_for(lambda: team_of(two).state().keeper == server_name())
        assert time.monotonic() - began < 20
        ref = two.remember("Elms like water.").ref
        wait_for(lambda: team_of(two).state().outbox == 0)
        os.kill(frozen.pid or 0, signal.SIGCONT)
        while frozen.pipe.poll():
            frozen.says()
        assert frozen.says(), "it saves again"
        assert team_of(two).state().keeper == server_name()
    finally:
        stop.set()
        keeper.join()
        frozen.close()
    assert verify(two.index).agrees
    assert ref in {note.ref for note in two.notes()}


def test_a_lease_is_renewed_while_a_step_takes_longer(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    one = team.server("one")
    monkeypatch.setattr("co_cli.vault.team.keeper.LEASE_SECONDS", 1)
    monkeypatch.setattr("co_cli.vault.team.keeper.RENEW_SECONDS", 0.1)
    with Keeper(team_of(one)).lease() as lease:
        assert lease
        time.sleep(1.5)
        lease.renew()


def test_the_keeper_runs_until_it_is_stopped_and_wakes_for_every_save(team: Team) -> None:
    one, two, stop = team.server("one"), team.server("two"), threading.Event()
    running = threading.Thread(target=Keeper(team_of(one)).run, args=(stop,))
    running.start()
    try:
        for number in range(2):
            seq = two.remember(f"Fact {number}.", on_related="keep").seq or 0
            assert team_of(two).wait_pushed(seq, PATIENCE).pushed
        assert team_of(two).state().keeper
    finally:
        stop.set()
        running.join(PATIENCE)
    assert not running.is_alive()


def test_without_a_remote_saves_are_committed_to_the_branch_and_commits_by_hand_come_in(team: Team) -> None:
    folder = team.place / "alone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    one, two = team.open(folder), team.open(folder)
    seq = one.remember("Elms like water.").seq or 0
    keep(two)
    commit(folder, "memories/ash.md", "Ashes burn well.\n")
    keep(one)

    assert team_of(one).receipt(seq).pushed
    assert git(folder, "log", "--format=%s").splitlines() == ["By hand", "Save memories/elms-like-water.md"]
    assert git(folder, "status", "--short") == ""
    assert two.search("burn").hits[0].ref == "memory:ash"
    assert kept_texts(folder) == []


def test_an_ignore_file_that_comes_in_hides_notes(team: Team) -> None:
    one = team.server("one")
    team.push(".coignore", "memories/oak.md\n")
    keep(one)

    assert one.notes() == []


def test_odd_names_and_kinds_of_files_pass_through_git(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("A quote and an umlaut.", title='Ünïcode "quoted" \\ name', path="odd, näme.md")
    (team.clone / "link.md").symlink_to("memories/oak.md")
    (team.clone / "run.sh").write_text("#!/bin/sh\n")
    (team.clone / "run.sh").chmod(0o755)
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Odd files")
    git(team.clone, "push", "--quiet")
    keep(one)

    assert "odd, näme.md" in git(team.remote, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "HEAD")
    assert git(team.remote, "ls-tree", "HEAD", "run.sh", "link.md").count("\n") == 1
    assert two.note("memory:odd, näme").title.startswith("Ünïcode")
    three = team.server("three")
    assert verify(three.index).agrees
    assert three.index.waiting() == 0
    assert (team.place / "three" / "link.md").is_symlink()


def test_a_command_of_git_that_fails_is_named(tmp_path: Path, team: Team) -> None:
    with pytest.raises(GitError, match="git ls-tree"):
        team_of(team.server("one")).repository.files("0" * 40)


def test_a_remote_that_hangs_is_left_with_everything_that_git_had_started(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, pipe = team_of(team.server("one")).repository, tmp_path / "pipe"
    os.mkfifo(pipe)
    hanging = write_script(tmp_path / "ssh", f"exec > {pipe}\necho up\nexec sleep 600")
    git(Path(repository.root), "config", "core.sshCommand", str(hanging))
    git(Path(repository.root), "remote", "set-url", "origin", "ssh://away.example/notes.git")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr("co_cli.notes.git.REMOTE_SECONDS", 3)
    with pytest.raises(GitError, match=r"git fetch in .* took longer than 3 s"):
        repository.fetch()

    assert os.read(reader, 10) == b"up\n"
    wait_for(lambda: is_closed(reader))
    os.close(reader)


def is_closed(reader: int) -> bool:
    """Whether nobody writes to a pipe any more."""
    try:
        return os.read(reader, 1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("left", [["HEAD"], ["HEAD", "HEAD^{tree}"]], ids=["the commit", "the commit and its tree"])
def test_a_commit_that_a_killed_fetch_left_without_its_files_is_fetched_again(team: Team, left: list[str]) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    keep(one)
    for name in git(team.remote, "rev-parse", *left).split():
        place = team.place / "two" / ".git" / "objects" / name[:2]
        place.mkdir(exist_ok=True)
        shutil.copy(team.remote / "objects" / name[:2] / name[2:], place)

    two.sync()

    assert {note.ref for note in two.notes()} == {"memory:elms-like-water", "memory:oak"}
    assert team_of(two).differences() == []


def test_several_may_fetch_into_one_clone_at_once(team: Team) -> None:
    repository = team_of(team.server("one")).repository
    for number in range(3):
        team.push("memories/elm.md", f"Elm {number}.\n")
        with ThreadPoolExecutor(3) as others:
            for fetched in [others.submit(repository.fetch) for _ in range(3)]:
                fetched.result()
    assert repository.tip() == git(team.remote, "rev-parse", "HEAD")


def test_a_file_may_take_the_name_of_a_folder_and_a_folder_that_of_a_file(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    for old, new in ((None, "plans/april.md"), ("plans/april.md", "plans"), ("plans", "plans/may.md")):
        if old:
            git(team.clone, "rm", "--quiet", old)
        commit(team.clone, new, f"This is {new}.\n")
        git(team.clone, "push", "--quiet")
        keep(one)

        for kb in (one, two):
            team_of(kb).catch_up()
            assert (Path(kb.root) / new).read_text() == f"This is {new}.\n"
            assert team_of(kb).differences() == []


def test_what_nobody_saved_makes_room_for_what_others_push(team: Team) -> None:
    one = team.server("one")
    folder = team.place / "one"
    (folder / "plans").write_text("Typed into the folder.\n")
    (folder / "lists").mkdir()
    (folder / "lists" / "draft.txt").write_text("Typed into another.\n")
    team.push("plans/april.md", "Plant an oak.\n")
    team.push("lists", "One.\n")
    keep(one)

    assert (folder / "plans" / "april.md").read_text() == "Plant an oak.\n"
    assert (folder / "lists").read_text() == "One.\n"
    kept = {file.name: file.read_text() for file in (folder / ".git" / "co-kept").rglob("*") if file.is_file()}
    assert kept == {"plans": "Typed into the folder.\n", "draft.txt": "Typed into another.\n"}


def test_a_history_that_was_rewritten_and_forced_comes_in_and_unpushed_saves_stay(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    keep(one)
    two.remember("Ashes burn well.")
    git(team.clone, "checkout", "--quiet", "--orphan", "clean")
    commit(team.clone, "memories/oak.md", "Oaks live very long.\n")
    git(team.clone, "push", "--quiet", "--force", "origin", "clean:main")
    keep(one)

    head = git(team.remote, "rev-parse", "HEAD")
    assert team.pushed("memories/ashes-burn-well.md").endswith("Ashes burn well.")
    assert git(team.place / "one", "rev-parse", "HEAD") == head, "so that the history of notes is that of the remote"
    for kb in (two, team.server("three")):
        assert sorted(note.ref for note in kb.notes()) == ["memory:ashes-burn-well", "memory:oak"]
        assert kb.note("memory:oak").body == "Oaks live very long.\n"
        assert team_of(kb).differences() == []


def test_a_force_push_over_commits_that_the_next_keeper_has_not_seen_comes_in(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    keep(one)
    commit(team.clone, "memories/ash.md", "Ashes burn well.\n")
    git(team.clone, "push", "--quiet", "--force")
    keep(two)

    assert {note.ref for note in one.notes()} == {"memory:ash", "memory:oak"}
    assert team_of(one).differences() == []


def test_what_a_force_push_drops_does_not_come_back_with_a_save_that_was_committed_on_it(team: Team) -> None:
    one = team.server("one")
    team.push("memories/elm.md", "Elms like water.\n")
    keep(one)
    away = team.remote.rename(team.place / "away.git")
    one.remember("Firs are green.")
    keep(one)
    away.rename(team.remote)
    git(team.clone, "push", "--quiet", "--force", "origin", "HEAD^:main")
    keep(one)

    assert git(team.remote, "ls-tree", "--name-only", "HEAD", "memories/").split() == [
        "memories/firs-are-green.md",
        "memories/oak.md",
    ]
    assert team_of(one).differences() == []


def test_commits_made_by_hand_in_a_server_s_clone_stay_on_its_branch(team: Team) -> None:
    one = team.server("one")
    commit(team.place / "one", "drawer.txt", "Not pushed.\n")
    team.push("memories/elm.md", "Elms like water.\n")
    keep(one)

    assert git(team.place / "one", "log", "-1", "--name-only", "--format=") == "drawer.txt"


def test_a_push_on_top_of_one_that_its_keeper_could_not_write_down_is_no_conflict(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    seq = one.update("memory:oak", "Oaks live for a thousand years.").seq
    keeper = Keeper(team_of(one))
    with keeper.lease() as lease:
        assert lease
        _, tip, _ = keeper._commit(lease)
        assert team_of(one).repository.push(str(tip))  # and is killed here
    team.push("memories/oak.md", "Oaks live for two thousand years.\n")
    one.remember("Elms like water.")
    keep(two)

    assert sorted(note.ref for note in two.notes()) == ["memory:elms-like-water", "memory:oak"]
    assert two.note("memory:oak").body == "Oaks live for two thousand years.\n"
    assert team_of(two).receipt(seq or 0).pushed
    assert team_of(two).state().outbox == 0


def test_saves_that_were_pushed_after_the_backup_of_a_restored_database_are_no_conflict(team: Team) -> None:
    one = team.server("one")
    one.update("memory:oak", "Oaks live for a thousand years.")
    restored = new_database()
    copy_schema("team", team.address, restored)
    keep(one)
    one.update("memory:oak", "Oaks live for two thousand years.")
    keep(one)
    team.address = restored
    two = team.server("two")
    keep(two)

    assert [note.ref for note in two.notes()] == ["memory:oak"]
    assert two.note("memory:oak").body == "Oaks live for two thousand years.\n"
    assert team_of(two).state().outbox == 0
    assert team_of(two).state().commit == git(team.remote, "rev-parse", "HEAD") == team_of(one).state().commit


@pytest.mark.parametrize("committed", [False, True], ids=["saved", "committed on another commit"])
def test_a_note_that_was_forgotten_after_the_backup_of_a_restored_database_stays_forgotten(
    team: Team, committed: bool
) -> None:
    one = team.server("one")
    ref = one.remember("Elms like water.").ref
    if committed:
        away = team.remote.rename(team.place / "away.git")
        keep(one)
        away.rename(team.remote)
        team.push("memories/ash.md", "Ashes burn well.\n")
    restored = new_database()
    copy_schema("team", team.address, restored)
    keep(one)
    one.forget(ref)
    keep(one)
    team.address = restored
    two = team.server("two")
    saved = two.remember("Firs are green.").ref
    keep(two)

    refs = {note.ref for note in two.notes()}
    assert refs == {saved, "memory:oak", *(["memory:ash"] if committed else [])}
    assert "elms" not in git(team.remote, "ls-tree", "--name-only", "HEAD", "memories/")
    assert "Firs are green." in team.pushed("memories/firs-are-green.md")
    assert (team_of(two).state().outbox, team_of(two).differences()) == (0, [])


def test_a_note_that_was_restored_after_the_backup_of_a_restored_database_stays(team: Team) -> None:
    one = team.server("one")
    one.forget("memory:oak")
    restored = new_database()
    copy_schema("team", team.address, restored)
    keep(one)
    one.restore("memory:oak")
    keep(one)
    team.address = restored
    two = team.server("two")
    keep(two)

    assert two.note("memory:oak").body == team.pushed("memories/oak.md") + "\n" == "Oaks live long.\n"
    assert (team_of(two).state().outbox, team_of(two).differences()) == (0, [])


def test_what_is_saved_into_a_restored_database_is_kept_also_of_a_note_that_was_forgotten(team: Team) -> None:
    one = team.server("one")
    ref = one.remember("Elms like water.").ref
    restored = new_database()
    copy_schema("team", team.address, restored)
    keep(one)
    one.forget(ref)
    keep(one)
    team.address = restored
    two = team.server("two")
    two.update(ref, "Elms like a lot of water.")
    keep(two)

    assert two.note(ref).body.strip() == "Elms like a lot of water."
    assert team.pushed("memories/elms-like-water.md").endswith("Elms like a lot of water.")


def test_a_server_that_does_not_keep_the_vault_follows_the_one_that_does(team: Team) -> None:
    one, two, stop = team.server("one"), team.server("two"), threading.Event()
    keeper, other = Keeper(team_of(one)), threading.Thread(target=Keeper(team_of(two)).run, args=(stop,))
    with keeper.lease() as lease:
        assert lease
        ref = one.remember("Elms like water.").ref
        keeper.round(lease)
        other.start()
        try:
            wait_for(lambda: git(team.place / "two", "rev-parse", "HEAD") == git(team.remote, "rev-parse", "HEAD"))
        finally:
            stop.set()
            other.join(PATIENCE)

    assert git(team.place / "two", "status", "--short") == ""
    commits = [change.what for change in note_history(two.vault, ref, limit=10).changes if change.source == "git"]
    assert commits == ["Save memories/elms-like-water.md"]
    assert two.search("elms", as_of="2099-01-01").hits[0].ref == ref, "the files as they were committed"


def test_a_keeper_that_lacks_the_newest_commit_says_that_the_remote_is_away(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    keep(one)
    away = team.remote.rename(team.place / "away.git")
    two.remember("Ashes burn well.")
    keep(two)

    assert "notes.git" in str(team_of(one).state().problem)
    away.rename(team.remote)
    keep(two)
    assert team.pushed("memories/ashes-burn-well.md").endswith("Ashes burn well.")


def test_a_remote_that_is_away_is_one_line_in_the_log_and_one_when_it_is_back(
    team: Team, caplog: pytest.LogCaptureFixture
) -> None:
    one = team.server("one")
    keeper = Keeper(team_of(one))
    with keeper.lease() as lease:
        assert lease
        keeper.round(lease)
        away = team.remote.rename(team.place / "away.git")
        one.remember("Elms like water.")
        for _ in range(3):
            keeper.round(lease)
            assert {gauge.name: gauge.value for gauge in gauges(one)}["co_keeper_failing"] == 1
        away.rename(team.remote)
        for _ in range(2):
            keeper.round(lease)
    said = [record.getMessage().split(" of ")[0] for record in caplog.records if record.name == "co_cli.team"]
    assert said == ["saves", "git works again: saves"]


def test_whatever_stops_the_keeper_is_shown(team: Team) -> None:
    one = team.server("one")
    team.ask("create function team.refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'")
    team.ask("create trigger refuse before insert on team.changes execute function team.refuse()")
    for name in ("elm", "ash"):
        team.push(f"memories/{name}.md", f"About {name}.\n")
    with pytest.raises(psycopg.Error):
        keep(one)

    assert "full" in str(team_of(one).state().problem)
    assert {gauge.name: gauge.value for gauge in gauges(one)}["co_commits_behind"] == 2
    team.ask("drop trigger refuse on team.changes")
    keep(one)
    assert (team_of(one).state().problem, one.note("memory:elm").body) == (None, "About elm.\n")
    assert team_of(one).state().behind == 0


def test_files_that_are_too_large_for_a_note_are_left_to_git(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("co_cli.notes.git.LARGEST", 1_000)
    git(team.place, "clone", "--quiet", str(team.remote), "one")
    (team.place / "one" / "untracked.mp4").write_bytes(b"x" * 1_001)
    one = team.server("one")
    assert team.ask("select count(*) from team.changes") == [(0,)]
    team.push("talk.mp4", "y" * 1_001)
    team.push("memories/elm.md", "Elms like water.\n")
    keep(one)

    assert team.ask("select path from team.changes") == [("memories/elm.md",)]
    one.remember("Ashes burn well.")
    keep(one)
    assert len(team.pushed("talk.mp4")) == 1_001
    for kb in (one, team.server("two")):
        assert verify(kb.index).agrees
        assert kb.note("memory:elm").body == "Elms like water.\n"


GITMODULES = b'[submodule "s"]\n\tpath = sub\n\turl = ./x\n\tupdate = !touch x\n'


def push_raw(team: Team, *entries: tuple[str, str, bytes]) -> None:
    """Push a commit with these modes, paths and texts, which may not fit into a work tree, and a note on elms."""
    stream = b"commit refs/heads/main\ncommitter Eve <eve@example.org> 1700000000 +0000\ndata 0\n"
    stream += f"from {git(team.remote, 'rev-parse', 'HEAD')}\n".encode()
    for mode, path, data in (("100644", "memories/elm.md", b"Elms like water.\n"), *entries):
        link = mode == "160000"
        stream += f'M {mode} {data.decode() if link else "inline"} "{path}"\n'.encode()
        stream += b"" if link else b"data %d\n%s\n" % (len(data), data)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=team.remote, input=stream, check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "skipped"),
    [
        ([("100644", ".gitmodules", GITMODULES), ("160000", "sub", b"1" * 40)], {"sub": "a submodule"}),
        ([("100644", ".gitmodules", b"[submodule"), ("160000", "sub", b"1" * 40)], {"sub": "a submodule"}),
        ([("100644", f"memories/{'n' * 400}.md", b"x")], {f"memories/{'n' * 400}.md": "the name is too long"}),
        ([("100644", f"{'n/' * 1_500}x.md", b"x")], {f"{'n/' * 1_500}x.md": "the name is too long"}),
        ([("100644", ".coignore", b"# x\n" * 300_000)], {".coignore": "has 1,200,000 bytes"}),
        ([("120000", "link.md", b"/etc/passwd")], {"link.md": "a symbolic link"}),
        ([("100644", "memories/x.md", b"version https://git-lfs.github.com/spec/v1\n")], {"memories/x.md": IN_LFS}),
    ],
    ids=["submodule", "broken .gitmodules", "long name", "many folders", "large .coignore", "link", "git-lfs"],
)
def test_whatever_a_commit_contains_the_rest_is_taken_over_and_the_state_names_what_was_skipped(
    team: Team, entries: list[tuple[str, str, bytes]], skipped: dict[str, str]
) -> None:
    team.push(".coignore", "memories/ash.md\n")
    team.push("memories/ash.md", "Ashes burn well.\n")
    one = team.server("one")
    push_raw(team, *entries)
    keep(one)
    one.remember("Firs are green.")
    keep(one)

    refs = sorted(note.ref for note in one.notes())
    assert refs == ["memory:elm", "memory:firs-are-green", "memory:oak"]
    assert "Firs are green." in team.pushed("memories/firs-are-green.md")
    assert git(team.remote, "ls-tree", "-r", "HEAD", "--", entries[-1][1]), "git keeps it"
    state = team_of(one).state()
    assert (state.problem, state.outbox, state.skipped) == (None, 0, skipped)
    (path,) = skipped
    found = {finding.check: finding for finding in examine(one.vault, fix=False)}
    assert f"{path[:100]}: {skipped[path]}" in found["team files"].text
    assert found["team files"].level == ("warning" if "." in path else "ok")

    git(team.remote, "update-ref", "refs/heads/main", git(team.remote, "rev-list", "--max-parents=0", "HEAD"))
    keep(one)
    assert ([note.ref for note in one.notes()], team_of(one).state().skipped) == (["memory:oak"], {})


def test_a_clone_without_a_branch_is_told_to_check_one_out(team: Team) -> None:
    git(team.place, "clone", "--quiet", str(team.remote), "one")
    git(team.place / "one", "checkout", "--quiet", "--detach")
    with pytest.raises(GitError, match="git switch BRANCH"):
        team.server("one")

    git(team.place / "one", "switch", "--quiet", "main")
    assert [note.ref for note in team.server("one").notes()] == ["memory:oak"]


def test_a_branch_that_was_deleted_at_the_remote_is_made_again_by_the_next_save(team: Team) -> None:
    one = team.server("one")
    git(team.remote, "update-ref", "-d", "refs/heads/main")
    keep(one)
    one.remember("Elms like water.")
    keep(one)

    assert team.pushed("memories/elms-like-water.md").endswith("Elms like water.")
    assert team.pushed("memories/oak.md") == "Oaks live long."


@pytest.mark.slow
@pytest.mark.parametrize("name", ['a "quoted"\ttab\\and\nline', "-x", ":(top)", "*", "x" * 240], ids=repr)
def test_a_note_of_any_name_is_changed_merged_and_pushed(team: Team, name: str) -> None:
    one = team.server("one")
    path = f"memories/{name}.md"
    team.push(path, "One\n\nTwo\n\nThree\n")
    keep(one)
    (note,) = [note for note in one.notes() if note.ref != "memory:oak"]
    one.update(note.ref, "First\n\nTwo\n\nThree\n")
    team.push(path, "One\n\nTwo\n\nThird\n")
    keep(one)
    assert team.pushed(path) == "First\n\nTwo\n\nThird"

    one.update(note.ref, "Ours\n")
    team.push(path, "Theirs\n")
    keep(one)
    assert (team.pushed(path), team_of(one).state().outbox) == ("Theirs", 0)
    assert [other.ref for other in one.notes() if "-conflict-" in other.ref]


def test_changes_of_a_large_push_are_trimmed_after_a_day_while_others_are_new(team: Team) -> None:
    one = team.server("one")
    one.remember("Elms like water.")
    keep(one)
    team.ask(
        "insert into team.changes (vault_id, path, data, author, saved_at, version, pushed)"
        " select vault_id, path, data, author, saved_at * (number > 20000)::int, version, true"
        " from team.changes, generate_series(1, 40000) as number where seq = 1"
    )
    team.ask("update team.changes set saved_at = 0 where seq = 1")
    team.ask(f"alter database {team.address.partition('?')[0].rpartition('/')[2]} set statement_timeout = '20s'")
    keep(team.server("two"))

    assert team.ask("select count(*), min(seq) > 20000 from team.changes") == [(20_000, True)]


def test_the_audit_log_is_kept_for_as_long_as_the_operator_says_and_members_cannot_shorten_it(team: Team) -> None:
    one = team.server("one")
    saved = one.remember("Elms like water.")
    one.update(saved.ref, tags=["tree"])
    with psycopg.connect(team.address) as owner:
        owner.execute("update team.audit set moment = moment - 40 * 86400 where action = 'create'")
    before = team.ask("select action from team.audit order by id")
    with (
        pytest.raises(IndexUnavailableError, match="permission denied for table audit"),
        team_of(one).engine.transaction() as connection,
    ):
        connection.execute("delete from team.audit")
    keep(one)
    assert team.ask("select action from team.audit order by id") == before == [("create",), ("change",)]

    keep(one, audit_days=30)
    assert team.ask("select action from team.audit order by id") == [("change",)]
    one.update(saved.ref, tags=["trees"])
    assert team.ask("select action from team.audit") == [("change",), ("change",)], "what is saved later is recorded"


def test_what_is_merged_and_what_is_kept_twice_belongs_to_the_person_who_saved_it(team: Team) -> None:
    team.push("memories/list.md", LINES)
    one, two = team.server("one"), team.server("two")
    mara = acting.set("web:mara")
    one.update("memory:list", LINES.replace("One", "First"))
    one.update("memory:oak", "Oaks live for a thousand years.")
    acting.reset(mara)
    team.push("memories/list.md", LINES.replace("Three", "Third"))
    team.push("memories/oak.md", "Oaks live for five hundred years.\n")
    keep(two)

    for path in ("memories/list.md", "memories/oak-conflict-mara.md"):
        assert git(team.remote, "log", "-1", "--format=%an", "--", path) == "mara"
    assert team_of(two).history("memories/list.md", 1)[0].who == "mara"
