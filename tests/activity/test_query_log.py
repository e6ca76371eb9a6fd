"""Searches are logged and uses are counted as far as the settings allow, and never without bound."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from co_cli.activity import Activity, query_log
from co_cli.activity.events import MOST, SPOOL, SearchEvent
from co_cli.activity.query_log import log_searches
from co_cli.ground.values import DAY
from tests.activity.conftest import NOON, Opener, answer, rows
from tests.folder import Vault


def logged(root: str, number: int, at: float = NOON, **other: object) -> SearchEvent:
    search = SearchEvent(root, at, "python", f"question {number}", "hybrid", "found", 1, 5.0, None, (), ())
    return search._replace(**other)  # type: ignore[arg-type]


def test_a_search_is_logged_with_its_results(activity: Activity, vault: Vault) -> None:
    activity.front_end = "mcp"
    activity.searched(answer(vault.root, "How old do oaks get?", "oak", "elm", took_ms=12.5))
    activity.searched(answer(vault.root, "zebras", degraded=["answered by words"]))

    assert rows(activity, "select at, front_end, backend, state, hits, took_ms, degraded, results, text "
                "from searches order by id") == [
        (NOON, "mcp", "hybrid", "found", 2, 12.5, None, '[["memory:oak", 0.9], ["memory:elm", 0.8]]',
         "How old do oaks get?"),
        (NOON, "mcp", "hybrid", "absent", 0, 5.0, "answered by words", "[]", "zebras"),
    ]  # fmt: skip


def test_off_logs_no_search_but_counts_recalls_unless_that_is_off_too(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    with open_activity(query_log="off", count_use="off") as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        activity.opened(str(vault.root / "memories" / "oak.md"))
    assert not (data_dir / "activity.db").exists()

    with open_activity(query_log="off") as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        assert rows(activity, "select (select count(*) from searches), recalls from uses") == [(0, 1)]


def test_a_query_of_any_characters_is_logged(activity: Activity, open_activity: Opener, vault: Vault) -> None:
    texts = ["lone \ud83d surrogate", "nul \0 byte", "quote ' \" \\ line\nbreak \u2028", "漢字 🌳", "x" * 5000]
    with open_activity(brief=True) as brief:
        for one in (activity, brief):
            for text in texts:
                one.searched(answer(vault.root, text, "oak"))
    activity.written()

    assert rows(activity, "select count(*) from searches group by folded") == [(2,)] * len(texts)
    assert rows(activity, "select max(length(text)) from searches") == [(1000,)]


def test_the_log_keeps_the_newest_rows_of_a_year(activity: Activity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_log, "MOST_ROWS", 300)
    with activity.database.writing() as connection:
        log_searches(connection, [logged("/vault", n) for n in range(1000)])
        log_searches(connection, [logged("/other", 1, NOON - 400 * DAY)])
        log_searches(connection, [logged("/other", 2)])

    assert rows(activity, "select root, count(*), min(text), max(text) from searches "
                "join vaults on vaults.id = vault_id group by root order by root") == [
        ("/other", 1, "question 2", "question 2"),
        ("/vault", 298, "question 702", "question 999"),
    ]  # fmt: skip


def test_everything_that_threads_record_is_written_when_it_closes(open_activity: Opener, vault: Vault) -> None:
    with open_activity() as activity:

        def work(_: int) -> None:
            for _ in range(50):
                activity.searched(answer(vault.root, "oaks", "oak"))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

    with open_activity() as activity:
        assert rows(activity, "select (select count(*) from searches), recalls from uses") == [(400, 400)]


def test_a_brief_process_appends_to_the_spool_which_is_read_once_even_after_a_crash(
    activity: Activity, open_activity: Opener, data_dir: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spools() -> list[str]:
        return [path.name for path in data_dir.glob(f"{SPOOL}*") if path.suffix != ".lock"]

    for number in range(3):
        with open_activity(brief=True) as brief:
            brief.searched(answer(vault.root, f"question {number}", "oak"))
    assert [path.name for path in data_dir.iterdir()] == [SPOOL]
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", os.stat)  # killed before the file is removed
        activity.written()
    assert len(spools()) == 1

    activity.opened(str(vault.root / "memories" / "oak.md"))
    activity.written()

    assert rows(activity, "select (select count(*) from searches), recalls, opens from uses") == [(3, 3, 1)]
    assert spools() == []


def test_a_spool_that_nobody_could_read_stops_growing(open_activity: Opener, data_dir: Path, vault: Vault) -> None:
    data_dir.mkdir()
    (data_dir / SPOOL).write_bytes(b"x" * (MOST + 1))

    with open_activity(brief=True) as brief:
        brief.searched(answer(vault.root, "oaks", "oak"))

    assert brief.dropped == 1
    assert (data_dir / SPOOL).stat().st_size == MOST + 1


def test_a_line_that_cannot_be_read_is_skipped(activity: Activity, data_dir: Path) -> None:
    lines = [
        b"",
        b'["s",',
        b'["s", 1, 2]',
        b'["x", "/vault", 1.0, "oak.md"]',
        b'["o", "/vault", 1.0, ["oak.md"]]',
        b'["o", "/vault", 1.0, "\\ud800"]',
        json.dumps(("s", *logged("/vault", 6, recalled=7))).encode(),
        b"('s', 1, 2)",
        b"7",
        b"[" * 5000,
        b"\xff\xfe",
        json.dumps(("s", *logged("/vault", 7))).encode(),
    ]
    data_dir.mkdir()
    (data_dir / SPOOL).write_bytes(b"\n".join(lines) + b'\n["s", "cut off')

    activity.written()

    assert rows(activity, "select text from searches") == [("question 7",)]
