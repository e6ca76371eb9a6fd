"""`import_data(origin, value)` imports a JSON value, or the file at a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co, Ran
from tests.importers.exports import write_json

ImportData = Callable[..., Ran]


@pytest.fixture
def import_data(co: Co, tmp_path: Path) -> ImportData:
    def run(origin: str, export: Any, *options: str, write: bool = True) -> Ran:
        path = export if isinstance(export, str | Path) else write_json(tmp_path / "conversations.json", export)
        return co("data", "import", origin, str(path), *(["--yes"] if write else []), *options)

    return run
