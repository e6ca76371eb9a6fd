"""Find sqlite-vec's library without importing its package, which imports numpy: ten times a bare Python start.

Looks along sys.path by hand: importlib.util alone costs half a Python start.
"""

from __future__ import annotations

import os
import sys


def vector_extension() -> str | None:
    """The path to load, without its ending; None where there is no wheel (musl, Windows on ARM)."""
    for folder in sys.path:
        for name in ("vec0.so", "vec0.dylib", "vec0.dll"):
            if os.path.exists(os.path.join(folder, "sqlite_vec", name)):
                return os.path.join(folder, "sqlite_vec", "vec0")
    return None
