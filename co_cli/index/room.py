"""Is the disk full? SQLite and the system say it in many ways, and some of them nobody would understand.

Nothing here is asked for while all is well.
"""

from __future__ import annotations

import os
import shutil

import apsw

from co_cli.notes.store import NO_ROOM

LITTLE = 64 << 10
"""Bytes: SQLite needs half of that to open a database at all, and calls it an I/O error when it does not get them."""
MUCH = 64 << 20
"""Bytes: with more of them left it is something else that is used up, such as a quota or the number of files."""


def no_room(path: str, error: BaseException | None) -> str | None:
    """`the disk is full (0 bytes are left in /data)`, if that is what an error means that is about this file."""
    folder = os.path.dirname(path)
    try:
        left = shutil.disk_usage(folder).free
    except OSError:
        left = None
    full = isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in NO_ROOM)
    unsaid = isinstance(error, (apsw.IOError, apsw.CantOpenError)) and left is not None and left < LITTLE
    if not (full or unsaid):
        return None
    if left is None or left > MUCH:
        return f"a quota is used up, or the disk of {folder} is full"
    return f"the disk is full ({left:,} bytes are left in {folder})"
