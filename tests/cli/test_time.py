"""Validity, superseded notes, and searches as of a date."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import apsw
import pytest

from tests.command import Co, commit, git, refs
from tests.folder import Vault


def note(vault: Vault, name: str, text: str, **fields: str) -> None:
    front = "".join(f"{key}: {value}\n" for key, value in fields.items())
    vault.write(f"memories/{name}.md", f"---\n{front}---\n{text}\n")


@pytest.fixture
def moved(vault: Vault) -> Vault:
    """Where the office was, in three notes."""
    note(vault, "first", "The office is in Lisbon.", created="2024-01-10")
    note(vault, "second", "The office is in Porto.", created="2025-02-01", supersedes="memory:first")
    note(vault, "third", "The office is in Braga.", created="2026-03-01", supersedes='["[[second]]"]')
    return vault


@pytest.mark.parametrize("backend", ["hybrid", "grep"])
def test_superseded_notes_are_left_out_unless_asked_for(co: Co, moved: Vault, backend: str) -> None:
    asked = ("where is the office", "--backend", backend)

    assert refs(co, *asked) == ["memory:third"]
    assert set(refs(co, *asked, "--outdated")) == {"memory:first", "memory:second", "memory:third"}


@pytest.mark.usefixtures("moved")
def test_as_of_answers_from_what_existed_and_was_valid_then(co: Co) -> None:
    for when, there in (("2024-06-01", "first"), ("2025-02-01", "second"), ("2026-12-01", "third"), ("2023", None)):
        assert refs(co, "where is the office", "--as-of", when) == ([f"memory:{there}"] if there else [])


@pytest.fixture
def contradicting(vault: Vault) -> Vault:
    """Two notes of which one gives another value, and one that is about somebody else."""
    note(vault, "lisbon", "The user lives in Lisbon.", created="2025-01-10")
    note(vault, "porto", "I live in Porto now.", created="2026-02-01")
    note(vault, "mara", "Mara lives in Braga.", created="2024-03-01")
    return vault


@pytest.mark.parametrize("backend", ["hybrid", "grep"])
@pytest.mark.usefixtures("contradicting")
def test_of_two_hits_that_contradict_each_other_the_older_one_says_so(co: Co, backend: str) -> None:
    hits = co("search", "live in", "--backend", backend, "--json").json["hits"]

    assert {hit["ref"]: hit["newer"] for hit in hits} == {
        "memory:lisbon": "memory:porto",
        "memory:porto": None,
        "memory:mara": None,
    }
    shown = co("search", "live in", "--backend", backend).out
    assert shown.count("older: see memory:porto") == shown.count("older: see") == 1


def test_what_was_superseded_or_changed_since_is_not_called_older(co: Co, contradicting: Vault) -> None:
    def newer(*options: str) -> dict[str, str]:
        hits = co("search", "live in", "--json", *options).json["hits"]
        return {hit["ref"]: hit["newer"] for hit in hits if hit["newer"]}

    assert newer() == {"memory:lisbon": "memory:porto"}
    note(contradicting, "lisbon", "The user lives in Lisbon.", created="2025-01-10", updated="2026-03-01")
    assert newer() == {}
    note(contradicting, "lisbon", "The user lives in Lisbon.", created="2025-01-10", superseded_by="memory:porto")
    assert newer("--outdated") == {}


def test_a_note_can_name_the_one_that_supersedes_it(co: Co, vault: Vault) -> None:
    note(vault, "old", "The door code is 1111.", created="2024-01-01", superseded_by="memory:new")
    note(vault, "new", "The door code is 2222.", created="2025-01-01")
    note(vault, "lost", "The door code is 3333.", created="2024-01-01", superseded_by="memory:not-here")

    assert refs(co, "door code") == ["memory:new"]
    assert set(refs(co, "door code", "--as-of", "2024-06")) == {"memory:old"}


def test_a_note_is_found_only_while_it_is_valid(co: Co, vault: Vault) -> None:
    note(
        vault, "winter", "The pool is closed.", created="2025-10-01", valid_from="2025-11-01", valid_until="2026-02-28"
    )
    note(vault, "always", "The pool is behind the gym.", created="2020-01-01")

    assert refs(co, "pool") == ["memory:always"]
    assert set(refs(co, "pool", "--as-of", "2025-12-01")) == {"memory:winter", "memory:always"}
    assert "memory:winter" not in refs(co, "pool", "--as-of", "2025-10-15")
    assert "memory:winter" in refs(co, "pool", "--as-of", "2026-02-28")  # that day included
    assert refs(co, "pool closed", "--backend", "grep") == ["memory:always"]


@pytest.fixture
def zone(request: pytest.FixtureRequest) -> Iterator[None]:
    """The time zone of this process; it is UTC again afterwards."""
    if not hasattr(time, "tzset"):
        pytest.skip("a process cannot change its time zone on Windows")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("backend", ["hybrid", "grep"])
@pytest.mark.parametrize("zone", ["WEST8", "EAST-12"], indirect=True)
@pytest.mark.usefixtures("zone")
def test_a_date_without_a_time_is_a_day_where_you_are(co: Co, vault: Vault, backend: str) -> None:
    note(vault, "old", "The pool is cold.", created="2025-01-01")
    note(vault, "ended", "The pool is closed.", created="2025-01-01", valid_until="2026-02-28")
    note(vault, "new", "The pool is warm.", created="2026-03-01", supersedes="memory:old")
    note(vault, "begun", "The pool is open.", created="2025-01-01", valid_from="2026-03-01")

    def found(*options: str) -> set[str]:
        asked = ("search", "pool", "--backend", backend, "--json", *options)
        return {hit["ref"].partition(":")[2] for hit in co(*asked).json["hits"]}

    for last_day in ("2026-02-28", "2026-02-28T00:01", "2026-02-28T23:59"):
        assert found("--as-of", last_day) == {"old", "ended"}
    for next_day in ("2026-03-01", "2026-03-01T00:01", "2026-03-01T23:59"):
        assert found("--as-of", next_day) == {"new", "begun"}
    assert found("--since", "2026-03-01", "--outdated") == {"new"}
    assert found("--until", "2026-02-28", "--outdated") == {"old", "ended", "begun"}


def test_an_invalid_date_is_reported(co: Co, vault: Vault) -> None:
    note(vault, "odd", "Soon.", valid_until="whenever")

    assert "valid_until must be a date such as 2026-03-01, not 'whenever'" in co("index", "sync").out
    assert co("search", "soon", "--as-of", "whenever").code == 2


@pytest.fixture
def kept_in_git(vault: Vault) -> Vault:
    """A vault in a folder of a repository: one note that was rewritten, one that was deleted."""

    git(vault.root.parent, "init", "-q")
    vault.write("memories/office.md", "The office is in Lisbon.")
    vault.write("memories/parking.md", "Parking is free behind the office.")
    commit(vault.root, "first", "2024-01-01T12:00:00Z")
    vault.write("memories/office.md", "The office is in Porto.")
    vault.delete("memories/parking.md")
    commit(vault.root, "second", "2025-06-01T12:00:00Z")
    vault.write("memories/office.md", "The office is in Braga, and this is not committed.")
    return vault


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("when", "text"), [("2024-06-01", "Lisbon"), ("2025-12-01", "Porto"), (None, "Braga")], ids=["then", "later", "now"]
)
def test_as_of_searches_the_files_of_that_commit(co: Co, kept_in_git: Vault, when: str | None, text: str) -> None:
    before = {path: kept_in_git.read(path) for path in kept_in_git.notes()}

    asked = ("--as-of", when) if when else ()
    found = co("search", "where is the office", *asked, "--json").json

    assert text in found["hits"][0]["snippet"]
    assert ("memory:parking" in [hit["ref"] for hit in found["hits"]]) == (when == "2024-06-01")
    assert {path: kept_in_git.read(path) for path in kept_in_git.notes()} == before


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_as_of_works_before_the_first_commit(co: Co, vault: Vault) -> None:
    git(vault.root.parent, "init", "-q")
    vault.write("memories/office.md", "The office is in Lisbon.")

    found = co("search", "office", "--as-of", "today", "--json").json

    assert ([hit["ref"] for hit in found["hits"]], found["degraded"]) == (["memory:office"], [])


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_old_checkouts_of_as_of_searches_are_removed(
    co: Co, kept_in_git: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.searching.as_of.KEPT", 1)
    assert "memory:parking" in refs(co, "where is the office", "--as-of", "2024-06-01")
    [old] = [folder for folder in (data_dir / "as-of").iterdir() if folder.is_dir()]
    os.utime(old, (1, 1))  # asked for long ago, so nobody has it in hand

    refs(co, "where is the office", "--as-of", "2025-12-01")

    assert not old.exists()
    connection = apsw.Connection(str(data_dir / "as-of" / "search.db"))
    assert [row[0] for row in connection.execute("select body from passages")] == ["The office is in Porto."]
    connection.close()
    assert not (data_dir / "as-of" / "activity.db").exists()  # a look back is no history of its own
    assert "memory:parking" in refs(co, "where is the office", "--as-of", "2024-06-01")


def test_show_warns_about_an_outdated_note(co: Co, moved: Vault) -> None:
    co("index", "sync")

    assert "note: superseded by memory:third" in co("show", "memory:second").out
    assert co("show", "memory:third", "--json").json["outdated"] is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_cannot_run_anything_when_it_is_asked_as_of(co: Co, kept_in_git: Vault, tmp_path: Path) -> None:
    (kept_in_git.root.parent / ".gitattributes").write_text("*.md filter=x\n")
    git(kept_in_git.root, "config", "filter.x.smudge", f"touch {tmp_path / 'RAN'}; cat")

    assert "Lisbon" in co("search", "where is the office", "--as-of", "2024-06-01").out
    assert not (tmp_path / "RAN").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_as_of_keeps_what_is_excluded_out(co: Co, kept_in_git: Vault) -> None:
    kept_in_git.write(".coignore", "private/\n")
    kept_in_git.write("private/diary.md", "The office diary.")
    commit(kept_in_git.root, "third", "2026-01-01T12:00:00Z")

    assert not any("diary" in ref for ref in refs(co, "office diary", "--as-of", "2026-06-01"))


def test_of_two_notes_that_supersede_each_other_the_newer_one_is_valid(co: Co, vault: Vault) -> None:
    note(vault, "a", "The door code is 1111.", created="2024-01-01", supersedes="memory:b")
    note(vault, "b", "The door code is 2222.", created="2025-01-01", supersedes="memory:a")
    note(vault, "c", "The gate code is 3333.", created="2025-01-01", superseded_by="memory:c")

    assert set(refs(co, "code")) == {"memory:b", "memory:c"}


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
def test_an_expired_note_that_would_answer_is_mentioned(co: Co, vault: Vault, backend: str) -> None:
    note(
        vault, "visa", "The visa for Norway lets you stay ninety days.", created="2024-01-01", valid_until="2025-06-30"
    )
    note(vault, "norway", "Norway has many fjords.", created="2024-01-01")
    note(vault, "tea", "Tea is at four.", created="2024-01-01")
    said = "memory:visa would answer, but it is no longer valid: --outdated includes it"
    asked = ("visa for norway stay ninety days", "--backend", backend)

    assert said in " ".join(co("search", *asked).out.split())
    assert said in co("search", *asked, "--json").json["understood"]
    outdated = co("search", *asked, "--outdated", "--json").json
    assert (outdated["hits"][0]["ref"], outdated["understood"]) == ("memory:visa", [])
    assert co("search", "when is tea at four", "--backend", backend, "--json").json["understood"] == []
    assert co("search", *asked, "--as-of", "2025-01-01", "--json").json["understood"] == []


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"], indirect=True)
@pytest.mark.usefixtures("zone")
def test_the_age_of_a_daily_note_is_counted_in_local_days_as_a_search_does(co: Co, vault: Vault) -> None:
    for days, words in enumerate(("yesterday", "today", "tomorrow"), start=-1):
        vault.write(f"daily/{date.today() + timedelta(days)}.md", f"Trimmed the lamp, {words}.")

    listed = [line.split("  ")[2] for line in co("list").out.splitlines()]
    found = co("search", "yesterday").out

    assert listed == ["tomorrow", "today", "yesterday"]
    assert "Trimmed the lamp, yesterday.\n   yesterday\n" in found
