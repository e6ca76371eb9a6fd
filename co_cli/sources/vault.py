"""A vault's folder into listings: which notes lie where, and enough of their state to see a change without reading.

A listing is one folder's `name/size/mtime/inode` entries joined by NUL: two listings are compared as bytes, so a vault
in which nothing changed costs one walk. Hidden names and excluded ones are left out; links are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.errors import VaultError

ENDINGS = (".md", ".markdown", ".MD", ".Md", ".Markdown")
IGNORE_FILE = ".coignore"

Excluded = Callable[[str, bool], bool]
"""Is this path (inside the vault) excluded; the flag says whether it is a folder."""


class Scan(NamedTuple):
    """What one walk saw."""

    listings: dict[str, bytes]
    """Folder (inside the vault, "" for its root) to its listing."""
    odd: list[tuple[str, str]]
    """Entries that look like notes and cannot be: (path, reason)."""
    notes: int


class Entry(NamedTuple):
    """One file of a listing."""

    path: str
    size: int
    mtime_ns: int


def require_vault(root: str) -> str:
    """The real path of a vault that is there, or a VaultError with the cure."""
    if not os.path.exists(root):
        raise VaultError(f"no vault at {root}: `co init` makes one, `--vault DIR` names another")
    if not os.path.isdir(root):
        raise VaultError(f"{root} is a file: a vault is a folder of notes; name the folder")
    return os.path.realpath(root)


def scan_vault(root: str, exclude: Sequence[str] = ()) -> Scan:
    excluded = _excluder(root, exclude)
    listings: dict[str, bytes] = {}
    odd: list[tuple[str, str]] = []
    count = 0
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        entries: list[str] = []
        prefix = f"{folder}/" if folder else ""
        try:
            scanner = os.scandir(os.path.join(root, folder))
        except OSError as error:
            if not folder:
                raise VaultError(f"the vault {root} cannot be read: {error.strerror}; check its permissions") from None
            odd.append((folder, f"folder cannot be read: {error.strerror}"))
            continue
        with scanner:
            for entry in scanner:
                name = entry.name
                if name[0] == ".":
                    continue
                if name.endswith(ENDINGS):
                    if excluded and excluded(prefix + name, False):
                        continue
                    if entry.is_file(follow_symlinks=False):
                        state = entry.stat(follow_symlinks=False)
                        entries.append(f"{name}/{state.st_size}/{state.st_mtime_ns}/{state.st_ino}")
                        continue
                    if not entry.is_dir(follow_symlinks=False):
                        kind = "symbolic link, not followed" if entry.is_symlink() else "not a regular file"
                        odd.append((prefix + name, kind))
                        continue
                if entry.is_dir(follow_symlinks=False) and not (excluded and excluded(prefix + name, True)):
                    waiting.append(prefix + name)
        if entries:
            count += len(entries)
            listings[folder] = "\0".join(entries).encode("utf-8", "surrogateescape")
    return Scan(listings, odd, count)


def entries_of(folder: str, listing: bytes) -> dict[str, str]:
    """Name to its whole entry."""
    if not listing:
        return {}
    texts = listing.decode("utf-8", "surrogateescape").split("\0")
    return {text.split("/", 1)[0]: text for text in texts}


def read_entry(folder: str, text: str) -> Entry:
    name, size, mtime, _ = text.split("/", 3)
    return Entry(f"{folder}/{name}" if folder else name, int(size), int(mtime))


def _excluder(root: str, patterns: Sequence[str]) -> Excluded | None:
    """None when nothing is excluded, which is the usual case and costs nothing."""
    lines = list(patterns)
    try:
        with open(os.path.join(root, IGNORE_FILE), encoding="utf-8", errors="replace") as stream:
            lines += stream.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise VaultError(f"{os.path.join(root, IGNORE_FILE)} cannot be read: {error.strerror}") from None
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec  # only for those who exclude something: it is slow to import

    spec = GitIgnoreSpec.from_lines(lines)
    return lambda path, is_folder: spec.match_file(f"{path}/" if is_folder else path)
