"""Write files atomically: a crash leaves the old bytes or the new ones, and no other file is overwritten by accident.

A temporary file in the same file system where git does not see it, fsync, link or rename, fsync of the folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
import sys
import threading
import time
import zlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

from co_cli.ground.paths import TEMPORARY, open_regular

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

STALE_AFTER = 3600.0
LOCK_POLL = 0.01
PATIENCE = 2.0
"""Seconds that Windows may refuse to rename or remove a file, because another program looks at it."""
OURS = re.compile(re.escape(TEMPORARY) + "[0-9a-f]+-[0-9a-f]+-[0-9a-f]{6}")
"""The names that `temporary_name` makes."""
NO_REPLACE, EXCHANGE = 1, 2
"""Ways to rename: only to a free name, and two files in each other's place."""
NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ)
"""This disk cannot have a file of that name."""
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)

_unfinished: dict[str, int | None] = {}
"""Temporary files, and the handles that hold them against sweeping."""


def create_exclusively(path: str, data: bytes, through: str | None = None, like: str | None = None) -> bool:
    """Write a new file. False if the name is taken, checked at the last moment.

    The temporary file is for the same folder, or for `through`. The new one has the attributes of the file `like`.
    """
    temporary = _begin(through or os.path.dirname(path))
    try:
        _write(temporary, data, like)
        folder = os.stat(os.path.dirname(path))
        if like is None and folder.st_mode & stat.S_ISGID and sys.platform != "win32":
            with contextlib.suppress(PermissionError):
                os.chown(temporary, -1, folder.st_gid)  # as if it had been created there
        if os.name == "nt":
            patiently(os.rename, temporary, path)  # refuses an existing name there
        else:
            _link(temporary, path)
    except FileExistsError:
        return False
    finally:
        _discard(temporary)
    sync_folder(os.path.dirname(path))
    return True


def replace(path: str, data: bytes, private: bool = False) -> None:
    """Write a file. One that exists keeps its owner, permissions and extended attributes."""
    temporary = _begin(os.path.dirname(path), private)
    try:
        _write(temporary, data, path, private)
        patiently(os.replace, temporary, path)
    finally:
        _discard(temporary)
    sync_folder(os.path.dirname(path))


def replace_all(files: Mapping[str, bytes]) -> dict[str, OSError]:
    """Write many files as `replace` does, which waits for the disk once for all. Returns those with an impossible name.

    All of them are open at once.
    """
    temporaries: dict[str, str] = {}
    failed: dict[str, OSError] = {}
    try:
        for path, data in files.items():
            temporaries[path] = _begin(os.path.dirname(path))
            _write(temporaries[path], data, path, wait=False)
        for temporary in temporaries.values():
            if handle := _unfinished[temporary]:
                os.fsync(handle)
        for path, temporary in temporaries.items():
            try:
                patiently(os.replace, temporary, path)
            except OSError as error:
                if error.errno not in NO_NAME:
                    raise
                failed[path] = error
    finally:
        for temporary in temporaries.values():
            _discard(temporary)
    for folder in {os.path.dirname(path) for path in files}:
        sync_folder(folder)
    return failed


def replace_text(path: str, data: bytes, based_on: bytes) -> bool:
    """Overwrite a file that has the content `based_on`. False if it has another, which then stays.

    That includes what an editor saves at the last moment, where the system can exchange two files.
    """
    temporary = _begin(os.path.dirname(path))
    try:
        _write(temporary, data, path)
        return read_bytes(path) == based_on and _exchange(temporary, path, data, based_on)
    finally:
        _discard(temporary)


def _exchange(temporary: str, path: str, data: bytes, based_on: bytes) -> bool:
    """Put the temporary file in the place of another, and back if that was not what it should replace.

    Every turn looks at what it took away, so whoever saved last has their text at `path` in the end.
    """
    held, expected = data, based_on
    _release(temporary)  # from now on Ctrl-C must not remove it, because it may be somebody's text
    while True:
        try:
            if not rename_with(EXCHANGE, temporary, path):
                patiently(os.replace, temporary, path)
                sync_folder(os.path.dirname(path))
                return True
        except OSError:
            if held is data:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
            raise
        found = read_bytes(temporary)
        if found == expected:
            sync_folder(os.path.dirname(path))  # takes a while: who has the old file open can write to it until then
            found = read_bytes(temporary)
        if found == expected:
            os.unlink(temporary)
            return held is data
        held, expected = found, held


