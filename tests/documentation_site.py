"""Build the documentation site as a reader gets it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
CONFIGURATION = REPOSITORY / "zensical.toml"
DOCS = REPOSITORY / "docs"


def build_site(root: Path) -> Path:
    """The site, built in this folder. Fails on a warning; skips the test if the generator is not installed."""
    pytest.importorskip("zensical", reason="the generator is not installed: pip install --group docs")
    shutil.copytree(DOCS, root / "docs")
    shutil.copy(CONFIGURATION, root)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(root / CONFIGURATION.name)]
    ran = subprocess.run(command, capture_output=True, env={**os.environ, "NO_COLOR": "1"}, check=False)
    said = (ran.stdout + ran.stderr).decode("utf-8", "replace")
    assert (ran.returncode, "Warning" in said) == (0, False), said
    return root / "site"
