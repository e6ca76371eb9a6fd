"""Make a process behave as on Windows, as far as files, signals and child processes go.

Python runs this first if the folder is in PYTHONPATH. Only what belongs to the system is changed: modules and calls
that Windows lacks are gone, files that somebody has open cannot be renamed or removed, names are refused as there, and
without O_BINARY a handle writes CR LF. Paths stay those of this machine.
"""

from __future__ import annotations

# these look at import what system they are on, and here they have to work on the real one
import asyncio  # noqa: F401
import builtins
import ctypes
import errno
import fcntl
import io
import logging.handlers  # noqa: F401
import math
import multiprocessing  # noqa: F401
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import socket  # noqa: F401
import ssl  # noqa: F401
import subprocess
import sys
import tempfile
import time
import types
import warnings
import webbrowser  # noqa: F401
import zipfile  # noqa: F401

from unix_only import ALARMS, CALLS, MODULES, SIGNALS

UNUSABLE = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]\Z|\A(?:con|prn|aux|nul|com\d|lpt\d)\s*(?:\.|\Z)', re.IGNORECASE)
BINARY = 1 << 28
IN_USE = "The process cannot access the file because it is being used by another process"
WRONG_NAME = "The filename, directory name, or volume label syntax is incorrect"

real = types.SimpleNamespace(
    **{name: getattr(os, name) for name in ("open", "close", "write", "fsync", "rename", "replace", "unlink", "mkdir")},
    file=builtins.open,
    popen=subprocess.Popen.__init__,
    library=ctypes.CDLL.__init__,
)
text_handles: set[int] = set()
"""Those that were opened without O_BINARY."""


def refuse_name(path: object) -> None:
    if isinstance(path, str) and not path.startswith(("/dev/", "/proc/")):
        for part in path.split("/"):
            if part not in ("", ".", "..") and UNUSABLE.search(part):
                raise OSError(errno.EINVAL, WRONG_NAME, path)


def refuse_in_use(path: str) -> None:
    """Also if another process has it open: nobody here shares the right to delete."""
    path = os.path.realpath(path)
    for process in filter(str.isdigit, os.listdir("/proc")):
        folder = f"/proc/{process}/fd"
        try:
            opened = [os.readlink(f"{folder}/{handle}") for handle in os.listdir(folder)]
        except OSError:  # it ended
            continue
        if any(one == path or one.startswith(f"{path}/") for one in opened):
            raise PermissionError(errno.EACCES, IN_USE, path)


def windows_open(path, flags, mode=0o777, *, dir_fd=None):
    refuse_name(path)
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)
    handle = real.open(path, flags & ~BINARY, mode, dir_fd=dir_fd)
    text_handles.discard(handle)
    if not flags & BINARY:
        text_handles.add(handle)
    return handle


def windows_close(handle):
    text_handles.discard(handle)
    real.close(handle)


def windows_write(handle, data):
    if handle not in text_handles:
        return real.write(handle, data)
    real.write(handle, bytes(data).replace(b"\n", b"\r\n"))
    return len(data)


def windows_fsync(handle):
    if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    real.fsync(handle)


def windows_rename(source, target, **_):
    refuse_name(target)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", source, None, target)
    refuse_in_use(source)
    real.rename(source, target)


def windows_replace(source, target, **_):
    refuse_name(target)
    refuse_in_use(source)
    if os.path.lexists(target):
        refuse_in_use(target)
    real.replace(source, target)


def windows_unlink(path, **_):
    if os.path.lexists(path):
        refuse_in_use(path)
    real.unlink(path)


def windows_mkdir(path, mode=0o777, **_):
    refuse_name(path)
    real.mkdir(path)  # there are no such permissions


def windows_file(file, mode="r", *arguments, **options):
    refuse_name(file)
    return real.file(file, mode, *arguments, **options)


def windows_wait(self, timeout=None):
    """As on Windows, with a limit too: here that asks for os.WNOHANG."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    while self._internal_poll() is None:
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(self.args, timeout)
        time.sleep(0.01)
    return self.returncode


def windows_popen(self, *arguments, creationflags=0, preexec_fn=None, **options):
    if preexec_fn is not None:
        raise ValueError("preexec_fn is not supported on Windows platforms")
    real.popen(self, *arguments, **options)


def windows_library(self, name, *arguments, **options):
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    real.library(self, name, *arguments, **options)


def locking(handle, mode, size):
    """Of msvcrt: without waiting."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


for name in {*MODULES} - {"posix"}:  # which is what os is made of
    sys.modules[name] = None  # type: ignore[assignment]
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)  # type: ignore[assignment]
platform.uname()  # it keeps the answer
for name in CALLS:
    if hasattr(os, name):
        delattr(os, name)
for name in [*vars(signal)]:
    if name in ALARMS or (re.fullmatch(r"SIG[A-Z0-9]+", name) and name not in SIGNALS):
        delattr(signal, name)
del select.poll
os.open, os.close, os.write, os.fsync, os.mkdir = (
    windows_open,
    windows_close,
    windows_write,
    windows_fsync,
    windows_mkdir,
)
os.rename, os.replace, os.unlink, os.remove = windows_rename, windows_replace, windows_unlink, windows_unlink
del os.link
os.O_BINARY = BINARY
builtins.open = io.open = windows_file
subprocess.Popen.__init__, subprocess._USE_POSIX_SPAWN = windows_popen, False
subprocess.Popen._wait = windows_wait
subprocess.Popen.kill = lambda self: self.send_signal(9)
subprocess.CREATE_NEW_PROCESS_GROUP, subprocess.CREATE_NO_WINDOW, subprocess.DETACHED_PROCESS = 0x200, 0x8000000, 8
ctypes.CDLL.__init__ = windows_library
shutil._use_fd_functions = False
tempfile.tempdir = tempfile.gettempdir()
os.path.expanduser = lambda path: re.sub(r"\A~(?=/|\Z)", os.environ["USERPROFILE"], os.fspath(path))
pathlib.Path.__new__.__globals__["WindowsPath"] = pathlib.PosixPath
warnings.filterwarnings("error", category=EncodingWarning, module="co_cli")
sys.platform, os.name = "win32", "nt"