def move(source: str, target: str) -> bool:
    """Rename a file or a folder. False if the name is taken."""
    make_folders(os.path.dirname(target))
    try:
        if not rename_with(NO_REPLACE, source, target):
            if os.path.lexists(target):
                return False
            patiently(os.rename, source, target)
    except FileExistsError:
        return False
    sync_folder(os.path.dirname(target))
    sync_folder(os.path.dirname(source))
    return True


def patiently(call: Callable[..., None], *paths: str) -> None:
    """Rename or remove a file. Windows refuses that while somebody has it open, as virus scanners do for a moment."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            call(*paths)
            return
        except PermissionError:
            if os.name != "nt" or time.monotonic() >= end:
                raise
        time.sleep(LOCK_POLL)


def rename_with(how: int, source: str, target: str) -> bool:
    """Rename in one of the ways that os.rename lacks. False where the system or the file system cannot."""
    if sys.platform == "win32":
        return False
    import ctypes  # slow to import, and only writers need it

    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(source), os.fsencode(target)
    if hasattr(libc, "renamex_np"):  # macOS
        failed = libc.renamex_np(*names, 4 if how == NO_REPLACE else 2)
    elif hasattr(libc, "renameat2"):  # Linux
        failed = libc.renameat2(-100, names[0], -100, names[1], how)  # -100: relative to the current folder
    else:
        return False
    number = ctypes.get_errno()
    if failed and number not in CANNOT:
        raise OSError(number, os.strerror(number), source if how == NO_REPLACE else target)
    return not failed


def open_private(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], flags: int) -> int:
    """Open a file that only you can read, also if it is new and whatever the umask: an `opener` of `open`."""
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)
    if os.name == "posix" and stat.S_ISREG(os.fstat(handle).st_mode):  # never /dev/null
        with contextlib.suppress(PermissionError):  # somebody else's
            os.fchmod(handle, 0o600)
    return handle


def read_json(path: str) -> dict[str, Any]:
    """A small file of state as an object; an empty one if the file cannot be read."""
    try:
        return read_state(path)
    except OSError:
        return {}


def read_state(path: str) -> dict[str, Any]:
    """The same, but a file that is there and cannot be read now raises OSError: what it has must not be forgotten."""
    try:
        with open(path, encoding="utf-8") as stream:
            found: Any = json.load(stream)
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def change_json(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a small file of state that several processes may write and only you can read."""
    make_folders(os.path.dirname(path))
    with locked(f"{path}.lock"):
        state = read_state(path)
        change(state)
        replace(path, json.dumps(state, indent=1).encode(), private=True)


