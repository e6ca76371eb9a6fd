"""`python -m benchmarks` measures in a folder of its own and prints ratios."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import BENCHES, main, make_parser
from benchmarks.corpus import generate, write_corpus
from benchmarks.measuring import BenchRow, growth, interleaved
from benchmarks.vaults import walk
from co_cli.notes.note import read_note


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a benchmark may write: whatever it leaves behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report the CPU time of child processes")
@pytest.mark.parametrize("name", ["sync", "first", "remember", "search", "cold", "footprint"])
def test_a_benchmark_prints_figures_and_removes_its_folder(
    name: str, temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("cold", "sync", "first", "remember"):
        monkeypatch.setattr(f"benchmarks.{module}.REPEATS", 2)

    found = measured(capsys, name, "--notes", "20")

    assert found["bench"] == name
    assert all(row["value"] >= 0 for row in found["rows"])
    assert any(row["ratio"] == 1.0 for row in found["rows"])
    assert any(row["goal"] for row in found["rows"])
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["lancedb", "ripgrep"])
def test_a_program_that_is_not_installed_is_skipped_with_the_reason(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert main([name]) == 0
    assert "skipped: " in capsys.readouterr().out


def test_several_sizes_show_how_figures_grow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sync", "--notes", "20,10"]) == 0

    shown = capsys.readouterr().out
    assert shown.index("first sync of 10 notes") < shown.index("first sync of 20 notes")
    assert "sync when nothing changed: 20 beside 10" in shown
    assert "goal 1.15 x" in shown


def test_help_lists_every_benchmark_within_80_columns() -> None:
    lines = make_parser().format_help().splitlines()

    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in BENCHES)
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["sync", "--notes", "0"],
        ["sync", "--notes", "10,"],
        ["sync", "folder"],
        ["year", "--notes", "9"],
    ],
)
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == 2


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
