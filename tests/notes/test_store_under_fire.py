"""Killed writers, many writers at once, a full disk, folders without rights."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time

import pytest

from tests.command import Co
from tests.rights import can_obey, obey_permissions
from tests.vault import Vault

WRITE_FOREVER = """
import hashlib, sys
from co_cli.notes.store import NoteStore
store, number = NoteStore(sys.argv[1]), 0
path, content = "memories/oak.md", store.read("memories/oak.md")
while True:
    number += 1
    body = (b"%d " % number) * 20_000
    new = hashlib.sha256(body).hexdigest().encode() + b"\\n" + body
    store.replace(path, new, based_on=content)
    content = new
    print(number, flush=True)
"""

CREATE_THE_SAME = """
import sys
from co_cli.notes.store import NoteStore
store = NoteStore(sys.argv[1])
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    print(store.create("memories", "Oak", f"{sys.argv[2]} {number}".encode()))
"""

ROUNDS = 3


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def test_a_killed_writer_leaves_a_whole_note_and_loses_nothing_it_acknowledged(vault: Vault) -> None:
    vault.write("memories/oak.md", hashlib.sha256(b"0").hexdigest() + "\n0")
    for number in range(ROUNDS):
        writer = start(WRITE_FOREVER, str(vault.root))
        assert writer.stdout
        first = writer.stdout.readline()
        time.sleep(0.013 * number)
        writer.send_signal(signal.SIGKILL)
        acknowledged = int(([first, *writer.stdout.read().split()])[-1])
        writer.wait()

        digest, _, body = vault.read("memories/oak.md").encode().partition(b"\n")
        assert hashlib.sha256(body).hexdigest().encode() == digest, "the note is torn"
        assert int(body.split()[0]) >= acknowledged
        assert vault.notes() == ["memories/oak.md"]


def test_writers_that_save_the_same_title_at_once_never_overwrite_each_other(vault: Vault) -> None:
    writers = [start(CREATE_THE_SAME, str(vault.root), name, "12") for name in ("ash", "elm", "fir", "yew")]
    said = [writer.communicate("go\n")[0].split() for writer in writers]

    paths = [path for one in said for path in one]
    assert len(set(paths)) == len(paths) == 48
    written = {vault.read(path) for path in paths}
    assert written == {f"{name} {number}" for name in ("ash", "elm", "fir", "yew") for number in range(12)}
    assert vault.notes() == sorted(paths)


@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_a_read_only_vault_can_be_searched(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.path("memories").chmod(0o555)
    vault.root.chmod(0o555)

    found = co.process("search", "oaks", before=obey_permissions)
    refused = co.process("forget", "oak", before=obey_permissions)

    assert found.code == 0
    assert "memory:oak" in found.out
    assert (refused.code, refused.err.count("\n")) == (3, 1)
    vault.root.chmod(0o755)


@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_a_note_without_read_permission_is_reported_and_the_others_are_found(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/secret.md", "Oaks are secret.").chmod(0)

    synced = co.process("index", "sync", before=obey_permissions)
    shown = co.process("show", "memory:secret", before=obey_permissions)

    assert synced.code == 0
    assert "skipped  memories/secret.md" in synced.out
    assert (shown.code, shown.err.count("\n")) == (3, 1)
    assert "no permission" in shown.err
