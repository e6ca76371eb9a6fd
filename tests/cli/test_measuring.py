"""`co bench`."""

from __future__ import annotations

import sys

import pytest

from tests.command import Co
from tests.vault import Vault


def test_bench_sync_prints_ratios_and_leaves_the_vault_alone(co: Co, vault: Vault) -> None:
    shown = co("bench", "sync", "--notes", "30")
    rows = co("bench", "sync", "--notes", "30", "--json").json

    assert shown.code == 0
    assert " x" in shown.out
    assert rows["bench"] == "sync"
    assert any(row["ratio"] for row in rows["rows"])
    assert vault.files() == []


def test_bench_embed_compares_the_first_sync_with_a_plain_loop(co: Co, vault: Vault) -> None:
    rows = co("bench", "embed", "--notes", "20", "--json").json["rows"]

    plain, ours, sync = rows
    assert plain["ratio"] == 1.0
    assert (sync["goal"], sync["name"]) == (2.5, "first sync, words and vectors")
    assert all(row["value"] > 0 and row["ratio"] > 0 for row in (ours, sync))
    assert vault.files() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the CPU time of a child process")
def test_bench_cold_compares_a_search_with_a_bare_python_start(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.benchmarks.cold.REPEATS", 2)

    rows = {row["name"]: row for row in co("bench", "cold", "--notes", "20", "--json").json["rows"]}

    hybrid = rows["co search, hybrid, less the walk"]
    assert hybrid["goal"] == 3.5
    assert hybrid["ratio"] > 1
    assert rows["python -c pass (CPU)"]["ratio"] == 1.0
    assert vault.files() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench"],
        ["bench", "moon"],
        ["bench", "sync", "--notes", "0"],
    ],
)
def test_wrong_usage_is_one_line(co: Co, arguments: list[str]) -> None:
    ran = co(*arguments)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
