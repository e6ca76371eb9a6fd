"""Pipes, devices, loops and links that lead out, wherever files are read: not followed, never waited for, told."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.knowledge_index import KnowledgeIndex
from tests.command import Co
from tests.vault import Vault

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


def test_doctor_status_and_verify_tell_how_many_there_are_and_name_the_first(
    co: Co, vault: Vault, outside: Path
) -> None:
    odd = plant(vault.path("memories"), outside)
    name = os.fsdecode(b"elm-\xff.md")
    try:
        vault.write(f"memories/{name}", "Elms.")
        odd.append(name)
    except OSError:
        pass  # this file system takes no such name
    count = len(odd) + 2  # and the two links to folders
    co("index", "sync")

    for ran in (co("doctor"), co("index", "status"), co("index", "verify")):
        assert ran.code == 0
        assert f"{count} entries are not read: memories/" in ran.out.replace("\n", " ")
        assert no_secret(ran.out, ran.err)
    told = dict(co("index", "status", "--json").json["odd"])
    assert told["memories/elsewhere"] == "symbolic link to a folder, not followed"
    assert told["memories/pipe.md"] == "not a regular file"
    assert len(told) == count
    assert "odd" not in co("--vault", str(outside), "index", "status").out


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
    assert {Path(one["origin"]).name for one in added.json if not one["saved"]} == set(odd)
    assert "article:export/oak" in imported.out + str(added.json)
    for path in vault.files():
        assert no_secret(vault.path(path).read_text())
    for name in ("pipe.md", "endless.md"):
        for command in (("note", "article", "add"), ("data", "import", "obsidian"), ("add",)):
            ran = co(*command, str(place / name))
            assert ran.code != 0, (command, name, ran)
            assert "Traceback" not in ran.err


@pytest.mark.parametrize("make", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", [".coignore", ".gitignore"])
def test_ignore_files_that_are_none_are_told_and_not_waited_for(
    co: Co, tmp_path: Path, vault: Vault, name: str, make: str
) -> None:
    place = vault.root if name == ".coignore" else tmp_path / "handbook"
    place.mkdir(exist_ok=True)
    (place / "oak.md").write_text("Oaks live long.")
    if make == "pipe":
        os.mkfifo(place / name)
    elif make == "device":
        (place / name).symlink_to("/dev/zero")
    else:
        (place / name).mkdir()

    ran = co("index", "sync") if name == ".coignore" else co("add", str(place))

    if make == "folder":
        assert ran.code == 0
    else:
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert "not a regular file" in ran.err + ran.out


@pytest.mark.parametrize("make", ["pipe", "link"])
def test_a_note_that_becomes_something_else_between_the_listing_and_the_reading(
    vault: Vault, tmp_path: Path, outside: Path, make: str
) -> None:
    for number in range(520):
        vault.write(f"memories/{number:03}.md", f"Note {number}.")
    last = vault.path("memories/519.md")
    done: list[int] = []

    def swap(*_: int) -> None:
        if not done:
            done.append(1)
            last.unlink()
            os.mkfifo(last) if make == "pipe" else last.symlink_to(outside / "secret.md")

    index = KnowledgeIndex(tmp_path / "data" / "search.db", vault.root)
    report = index.sync(progress=swap)
    index.close()

    assert [path for path, _ in report.skipped] == ["memories/519.md"]
    assert len(report.added) == 519
