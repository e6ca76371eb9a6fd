"""The wheel has the code, the sample vault and the embedded model, and no development files."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_wheel_has_the_sample_vault_and_the_model(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build tool is part of the dev group")
    if not (REPOSITORY / "pyproject.toml").exists():
        pytest.skip("an installed package cannot be built again")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    notes = {file.relative_to(REPOSITORY / "knowledge").as_posix() for file in (REPOSITORY / "knowledge").rglob("*.md")}
    assert {f"co_cli/sample_vault/{note}" for note in notes} <= names
    assert {
        "co_cli/sample_vault/questions.jsonl",
        "co_cli/embedding/model/co-static-256.bin",
        "co_cli/embedding/model/NOTICE.txt",
        "co_cli/index/sqlite/schema.sql",
        "co_cli/py.typed",
    } <= names
    assert not [name for name in names if name.startswith(("benchmarks/", "tests/", "docs/", ".co-cli/"))]
