"""`co` on a real terminal of 80 columns, for keys that are pressed."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pexpect


@contextmanager
def terminal(folder: Path, *arguments: str, **environ: str) -> Generator[Any]:
    child: Any = cast("Any", pexpect).spawn(
        sys.executable,
        ["-m", "co_cli", *arguments],
        cwd=str(folder),
        env={**os.environ, "TERM": "dumb", **environ},  # type: ignore[arg-type]
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=120,
    )
    child.delaybeforesend = None
    try:
        yield child
    finally:
        child.close(force=True)
