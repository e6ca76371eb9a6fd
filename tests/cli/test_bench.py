"""`co bench sync` measures in a folder of its own and prints ratios."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from co_cli.benchmarks.corpus import generate, write_corpus
from co_cli.benchmarks.mcp import bench_mcp
from co_cli.benchmarks.measuring import BenchRow, growth, interleaved
from co_cli.benchmarks.sync import walk
from co_cli.notes.note import read_note
from tests.command import Co
from tests.vault import Vault


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bench may write: whatever it leaves behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_it_prints_json_with_a_ratio_to_a_bare_walk(co: Co, vault: Vault, data_dir: Path, temporary: Path) -> None:
    ran = co("bench", "sync", "--notes", "120", "--json")

    rows = {row["name"]: row for row in ran.json["rows"]}
    assert (ran.code, ran.json["bench"]) == (0, "sync")
    assert set(rows) == {
        "first sync of 120 notes",
        "first sync, notes a second",
        "bare walk (scandir + stat)",
        "sync when nothing changed",
        "sync after 10 edits",
        "sync after 10 edits, beside one when nothing changed",
    }
    still = rows["sync when nothing changed"]
    assert still["goal"] == 1.15
    assert still["ratio"] == pytest.approx(still["value"] / rows["bare walk (scandir + stat)"]["value"], rel=0.05)
    assert rows["sync after 10 edits"]["value"] > still["value"]
    assert list(temporary.iterdir()) == []
    assert vault.files() == []
    assert not data_dir.exists()


def test_people_get_a_table(co: Co) -> None:
    ran = co("bench", "sync", "--notes", "30")

    assert ran.code == 0
    assert "goal 1.15 x" in ran.out
    assert len({line.find(" ms") for line in ran.out.splitlines() if " ms" in line}) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench",),
        ("bench", "nothing"),
        ("bench", "sync", "--notes", "0"),
        ("bench", "sync", "--notes", "many"),
        ("bench", "sync", "--notes", "10,"),
        ("bench", "scan", "--rows", "0"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(co: Co, arguments: tuple[str, ...]) -> None:
    ran = co(*arguments)

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_the_same_seed_gives_the_same_corpus_and_another_seed_another() -> None:
    assert list(generate(200)) == list(generate(200))
    assert list(generate(200)) != list(generate(200, seed=8))


def test_the_corpus_reads_like_notes() -> None:
    notes = [read_note(path, text.encode()) for path, text in generate(400)]

    assert len({note.path for note in notes}) == 400
    assert all(note.problem is None and note.tags and note.category and note.created for note in notes)
    assert {note.source for note in notes} == {"memory", "article"}
    assert any("## " in note.body for note in notes)
    by_count = sorted(Counter(word for note in notes for word in note.body.lower().split()).values(), reverse=True)
    assert by_count[0] > 20 * by_count[len(by_count) // 2]  # a few words are everywhere, most are rare


def test_the_walk_sees_every_file(tmp_path: Path) -> None:
    paths = write_corpus(str(tmp_path / "corpus"), 50)

    assert walk(str(tmp_path / "corpus")) == 50
    assert all(os.path.getmtime(path) < 1_800_000_000 for path in paths)


def test_interleaved_runs_every_task_once_a_round_and_prepares_outside_the_clock() -> None:
    log: list[str] = []

    medians = interleaved(
        {"a": lambda: log.append("a"), "b": lambda: log.append("b")}, 3, before={"b": lambda: log.append("prepare")}
    )

    assert log == ["a", "prepare", "b"] * 3
    assert set(medians) == {"a", "b"}


@pytest.mark.parametrize(("ratio", "goal", "kept"), [(1.2, 1.5, True), (1.6, 1.5, False), (1.2, None, None)])
def test_a_row_knows_whether_its_goal_is_kept(ratio: float, goal: float | None, kept: bool | None) -> None:
    assert BenchRow("x", 1.0, "ms", ratio, goal).kept is kept


def test_remember_is_measured_beside_writing_the_file_alone(co: Co) -> None:
    ran = co("bench", "remember", "--notes", "30", "--json")

    rows = ran.json["rows"]
    assert ran.code == 0
    assert [row["unit"] for row in rows] == ["ms"] * 4
    assert [row["goal"] for row in rows] == [None, 3.0, None, None]
    assert rows[1]["ratio"] > 1
    assert rows[3]["ratio"] == pytest.approx(rows[3]["value"] / rows[2]["value"], rel=0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the CPU time of a child")
def test_the_start_of_the_mcp_server_is_measured_beside_its_sdk(temporary: Path) -> None:
    rows = bench_mcp(20, repeats=1, warm=0)

    assert [row.unit for row in rows] == ["ms"] * 4
    assert [row.goal for row in rows] == [None, 2.5, None, None]
    assert rows[1].ratio is not None
    assert rows[1].ratio <= 2.5  # it is 0.8: even a busy machine keeps this one
    assert all(row.value > 0 for row in rows)
    assert list(temporary.iterdir()) == []


def test_search_is_measured_whole_and_step_by_step_beside_a_simple_hybrid(co: Co, temporary: Path) -> None:
    ran = co("bench", "search", "--notes", "60", "--json")

    rows = ran.json["rows"]
    assert ran.code == 0
    assert [row["goal"] for row in rows if row["goal"]] == [2.5]
    assert {"simple hybrid", "the whole pipeline"} == {row["name"].split(",")[0] for row in rows[:2]}
    assert {"measure the evidence", "compare words", "rerank"} <= {row["name"].strip() for row in rows[2:]}
    assert all(row["value"] > 0 for row in rows)
    assert list(temporary.iterdir()) == []


def test_the_first_sync_is_measured_beside_a_plain_implementation_and_beside_reading(co: Co, temporary: Path) -> None:
    ran = co("bench", "first", "--notes", "25", "--json")

    plain, read, _, beside_reading, *_ = ran.json["rows"]
    assert ran.code == 0
    assert [row["goal"] for row in ran.json["rows"]] == [None, None, 0.2, 8.0, None, 0.2, 8.0]
    assert 0 < read["value"] < plain["value"]
    assert beside_reading["ratio"] == pytest.approx(beside_reading["value"] / read["value"], rel=0.2)
    assert list(temporary.iterdir()) == []


def test_a_scan_is_measured_beside_reading_memory(co: Co) -> None:
    ran = co("bench", "scan", "--rows", "2000", "--json")

    assert [row["unit"] for row in ran.json["rows"]] == ["ms", "GB/s", "ms"]
    assert "2,000 vectors" in ran.json["rows"][2]["name"]


def test_ranking_by_words_is_measured_beside_ranking_everything(co: Co, temporary: Path) -> None:
    ran = co("bench", "words", "--rows", "200", "--json")

    assert [row["unit"] for row in ran.json["rows"]] == ["s", "MB", "ms", "ms", "ms"]
    assert ran.json["rows"][1]["value"] > 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["lancedb", "ripgrep"])
def test_who_is_not_installed_is_left_out_with_the_reason(
    co: Co, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nowhere(name: str) -> None:
        return None

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.util.find_spec", nowhere)

    ran = co("bench", name)

    assert ran.code == 0
    assert "skipped: " in ran.out
    assert "pip install" in ran.out


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a process's memory in /proc")
def test_what_a_vault_takes_is_measured_on_disk_and_in_memory(co: Co, temporary: Path) -> None:
    ran = co("bench", "footprint", "--notes", "20", "--json")

    rows = {row["name"].strip(): row for row in ran.json["rows"]}
    own, stored = rows["20 notes on disk"]["value"], rows["search.db"]["value"]
    parts = [row["value"] for row in ran.json["rows"] if row["name"].startswith("  ")]
    assert ran.code == 0
    assert rows["search.db"]["ratio"] == pytest.approx(stored / own, rel=0.5)
    assert sum(parts) == pytest.approx(stored, rel=0.05)
    assert 10 < next(row["value"] for name, row in rows.items() if name.startswith("memory of")) < 500
    assert rows["its threads"]["value"] == 1
    assert rows["its open files"]["value"] < 20
    assert list(temporary.iterdir()) == []


def test_several_sizes_show_how_figures_grow(co: Co) -> None:
    ran = co("bench", "sync", "--notes", "20,10", "--json")

    assert [row["name"] for row in ran.json["rows"] if row["name"].startswith("first sync of")] == [
        "first sync of 10 notes",
        "first sync of 20 notes",
    ]
    assert {row["unit"] for row in ran.json["growth"]} == {"times"}
    assert any(row["name"] == "sync when nothing changed: 20 beside 10" for row in ran.json["growth"])


def test_what_grows_faster_than_the_vault_is_told() -> None:
    tables = {
        10: [BenchRow("quick", 1.0, "ms"), BenchRow("square", 1.0, "s"), BenchRow("a count", 10, "")],
        100: [BenchRow("quick", 5.0, "ms"), BenchRow("square", 100.0, "s"), BenchRow("a count", 100, "")],
    }

    rows = growth(tables)

    assert [(row.name, row.ratio, row.kept) for row in rows] == [
        ("quick: 100 beside 10", 0.5, True),
        ("square: 100 beside 10", 10.0, False),
    ]
