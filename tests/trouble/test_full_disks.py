"""A full disk, a quota, a read-only place: one clear line, and notes and index as they were."""

from __future__ import annotations

import base64
import errno
import os
import subprocess
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import NoteFileError
from co_cli.notes.store import NoteStore
from co_cli.server.routes import API
from co_cli.server.web_app import Access, Site
from co_cli.vault.vault import Opening
from tests.command import Co
from tests.folder import Vault
from tests.rights import can_obey, obey_permissions
from tests.server.conftest import signed_in
from tests.trouble.file_systems import fill, small_disk

OAK = "Oaks live long."
LONG = "oak " * 50_000


def one_line(ran_err: str) -> bool:
    return ran_err.count("\n") == 1 and "Traceback" not in ran_err


def test_a_full_vault_is_one_line_and_everything_is_as_before(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", "96k", "nr_inodes=12") as disk:
        monkeypatch.setenv("CO_VAULT", str(disk))
        vault = Vault(disk)
        assert co("remember", OAK).code == 0
        before = vault.read("memories/oaks-live-long.md")
        commands = (
            ("remember", LONG),
            ("edit", "oaks-live-long", "--body", LONG),
            ("note", "article", "add", "-"),
            ("forget", "oaks-live-long"),
        )
        for command in commands:
            while command[0] == "forget":  # a file takes no room, but there is no inode for the trash
                try:
                    vault.write(f"filler/{len(vault.files())}.txt", "")
                except OSError:
                    break
            ran = co(*command, stdin=LONG)

            assert (ran.code, ran.out, one_line(ran.err)) == (3, "", True), (command, ran)
            assert "No space left on device; free some space" in ran.err
            assert vault.notes()[-1:] == ["memories/oaks-live-long.md"]
            assert vault.read("memories/oaks-live-long.md") == before
            assert not [path for path in vault.files() if ".co-tmp-" in path]
        assert "memory:oaks-live-long" in co("search", "oaks").out


def test_a_full_place_for_search_db_costs_no_note_and_search_answers(co: Co, vault: Vault, tmp_path: Path) -> None:
    with small_disk(tmp_path / "data", "1500k") as disk:
        assert co("remember", OAK).code == 0
        filler = fill(disk, leave=120_000)

        saved = co("remember", "Elms fall ill. " + "They do. " * 20_000, "--title", "Elms")
        found, searched = co("search", "elms"), co("search", "oaks")

        assert saved.code == 0, saved.err
        assert "memory:elms" in found.out
        assert "memory:oaks-live-long" in searched.out
        assert "note:" in found.out, "it says that the files answered"
        filler.unlink()
        assert "memory:elms" in co("search", "elms").out
        assert co("doctor").code == 0


def test_a_sync_that_finds_no_room_leaves_an_index_that_answers(co: Co, vault: Vault, tmp_path: Path) -> None:
    with small_disk(tmp_path / "data", "1200k") as disk:
        vault.write("memories/oak.md", OAK)
        assert co("index", "sync").code == 0
        for number in range(20):
            vault.write(f"articles/{number}.md", f"# Chapter {number}\n\n" + f"word{number} " * 6_000)

        ran = co("index", "sync")

        assert ran.code == 3
        assert one_line(ran.err)
        assert "memory:oak" in co("search", "oaks", "--no-sync").out
        assert len(vault.notes()) == 21
        assert disk.exists()


def test_a_full_disk_is_507_for_notes_files_and_documents(tmp_path: Path, data_dir: Path) -> None:
    with small_disk(tmp_path / "disk", "96k") as disk:
        Vault(disk).write("memories/oak.md", OAK)
        with KnowledgeBase.open(disk, data_dir, opening=Opening("web")) as kb:
            kb.sync()
            api, data = signed_in(Site(kb, Access(), [])), base64.b64encode(LONG.encode()).decode()
            for path, asked in (
                ("notes", {"content": LONG}),
                ("files/memory:oak", {"name": "oak.txt", "data": data}),
                ("documents", {"name": "oak.txt", "data": data}),
            ):
                answer = api.post(f"{API}/{path}", json=asked)
                assert (answer.status_code, answer.json()["error"]["kind"]) == (507, "disk_full"), answer.text
                assert "free some space" in answer.json()["error"]["message"]
        assert Vault(disk).notes() == ["memories/oak.md"]


def test_reading_needs_no_room(co: Co, vault: Vault, tmp_path: Path) -> None:
    oak = vault.write("memories/oak.md", f"---\ntags: [tree]\n---\n{OAK}")
    os.utime(oak, (1_700_000_000, 1_700_000_000))  # what was just written is read again
    with small_disk(tmp_path / "data", "1500k") as disk:
        assert co("index", "sync").code == 0
        fill(disk)

        assert co("list").out.startswith("memory:oak")
        assert co("note", "tags").out.startswith("#tree  1 note")
        assert co("data", "export", "--to", str(tmp_path / "exported")).code == 0
        assert (tmp_path / "exported" / "memories" / "oak.md").read_text() == vault.read("memories/oak.md")
        assert co("search", "oaks", "--json").json["degraded"] == []
        assert co("index", "verify").code == co("doctor").code == 0

        vault.write("memories/elm.md", "Elms fall ill.")
        listed = co("list")
        assert listed.out.startswith("memory:oak")
        assert "lacks the latest changes" in listed.err
        assert "the disk is full" in listed.err


def test_whatever_the_system_refuses_is_named_with_a_cure(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    store = NoteStore(str(vault.root))
    vault.write("memories/oak.md", OAK)
    for trouble in (errno.EDQUOT, errno.ENOSPC, errno.EROFS, errno.EIO):

        def fail(handle: int, number: int = trouble) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(NoteFileError, match=os.strerror(trouble)) as caught:
            store.replace("memories/oak.md", b"new", based_on=OAK.encode())
        with pytest.raises(NoteFileError):
            store.create("memories", "Elm", b"new")

        assert ("free some space" in str(caught.value)) == (trouble in (errno.EDQUOT, errno.ENOSPC))
        assert vault.files() == ["memories/oak.md"]
        assert vault.read("memories/oak.md") == OAK


@pytest.mark.slow
@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_what_may_not_be_read_or_written_is_one_line_and_the_rest_is_found(
    co: Co, vault: Vault, kb: KnowledgeBase, tmp_path: Path
) -> None:
    vault.write("memories/oak.md", OAK)
    vault.write("memories/my secret.md", "Oaks are secret.").chmod(0)
    vault.path("memories/locked").mkdir(mode=0)
    refused: dict[str, str] = {}
    folder = f"chmod u+rwx {vault.path('memories/locked')}"
    cure = f"chmod u+rw '{vault.path('memories/my secret.md')}'"

    synced = co.process("index", "sync", before=obey_permissions)
    checked = co.process("doctor", before=obey_permissions)
    refused[f"no permission; `{cure}`"] = co.process("show", "memory:my secret", before=obey_permissions).err
    vault.path("memories").chmod(0o555)
    found = co.process("search", "oaks", before=obey_permissions)
    refused[f"`chmod u+rwx {vault.path('memories')}`\n"] = co.process(
        "remember", "Elms fall ill.", before=obey_permissions
    ).err
    vault.path("memories").chmod(0o755)
    vault.root.chmod(0)
    refused[str(vault.root)] = co.process("search", "oaks", before=obey_permissions).err
    vault.root.chmod(0o755)

    (tmp_path / "my data").mkdir(mode=0o500)
    listed = co.process("list", "--data-dir", str(tmp_path / "my data"), before=obey_permissions)
    refused[f"the data folder {tmp_path}/my data cannot be written: `chmod u+rwx '{tmp_path}/my data'`"] = listed.err
    for command in (("token", "create", "--role", "read"), ("add", str(tmp_path))):
        ran = co.process(*command, "--data-dir", str(tmp_path / "my data"), before=obey_permissions)
        assert (ran.code, ran.out, one_line(ran.err)) == (3, "", True), command
        assert f"{tmp_path}/my data" in ran.err, command
        assert "unexpected" not in ran.err, command

    assert f"skipped  memories/locked: folder cannot be read: Permission denied; `{folder}`\n" in synced.out
    assert f"memories/locked cannot be read: no permission\n    fix: {folder}\n" in checked.out
    assert f"skipped  memories/my secret.md: cannot be read: Permission denied; `{cure}`\n" in synced.out
    assert f"memories/my secret.md cannot be read: no permission\n    fix: {cure}\n" in checked.out
    assert "memory:oak" in found.out
    assert {words: err for words, err in refused.items() if words not in err or not one_line(err)} == {}
    assert kb.search("oaks").hits


@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_the_command_that_allows_a_search_db_to_be_written_again_is_enough(co: Co, data_dir: Path) -> None:
    co.process("remember", OAK)
    (data_dir / "search.db").chmod(0o444)

    refused = co.process("search", "oaks", before=obey_permissions)
    subprocess.run(refused.err.split("`")[1], shell=True, check=True, preexec_fn=obey_permissions)
    found = co.process("search", "oaks", before=obey_permissions)

    assert "search.db cannot be read and written: `chmod u+rw" in refused.err
    assert (found.code, found.err) == (0, "")
    assert "memory:oaks-live-long" in found.out
