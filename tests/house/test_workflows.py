"""The workflows of the repository run what the README says, and publish without a stored secret."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
pytestmark = pytest.mark.skipif(not WORKFLOWS.exists(), reason="a source distribution has no workflows")


def jobs(name: str) -> dict[str, Any]:
    return yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))["jobs"]


def test_tests_run_with_the_command_of_the_readme_on_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {found[1] for one in project["classifiers"] if (found := re.fullmatch(r".*Python :: (3\.\d+)", one))}
    found = jobs("tests.yml")
    assert named <= {*found["linux"]["strategy"]["matrix"]["python"]}
    assert found["linux"]["steps"][-1]["run"] == ".ci/run"
    command = re.search(r"grep -E '(.+)' README.md", found["others"]["steps"][-1]["run"])
    assert command
    assert len(re.findall(command[1], (ROOT / "README.md").read_text("utf-8"), re.M)) == 1


@pytest.mark.skipif(os.name == "nt", reason="it needs bash and sed")
def test_the_command_for_windows_starts_pip_with_python() -> None:
    """Where pip.exe runs, it cannot be replaced."""
    step = jobs("tests.yml")["others"]["steps"][-1]["run"].replace("bash -c", r"printf '%s\n'")
    made = subprocess.run(
        ["bash", "-ec", step], cwd=ROOT, env={**os.environ, "RUNNER_OS": "Windows"}, capture_output=True, check=True
    ).stdout.decode()

    assert made.splitlines() == [
        "python -m venv .venv && .venv/Scripts/python -m pip install -q -U pip "
        "&& .venv/Scripts/python -m pip install -q -e . --group dev && .venv/Scripts/pytest",
        ".venv/Scripts/pytest -m slow",
    ]


def test_a_release_needs_no_stored_secret_and_nothing_else_may_write() -> None:
    for file in WORKFLOWS.iterdir():
        text = file.read_text("utf-8")
        assert not re.search(r"secrets\.", text), file.name
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}, file.name
    publish = jobs("release.yml")["publish"]
    assert publish["permissions"]["id-token"] == "write"
    assert publish["environment"] == "pypi"


def test_a_release_publishes_the_documentation_with_tools_of_fixed_versions() -> None:
    docs = jobs("release.yml")["docs"]
    command = docs["steps"][-1]["run"]
    assert docs["permissions"] == {"contents": "write"}
    assert "zensical build --strict" in command
    assert re.search(r"/mike@[0-9a-f]{40}\b", command)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert all("==" in requirement for requirement in groups["docs"])
    assert {"include-group": "docs"} in groups["dev"]
