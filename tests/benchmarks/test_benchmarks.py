"""`python -m benchmarks` measures cost in a folder of its own and prints ratios."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHES, main, make_parser
from tests.evaluation.tiny_set import trees


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a benchmark may write: whatever it leaves behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report the CPU time of child processes")
def test_a_benchmark_prints_figures_and_removes_its_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = {"sync.REPEATS": 1, "remember.REPEATS": 1, "search.QUERIES": 4, "reader.speed.QUERIES": 1}
    for name, value in {**fewer, "reader.speed.READ": 2, "reader.speed.WORDS": {"short notes": 14}}.items():
        monkeypatch.setattr(f"benchmarks.{name}", value)

    reader = ["reader"] if sys.platform == "linux" else []  # it measures memory in /proc
    for name in ("sync", "remember", "search", *reader):
        assert main([name, "--notes", "40", "--json"]) == 0

        found = json.loads(capsys.readouterr().out)
        assert found["bench"] == name
        assert all(row["value"] >= 0 for row in found["rows"])
        assert any(row["ratio"] == 1.0 for row in found["rows"])
        assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.postgres
def test_both_engines_are_filled_by_a_sync_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["team", "--notes", "60", "--json"]) == 0

    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["passages"] >= 60
    assert rows["recall of the nearest 10, HNSW or exact"] == 1.0, "so few are all compared"
    assert rows["the first 10 that SQLite finds, too, mean"] >= 0.95

    assert main(["team", str(trees(tmp_path / "trees")), "--json"]) == 0

    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["passages"] == 2, "sentences of five words or more"
    assert rows["questions with the same first 10, in order"] == 2


def test_help_lists_every_benchmark_and_wrong_usage_is_refused() -> None:
    lines = make_parser().format_help().splitlines()
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in BENCHES)
    assert [line for line in lines if len(line) > 80] == []

    for arguments in (
        [],
        ["nothing"],
        ["sync", "--notes", "0"],
        ["sync", "folder"],
        ["year", "--notes", "9"],
        ["layout"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
