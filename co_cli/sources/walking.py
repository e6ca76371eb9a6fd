"""A folder into listings: which notes lie where, and enough of their state to see a change without reading.

A listing is one folder's names with a number for each that stands for size, times and inode, as bytes. Two are compared
whole, so a vault in which nothing changed costs one walk. Whoever has the listings of an earlier walk brings them: what
was a note then needs no second look at its name. Hidden names and excluded ones are left out; links are never followed.
"""

from __future__ import annotations

import os
import struct
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from co_cli.errors import VaultError
from co_cli.places import TEMPORARY
from co_cli.sources.origin import kind_of, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from co_cli.sources.ignoring import Ignoring
    from co_cli.sources.origin import Origin

    Exclusions = tuple[Sequence[str], Sequence[str]]
    """Patterns as in .gitignore, and the files that hold more: at the root; if git's is among them, in every folder."""

IGNORE_FILE = ".coignore"
GIT_FILE = ".gitignore"
UNREAD_FOLDER = "folder cannot be read: "


class Scan(NamedTuple):
    """What one walk saw."""

    listings: dict[str, bytes]
    """Folder (inside the vault, "" for its root) to its listing: the very one that was brought, if nothing changed."""
    odd: list[tuple[str, str]]
    """Entries that look like notes and cannot be, and folders that cannot be read: (path, reason)."""
    notes: int
    excluded: Ignoring | None = None
    unfinished: Sequence[str] = ()
    """Folders in which somebody was writing a file, or was killed while he did."""

    @property
    def unread(self) -> list[str]:
        """Folders that could not be listed."""
        return [path for path, reason in self.odd if reason.startswith(UNREAD_FOLDER)]


def require_vault(root: str) -> str:
    """The real path of a vault that is there, or a VaultError with the cure."""
    if not os.path.exists(root):
        raise VaultError(
            f"no vault at {root}: `co init --vault {root}` makes one, `--vault DIR` names another; "
            "if it is on a drive, mount that first"
        )
    if not os.path.isdir(root):
        raise VaultError(f"{root} is a file: a vault is a folder of notes; name the folder")
    return os.path.realpath(root)


def scan_origin(origin: str | Origin, exclude: Sequence[str] = (), known: Mapping[str, bytes] | None = None) -> Scan:
    """Walk a vault, or another origin. `known` are the listings of an earlier walk: they make this one cheaper and
    change nothing else.
    """
    origin = origin_of(origin)
    root, kind = origin.root, kind_of(origin)
    walk = Walk(root, kind.wants, _excluder(origin, exclude), origin.only)
    listings: dict[str, bytes] = {}
    count = 0
    while walk.waiting:
        folder = walk.waiting.pop()
        try:
            handle = _open_folder(os.path.join(root, folder))
            try:
                listing = walk.list_folder(handle, folder, known.get(folder, b"") if known else b"")
            finally:
                if isinstance(handle, int):
                    os.close(handle)
        except OSError as error:
            if not folder:
                what = "vault" if origin.kind == "vault" else origin.kind
                cure = "check its permissions" if isinstance(error, PermissionError) else "is it there, and mounted?"
                raise VaultError(f"the {what} {root} cannot be read: {error.strerror}; {cure}") from None
            if not isinstance(error, FileNotFoundError):  # removed while we walked
                walk.odd.append((folder, UNREAD_FOLDER + str(error.strerror)))
            continue
        notes, _ = HEAD.unpack_from(listing)
        if notes:
            count += notes
            listings[folder] = listing
    return Scan(listings, walk.odd, count, walk.excluded, walk.unfinished)


