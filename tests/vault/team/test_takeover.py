"""A large push comes in by parts: saves go on meanwhile, and a keeper that is killed loses and doubles nothing."""

from __future__ import annotations

import subprocess
import threading
import tracemalloc
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.git import Repository
from co_cli.searching.note_details import note_history
from co_cli.server.metrics import gauges
from co_cli.upkeep.verification import verify
from co_cli.vault.team import takeover
from co_cli.vault.team.keeper import Keeper
from co_cli.vault.team.takeover import in_order
from tests.command import Co
from tests.soak.runner import Process
from tests.soak.team import open_server
from tests.vault.team.servers import Team, commit, git, keep, team_of

pytestmark = pytest.mark.postgres
FILES = 30
LINES = "One\n\nTwo\n\nThree\n"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FIRST_PART", 7), ("MOST_FILES", 7), ("PART_SECONDS", 600.0)):
        monkeypatch.setattr(takeover, name, value)


def name_of(number: int) -> str:
    return f"memories/note-{number:02}.md"


def push_many(team: Team, texts: Mapping[str, str | None], *options: str) -> None:
    """One commit with many files, of a person who has pulled."""
    git(team.clone, "fetch", "--quiet")
    git(team.clone, "reset", "--quiet", "--hard", *([] if options else ["origin/main"]))
    for path, text in texts.items():
        file = team.clone / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_text(text, "utf-8")
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Many")
    git(team.clone, "push", "--quiet", *options)


def keep_one_part(kb: KnowledgeBase) -> None:
    """A keeper that is told to stop while it takes over the first part."""
    keeper, stop = Keeper(team_of(kb)), threading.Event()
    stop.set()
    with keeper.lease() as lease:
        assert lease
        keeper.round(lease, stop)


def behind(kb: KnowledgeBase) -> float:
    return {gauge.name: gauge.value for gauge in gauges(kb)}["co_files_behind"]


def many(text: str) -> dict[str, str]:
    return {name_of(number): text.format(number) for number in range(FILES)}


def texts_in(kb: KnowledgeBase) -> dict[str, str]:
    return {note.ref: kb.note(note.ref).body for note in kb.notes()}


