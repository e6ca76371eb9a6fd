"""Write files atomically: a crash leaves the old bytes or the new ones, and no other file is overwritten by accident.

A temporary file in the same folder, fsync, link or rename, fsync of the folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from co_cli.paths import TEMPORARY

STALE_AFTER = 3600.0

_unfinished: set[str] = set()


def create_exclusively(path: str, data: bytes) -> bool:
    """Write a new file. False if the name is taken, checked at the last moment."""
    temporary = _temporary_for(path)
    try:
        _write(temporary, data)
        if os.name == "nt":
            os.rename(temporary, path)  # refuses an existing name there
        else:
            _link(temporary, path)
    except FileExistsError:
        return False
    finally:
        _discard(temporary)
    sync_folder(os.path.dirname(path))
    return True


def replace(path: str, data: bytes, check: Callable[[], None] | None = None) -> None:
    """Overwrite a file and keep its permissions. `check` may raise at the last moment."""
    temporary = _temporary_for(path)
    try:
        _write(temporary, data)
        with contextlib.suppress(OSError):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        if check:
            check()
        os.replace(temporary, path)
    finally:
        _discard(temporary)
    sync_folder(os.path.dirname(path))


def read_json(path: str) -> dict[str, Any]:
    """A small file of state as an object; an empty one if the file cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            found: Any = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def change_json(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a small file of state that several processes may write."""
    make_folders(os.path.dirname(path))
    with locked(f"{path}.lock"):
        state = read_json(path)
        change(state)
        replace(path, json.dumps(state, indent=1).encode())


def sync_folder(folder: str) -> None:
    """Make names in this folder survive a power cut. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot sync a folder
            raise
    finally:
        os.close(handle)


def discard_unfinished() -> None:
    """Remove the temporary files of writes that Ctrl-C stopped."""
    for temporary in list(_unfinished):
        _discard(temporary)


def sweep_temporary(folder: str, now: float | None = None) -> list[str]:
    """Remove temporary files that a killed process left. Younger ones may be in use."""
    now = time.time() if now is None else now
    swept: list[str] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY) and entry.stat(follow_symlinks=False).st_mtime < now - STALE_AFTER:
                os.unlink(entry.path)
                swept.append(entry.path)
    return swept


def is_empty_folder(folder: str) -> bool:
    """Whether there is nothing in a folder, as at the mount point of a drive that is not mounted."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return not os.path.exists(folder)


def make_folders(folder: str, private: bool = False) -> None:
    """Make a folder and its missing parents, so that they survive a power cut. `private`: only you may enter it."""
    folder = os.path.abspath(folder)
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folders(above)
    try:
        os.mkdir(folder, 0o700 if private else 0o777)
    except FileExistsError:
        if not os.path.isdir(folder):  # another process was faster
            raise
    with contextlib.suppress(PermissionError):  # a folder with write but no read permission
        sync_folder(above)


@contextlib.contextmanager
def locked(target: str, wait: bool = True) -> Generator[None]:
    """Hold the lock of a folder or of a lock file. Waits for it, or without `wait` raises BlockingIOError."""
    if os.name == "nt":
        target = _lock_file(target)
    try:
        flags = os.O_RDONLY if os.path.isdir(target) else os.O_RDWR | os.O_CREAT
        handle = os.open(target, flags, 0o644)
    except PermissionError:
        handle = os.open(_lock_file(target), os.O_RDWR | os.O_CREAT, 0o644)
    owner = (target, threading.get_ident())
    if wait:
        _release_leaked(owner, handle)
        _held[owner] = handle
    try:
        _lock(handle, wait)
        yield
    finally:
        os.close(handle)  # closing releases the lock
        if wait:
            _held.pop(owner, None)


_held: dict[tuple[str, int], int] = {}
"""The open locks of each thread."""


def _release_leaked(owner: tuple[str, int], handle: int) -> None:
    """Ctrl-C can come right before a lock is closed. The same thread would then wait for itself forever."""
    leaked = _held.pop(owner, None)
    if leaked is None or leaked == handle:
        return
    with contextlib.suppress(OSError):  # closed already
        if os.path.samestat(os.fstat(leaked), os.fstat(handle)):
            os.close(leaked)


def _lock(handle: int, wait: bool) -> None:
    if sys.platform == "win32":
        import msvcrt

        if not wait:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError as error:
                raise BlockingIOError(error.errno, error.strerror) from error
            return
        while True:
            with contextlib.suppress(OSError):  # gives up after ten seconds
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_file(target: str) -> str:
    import tempfile
    import zlib

    return os.path.join(tempfile.gettempdir(), f"co-cli-{zlib.crc32(os.fsencode(os.path.realpath(target))):08x}.lock")


def _link(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # no hard links on this file system: create the name first, then replace our own file
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(temporary, path)


def _temporary_for(path: str) -> str:
    name = f"{TEMPORARY}{os.getpid():x}-{time.monotonic_ns():x}-{os.urandom(3).hex()}"
    temporary = os.path.join(os.path.dirname(path), name)
    _unfinished.add(temporary)
    return temporary


def _write(temporary: str, data: bytes) -> None:
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    except OSError as error:
        error.filename = temporary  # the system names no file here
        raise
    finally:
        os.close(handle)


def _discard(temporary: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    _unfinished.discard(temporary)
