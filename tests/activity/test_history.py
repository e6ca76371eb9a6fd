"""`co note history` shows a note's changes, with git's commits where there are some."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.vault.history import commits_of
from tests.command import Co, commit, git, write_script
from tests.folder import Vault


def test_every_change_of_a_note_is_shown_newest_first(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    vault.write("memories/oak.md", "Oaks live long, and longer.")
    co("search", "oaks")
    vault.path("memories/oak.md").rename(vault.path("memories/old-oak.md"))

    ran = co("note", "history", "old-oak")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "Old oak  memory:old-oak"
    assert lines[1].strip() == "recalled 2 x, opened 0 x, last today"
    assert [line.split()[2] for line in lines[2:5]] == ["moved", "updated", "seen"]
    assert (lines[5], lines[6].split(maxsplit=2)[2]) == ("  found by:", "oaks (2 x)"), "also under its old name"
    assert lines[2].endswith("from memories/oak.md, 27 bytes")
    assert lines[3].endswith("27 bytes, +12")
    assert max(map(len, lines)) <= 80


def test_the_questions_that_found_a_note_are_listed_newest_first_as_far_as_they_are_logged(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/oak-2.md", "Elms like water.")
    vault.write("articles/trees.md", "# Trees\n\nOaks are trees.\n\n## Elms\n\nElms are trees by the water.")
    for question in ("how long do oaks live", "elms by the water", "How long do  OAKS live", "live long"):
        co("search", question, "--limit", "1")
    monkeypatch.setenv("CO_QUERY_LOG", "no-text")
    co("search", "long")

    oak = co("note", "history", "oak", "--json").json
    article, other = (co("note", "history", ref, "--json").json for ref in ("article:trees", "memory:oak-2"))

    assert [(one["text"], one["times"]) for one in oak["questions"]] == [
        ("live long", 1),
        ("How long do  OAKS live", 2),
    ]
    assert all(one["at"] <= oak["recalled"] for one in oak["questions"])
    assert [one["text"] for one in (*article["questions"], *other["questions"])] == ["elms by the water"]


def test_a_forgotten_note_and_the_name_it_had_before_a_move_have_a_history_too(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")
    co("search", "oaks")
    co("forget", "oak")
    vault.path("memories/elm.md").rename(vault.path("memories/wych-elm.md"))
    co("search", "elms")

    gone, moved = co("note", "history", "memory:oak"), co("note", "history", "memory:elm", "--json")

    assert gone.code == 0
    assert "gone since" in gone.out
    assert "removed" in gone.out
    assert co("note", "history", "oak").out == gone.out
    assert (moved.json["ref"], moved.json["title"]) == ("memory:wych-elm", "Wych elm")


def test_a_note_that_was_edited_and_deleted_by_hand_is_not_forgotten_and_its_title_has_a_history(
    co: Co, vault: Vault
) -> None:
    ref = co("remember", "Oaks live long.", "--title", "The Old Oak", "--json").json["ref"]
    co("edit", ref, "--body", "Oaks fall.")
    co("index", "sync")
    vault.path("memories/the-old-oak.md").unlink()
    co("index", "sync")

    shown = co("show", ref)
    assert shown.code == 2
    assert "was deleted outside of co: `co note restore memory:the-old-oak` restores a copy" in shown.err
    for name in (ref, "The Old Oak", "the old oak", "the-old-oak", "the-old-oak.md"):
        history = co("note", "history", name, "--json").json
        assert (history["ref"], history["title"]) == (ref, "The Old Oak")
        assert [change["what"] for change in history["changes"]] == ["removed", "updated", "created"]
    assert co("note", "history", "The New Oak").code == 2

    restored = co("note", "restore", ref)
    assert restored.out.startswith("restored memory:the-old-oak, a copy kept 20")
    assert "which is not its last text" in restored.out
    assert "Oaks live long." in vault.read("memories/the-old-oak.md")


def test_git_s_commits_stand_among_ours_by_time(co: Co, vault: Vault) -> None:
    git(vault.root, "init", "-q")
    vault.write("memories/oak.md", "Oaks live long.\n")
    commit(vault.root, "Plant an oak", 1_700_000_000)
    vault.write("memories/oak.md", "Oaks live long.\nAnd longer.\n")
    commit(vault.root, "Let it grow", 4_000_000_000)  # in our future: it comes first

    ran = co("note", "history", "oak", "--json")

    assert [(change["source"], change["what"]) for change in ran.json["changes"]] == [
        ("git", "Let it grow"),
        ("activity", "seen"),
        ("git", "Plant an oak"),
    ]
    newest = ran.json["changes"][0]
    assert (newest["author"], newest["lines_added"], newest["lines_deleted"]) == ("Ada", 1, 0)
    assert "Let it grow (Ada, +1 -0 lines)" in co("note", "history", "oak").out


def test_any_name_is_a_path_and_never_an_option(vault: Vault) -> None:
    git(vault.root, "init", "-q")
    names = ("-n.md", ":(top)x.md", "a*b.md", "--output=x.md", "ünï.md")
    for name in names:
        vault.write(f"memories/{name}", "Odd.\n")
    vault.write("memories/aXb.md", "Even.\n")
    vault.write("x.md", "Even.\n")
    commit(vault.root, "Odd names", 1_700_000_000)
    vault.write("memories/aXb.md", "Even more.\n")
    vault.write("x.md", "Even more.\n")
    commit(vault.root, "Others", 1_700_000_100)

    for name in names:
        commits, problem = commits_of(str(vault.root / "memories"), name, 10)
        assert ([one.subject for one in commits], problem) == (["Odd names"], None), name


def test_a_repository_cannot_make_git_run_a_program(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprung = tmp_path / "sprung"
    trap = write_script(tmp_path / "trap", f"touch {sprung}\ncat")
    git(vault.root, "init", "-q")
    vault.write(".gitattributes", "*.md diff=trap\n")
    vault.write("memories/oak.md", "Oaks live long.\n")
    commit(vault.root, "Plant an oak", 1_700_000_000)
    for key, value in (
        ("core.fsmonitor", str(trap)),
        ("core.pager", str(trap)),
        ("log.showSignature", "true"),
        ("gpg.program", str(trap)),
        ("diff.trap.textconv", str(trap)),
        ("diff.external", str(trap)),
    ):
        git(vault.root, "config", key, value)

    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))  # as a hook sets it

    commits, _ = commits_of(str(vault.root), "memories/oak.md", 10)

    assert [one.subject for one in commits] == ["Plant an oak"]
    assert not sprung.exists()


def test_escape_sequences_of_a_commit_are_shown_not_obeyed(co: Co, vault: Vault) -> None:
    git(vault.root, "init", "-q")
    vault.write("memories/oak.md", "Oaks live long.\n")
    commit(vault.root, "red \x1b[31m \x1f alarm", 1_700_000_000)

    out = co("note", "history", "oak").out

    assert "\x1b" not in out
    assert "red \\x1b[31m \\x1f alarm" in out
