"""An import can be repeated: no twins, no lost words, and nothing that was forgotten comes back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.command import Co
from tests.exchange.exports import gpt_conversation, gpt_node, mooring, write_json
from tests.vault import Vault

NOTE = "articles/chatgpt/mooring-alone.md"
REF = "article:chatgpt/mooring-alone"


def outcome(co: Co, path: str, *more: str) -> tuple[str, str]:
    (item,) = co("import", "chatgpt", path, "--yes", "--json", *more).json["items"]
    return item["outcome"], item["detail"]


def test_the_same_export_again_changes_nothing(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    assert outcome(co, path) == ("created", "")
    before = vault.path(NOTE).stat()

    assert outcome(co, path) == ("unchanged", "")
    assert vault.path(NOTE).stat() == before
    assert co("import", "chatgpt", path).out.endswith("There is nothing to write.\n")


def test_a_conversation_that_went_on_is_updated_and_keeps_my_fields(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    co("import", "chatgpt", path, "--yes")
    co("edit", REF, "--tag", "boats", "--title", "My title")
    write_json(tmp_path / "conversations.json", [{**mooring("Two lines are better."), "update_time": 1_800_000_000}])

    assert outcome(co, path) == ("updated", "")

    text = vault.read(NOTE)
    assert "Two lines are better." in text
    assert "title: My title" in text
    assert "tags: [boats]" in text
    assert "updated: 2027-01-15T08:00:00Z" in text
    assert outcome(co, path) == ("unchanged", "")


def test_a_text_that_i_changed_is_not_overwritten_unasked(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    co("import", "chatgpt", path, "--yes")
    co("edit", REF, "--body", "My own summary.")
    assert outcome(co, path)[0] == "unchanged"  # nothing is new there
    write_json(tmp_path / "conversations.json", [mooring("Something else.")])

    kept, why = outcome(co, path)
    stopped = co("import", "chatgpt", path, "--yes", "--on-conflict", "error")

    assert kept == "skipped"
    assert why.startswith(f"{REF} was changed here, and at its origin too; `--on-conflict overwrite`")
    assert (stopped.code, stopped.err.count("\n")) == (2, 1)
    assert "My own summary." in vault.read(NOTE)

    taken, where = outcome(co, path, "--on-conflict", "overwrite")
    assert taken == "updated"
    assert "Something else." in vault.read(NOTE)
    assert "My own summary." in vault.read(where.rpartition(" ")[2])


def test_with_error_nothing_at_all_is_written_when_one_thing_is_in_the_way(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    co("import", "chatgpt", path, "--yes")
    co("edit", REF, "--body", "My own summary.")
    new = gpt_conversation("c-2", "New", gpt_node("u", "root", "user", "Hello"))
    write_json(tmp_path / "conversations.json", [new, mooring("Something else.")])

    ran = co("import", "chatgpt", path, "--yes", "--on-conflict", "error")

    assert ran.code == 2
    assert vault.notes() == [NOTE]


def test_what_was_forgotten_does_not_come_back(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    co("import", "chatgpt", path, "--yes")
    co("forget", REF)

    assert outcome(co, path) == ("forgotten", f"it was forgotten here; `co restore {REF}` brings it back")
    assert vault.notes() == []

    co("restore", REF)
    assert outcome(co, path) == ("unchanged", "")


def test_a_note_that_i_moved_is_still_known(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [mooring()])
    co("import", "chatgpt", path, "--yes")
    vault.path("articles/boats").mkdir()
    vault.path(NOTE).rename(vault.path("articles/boats/mooring.md"))

    assert outcome(co, path) == ("unchanged", "")


def test_what_stands_twice_in_an_export_is_written_once(co: Co, vault: Vault, tmp_path: Path) -> None:
    ran = co("import", "chatgpt", write_json(tmp_path / "conversations.json", [mooring(), mooring("Other")]), "--yes")

    assert "it stands twice in the export, first as" in ran.out
    assert vault.notes() == [NOTE]


def test_namesakes_get_numbers(co: Co, vault: Vault, tmp_path: Path) -> None:
    twins = [
        gpt_conversation(name, "New chat 🚤", gpt_node("u", "root", "user", f"Hello {name}")) for name in ("a", "b")
    ]
    path = write_json(tmp_path / "conversations.json", twins)

    co("import", "chatgpt", path, "--yes")

    assert vault.notes() == ["articles/chatgpt/new-chat-2.md", "articles/chatgpt/new-chat.md"]
    assert co("import", "chatgpt", path, "--json").json["counts"]["unchanged"] == 2


def test_two_imports_at_once_leave_one_note(co: Co, vault: Vault, tmp_path: Path) -> None:
    talks = [gpt_conversation(f"c{n}", f"Talk {n}", gpt_node("u", "root", "user", f"Hello {n}")) for n in range(20)]
    path = write_json(tmp_path / "conversations.json", talks)
    command = [sys.executable, "-m", "co_cli", "import", "chatgpt", path, "--yes"]

    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    ended = [process.communicate(timeout=60)[1] for process in running]

    assert ended == [b"", b""]
    assert len(vault.notes()) == 20


def test_an_import_that_is_stopped_can_be_finished(co: Co, vault: Vault, tmp_path: Path) -> None:
    path, count, err = "", 0, b""
    for count in (120, 1_200, 6_000):  # a busy machine may let it end before we look
        numbers = range(count)
        talks = [gpt_conversation(f"c{n}", f"Talk {n}", gpt_node("u", "root", "user", f"Hello {n}")) for n in numbers]
        path = write_json(tmp_path / "conversations.json", talks)
        had = len(vault.notes())
        command = [sys.executable, "-m", "co_cli", "import", "chatgpt", path, "--yes"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(vault.notes()) == had and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=180)
        if running.returncode == 130:
            break

    assert err.splitlines()[-1] == b"co: stopped; what was done so far is kept", "behind how far it is, if it was slow"
    before = vault.notes()
    assert 0 < len(before) < count
    assert [path for path in vault.files() if path not in before] == []
    counts = co("import", "chatgpt", path, "--yes", "--json").json["counts"]
    assert counts["unchanged"] == len(before)
    assert counts["created"] == count - len(before)
    assert len(vault.notes()) == count
