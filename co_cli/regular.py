"""Open a file only if it is one: a pipe waits for a writer that never comes, and a device may never end.

What a folder's listing called a file may be something else by the time it is opened, so the opened thing itself is
asked. Imports nothing slow: a cold search reads ignore files through it.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedReader

NOT_REGULAR = "not a regular file"
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str, follow: bool = True) -> BufferedReader:
    """A file to read bytes from. Raises OSError for anything else; `follow` False: for a symbolic link, too."""
    return open(path, "rb", opener=_open if follow else _open_itself)


def _open(path: str, flags: int, more: int = 0) -> int:
    handle = os.open(path, _FLAGS | more)
    mode = os.fstat(handle).st_mode
    if not S_ISREG(mode):
        os.close(handle)
        if S_ISDIR(mode):
            raise IsADirectoryError(None, "a folder, not a file", path)
        from errno import EINVAL  # hardly ever

        raise OSError(EINVAL, NOT_REGULAR, path)
    return handle


def _open_itself(path: str, flags: int) -> int:
    return _open(path, flags, _NO_LINK)
