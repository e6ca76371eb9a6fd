"""The example of the guide that needs the harness, which is not always installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.test_documentation import REPOSITORY, blocks

GUIDE = REPOSITORY / "docs" / "guides" / "agents.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs")


def test_the_example_with_the_harness_runs_where_it_is_installed(home: Path) -> None:
    pytest.importorskip("pydantic_ai_harness")
    (example,) = blocks(GUIDE, "py")
    (home / "notes").mkdir()

    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False, cwd=home)

    assert ran.returncode == 0, ran.stderr
