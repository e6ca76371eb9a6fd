"""Every front end records its searches and openings, and a cold search pays little for it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.files import locked
from tests.activity.conftest import rows
from tests.command import Co
from tests.folder import Vault


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")


USES = "select path, recalls, opens from uses join documents on documents.id = document_id order by path"


def test_a_search_counts_only_if_it_is_tracked(kb: KnowledgeBase, data_dir: Path) -> None:
    kb.search("oaks")
    kb.note("oak")
    assert not (data_dir / "activity.db").exists()

    kb.sync()
    kb.search('"live long"', track=True)
    kb.note("oak", track=True)

    assert rows(kb.activity, USES) == [("memories/oak.md", 1, 1)]
    assert rows(kb.activity, "select front_end from searches") == [("python",)]


def test_a_search_from_the_command_line_does_not_open_activity_db(co: Co, data_dir: Path) -> None:
    co("index", "sync")
    co("search", "oaks")
    (data_dir / "activity.db").unlink()
    (data_dir / "activity.spool").unlink()

    assert co("search", "oaks", "--no-sync").code == 0

    assert not (data_dir / "activity.db").exists()
    assert (data_dir / "activity.spool").read_bytes().count(b"\n") == 1


@pytest.mark.medium
def test_a_save_waits_a_second_for_a_process_that_holds_the_spool_and_loses_nothing(
    co: Co, kb: KnowledgeBase, vault: Vault, data_dir: Path
) -> None:
    kb.search("oaks", track=True)
    vault.write("memories/elm.md", "Elms like water.")
    with locked(str(data_dir / "activity.spool.lock")), ThreadPoolExecutor() as elsewhere:
        started = time.monotonic()
        saved = elsewhere.submit(kb.remember, "Ashes burn well.").result(timeout=30)
        assert time.monotonic() - started < 10
        ran = co.process("remember", "Firs are green.")
        assert (ran.code, ran.err) == (0, "")
        cleared = co.process("feedback", "stats", "--clear", "--yes")
        assert (cleared.code, cleared.err.count("\n")) == (3, 1)
        assert "activity.spool.lock" in cleared.err, "words would stay in the spool"

    for ref, front_end in ((saved.ref, "python"), ("memory:firs-are-green", "cli")):
        (created,) = co("note", "history", ref, "--json").json["changes"]
        assert (created["what"], created["front_end"]) == ("created", front_end)
    assert co("feedback", "stats", "--json").json["searches"] == 1, "the spool is read when it is free"


def test_searches_and_saves_work_with_a_broken_activity_db(kb: KnowledgeBase, data_dir: Path) -> None:
    (data_dir / "activity.db").mkdir(parents=True)

    kb.sync()
    assert kb.search("oaks", track=True).state == "found"
    assert kb.remember("Ashes burn well.").outcome == "created"
    kb.note("oak", track=True)

    assert not kb.activity.flush()
    assert kb.activity.dropped >= 2
