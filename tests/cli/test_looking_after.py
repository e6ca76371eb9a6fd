"""`co index sync`, `rebuild`, `status`, `doctor`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.screen import terminal
from tests.command import Co
from tests.folder import Vault


def test_sync_says_what_changed(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks.")
    vault.write("memories/elm.md", "Elms.")
    assert co("index", "sync").out == "2 added\n"

    vault.write("memories/oak.md", "Oaks live long.")
    vault.delete("memories/elm.md")
    vault.write("memories/yew.md", "Yews.")
    report = co("index", "sync", "--json").json

    assert (report["added"], report["changed"], report["removed"]) == (
        ["memories/yew.md"],
        ["memories/oak.md"],
        ["memories/elm.md"],
    )
    names = "added changed moved removed unchanged skipped problems linked kept excluded"
    assert set(report) == set(names.split())
    assert co("index", "sync").out == "2 unchanged\n"


def test_sync_reports_what_it_could_not_read_with_file_and_line(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("memories/broken.md", "---\ntitle: T\nx: [1\n---\nStill about zebras.\n")
    vault.write("memories/latin.md", b"caf\xe9 giraffes")
    vault.write("memories/russian.md", "Ключ от лодки висит у двери.".encode("cp1251"))
    vault.write("memories/binary.md", b"\0\0")
    vault.path("memories/link.md").symlink_to(tmp_path)

    out = co("index", "sync").out

    assert "problem  memories/broken.md: line 3: a list that is not closed with `]` (indexed anyway)" in out
    guessed = "line 1: not UTF-8, read as what it looks like; save it as UTF-8 (indexed anyway)\n"
    assert f"problem  memories/latin.md: {guessed}" in out
    assert "skipped  memories/binary.md: not a text file\n" in out
    assert "skipped  memories/link.md: symbolic link, not followed\n" in out
    for word in ("zebras", "giraffes", "café", "лодки"):
        assert co("search", word, "--no-sync", "--backend", "fts5").code == 0


def test_of_many_files_with_problems_the_first_are_listed_and_the_fix_can_be_pasted(co: Co, vault: Vault) -> None:
    for number in range(23):
        vault.write(f"memories/#{number:02} & more.md", "---\nx: [1\n---\nStill about zebras.\n")
        vault.write(f"memories/binary {number:02}.md", b"\0\0")

    for command in (("index", "sync"), ("index", "status")):
        out = co(*command).out
        assert out.count("skipped  ") == out.count("problem  ") == 20, command
        assert out.count("    and 3 more (--json lists them)\n") == 2, command
        assert len(co(*command, "--json").json["problems"]) == 23, command
    for number in range(20):
        vault.delete(f"memories/binary {number:02}.md")
    co("index", "sync")
    checked = co("doctor").out
    assert checked.count("!!  memories/") == 20
    assert "    fix: co edit 'memories/#00 & more.md'\n" in checked
    assert "    and 6 more (--json lists them)\n" in checked
    assert sum(found["check"] == "note" for found in co("doctor", "--json").json) == 26


def test_a_deleted_search_db_comes_back_with_the_next_search(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks.")
    co("index", "sync")
    for file in data_dir.glob("search.db*"):
        file.unlink()

    assert co("search", "oaks").code == 0


def test_status_counts_notes_and_passages(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks.")
    vault.write("articles/a.md", "# A\n\ntext\n\n# B\n\ntext\n")
    co("index", "sync")
    vault.write("memories/elm.md", "Elms.")

    state = co("index", "status", "--json").json
    shown = co("index", "status").out

    assert (state["vault"], state["notes"], state["waiting"]) == (str(vault.root), {"article": 1, "memory": 1}, 1)
    assert state["search_db"] == str(data_dir / "search.db")
    assert state["search_db_bytes"] > 0
    assert "1 file changed since" in shown
    assert "1 article, 1 memory (3 passages)" in shown
    assert str(vault.root) in shown


def test_doctor_shows_how_far_it_is_where_there_are_many_notes(co: Co, vault: Vault) -> None:
    for number in range(150):
        vault.write(f"memories/{number}.md", f"Order {number} is packed.")
    co("index", "sync")

    with terminal(co.folder, "doctor", TERM="xterm") as screen:
        screen.expect("checking 0 of 150")
        screen.expect("every indexed note has the content of its file")
        assert screen.wait() == 0
