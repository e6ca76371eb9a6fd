"""The wheel has the code, the sample vault and the embedded models; it and the source distribution are reproducible."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from co_cli.embedding.model_file import FOLDER
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
        "co_cli/embedding/model/encoder.bin",
        "co_cli/embedding/model/encoder.onnx",
        "co_cli/embedding/model/reader.bin",
        "co_cli/embedding/model/reader.onnx",
        "co_cli/embedding/model/NOTICE.txt",
        "co_cli/index/sqlite/schema.sql",
        "co_cli/activity/migrations/009_first_release.sql",
        "co_cli/activity/migrations/010_late_turns.sql",
        "co_cli/vault/team/migrations/001_team.sql",
        "co_cli/py.typed",
    } <= names
    assert not [name for name in names if name.startswith(("benchmarks/", "tests/", "docs/", ".co-cli/"))]
    assert sizes["co_cli/embedding/model/reader.bin"] <= 18_000_000
    assert sizes["co_cli/embedding/model/encoder.bin"] <= 18_000_000
    assert sum(sizes.values()) < 64_000_000  # 55 MB as a wheel


@pytest.mark.slow
def test_two_builds_give_the_same_bytes_also_from_the_source_distribution(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build tool is part of the dev group")

    def build(source: Path, into: Path) -> dict[str, bytes]:
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
        return {file.name: file.read_bytes() for file in into.iterdir()}

    first = build(REPOSITORY, tmp_path / "first")
    [archive] = (tmp_path / "first").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [source] = (tmp_path / "unpacked").iterdir()
    second = build(source, tmp_path / "second")

    assert sorted(name.rpartition("-")[2] for name in first) == ["0.1.0.tar.gz", "any.whl"]
    assert first == second
    with ZipFile(tmp_path / "first" / next(name for name in first if name.endswith(".whl"))) as wheel:
        [about] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        description = str(message_from_bytes(wheel.read(about)).get_payload())
    assert "mcp-name:" in description, "the registry of MCP servers looks for it"
    assert relative(description) == []


def relative(text: str) -> list[str]:
    """Links and pictures that a package index cannot follow."""
    return [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("https://")]


def test_a_package_index_gets_a_readme_without_paths_with_and_without_the_repositorys_address() -> None:
    pytest.importorskip("hatchling", reason="the build tool is part of the dev group")
    spec = importlib.util.spec_from_file_location("readme", REPOSITORY / ".ci" / "readme.py")
    assert spec
    assert spec.loader
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    text = (REPOSITORY / "README.md").read_text("utf-8")

    linked = readme.for_index(text, "https://example.org/co/", "1.2.3")
    plain = readme.for_index(text, None, "1.2.3")

    assert relative(text)
    assert relative(linked) == relative(plain) == []
    assert "![The answer to a question in a terminal](https://example.org/co/raw/v1.2.3/docs/terminal.svg)" in linked
    assert "[changelog](https://example.org/co/blob/v1.2.3/CHANGELOG.md)" in linked
    assert "![" not in plain
    assert "- **Project:** changelog, contributing, security\n" in plain


def test_the_notice_names_every_data_file_of_the_models() -> None:
    notice = Path(FOLDER, "NOTICE.txt").read_text(encoding="utf-8")
    headings = {name for line in notice.splitlines() if not line.startswith(" ") for name in line.split(", ")}

    assert {file.name for file in Path(FOLDER).iterdir()} - headings == {"NOTICE.txt"}