def stamp_of(path: str) -> tuple[int, int, int] | None:
    """Another value when a file was changed or replaced; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


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


def sweep_temporary(folder: str, remove: Callable[[str], object] = os.unlink) -> list[str]:
    """Remove temporary files that a killed process left: those an hour old that no process holds."""
    oldest = time.time() - STALE_AFTER
    swept: list[str] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if not OURS.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            with contextlib.suppress(FileNotFoundError, BlockingIOError):
                state = entry.stat(follow_symlinks=False)
                # a rename changes ctime, too; on Windows it is when the file was created
                if (state.st_mtime if sys.platform == "win32" else state.st_ctime) < oldest:
                    _remove_unheld(entry.path, remove)
                    swept.append(entry.path)
    return swept


def _remove_unheld(path: str, remove: Callable[[str], object]) -> None:
    """Remove a file, or raise BlockingIOError if a process holds it."""
    if os.name == "nt":  # an open file cannot be removed there
        remove(path)
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(handle, wait=False)
        remove(path)
    finally:
        os.close(handle)


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
    if private:
        os.chmod(folder, 0o700)  # whatever the umask
    with contextlib.suppress(PermissionError):  # a folder with write but no read permission
        sync_folder(above)


@contextlib.contextmanager
def locked(target: str, wait: bool | float = True) -> Generator[None]:
    """Hold the lock of a folder or of a lock file. Waits for it; for some seconds or not at all, then it raises
    BlockingIOError."""
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


def _lock(handle: int, wait: bool | float) -> None:
    end = math.inf if wait is True else time.monotonic() + wait
    while True:
        try:
            if sys.platform == "win32":
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(handle, fcntl.LOCK_EX if wait is True else fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if not isinstance(error, BlockingIOError | PermissionError):  # the latter on Windows
                raise
            if time.monotonic() >= end:
                raise BlockingIOError(error.errno, error.strerror) from error
        time.sleep(LOCK_POLL)


def _lock_file(target: str) -> str:
    import tempfile  # 7 ms, and only where a folder cannot be locked itself

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


def temporary_name(folder: str) -> str:
    """A name for a file that is being written. What a killed process leaves under it is swept."""
    return os.path.join(folder, f"{TEMPORARY}{os.getpid():x}-{time.monotonic_ns():x}-{os.urandom(3).hex()}")


def _begin(folder: str, private: bool = False) -> str:
    hidden = None if private else place_beside_git(folder)
    temporary = temporary_name(hidden if hidden and _make_hidden(hidden, folder) else folder)
    _unfinished[temporary] = None
    return temporary


def place_beside_git(folder: str) -> str | None:
    """In a git repository, a folder that git does not look into; None elsewhere, and where it is somebody else's."""
    top = folder
    while not os.path.lexists(git := os.path.join(top, ".git")):
        if os.path.dirname(top) == top:
            return None
        top = os.path.dirname(top)
    with contextlib.suppress(OSError):
        found, here = os.lstat(git), os.stat(folder)
        if (found.st_dev, found.st_uid) == (here.st_dev, here.st_uid):
            # a worktree has a file there, which may name any folder
            return os.path.join(git, "co-tmp") if stat.S_ISDIR(found.st_mode) else os.path.join(top, ".co-tmp")
    return None


def _make_hidden(hidden: str, folder: str) -> bool:
    """Make the folder for temporary files, if it is not there. False if it cannot be used."""
    ignore = os.path.join(hidden, ".gitignore")
    with contextlib.suppress(OSError):
        if not os.path.lexists(ignore):
            with contextlib.suppress(FileExistsError):
                os.mkdir(hidden)
                os.chmod(hidden, stat.S_IMODE(os.stat(folder).st_mode))  # others may save here, too
            with open(ignore, "x") as stream:
                stream.write("*\n")
        return stat.S_ISDIR(os.lstat(hidden).st_mode) and os.access(hidden, os.W_OK | os.X_OK)
    return False


def _write(temporary: str, data: bytes, like: str | None = None, private: bool = False, wait: bool = True) -> None:
    """Write a temporary file, with the owner, permissions and extended attributes of the file `like`.

    Without `wait`, it may not be on the disk yet, unless its handle had to be closed.
    """
    known = like if like and os.path.exists(like) else None
    mode = 0o600 if known or private else 0o666
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)
    _unfinished[temporary] = handle
    try:
        if os.name == "posix":
            _lock(handle, wait=False)  # nobody else has it
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        if known:
            _copy_attributes(known, temporary)
        if private:
            os.chmod(temporary, 0o600)
        if wait or os.name == "nt":
            os.fsync(handle)
    except OSError as error:
        error.filename = temporary  # the system names no file here
        raise
    finally:
        if os.name == "nt":  # an open file cannot be renamed there
            os.close(handle)
            _unfinished[temporary] = None


def _copy_attributes(path: str, temporary: str) -> None:
    import shutil  # with its compressors 4 ms, which only writers need

    with contextlib.suppress(OSError):  # some systems and file systems have none of this
        state = os.stat(path)
        if sys.platform != "win32":
            for owner in (state.st_uid, -1):
                with contextlib.suppress(PermissionError):  # only root may give a file away
                    os.chown(temporary, owner, state.st_gid)
                    break
        shutil.copystat(path, temporary)
        os.utime(temporary)  # it is a new text


def read_bytes(path: str) -> bytes:
    """The content of a regular file."""
    with open_regular(path) as stream:
        return stream.read()


def _release(temporary: str) -> None:
    handle = _unfinished.pop(temporary, None)
    if handle is not None:
        os.close(handle)


def _discard(temporary: str) -> None:
    """Remove a temporary file that was not released."""
    if temporary in _unfinished:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        _release(temporary)
