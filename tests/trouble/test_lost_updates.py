"""Two change one note: a change goes only into the text it was based on, and no text of either is lost."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import NoteConflictError
from co_cli.tools.toolbox import Toolbox
from tests.cli.screen import terminal
from tests.command import Co, run_together
from tests.folder import Vault

OLD = "Oaks live long."
THEIRS = "Oaks live long, says Anselm, who counted the rings."
MINE = "Oaks live for a thousand years."


@pytest.fixture
def oak(vault: Vault, kb: KnowledgeBase) -> str:
    vault.write("memories/oak.md", OLD + "\n")
    kb.sync()
    return "memory:oak"


def test_an_agent_s_update_of_an_older_version_is_a_conflict(vault: Vault, kb: KnowledgeBase, oak: str) -> None:
    tools = Toolbox(kb, patience=30)
    read = tools.call("read_note", {"ref": oak})
    vault.write("memories/oak.md", THEIRS + "\n")

    with pytest.raises(NoteConflictError, match="changed meanwhile: it is version"):
        tools.call("update_memory", {"ref": oak, "content": MINE, "version": read.data["version"]})

    assert vault.read("memories/oak.md") == THEIRS + "\n"
    again = tools.call("read_note", {"ref": oak})
    assert f'version="{again.data["version"]}"' in again.text
    done = tools.call("update_memory", {"ref": oak, "content": MINE, "version": again.data["version"]})
    assert MINE in vault.read("memories/oak.md")
    assert done.data["version"] == kb.note(oak).version != again.data["version"]
    assert done.data["version"] in done.text


def test_an_update_without_a_version_keeps_the_text_that_it_replaces(vault: Vault, kb: KnowledgeBase, oak: str) -> None:
    receipt = Toolbox(kb, patience=30).call("update_memory", {"ref": oak, "content": MINE})

    (kept,) = [path for path in vault.files() if path.startswith(".trash/")]
    assert vault.read(kept) == OLD + "\n"
    assert kept in receipt.text
    kb.update(oak, f"{MINE} And longer.")
    assert [path for path in vault.files() if path.startswith(".trash/")] == [kept], "no word went"


def test_co_edit_accepts_the_version_that_co_show_prints(co: Co, vault: Vault, oak: str) -> None:
    version = co("show", oak, "--json").json["version"]
    vault.write("memories/oak.md", THEIRS + "\n")

    ran = co("edit", oak, "--body", MINE, "--based-on", version)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "changed meanwhile" in ran.err
    assert vault.read("memories/oak.md") == THEIRS + "\n"
    assert co("edit", oak, "--body", MINE, "--based-on", co("show", oak, "--json").json["version"]).code == 0


def test_what_happens_to_a_note_while_an_editor_has_it_open_loses_no_text(
    co: Co, vault: Vault, oak: str, editor: Callable[[str], None]
) -> None:
    note = vault.path("memories/oak.md")
    for other in (f"echo '{THEIRS}' > '{note}'", f"rm '{note}'"):
        editor(f"{other}\necho '{MINE}' > \"$1\"")

        ran = co("edit", oak)

        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert note.exists() != other.startswith("rm")
        assert not note.exists() or note.read_text() == THEIRS + "\n"
        kept = [path for path in vault.files() if path.startswith(".trash/") and path in ran.err]
        assert [vault.read(path) for path in kept] == [MINE + "\n"], "the person's own text is kept"


def test_the_memory_tool_writes_nothing_over_a_file_that_changes_while_it_works(
    vault: Vault, kb: KnowledgeBase, oak: str
) -> None:
    for command in (
        {"command": "str_replace", "path": "/memories/oak.md", "old_str": "live long", "new_str": "fall"},
        {"command": "insert", "path": "/memories/oak.md", "insert_line": 1, "insert_text": MINE},
    ):
        vault.write("memories/oak.md", OLD + "\n")
        with saved_at_the_last_moment(vault.path("memories/oak.md")):
            answer = MemoryToolProtocol(kb).answer(command)

        assert answer.refused
        assert "changed meanwhile" in answer.text
        assert vault.read("memories/oak.md") == THEIRS + "\n"


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="needs Linux: its rename can exchange two files"
)
@pytest.mark.parametrize("save", [f"echo '{THEIRS}' > %s", f"echo '{THEIRS}' > %s~ && mv %s~ %s", "rm %s"])
def test_a_save_after_our_last_look_at_a_note_is_a_conflict_and_stays(
    co: Co, vault: Vault, oak: str, monkeypatch: pytest.MonkeyPatch, save: str
) -> None:
    note, load = vault.path("memories/oak.md"), ctypes.CDLL
    waiting = [save.replace("%s", str(note))]

    def load_later(*names: Any, **options: Any) -> ctypes.CDLL:
        while waiting:  # the last moment before our rename
            subprocess.run(waiting.pop(), shell=True, check=True)
        return load(*names, **options)

    monkeypatch.setattr(ctypes, "CDLL", load_later)
    ran = co("edit", oak, "--body", MINE)

    assert (waiting, ran.code, ran.err.count("\n")) == ([], 3 if "rm" in save else 2, 1)
    assert [vault.read(path) for path in vault.notes()] == ([] if "rm" in save else [THEIRS + "\n"])
    assert [path for path in vault.files() if ".co-tmp-" in path] == []


KILLED_EDIT = """
import os, signal, subprocess, sys
from co_cli.cli.app import main
from co_cli.notes import files