def test_parts_of_a_push_are_found_and_counted_and_the_commit_moves_when_all_are_in(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    before = team_of(one).state().commit
    push_many(team, many("Note {} is about elms.\n"))
    keep_one_part(one)

    assert len(two.notes()) == 1 + 7
    assert (behind(two), team_of(two).state().behind) == (FILES - 7, 1)
    assert team_of(one).state().commit == before
    for kb in (one, two):
        assert team_of(kb).differences() == []
        assert verify(kb.index).agrees
    keep(two)
    assert len(one.notes()) == 1 + FILES
    assert (behind(one), team_of(one).state().behind) == (0, 0)
    assert team_of(one).state().commit == git(team.remote, "rev-parse", "HEAD")
    assert team.ask("select * from team.taken") == []
    assert one.status().unembedded == 0
    assert verify(one.index).agrees


def test_a_save_to_a_file_that_is_not_taken_over_yet_is_merged_and_one_that_is_keeps_its_text(team: Team) -> None:
    push_many(team, many(LINES))
    one, two = team.server("one"), team.server("two")
    push_many(team, many(LINES.replace("Three", "Third")))
    keep_one_part(one)
    assert two.note("memory:note-00").body.endswith("Third\n")
    assert two.note("memory:note-29").body == LINES
    two.update("memory:note-29", LINES.replace("One", "First"))
    two.update("memory:note-28", LINES.replace("Three", "Our third"))
    two.update("memory:note-00", "Only ours.\n")
    two.forget("memory:note-01")
    keep(one)

    assert team.pushed(name_of(29)) == "First\n\nTwo\n\nThird"
    assert team.pushed(name_of(28)).endswith("Third")
    (copy,) = [ref for ref in texts_in(one) if "conflict" in ref]
    assert copy.startswith("memory:note-28-conflict-")
    assert "Our third" in one.note(copy).body
    assert team.pushed(name_of(0)) == "Only ours."
    assert name_of(1) not in git(team.remote, "ls-tree", "-r", "--name-only", "HEAD", "memories").splitlines()
    assert team_of(one).state().outbox == 0
    assert verify(two.index).agrees


def keep_by_parts(pipe: Connection, folder: str, address: str) -> None:
    takeover.FIRST_PART, takeover.MOST_FILES, takeover.PART_SECONDS = 7, 7, 600.0
    keep(open_server(Path(folder), address))
    pipe.send("done")


def kill_while_it_takes(team: Team, name: str, path: str) -> None:
    """Kill a server that is about to write down that this file is taken over."""
    team.ask(
        "create function team.hang() returns trigger language plpgsql as "
        f"'begin if new.path = ''{path}'' then perform pg_sleep(60); end if; return new; end'"
    )
    team.ask("create trigger hang before insert on team.taken for each row execute function team.hang()")
    victim = Process(keep_by_parts, str(team.place / name), team.address)
    while not team.ask(
        "select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
    ):
        assert not victim.pipe.poll(0.01), "it did not hang"
    victim.kill()
    victim.close()
    team.ask(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid()"
    )
    team.ask("drop trigger hang on team.taken")


@pytest.mark.slow
@pytest.mark.parametrize("then", ["nothing", "another push", "a force-push back", "a force-push of another history"])
def test_a_keeper_that_is_killed_in_the_middle_of_a_large_push_is_followed_by_one_that_goes_on(
    team: Team, then: str
) -> None:
    team.server("one").close()
    two = team.server("two")
    push_many(team, many("Note {} is about elms.\n"))
    first = git(team.remote, "rev-parse", "HEAD^")
    kill_while_it_takes(team, "one", name_of(16))

    assert len(two.notes()) == 1 + 14
    two.update("memory:note-03", "Note 3 is ours.\n")
    two.remember("Ashes burn well.")
    expected = {f"memory:note-{number:02}": f"Note {number} is about elms.\n" for number in range(FILES)}
    expected["memory:oak"] = "Oaks live long.\n"
    if then == "another push":
        push_many(team, {name_of(5): "Five.\n", name_of(25): "Twenty-five.\n", name_of(6): None})
        expected |= {"memory:note-05": "Five.\n", "memory:note-25": "Twenty-five.\n"}
        del expected["memory:note-06"]
    elif then == "a force-push back":
        git(team.remote, "update-ref", "refs/heads/main", first)
        expected = {"memory:oak": "Oaks live long.\n"}
    elif then == "a force-push of another history":
        git(team.clone, "checkout", "--quiet", "--orphan", "clean")
        git(team.clone, "rm", "--quiet", "-r", "--cached", ".")
        for number in range(10, FILES):
            (team.clone / name_of(number)).unlink()
        (team.clone / name_of(4)).write_text("Four.\n")
        git(team.clone, "add", "--all")
        git(team.clone, "commit", "--quiet", "-m", "Clean")
        git(team.clone, "push", "--quiet", "--force", "origin", "clean:main")
        expected = {ref: text for ref, text in expected.items() if ref < "memory:note-10" or ref == "memory:oak"}
        expected["memory:note-04"] = "Four.\n"
    expected |= {"memory:note-03": "Note 3 is ours.\n", "memory:ashes-burn-well": "Ashes burn well."}
    keep(two)

    for kb in (two, team.server("one")):
        assert {ref: text.strip() for ref, text in texts_in(kb).items()} == {
            ref: text.strip() for ref, text in expected.items()
        }
        assert team_of(kb).differences() == []
        assert verify(kb.index).agrees
    listed = git(team.remote, "ls-tree", "-r", "--name-only", "HEAD", "memories").splitlines()
    assert {f"memory:{Path(path).stem}" for path in listed} == expected.keys()
    assert (team_of(two).state().outbox, team_of(two).state().problem) == (0, None)
    count = team.ask("select path from team.audit where action = 'create' group by path having count(*) > 1")
    assert count == [], "nothing was taken over twice"


def test_a_folder_that_is_renamed_misses_no_note_on_the_way_and_keeps_their_history(team: Team) -> None:
    push_many(team, many("Note {} is about elms.\n"))
    one = team.server("one")
    moved: dict[str, str | None] = {
        f"memories/trees/note-{n:02}.md": f"Note {n} is about elms.\n" for n in range(FILES)
    }
    push_many(team, {**moved, **dict.fromkeys(many(""), None)})
    for _ in range(10):
        keep_one_part(one)
        assert len(one.notes()) == 1 + FILES

    assert {note.ref for note in one.notes()} == {
        "memory:oak",
        *(f"memory:trees/note-{number:02}" for number in range(FILES)),
    }
    history = note_history(one.vault, "memory:trees/note-07", limit=10).changes
    assert [change.before for change in history if change.source == "activity"] == [name_of(7), None]
    assert verify(one.index).agrees


def test_the_order_of_a_takeover_frees_names_first_and_removes_last() -> None:
    blob = iter("abcdefgh")
    files = {
        "plans": (next(blob), None),
        "plans/may.md": (None, next(blob)),
        "lists/old.md": (next(blob), None),
        "lists": (None, next(blob)),
        "gone.md": (next(blob), None),
        "new.md": (None, "same"),
        "old.md": ("same", None),
        "a.md": ("x", "y"),
    }

    assert in_order(files) == [
        ["lists/old.md"], ["plans"], ["a.md"], ["lists"], ["old.md", "new.md"], ["plans/may.md"], ["gone.md"],
    ]  # fmt: skip


def test_each_commit_of_a_push_is_attributed_to_its_author(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    for author, path, text in (
        ("Ada", "memories/elm.md", "Elms like water.\n"),
        ("Bex", "memories/elm.md", "Elms like light.\n"),
        ("Cem", "memories/ash.md", "Ashes burn well.\n"),
        ("Ada", "memories/oak.md", None),
    ):
        commit(team.clone, path, text)
        git(team.clone, "commit", "--quiet", "--amend", "--no-edit", "--author", f"{author} <{author}@example.org>")
    git(team.clone, "push", "--quiet")
    keep(two)

    assert team.ask("select who, action, path from team.audit order by path, id") == [
        ("Cem", "create", "memories/ash.md"),
        ("Ada", "create", "memories/elm.md"),
        ("Bex", "change", "memories/elm.md"),
        ("Ada", "remove", "memories/oak.md"),
    ]
    commits = git(team.remote, "log", "--format=%an %H", "--reverse").splitlines()[1:]
    taken = dict(team.ask("select path, author || ' ' || commit from team.changes"))
    assert [taken[f"memories/{name}.md"] for name in ("elm", "ash", "oak")] == commits[1:]
    assert team.ask("select path, count(distinct moment) from team.audit group by path order by path") == [
        ("memories/ash.md", 1), ("memories/elm.md", 2), ("memories/oak.md", 1),
    ], "each is dated, and its change found by that"  # fmt: skip
    assert team.ask("select count(*) from team.audit join team.changes using (path) where moment > saved_at") == [(0,)]
    changes = note_history(one.vault, "memory:elm", limit=10).changes
    assert [(change.author, change.what) for change in changes if change.source != "git"] == [
        ("Bex", "updated"),
        ("Ada", "created"),
    ]


@pytest.mark.slow
def test_a_file_that_many_commits_changed_is_taken_over_in_little_memory(team: Team) -> None:
    one = team.server("one")
    for number in range(20):
        commit(team.clone, "log.csv", f"{number}," * 1_000_000)
    git(team.clone, "push", "--quiet")
    tracemalloc.start()
    try:
        keep(one)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50_000_000
    assert team.ask("select count(distinct hash) from team.audit where path = 'log.csv'") == [(20,)]


def test_a_merged_branch_is_attributed_to_those_who_wrote_it(team: Team) -> None:
    one = team.server("one")
    git(team.clone, "checkout", "--quiet", "-b", "trees")
    commit(team.clone, "memories/elm.md", "Elms like water.\n")
    git(team.clone, "commit", "--quiet", "--amend", "--no-edit", "--author", "Ada <ada@example.org>")
    git(team.clone, "checkout", "--quiet", "main")
    commit(team.clone, "memories/ash.md", "Ashes burn well.\n")
    git(team.clone, "merge", "--quiet", "--no-edit", "trees")
    git(team.clone, "push", "--quiet")
    keep(one)

    assert dict(team.ask("select path, who from team.audit")) == {"memories/elm.md": "Ada", "memories/ash.md": "Nils"}


def test_a_note_that_a_force_push_dropped_is_in_the_history_and_can_be_restored(
    team: Team, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.", title="On elms")
    keep(one)
    team.push("memories/oak.md", "Oaks live very long.\n")
    keep(one)
    Keeper(team_of(two)).stand_by()
    root = git(team.remote, "rev-list", "--max-parents=0", "HEAD")
    git(team.clone, "reset", "--quiet", "--hard", root)
    commit(team.clone, "memories/ash.md", "Ashes burn well.\n")
    git(team.clone, "push", "--quiet", "--force")
    keep(one)
    Keeper(team_of(two)).stand_by()
    for name in ("one", "two"):
        git(team.place / name, "reflog", "expire", "--expire=now", "--all")
        git(team.place / name, "gc", "--quiet", "--prune=now")
    assert {note.ref for note in one.notes()} == {"memory:ash", "memory:oak"}

    monkeypatch.setenv("CO_VAULT", two.root)
    monkeypatch.setenv("CO_ENGINE", team.address)
    assert "dropped by a force-push" in co("note", "history", "memory:on-elms").out
    assert "dropped by a force-push" in co("note", "history", "memory:oak").out
    listed = co("list", "--trash").out
    assert "memory:on-elms  On elms  dropped by a force-push, committed" in listed
    assert "memory:oak" not in listed, "it is there"
    restored = co("note", "restore", "On elms")
    assert (restored.code, "which a force-push dropped" in restored.out) == (0, True)
    assert one.note("memory:on-elms").body.strip() == "Elms like water."
    assert "memory:on-elms" not in co("list", "--trash").out
    with pytest.raises(Exception, match="no note 'memory:on-elms' in the trash"):
        one.restore("memory:on-elms")
    keep(one)
    assert "Elms like water." in team.pushed("memories/on-elms.md")


@pytest.mark.slow
def test_only_what_differs_between_two_commits_is_looked_at_and_it_is_the_same_as_in_two_listings(team: Team) -> None:
    push_many(team, many("Note {}.\n"))
    team.server("one")
    repository = Repository(str(team.place / "one"), {".coignore": 20})
    steps: list[list[tuple[str, str, bytes]]] = [
        [("100644", ".coignore", b"memories/x.md\n"), ("120000", "link.md", b"oak.md"), ("100644", "plans", b"x")],
        [("100644", ".coignore", b"# long\n" * 9), ("100644", "link.md", b"Now a file."), ("100755", "run.sh", b"#!")],
        [("160000", "sub", b"1" * 40), ("100644", "plans/may.md", b"May."), ("100644", '"odd"\tname.md', b"Odd.")],
        [("100644", ".coignore", b"short\n"), ("100644", "sub", b"No module."), ("000000", "memories/note-05.md", b"")],
    ]
    commits = [git(team.remote, "rev-parse", "HEAD")]
    for entries in steps:
        stream = b"commit refs/heads/main\ncommitter Eve <eve@example.org> 1700000000 +0000\ndata 0\n"
        stream += f"from {commits[-1]}\n".encode()
        for mode, path, data in entries:
            quoted = path.replace('"', '\\"').replace("\t", "\\t").encode()
            if mode == "000000":
                stream += b'D "%s"\n' % quoted
            elif mode == "160000":
                stream += b'M 160000 %s "%s"\n' % (data, quoted)
            else:
                stream += b'M %s inline "%s"\ndata %d\n%s\n' % (mode.encode(), quoted, len(data), data)
        subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=team.remote, input=stream, check=True)
        commits.append(git(team.remote, "rev-parse", "main"))
    repository.fetch()

    for old in commits:
        for new in commits:
            found = repository.difference(old, new)
            before, after = repository.files(old), repository.files(new)
            skipped = repository.skipped(new)
            for path in before.keys() | after.keys():
                blobs = tuple(of[path].blob if path in of else None for of in (before, after))
                if path == ".coignore" and path in skipped:
                    blobs = (blobs[0], blobs[0])
                assert found.changes.get(path, (blobs[0], blobs[0])) == blobs, (path, old, new)
            assert found.skipped.items() <= skipped.items()
            assert skipped.keys() - found.skipped.keys() <= repository.skipped(old).keys()
            assert found.changes.keys() <= found.paths
    assert repository.difference(None, commits[-1]).changes.keys() == repository.files(commits[-1]).keys()
