"""A vault's folder into listings: which notes lie where, and enough of their state to see a change without reading.

A listing is one folder's names with their sizes, mtimes and inodes, as bytes. Two are compared whole, so a vault
in which nothing changed costs one walk. Hidden names and excluded ones are left out; links are never followed.
"""

from __future__ import annotations

import os
import struct

from co_cli.errors import VaultError
from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Excluded = Callable[[str, bool], bool]
    """Is this path (inside the vault) excluded; the flag says whether it is a folder."""

ENDING = ".md"
RARE_ENDINGS = (".markdown", ".MD", ".Md", ".mD", ".Markdown", ".MARKDOWN")
IGNORE_FILE = ".coignore"
UNREAD_FOLDER = "folder cannot be read: "


class State(Record):
    """Enough of a file to see that it changed."""

    size: int
    mtime_ns: int
    inode: int


class Scan(Record):
    """What one walk saw."""

    listings: dict[str, bytes]
    """Folder (inside the vault, "" for its root) to its listing."""
    odd: list[tuple[str, str]]
    """Entries that look like notes and cannot be, and folders that cannot be read: (path, reason)."""
    notes: int
    excluded: Excluded | None = None

    @property
    def unread(self) -> list[str]:
        """Folders that could not be listed."""
        return [path for path, reason in self.odd if reason.startswith(UNREAD_FOLDER)]


class Entry(Record):
    """One file of a listing."""

    path: str
    size: int
    mtime_ns: int


def require_vault(root: str) -> str:
    """The real path of a vault that is there, or a VaultError with the cure."""
    if not os.path.exists(root):
        raise VaultError(f"no vault at {root}: `co init --vault {root}` makes one, `--vault DIR` names another")
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
        try:
            handle = _open_folder(os.path.join(root, folder))
            try:
                names, states = _list_folder(handle, folder, excluded, waiting, odd)
            finally:
                if isinstance(handle, int):
                    os.close(handle)
        except OSError as error:
            if not folder:
                raise VaultError(f"the vault {root} cannot be read: {error.strerror}; check its permissions") from None
            if not isinstance(error, FileNotFoundError):  # removed while we walked
                odd.append((folder, UNREAD_FOLDER + str(error.strerror)))
            continue
        if names:
            count += len(names)
            listings[folder] = _pack(names, states)
    return Scan(listings, odd, count, excluded)


def _open_folder(path: str) -> int | str:
    """A handle where the system can list one: asking for a file's state is a tenth cheaper relative to its folder."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) if os.scandir in os.supports_fd else path


def _list_folder(
    handle: int | str, folder: str, excluded: Excluded | None, waiting: list[str], odd: list[tuple[str, str]]
) -> tuple[list[str], list[int]]:
    """The notes of one folder: their names, and size, mtime and inode of each in a row. Its folders join `waiting`."""
    names: list[str] = []
    states: list[int] = []
    prefix = f"{folder}/" if folder else ""
    with os.scandir(handle) as entries:  # pyright: ignore[reportUnknownVariableType, reportCallIssue, reportArgumentType]
        entry: os.DirEntry[str]
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if name.endswith(ENDING) or name.endswith(RARE_ENDINGS):
                if excluded and excluded(prefix + name, False):
                    continue
                if entry.is_file(follow_symlinks=False):
                    try:
                        state = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed while we walked
                    names.append(name)
                    states += (state.st_size, state.st_mtime_ns, state.st_ino)
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    kind = "symbolic link, not followed" if entry.is_symlink() else "not a regular file"
                    odd.append((prefix + name, kind))
                    continue
            if entry.is_dir(follow_symlinks=False) and not (excluded and excluded(prefix + name, True)):
                waiting.append(prefix + name)
    return names, states


def _pack(names: list[str], states: list[int]) -> bytes:
    """How many, the numbers, the names: far cheaper than a text of them."""
    try:
        numbers = struct.pack(f"q{len(states)}q", len(names), *states)
    except struct.error:  # inodes of some network file systems use all 64 bits
        signed = [(number + (1 << 63)) % (1 << 64) - (1 << 63) for number in states]
        numbers = struct.pack(f"q{len(signed)}q", len(names), *signed)
    return numbers + "\0".join(names).encode("utf-8", "surrogateescape")


def pack_listing(entries: dict[str, State]) -> bytes:
    """The listing that `entries_of` reads back."""
    return _pack(list(entries), [number for state in entries.values() for number in state])


def entries_of(listing: bytes) -> dict[str, State]:
    """Name to state."""
    if not listing:
        return {}
    (count,) = struct.unpack_from("q", listing)
    numbers = struct.unpack_from(f"{3 * count}q", listing, 8)
    names = listing[8 + 24 * count :].decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(names, map(State, numbers[::3], numbers[1::3], numbers[2::3]), strict=True))


def entry_of(folder: str, name: str, state: State) -> Entry:
    return Entry(f"{folder}/{name}" if folder else name, state.size, state.mtime_ns)


def is_note(root: str, path: str, excluded: Excluded | None) -> bool:
    """Would a scan list this path now?"""
    full = os.path.join(root, path)
    if os.path.realpath(full) != full or not os.path.isfile(full):
        return False
    parts = path.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    return excluded is None or not (any(excluded(folder, True) for folder in folders) or excluded(path, False))


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
