"""A process of ours beside this one: the same Python and the same packages, out of reach of the terminal's Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def start_beside(arguments: list[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Python with these arguments, its input and output in our hands. Whoever starts it ends it.

    `-P`: what lies in the current folder is nobody's package.
    """
    apart: dict[str, Any] = {"start_new_session": True}  # Ctrl-C is for us, and we end it
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-P", *arguments]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen[bytes](command, env={**os.environ, **ours, **(environment or {})}, **streams, **apart)
