"""A watcher answers for the index: whoever asks it need not walk the vault, and misses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.places import WATCHERS
from co_cli.service import vouching
from co_cli.service.vouching import Vouching, all_is_told, is_vouched_for
from co_cli.sources.origin import Origin
from co_cli.values import SyncReport
from tests.command import Co
from tests.rights import can_obey, obey_permissions
from tests.vault import Vault
from tests.watching.conftest import PATIENCE, Watch

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not all_is_told(os.path.realpath(os.environ.get("TMPDIR", "/tmp"))),
    reason="here the system does not tell of every change, so nobody vouches",
)

WATCH = """
import sys
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.watching import Watcher
with KnowledgeBase.open(sys.argv[1], sys.argv[2]) as kb, Watcher(kb, vouches_from=1):
    sys.stdin.read()
"""
VOUCHED = "a watcher says that the index is up to the files"


def wait_for(sign: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not any(sign.glob(f"*/{vouching.SIGN}")):
        assert time.monotonic() < until, list(sign.rglob("*"))
        time.sleep(0.01)


def vouched(asking: KnowledgeBase, data_dir: Path) -> bool:
    """A busy machine may keep a watcher from answering in time; then it is asked again."""
    until = time.monotonic() + PATIENCE
    while not is_vouched_for(asking):
        assert time.monotonic() < until
        wait_for(data_dir / WATCHERS)
    return True


def search_vouched(co: Co, data_dir: Path, query: str) -> str:
    """What the command finds without a walk of its own."""
    until = time.monotonic() + PATIENCE
    while VOUCHED not in (answer := co("search", query, "--verbose")).err:
        assert time.monotonic() < until, answer.err
        wait_for(data_dir / WATCHERS)
    return answer.out


@contextmanager
def watcher_of(
    vault: Vault, data_dir: Path, before: Callable[[], None] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that watches, and vouches. `before` runs in it first."""
    command = [sys.executable, "-c", WATCH, vault.root, data_dir]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=before)
    try:
        wait_for(data_dir / WATCHERS)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def test_what_was_saved_before_somebody_asks_is_found_without_a_walk(
    vault: Vault, data_dir: Path, kb: KnowledgeBase, watch: Watch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    watch(kb, vouches_from=1)
    wait_for(data_dir / WATCHERS)
    with KnowledgeBase.open(vault.root, data_dir) as asking:
        for number in range(5):
            vault.write(f"articles/{number}/elm.md", f"Elms of the {number}th kind: zelkova{number}.")
            before = time.time()
            assert vouched(asking, data_dir)
            found = asking.search(f"zelkova{number}", backend="fts5")
            assert [hit.ref for hit in found.hits] == [f"article:{number}/elm#L1-1"]
            assert (asking.index.fresh_as_of or 0) >= before - 0.001
            (vault.root / "articles" / str(number) / "elm.md").unlink()
            assert vouched(asking, data_dir)
            assert not asking.search(f"zelkova{number}", backend="fts5").hits
    assert not [*(data_dir / WATCHERS).rglob(f"{vouching.SLIP}*")]


def test_a_command_relies_on_a_watcher_and_says_so(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with watcher_of(vault, data_dir):
        vault.write("memories/elm.md", "Elms do not.")
        assert "memory:elm" in search_vouched(co, data_dir, "elms")
        vault.write(".coignore", "elm.md\n")
        assert "memory:elm" not in search_vouched(co, data_dir, "elms")
    assert VOUCHED not in co("search", "oaks", "--verbose").err


def test_a_watcher_of_something_else_is_not_asked(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with watcher_of(vault, data_dir):
        for name, value in (
            ("CO_KNOWLEDGE_EXCLUDE", "elm*"),
            ("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none"),
            ("CO_KNOWLEDGE_MAX_NOTE_BYTES", "1000"),
        ):
            answer = co.process("search", "oaks", "--verbose", env={name: value})
            assert "memory:oak" in answer.out
            assert VOUCHED not in answer.err


def test_what_somebody_with_other_settings_left_out_is_found_again(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms do not.")
    with watcher_of(vault, data_dir):
        co.process("search", "oaks", env={"CO_KNOWLEDGE_EXCLUDE": "elm*"})
        assert "memory:elm" in search_vouched(co, data_dir, "elms")


def test_of_two_watchers_in_one_process_each_answers_for_its_own_vault(
    vault: Vault, tmp_path: Path, data_dir: Path, kb: KnowledgeBase, watch: Watch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    other = Vault(tmp_path / "other")
    other.write("memories/oak.md", "Oaks live long.")
    with KnowledgeBase.open(other.root, data_dir) as beside, KnowledgeBase.open(vault.root, data_dir) as asking:
        second = watch(beside, vouches_from=1)
        wait_for(data_dir / WATCHERS)
        watch(kb, vouches_from=1)
        for number in range(3):
            for name in range(100):
                vault.write(f"memories/elm-{number}-{name}.md", f"Elm zelkova{number} {name}.")
            assert vouched(asking, data_dir)
            assert len(asking.search(f"zelkova{number}", limit=200, backend="fts5").hits) == 100
        second.close()
        assert vouched(asking, data_dir)


def test_another_vault_under_the_same_name_is_not_vouched_for(tmp_path: Path, data_dir: Path, watch: Watch) -> None:
    for name, text in (("now", "Oaks."), ("next", "Elms.")):
        (tmp_path / name / "vault" / "memories").mkdir(parents=True)
        (tmp_path / name / "vault" / "memories" / f"{name}.md").write_text(text)
    with KnowledgeBase.open(tmp_path / "now" / "vault", data_dir) as kb:
        watcher = watch(kb, vouches_from=1)
        assert vouched(kb, data_dir)
        (tmp_path / "now").rename(tmp_path / "before")
        (tmp_path / "next").rename(tmp_path / "now")
        if is_vouched_for(kb):
            assert [hit.ref for hit in kb.search("elms", backend="fts5").hits] == ["memory:next"]
        watcher.close()


def test_a_watcher_that_was_killed_is_not_waited_for(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with watcher_of(vault, data_dir) as watcher:
        watcher.kill()
        watcher.wait()
        vault.write("memories/elm.md", "Elms do not.")
        answer = co("search", "elms", "--verbose")
        assert "memory:elm" in answer.out
        assert VOUCHED not in answer.err
        assert not [*(data_dir / WATCHERS).iterdir()]


def test_a_watcher_that_does_not_answer_loses_its_sign_until_it_does(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with watcher_of(vault, data_dir) as watcher:
        watcher.send_signal(signal.SIGSTOP)
        vault.write("memories/elm.md", "Elms do not.")
        answer = co("search", "elms", "--verbose")
        assert "memory:elm" in answer.out
        assert VOUCHED not in answer.err
        assert not [*(data_dir / WATCHERS).glob(f"*/{vouching.SIGN}")]
        watcher.send_signal(signal.SIGCONT)
        wait_for(data_dir / WATCHERS)
        assert "memory:elm" in search_vouched(co, data_dir, "elms")


def test_what_the_system_did_not_keep_for_a_watcher_that_was_stopped_is_found(vault: Vault, data_dir: Path) -> None:
    """It keeps 16,384 events, and drops the rest."""
    vault.write("memories/oak.md", "Oaks live long.")
    one, other = vault.write("memories/1.txt", ""), vault.path("memories/2.txt")
    with watcher_of(vault, data_dir) as watcher, KnowledgeBase.open(vault.root, data_dir) as asking:
        watcher.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        for _ in range(9_000):
            one.rename(other)
            one, other = other, one
        vault.write("articles/new/elm.md", "Elms do not.")
        time.sleep(max(0.0, stopped + 1.5 - time.monotonic()))
        watcher.send_signal(signal.SIGCONT)
        assert vouched(asking, data_dir)
        assert asking.search("elms", backend="fts5").hits


def test_a_watcher_that_ends_while_somebody_waits_gives_no_answer(kb: KnowledgeBase, data_dir: Path) -> None:
    kb.sync()
    folder = data_dir / WATCHERS / f"1-{os.getpid()}"
    folder.mkdir(parents=True)
    (folder / vouching.SIGN).write_text(vouching.watches(kb))

    def end() -> None:
        until = time.monotonic() + 2 * vouching.PATIENCE
        while not [*folder.glob(f"{vouching.SLIP}*")] and time.monotonic() < until:
            time.sleep(0.001)
        folder.rename(data_dir / "gone")

    ending = threading.Thread(target=end)
    ending.start()
    assert not is_vouched_for(kb)
    ending.join()


def test_another_search_db_is_filled_before_anybody_vouches_for_it(vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with watcher_of(vault, data_dir):
        for name in ("search.db", "search.db-wal", "search.db-shm"):
            (data_dir / name).unlink(missing_ok=True)
        with KnowledgeBase.open(vault.root, data_dir) as asking:
            asking.index.counts()  # makes it anew
            assert vouched(asking, data_dir)
            assert [hit.ref for hit in asking.search("oaks").hits] == ["memory:oak"]


@pytest.mark.skipif(not can_obey(), reason="permissions do not apply to this user")
def test_nobody_vouches_where_a_folder_cannot_be_read(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("articles/shut/elm.md", "Elms.")
    with watcher_of(vault, data_dir, before=obey_permissions):
        shut = vault.root / "articles" / "shut"
        shut.chmod(0)
        vault.write("memories/oak.md", "Oaks live long.")
        answer = co("search", "oaks", "--verbose")
        shut.chmod(0o755)
        assert "memory:oak" in answer.out
        assert VOUCHED not in answer.err


def test_a_source_that_was_removed_keeps_nobody_from_vouching(kb: KnowledgeBase, tmp_path: Path) -> None:
    unread = SyncReport([], [], [], [], 0, [("elm.md", "cannot be read")], [])
    vouching = Vouching(kb, 0)
    assert vouching.open()
    vouching.saw(Origin("folder", str(tmp_path / "gone"), "gone"), unread)
    assert vouching.may(True, 1)
    vouching.saw(kb.index.origin, unread)
    assert not vouching.may(True, 1)


def test_a_small_vault_is_sooner_walked(vault: Vault, data_dir: Path, kb: KnowledgeBase, watch: Watch) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    watcher = watch(kb)
    with KnowledgeBase.open(vault.root, data_dir) as asking:
        assert not is_vouched_for(asking)
    watcher.close()
    assert not [*(data_dir / WATCHERS).iterdir()]
    vouching = Vouching(kb, 20)
    assert not vouching.may(True, 20), "nothing was said of the file system yet"
    assert vouching.open()
    assert [vouching.may(True, files) for files in (19, 20)] == [False, True]


def test_a_file_system_that_others_can_change_is_known(tmp_path: Path) -> None:
    assert all_is_told(os.path.realpath(tmp_path))
    assert not all_is_told("/proc/self")
    assert not all_is_told("/")  # /proc is mounted below
    assert vouching._plain("/a\\040b\\134c") == "/a b\\c"
