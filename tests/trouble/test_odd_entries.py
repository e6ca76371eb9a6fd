"""Pipes, devices, loops and links that lead out, wherever files are read: not followed, never waited for, told."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.index import sync
from co_cli.knowledge_index import KnowledgeIndex
from tests.command import Co
from tests.folder import Vault

SECRET = "The safe opens with 7391."
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes and devices among its files")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that nobody named, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text(SECRET)
    (folder / "SKILL.md").write_text(f"---\nname: odd-folder\ndescription: {SECRET}\n---\n{SECRET}\n")
    return folder


@pytest.fixture(autouse=True)
def never_hangs() -> Iterator[None]:
    """Who waits for a pipe is woken, and fails."""

    def wake(*_: object) -> None:
        raise TimeoutError("it waited for something that never ends")

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(40)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def plant(folder: Path, outside: Path, ending: str = ".md") -> list[str]:
    """Everything that is no file, beside one that is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"oak{ending}").write_text("Oaks live long.")
    os.mkfifo(folder / f"pipe{ending}")
    (folder / f"link{ending}").symlink_to(outside / "secret.md")
    (folder / f"endless{ending}").symlink_to("/dev/zero")
    (folder / f"loop{ending}").symlink_to(folder / f"loop{ending}")
    (folder / "around").symlink_to(folder)
    (folder / "elsewhere").symlink_to(outside)
    names = ["pipe", "link", "endless", "loop"]
    try:
        os.mknod(folder / f"device{ending}", stat.S_IFCHR | 0o644, os.makedev(1, 5))  # /dev/zero itself
        names.append("device")
    except (OSError, AttributeError):
        pass  # only root makes devices
    return [f"{name}{ending}" for name in names]


def no_secret(*texts: str) -> bool:
    return not any("7391" in text for text in texts)


def test_doctor_and_status_tell_how_many_there_are_and_name_the_first(co: Co, vault: Vault, outside: Path) -> None:
    count = len(plant(vault.path("memories"), outside)) + 2  # and the two links to folders
    co("index", "sync")

    for ran in (co("doctor"), co("index", "status"), co("index", "verify")):
        assert ran.code == 0
        assert f"{count} entries are not read: memories/" in ran.out.replace("\n", " ")
        assert no_secret(ran.out, ran.err)


def test_in_the_vault_by_every_way_to_open_or_search_a_note(co: Co, vault: Vault, outside: Path) -> None:
    odd = plant(vault.path("memories"), outside)

    synced = co("index", "sync", "--json")
    assert sorted(path for path, _ in synced.json["skipped"]) == sorted(f"memories/{name}" for name in odd)
    for backend in ("fts5", "grep", "hybrid"):
        ran = co("search", "oaks safe", "--backend", backend)
        assert "memory:oak" in ran.out
        assert no_secret(ran.out, ran.err)
    for name in odd:
        for command in (("show",), ("edit", "--set", "a=b"), ("forget",)):
            ran = co(command[0], f"memories/{name}", *command[1:])
            assert ran.code != 0, (command, name, ran)
            assert no_secret(ran.out, ran.err)
    assert co("doctor").code == 0
    assert (outside / "secret.md").read_text() == SECRET


@pytest.mark.parametrize("kind", ["folder", "obsidian"])
def test_in_a_folder_that_is_read_in_place(co: Co, vault: Vault, tmp_path: Path, outside: Path, kind: str) -> None:
    place = tmp_path / "handbook"
    odd = plant(place, outside)
    if kind == "obsidian":
        (place / ".obsidian").mkdir()
        os.mkfifo(place / ".obsidian" / "app.json")

    added = co("add", str(place))

    assert added.code == 0, added
    found = co("search", "oaks safe")
    assert f"{kind}:handbook" in found.out
    assert no_secret(found.out, co("search", "safe opens").out)
    told = co("source", "tree", f"{kind}:handbook").out
    assert all(name in told for name in odd)
    for name in odd:
        ran = co("show", f"{kind}:handbook/{name}")
        assert ran.code != 0
        assert no_secret(ran.out)


def test_in_what_is_imported_and_added(co: Co, vault: Vault, tmp_path: Path, outside: Path) -> None:
    place = tmp_path / "export"
    odd = plant(place, outside)

    added = co("note", "article", "add", str(place), "--json")
    imported = co("data", "import", "obsidian", str(place), "--yes")

    assert {Path(one["origin"]).name for one in added.json if one["saved"]} == {"oak.md"}
    assert {Path(one["origin"]).name for one in added.json if not one["saved"]} == {*odd, "around", "elsewhere"}
    assert "article:export/oak" in imported.out + str(added.json)
    for path in vault.files():
        assert no_secret(vault.path(path).read_text())
    for name in ("pipe.md", "endless.md"):
        for command in (("note", "article", "add"), ("data", "import", "obsidian"), ("add",)):
            ran = co(*command, str(place / name))
            assert ran.code != 0, (command, name, ran)
            assert "Traceback" not in ran.err


def test_ignore_files_that_are_pipes_or_folders_are_reported_and_not_waited_for(
    co: Co, tmp_path: Path, vault: Vault
) -> None:
    book = tmp_path / "handbook"
    book.mkdir()
    for place, name, command in (
        (vault.root, ".coignore", ("index", "sync")),
        (book, ".gitignore", ("add", str(book))),
    ):
        (place / "oak.md").write_text("Oaks live long.")
        os.mkfifo(place / name)
        pipe = co(*command)
        (place / name).unlink()
        (place / name).symlink_to("/dev/zero")
        device = co(*command)
        (place / name).unlink()
        (place / name).mkdir()

        for ran in (pipe, device):
            assert (ran.code, ran.err.count("\n")) == (2, 1), ran
            assert "not a regular file" in ran.err + ran.out
        assert co(*command).code == 0


def test_a_note_that_becomes_something_else_between_the_listing_and_the_reading(
    vault: Vault, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 10)
    for number in range(12):
        vault.write(f"memories/{number:02}.md", f"Note {number}.")
    changed = {"memories/10.md": os.mkfifo, "memories/11.md": lambda path: path.symlink_to(outside / "secret.md")}

    def swap(*_: int) -> None:
        while changed:
            path, make = changed.popitem()
            vault.delete(path)
            make(vault.path(path))

    index = KnowledgeIndex(tmp_path / "data" / "search.db", vault.root)
    report = index.sync(progress=swap)
    index.close()

    assert sorted(path for path, _ in report.skipped) == ["memories/10.md", "memories/11.md"]
    assert len(report.added) == 10
