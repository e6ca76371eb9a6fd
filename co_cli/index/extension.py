"""Find sqlite-vec's library without importing its package, which imports numpy: ten times a bare Python start."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec


@cache
def vector_extension() -> str | None:
    """The path to load, without its ending; None where there is no wheel (musl, Windows on ARM)."""
    spec = find_spec("sqlite_vec")
    folders = (spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for name in ("vec0.so", "vec0.dylib", "vec0.dll"):
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, "vec0")
    return None
