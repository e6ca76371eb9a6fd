"""`co bench watch` measures in a folder of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from co_cli.benchmarks.watch import bench_watch


def test_every_save_is_found_and_few_handles_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    rows = {row.name: row.value for row in bench_watch(notes=20, idle=0.1, saves=2, burst=30)}

    assert rows["the same: found"] == 30
    assert 0 < rows["from a save to being found, median of 2"] < 5
    assert rows["watching 20 notes: file handles"] <= 10
    assert os.listdir(folder) == []
