"""Real file systems in trouble: full, of bounded files, unmounted, without case. Only root can mount; others skip."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(*arguments: str) -> None:
    """Mount something, or skip the test."""
    tried = (
        subprocess.run(["mount", *arguments], capture_output=True, check=False)
        if hasattr(os, "geteuid") and os.geteuid() == 0
        else None
    )
    if tried is None or tried.returncode:
        pytest.skip(f"mount {' '.join(arguments[:-1])}: only root can, outside most containers")


def unmount(place: Path) -> None:
    """At once, also while somebody has files open there, as when a drive is pulled."""
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def small_disk(place: Path, size: str, *options: str) -> Generator[Path]:
    """A file system with room for `size`."""
    place.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "tmpfs", str(place))
    try:
        yield place
    finally:
        unmount(place)


def fill(disk: Path, leave: int = 0) -> Path:
    """Take all the room but for some bytes. Removing the file that is returned gives it back."""
    room = disk / "filler.bin"
    with room.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"\0" * 4096)
        except OSError:
            pass
    if leave:
        os.truncate(room, max(0, room.stat().st_size - leave))
    return room
