"""File systems on which two names are one, names that are too long, and Windows' own: no collision loses a note."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.notes import files
from co_cli.notes.refs import name_key
from tests.command import Co
from tests.folder import Vault

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "caf\u00e9") for form in ("NFC", "NFD"))
TWINS = [("oak", "OAK"), (COMPOSED, DECOMPOSED)]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it is such a file system itself")


class OneNameForAll:
    """The system's calls, as on a file system that takes names which differ in case or composition for one.

    Each path that is given leads to the entry that is there already under such a name. Listings tell the real names.
    """

    CALLS = ("open", "stat", "lstat", "link", "rename", "replace", "unlink", "mkdir", "utime", "chmod")

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._listdir = os.listdir
        for name in self.CALLS:
            patch.setattr(os, name, self._leading_there(getattr(os, name)))
        patch.setattr(files, "rename_with", self._leading_there(files.rename_with))  # a call that `os` lacks

    def _leading_there(self, call: Any) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            return call(*(self._there(one) if isinstance(one, str) else one for one in arguments), **named)

        return called

    def _there(self, path: str) -> str:
        folder, name = os.path.split(path)
        try:
            entries = self._listdir(folder or ".")
        except OSError:
            return path
        if name in entries:
            return path
        same = next((entry for entry in entries if name_key(entry) == name_key(name)), name)
        return os.path.join(folder, same)


@pytest.fixture
def merging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault where `oak.md` and `OAK.md` are one file."""
    vault = Vault(tmp_path / "vault")
    OneNameForAll(monkeypatch)
    return vault


@pytest.fixture
def merged(merging: Vault, data_dir: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(merging.root, data_dir) as opened:
        yield opened


def test_a_note_that_is_saved_takes_no_other_note_s_place(merging: Vault, merged: KnowledgeBase) -> None:
    """Also when the other one came a moment ago, and no index knows of it."""
    for one, other in TWINS:
        merging.write(f"memories/{other}.md", f"{other} was here before.")

        merged.remember(f"{one} is something else altogether.", title=one)

        texts = "\n".join(path.read_text("utf-8") for path in merging.root.glob("memories/*.md"))
        assert f"{other} was here before." in texts
        assert f"{one} is something else altogether." in texts


def test_what_is_restored_or_moved_takes_no_other_note_s_place(merging: Vault, merged: KnowledgeBase) -> None:
    merging.write("memories/oak.md", "It was forgotten.")
    merged.sync()
    merged.forget("memories/oak.md")
    merging.write("memories/OAK.md", "It came instead.")
    with pytest.raises(KnowledgeError):
        merged.restore("memories/oak.md")

    merging.write("memories/elm.md", "Elms fall ill.")
    answer = MemoryToolProtocol(merged).answer(
        {"command": "rename", "old_path": "/memories/elm.md", "new_path": "/memories/oak.md"}
    )

    assert answer.refused
    assert "It came instead." in "".join(path.read_text() for path in merging.root.glob("memories/*.md"))
    assert (merging.root / "memories/elm.md").read_text() == "Elms fall ill."
    assert [home for _, home in merged.store.trashed()] == ["memories/oak.md"]


def test_duplicates_in_an_import_are_reported_and_the_first_stays(
    co: Co, merging: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "notes.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("notes/Oak.md", "This is Oak.")
        zipped.writestr("notes/OAK.md", "This is OAK.")
    monkeypatch.setenv("CO_VAULT", str(merging.root))

    ran = co("data", "import", "obsidian", str(archive), "--yes")

    texts = [path.read_text() for path in merging.root.rglob("*.md")]
    assert len(texts) == 1
    assert "rename one of the two" in ran.out + ran.err


def test_paths_that_are_too_long_are_reported_and_the_others_are_indexed(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    handle = os.open(vault.root / "articles", os.O_RDONLY)
    for _ in range(22):  # 22 x 200 bytes: longer than any call takes
        os.mkdir("d" * 200, dir_fd=handle)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    note = os.open("deep.md", os.O_CREAT | os.O_WRONLY, dir_fd=handle)
    os.write(note, b"Nobody can name this.")
    os.close(note)
    os.close(handle)

    for _ in range(2):
        report = kb.sync()
        assert [hit.ref for hit in kb.search("oaks").hits] == ["memory:oak"]
        assert any("File name too long" in reason for _, reason in report.skipped)
    assert kb.remember("word " * 100, title="x" * 5_000).outcome == "created"
    with pytest.raises(KnowledgeError):
        kb.note("memory:" + "x" * 5_000)
    subprocess.run(["rm", "-r", str(vault.root / "articles")], check=True)  # pytest cannot remove it


def test_a_name_that_ends_in_a_blank_or_has_a_backslash_is_that_note_and_no_other(co: Co, vault: Vault) -> None:
    for name in ("oak", "oak ", "a\\b", "a/b"):
        vault.write(f"memories/{name}.md", f"This is {name!r}.")
    co("index", "sync")

    for ref, text in (("memory:oak ", "'oak '"), (" memory:oak\t", "'oak'"), ("memory:a\\b", "'a\\\\b'")):
        assert co("show", ref, "--json").json["body"] == f"This is {text}."
    assert co("show", "memories\\oak.md", "--json").json["body"] == "This is 'oak'."  # as Windows writes it
    assert co("edit", "memory:a\\b", "--tag", "tree").code == 0
    assert co("forget", "memory:oak ").code == 0
    assert vault.notes() == ["memories/a/b.md", "memories/a\\b.md", "memories/oak.md"]
    assert co("note", "restore", "memory:oak ").code == 0
    assert vault.read("memories/oak .md") == "This is 'oak '."


def test_a_name_with_characters_that_cannot_be_seen_is_opened_as_it_is_shown(co: Co, vault: Vault) -> None:
    for name in ("new\nline", "bell\x07here", "left\u202eright"):
        vault.write(f"memories/{name}.md", f"This is {name!r}.")

    refs = [line.split("  ")[0] for line in co("list", "--sort", "ref").out.splitlines()]

    assert refs == ["memory:bell\\x07here", "memory:left\\u202eright", "memory:new\\x0aline"]
    for ref in refs:
        assert co("show", ref, "--json").json["body"].startswith("This is ")
        assert co("forget", ref).code == co("note", "restore", ref).code == 0
