"""`python -m benchmarks` measures cost in a folder of its own and prints ratios."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHES, main, make_parser
from benchmarks.corpus import generate
from benchmarks.measuring import BenchRow, growth, interleaved
from benchmarks.watch import bench_watch
from co_cli.notes.note import read_note


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a benchmark may write: whatever it leaves behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report the CPU time of child processes")
@pytest.mark.parametrize("name", ["sync", "first", "remember", "search", "cold", "footprint"])
def test_a_benchmark_prints_figures_and_removes_its_folder(
    name: str, temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("cold", "sync", "first", "remember"):
        monkeypatch.setattr(f"benchmarks.{module}.REPEATS", 1)

    assert main([name, "--notes", "20", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["bench"] == name
    assert all(row["value"] >= 0 for row in found["rows"])
    assert any(row["ratio"] == 1.0 for row in found["rows"])
    assert any(row["goal"] for row in found["rows"])
    assert list(temporary.iterdir()) == []


def test_the_watch_benchmark_finds_every_save(temporary: Path) -> None:
    median, slowest, burst, _ = (row.value for row in bench_watch(20, idle=0.1, saves=2, burst=30))

    assert 0 < median <= slowest < 5
    assert 0 < burst < 60
    assert list(temporary.iterdir()) == []


def test_a_program_that_is_not_installed_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    for name in ("lancedb", "ripgrep"):
        assert main([name]) == 0
        assert "skipped: " in capsys.readouterr().out


def test_help_lists_every_benchmark_and_wrong_usage_is_refused() -> None:
    lines = make_parser().format_help().splitlines()
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in BENCHES)
    assert [line for line in lines if len(line) > 80] == []

    for arguments in ([], ["nothing"], ["sync", "--notes", "0"], ["sync", "folder"], ["year", "--notes", "9"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)


def test_the_corpus_reads_like_notes_and_follows_from_its_seed() -> None:
    notes = [read_note(path, text.encode()) for path, text in generate(400)]

    assert list(generate(50)) == list(generate(50)) != list(generate(50, seed=8))
    assert len({note.path for note in notes}) == 400
    assert all(note.problem is None and note.tags and note.category and note.created for note in notes)
    by_count = sorted(Counter(word for note in notes for word in note.body.lower().split()).values(), reverse=True)
    assert by_count[0] > 20 * by_count[len(by_count) // 2]  # a few words are everywhere, most are rare


def test_tasks_take_turns_and_growth_is_compared_with_the_vault() -> None:
    log: list[str] = []
    interleaved({"a": lambda: log.append("a"), "b": lambda: log.append("b")}, 2, {"b": lambda: log.append("prepare")})
    assert log == ["a", "prepare", "b"] * 2

    tables = {
        10: [BenchRow("quick", 1.0, "ms"), BenchRow("square", 1.0, "s"), BenchRow("a count", 10, "")],
        100: [BenchRow("quick", 5.0, "ms"), BenchRow("square", 100.0, "s"), BenchRow("a count", 100, "")],
    }
    assert [(row.ratio, row.kept) for row in growth(tables)] == [(0.5, True), (10.0, False)]
