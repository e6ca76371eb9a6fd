"""`co index sync`, `rebuild`, `status`, `doctor`."""

from __future__ import annotations

from pathlib import Path

from tests.command import Co
from tests.vault import Vault


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
