"""The examples of the guide that need what is not always installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_protocols.anthropic_service import COMMANDS, RESULTS, Anthropic
from tests.house.test_documentation import REPOSITORY, blocks

GUIDE = REPOSITORY / "docs" / "guides" / "neighbours.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs beside it")


@pytest.mark.parametrize("package", ["anthropic", "pydantic_ai_harness"])
def test_an_example_that_needs_a_package_runs_where_it_is_installed(package: str, home: Path) -> None:
    (example,) = [block for block in blocks(GUIDE, "py") if f"from {package}" in block]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (home / "notes").mkdir()
    service = Anthropic(COMMANDS)
    try:
        environment = {**os.environ, "ANTHROPIC_BASE_URL": service.url, "ANTHROPIC_API_KEY": "none"}
        command = [sys.executable, "-c", example]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home, env=environment)
    finally:
        service.close()

    assert ran.returncode == 0, ran.stderr
    if package == "anthropic":
        assert service.results() == RESULTS
        assert "done" in ran.stdout
        assert (home / "notes" / "memories" / "tea.txt.md").exists()


def test_the_guide_has_no_example_that_nobody_runs() -> None:
    assert len(blocks(GUIDE, "py")) == 2
    assert len(blocks(GUIDE, "python")) == 2