def folders_of(origin: Origin, exclude: Sequence[str] = ()) -> tuple[list[str], Ignoring | None]:
    """Every folder that a walk would look into, as a full path, and what it would leave out. Looks at no file."""
    excluded = _excluder(origin, exclude)
    found, waiting = [origin.root], [] if origin.only else [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(origin.root, folder)) as entries:
                names = [one.name for one in entries if one.name[0] != "." and one.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # gone meanwhile, or closed to us: a scan says so
        paths = [path_of(folder, name) for name in names]
        below = [path for path in paths if not (excluded and excluded(path, True))]
        waiting += below
        found += [os.path.join(origin.root, *path.split("/")) for path in below]
    return found, excluded


def _open_folder(path: str) -> int | str:
    """A handle where the system can list one: asking for a file's state is a tenth cheaper relative to its folder."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) if os.scandir in os.supports_fd else path


class Walk:
    """One walk: which folders wait, and what looked like a note and cannot be."""

    def __init__(self, root: str, wants: Callable[[str], bool], excluded: Ignoring | None, only: str = "") -> None:
        self.root, self.wants, self.excluded, self.only = root, wants, excluded, only
        self.waiting = [""]
        self.odd: list[tuple[str, str]] = []
        self.unfinished: list[str] = []

    def list_folder(self, handle: int | str, folder: str, known: bytes) -> bytes:
        """The listing of one folder, or `known` itself if that is what it says. Its folders join those that wait."""
        names: list[str] = []
        numbers: list[int] = []
        others: list[int] = []
        prefix = f"{folder}/" if folder else ""
        # exclusions may have changed since: then every name is looked at
        hints = b"" if self.excluded else _hints(known)
        with os.scandir(handle) as entries:  # pyright: ignore[reportUnknownVariableType, reportCallIssue, reportArgumentType]
            entry: os.DirEntry[str]
            if self.excluded:
                entries = list[os.DirEntry[str]](entries)
                self.excluded.look(folder, [entry.name for entry in entries])
            for was_note, entry in zip(chain(hints, repeat(0)), entries, strict=False):
                if was_note or self._is_note(entry, prefix):
                    try:
                        state = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed while we walked
                    names.append(entry.name)
                    numbers.append(hash((state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns)))
                else:
                    others.append(len(names) + len(others))
        listing = _pack(names, numbers, others)
        if not hints or _same(listing, known):
            return known if hints else listing
        return self._verified(handle, prefix, known, names, numbers, others)

    def _verified(
        self, handle: int | str, prefix: str, known: bytes, names: list[str], numbers: list[int], others: list[int]
    ) -> bytes:
        """The listing of a folder that changed: what is not as the note at its place was may be anything."""
        before = entries_of(known)
        if list(before) == names:  # nothing came and nothing went
            pairs = zip(names, before.values(), numbers, strict=True)
            doubtful = {name for name, number, now in pairs if number != now}
        else:
            doubtful = {name for name, number in zip(names, numbers, strict=True) if before.get(name) != number}
        with os.scandir(handle) as entries:  # pyright: ignore[reportUnknownVariableType, reportCallIssue, reportArgumentType]
            looked: list[os.DirEntry[str]] = [entry for entry in entries if entry.name in doubtful]
        wrong = {entry.name for entry in looked if not self._is_note(entry, prefix)}
        if not wrong:
            return _pack(names, numbers, others)
        places = [place for place, note in enumerate(_mask(len(names), others)) if note]
        others += [place for place, name in zip(places, names, strict=True) if name in wrong]
        numbers = [number for name, number in zip(names, numbers, strict=True) if name not in wrong]
        listing = _pack([name for name in names if name not in wrong], numbers, others)
        return known if _same(listing, known) else listing

    def _is_note(self, entry: os.DirEntry[str], prefix: str) -> bool:
        """Is it one? What is a folder instead joins those that wait; what only looks like a note is odd."""
        name = entry.name
        if name[0] == "." or (self.only and name != self.only):
            if name.startswith(TEMPORARY):
                self.unfinished.append(prefix)
            return False
        if self.wants(name):
            if self.excluded and self.excluded(prefix + name, False):
                return False
            if entry.is_file(follow_symlinks=False):
                return True
            if not entry.is_dir(follow_symlinks=False):
                kind = "symbolic link, not followed" if entry.is_symlink() else "not a regular file"
                self.odd.append((prefix + name, kind))
                return False
        if entry.is_dir(follow_symlinks=False) and not (self.excluded and self.excluded(prefix + name, True)):
            self.waiting.append(prefix + name)
        return False


HEAD = struct.Struct("=qq")
"""How a listing begins: how many notes, how many entries. A byte for each entry follows in the folder's order, 1 for a
note and 0 for anything else; then the numbers of the notes, and their names."""


def _pack(names: list[str], numbers: list[int], others: list[int]) -> bytes:
    mask = _mask(len(names), others)
    packed = struct.pack(f"={len(numbers)}q", *numbers)
    return b"".join(
        (HEAD.pack(len(names), len(mask)), mask, packed, "\0".join(names).encode("utf-8", "surrogateescape"))
    )


def _mask(notes: int, others: list[int]) -> bytes:
    """`others` are the places of what is no note."""
    mask = bytearray(b"\1") * (notes + len(others))
    for place in others:
        mask[place] = 0
    return bytes(mask)


def _hints(listing: bytes) -> bytes:
    """The bytes that say what each entry was."""
    return listing[HEAD.size : HEAD.size + HEAD.unpack_from(listing)[1]] if listing else b""


def _same(one: bytes, other: bytes) -> bool:
    """Do they list the same notes in the same state? What else lies in the folder does not count."""
    return one == other or one[HEAD.size + len(_hints(one)) :] == other[HEAD.size + len(_hints(other)) :]


def entries_of(listing: bytes) -> dict[str, int]:
    """Name to the number that stands for its state."""
    if not listing:
        return {}
    notes, entries = HEAD.unpack_from(listing)
    at = HEAD.size + entries
    names = listing[at + 8 * notes :].decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(names, struct.unpack_from(f"={notes}q", listing, at), strict=True))


def with_numbers(listing: bytes, numbers: dict[str, int]) -> bytes:
    """The listing with other numbers for some of its names."""
    before = entries_of(listing)
    at = HEAD.size + HEAD.unpack_from(listing)[1]
    packed = struct.pack(f"={len(before)}q", *{**before, **numbers}.values())
    return listing[:at] + packed + listing[at + len(packed) :]


def path_of(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def place_of(path: str) -> tuple[str, str]:
    """The folder that a path is in, and its name there."""
    folder, _, name = path.rpartition("/")
    return folder, name


def would_list(origin: Origin, path: str, exclude: Sequence[str] = ()) -> bool:
    """Is this path a file that a walk of the origin would list? Nothing else may be opened through it."""
    kind = kind_of(origin)
    if (origin.only and path != origin.only) or not kind.wants(place_of(path)[1]):
        return False
    return is_listed(origin.root, path, _excluder(origin, exclude))


def is_listed(root: str, path: str, excluded: Ignoring | None) -> bool:
    """Would a scan list this path now?"""
    full = os.path.join(root, *path.split("/"))
    if os.path.realpath(full) != full or not os.path.isfile(full):
        return False
    parts = path.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    return excluded is None or not (any(excluded(folder, True) for folder in folders) or excluded(path, False))


def _excluder(origin: Origin, exclude: Sequence[str]) -> Ignoring | None:
    """None when nothing is excluded, which is the usual case and costs nothing."""
    patterns, files = kind_of(origin).exclusions(origin)
    if not patterns and not exclude and not any(os.path.lexists(os.path.join(origin.root, name)) for name in files):
        return None
    from co_cli.sources.ignoring import Ignoring  # only for those who exclude something: slow to import

    # where git's own is read, both count in every folder
    ignoring = Ignoring(origin.root, patterns, exclude, files, below=GIT_FILE in files)
    return None if ignoring.says_nothing else ignoring
