"""The wheel has the code, the sample vault and the embedded models, and no development files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from co_cli.embedding.reader import FOLDER, MODELS, read_arrays
from tests.house.package import REPOSITORY


def test_the_wheel_has_the_sample_vault_and_the_models() -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="the build tool is part of the dev group")
    if not (REPOSITORY / "pyproject.toml").exists():
        pytest.skip("an installed package cannot be built again")

    files = list(wheel.WheelBuilder(str(REPOSITORY)).recurse_included_files())
    sizes = {file.distribution_path: os.path.getsize(file.path) for file in files}
    names = sizes.keys()

    notes = {file.relative_to(REPOSITORY / "knowledge").as_posix() for file in (REPOSITORY / "knowledge").rglob("*.md")}
    assert {f"co_cli/sample_vault/{note}" for note in notes} <= names
    assert {
        "co_cli/sample_vault/questions.jsonl",
        "co_cli/embedding/model/co-static-256.bin",
        *(f"co_cli/embedding/model/reader-{name}.{kind}" for name in MODELS for kind in ("bin", "onnx")),
        "co_cli/embedding/model/NOTICE.txt",
        "co_cli/index/sqlite/schema.sql",
        "co_cli/py.typed",
    } <= names
    assert not [name for name in names if name.startswith(("benchmarks/", "tests/", "docs/", ".co-cli/"))]
    assert sizes["co_cli/embedding/model/reader-small.bin"] <= 13_000_000
    assert sizes["co_cli/embedding/model/reader-large.bin"] <= 24_000_000
    assert sum(sizes.values()) < 45_000_000


def test_the_notice_names_every_data_file_of_the_models() -> None:
    notice = Path(FOLDER, "NOTICE.txt").read_text(encoding="utf-8")
    headings = {name for line in notice.splitlines() if not line.startswith(" ") for name in line.split(", ")}

    assert {file.name for file in Path(FOLDER).iterdir()} - headings == {"NOTICE.txt"}


def test_the_small_reader_has_three_layers_and_the_large_one_six() -> None:
    headers = {name: read_arrays(Path(FOLDER, f"reader-{name}.bin").read_bytes())[0] for name in MODELS}

    assert {name: header["layers"] for name, header in headers.items()} == {"small": 3, "large": 6}
