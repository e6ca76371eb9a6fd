"""The benchmark of `co index watch`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from benchmarks.watch import bench_watch


def test_every_save_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    rows = [row.value for row in bench_watch(20, idle=0.1, saves=2, burst=30)]

    median, slowest, burst, _ = rows
    assert 0 < median <= slowest < 5
    assert 0 < burst < 60
    assert os.listdir(folder) == []