def save_exchange_and_die(how, source, target, rename=files.rename_with):
    subprocess.run(sys.argv.pop(), shell=True, check=True)
    rename(how, source, target)
    os.kill(os.getpid(), signal.SIGKILL)

files.rename_with = save_exchange_and_die
main(sys.argv[1:-1])
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="needs Linux: its rename can exchange two files"
)
@pytest.mark.parametrize("command", [("index", "sync"), ("doctor", "--fix")])
def test_a_kill_after_the_exchange_moves_the_text_of_the_other_editor_to_the_trash(
    co: Co, vault: Vault, oak: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    save = f"echo '{THEIRS}' > '{vault.path('memories/oak.md')}'"
    killed = subprocess.run([sys.executable, "-c", KILLED_EDIT, "edit", oak, "--body", MINE, save], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert MINE in vault.read("memories/oak.md")
    (left,) = [path for path in vault.files() if ".co-tmp-" in path]
    assert vault.read(left) == THEIRS + "\n"

    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7200)
    ran = co(*command)

    (kept,) = [one for one in co("list", "--trash", "--json").json if "recovered-" in one["path"]]
    assert kept["copy"], "no note was forgotten"
    assert command[0] == "index" or kept["trash"] in ran.out
    assert not vault.path(left).exists()
    assert co("note", "restore", kept["trash"]).code == 0
    assert vault.read(kept["path"]) == THEIRS + "\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another user")
def test_an_edit_as_root_and_a_restore_keep_owner_permissions_and_extended_attributes(
    co: Co, vault: Vault, oak: str
) -> None:
    note = vault.path("memories/oak.md")
    os.chown(note, 1234, 2345)
    os.chmod(note, 0o600)
    os.setxattr(note, "user.mood", b"calm")

    for command in (("edit", oak, "--body", MINE), ("forget", oak), ("note", "restore", oak)):
        assert co(*command).code == 0

    (copy,) = [vault.path(path) for path in vault.files() if path.startswith(".trash/")]
    for file in (note, copy):
        state = file.stat()
        assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (1234, 2345, 0o600)
        assert os.getxattr(file, "user.mood") == b"calm"


def test_a_review_does_not_forget_a_note_that_changed_since_it_was_shown(co: Co, vault: Vault) -> None:
    vault.write("memories/visa.md", "---\nvalid_until: 2025-06-30\n---\nThe visa holds.\n")
    with terminal(co.folder, "note", "review") as child:
        child.expect_exact("[q] quit")
        vault.write("memories/visa.md", "---\nvalid_until: 2099-06-30\n---\nThe visa holds again.\n")
        child.sendline("f")
        child.expect_exact("was changed since")
        child.expect_exact("[q] quit")
        child.sendline("q")
        child.expect(pexpect.EOF)

    assert vault.notes() == ["memories/visa.md"]


@pytest.mark.slow
def test_of_writers_that_name_the_version_they_read_one_wins_each_round(vault: Vault, data_dir: Path) -> None:
    """As a counter shows best: each adds one to what it read, and repeats what was refused."""
    vault.write("memories/count.md", "0\n")
    script = """
import sys
from co_cli import KnowledgeBase
from co_cli.ground.errors import NoteConflictError
with KnowledgeBase.open(*sys.argv[1:3]) as kb:
    done = 0
    while done < 8:
        note = kb.note("memory:count")
        try:
            kb.update("memory:count", str(int(note.body) + 1), version=note.version)
            done += 1
        except NoteConflictError:
            pass
"""
    run_together(script, *[(vault.root, data_dir)] * 3)

    assert vault.read("memories/count.md").strip() == "24"
    assert vault.files() == ["memories/count.md"]


@contextmanager
def saved_at_the_last_moment(path: Path, text: str = THEIRS) -> Generator[None]:
    """An editor that saves when our new text is on disk, and before it takes the place of the old one."""
    real = os.fsync
    waiting = [path]

    def fsync(handle: int) -> None:
        real(handle)
        if waiting:
            waiting.pop().write_text(text + "\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield
    assert not waiting, "nothing was written"


def test_an_editor_that_fails_or_leaves_nothing_changes_nothing_and_ctrl_c_belongs_to_it(
    co: Co, vault: Vault, oak: str, editor: Callable[[str], None]
) -> None:
    editor(f"echo '{MINE}' > \"$1\"\nexit 1")
    failed = co("edit", oak)
    assert failed.code == 2
    assert Path(failed.err.strip().rpartition(" ")[2]).read_text() == MINE + "\n", "it says where the work is"
    editor(': > "$1"')
    assert "left no text" in co("edit", oak).err
    assert vault.read("memories/oak.md") == OLD + "\n"

    editor(f"kill -INT $PPID\necho '{MINE}' > \"$1\"")
    assert co("edit", oak).code == 0
    assert vault.read("memories/oak.md") == MINE + "\n"
