"""Walk a folder: which files to index, and enough of their state to see changes without reading them.

A listing holds the names in one folder, with a number for each that stands for size, times and inode, as bytes. If the
listings of two walks are equal, nothing changed. Hidden and excluded names are left out; links are never followed.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from co_cli.ground.errors import VaultError
from co_cli.ground.paths import TEMPORARY, open_regular, permission_cure
from co_cli.ground.values import to_utf8
from co_cli.notes.sync_copies import copy_of
from co_cli.sources.origin import GIT_FILE, VAULT, Origin, adapter_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pathspec import GitIgnoreSpec

SECOND_VERSION = "another version of a note, left by a synchroniser"
UNREAD_FOLDER = "folder cannot be read: "
LARGEST_IGNORE_FILE = 1_000_000
JUNCTION = 0xA0000003
COUNT = struct.Struct("=q")
"""A listing starts with the number of names. Their numbers follow, then the names."""


class Scan(NamedTuple):
    """The result of one walk."""

    listings: dict[str, bytes]
    """Folder (inside the origin, "" for its root) to its listing."""
    odd: list[tuple[str, str]]
    """Names that cannot be indexed, and folders that cannot be read: (path, reason)."""
    notes: int
    excluded: IgnoreRules | None = None
    unfinished: list[str] = []  # noqa: RUF012
    """Folders with temporary files of a writer, which may have been killed."""

    @property
    def paths(self) -> list[str]:
        """The files that were listed."""
        return sorted(
            path_of(folder, name) for folder, listing in self.listings.items() for name in entries_of(listing)
        )

    @property
    def unread(self) -> list[str]:
        """Folders that could not be listed."""
        return [path for path, reason in self.odd if reason.startswith(UNREAD_FOLDER)]


class IgnoreRules:
    """Whether a path is excluded. For one walk, because ignore files are read once.

    The strongest rule wins: the setting `knowledge_exclude`, then the last of `files`, then the others, then the
    source's own patterns. Where .gitignore is read, every folder may have ignore files, and the nearest one wins.
    """

    def __init__(
        self, root: str, patterns: Mapping[str, Sequence[str]], files: Sequence[str], setting: Sequence[str]
    ) -> None:
        self._root, self._files, self._nested = root, files[::-1], GIT_FILE in files
        self._patterns = {why: spec for why, lines in patterns.items() if (spec := _spec(lines))}
        self._setting = _spec(setting)
        self._read: dict[str, GitIgnoreSpec | None] = {}

    def __call__(self, path: str, is_folder: bool) -> bool:
        return self.reason(path, is_folder) is not None

    def reason(self, path: str, is_folder: bool) -> str | None:
        """Why a path is excluded; None if it is not."""
        wanted = f"{path}/" if is_folder else path
        if self._setting and self._setting.match_file(wanted):
            return "excluded by the setting knowledge_exclude, or searched as a vault"
        for name in self._files:
            folder = path if self._nested else ""
            while True:
                folder = folder.rpartition("/")[0]
                prefix = f"{folder}/" if folder else ""
                spec = self._spec_of(prefix + name)
                verdict = spec.check_file(wanted[len(prefix) :]).include if spec else None
                if verdict is not None:
                    return f"excluded by {prefix}{name}" if verdict else None
                if not folder:
                    break
        return next((why for why, spec in self._patterns.items() if spec.match_file(wanted)), None)

    def _spec_of(self, file: str) -> GitIgnoreSpec | None:
        if file not in self._read:
            self._read[file] = _spec(_lines_of(os.path.join(self._root, file)))
        return self._read[file]


def require_vault(root: str) -> str:
    """The real path of an existing vault. Raises VaultError with the fix."""
    if not os.path.exists(root):
        raise VaultError(
            f"no vault at {root}: `co init --vault {root}` makes one, `--vault DIR` names another; "
            "if it is on a drive, mount that first"
        )
    if not os.path.isdir(root):
        raise VaultError(f"{root} is a file: a vault is a folder of notes; name the folder")
    return os.path.realpath(root)


def second_versions(odd: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Copies that a synchroniser left, each with the file that it is a version of."""
    for path, why in odd:
        folder, name = place_of(path)
        if why.startswith(SECOND_VERSION) and (original := copy_of(name)):
            yield path, path_of(folder, original)


def scan_origin(origin: str | Origin, exclude: Sequence[str] = ()) -> Scan:
    """Walk a vault, given by its path, or another origin. Raises VaultError if it cannot be read."""
    origin = Origin(VAULT, origin) if isinstance(origin, str) else origin
    scan = Scan({}, [], 0, ignore_rules(origin, exclude), [])
    count, waiting = 0, [""]
    while waiting:
        folder = waiting.pop()
        try:
            names, numbers = _list_folder(origin, folder, scan, waiting)
        except OSError as error:
            if not folder:
                fix = "check its permissions" if isinstance(error, PermissionError) else "is its drive mounted?"
                raise VaultError(f"the {origin.source} {origin.root} cannot be read: {error.strerror}; {fix}") from None
            if not isinstance(error, FileNotFoundError):  # removed during the walk
                cure = permission_cure(os.path.join(origin.root, folder))
                why = f"{error.strerror}; `{cure}`" if isinstance(error, PermissionError) else str(error.strerror)
                scan.odd.append((folder, UNREAD_FOLDER + why))
            continue
        if names:
            count += len(names)
            scan.listings[folder] = _pack(names, numbers)
    return scan._replace(notes=count)


def folders_of(origin: Origin, exclude: Sequence[str] = ()) -> list[str]:
    """The full paths of all folders that a walk would list."""
    return [folder for folder, _ in _folders(origin, ignore_rules(origin, exclude))]


def _folders(origin: Origin, excluded: IgnoreRules | None) -> Iterator[tuple[str, list[str]]]:
    """Each folder, and the paths inside the origin of the folders in it, also of links to folders."""
    for folder, names, _ in os.walk(origin.root):
        prefix = folder[len(origin.root) :].replace(os.sep, "/").strip("/")
        paths = {name: path_of(prefix, name) for name in names if name[0] != "." and not origin.only}
        names[:] = [name for name, path in paths.items() if not (excluded and excluded(path, True))]
        yield folder, [paths[name] for name in names]


def odd_entries(origin: Origin, exclude: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Everything that is not indexed because of what it is, also links to folders."""
    scan = scan_origin(origin, exclude)
    found = dict(scan.odd)
    for _, paths in _folders(origin, scan.excluded):
        for path in paths:
            if os.path.islink(os.path.join(origin.root, path)):
                found.setdefault(path, "symbolic link to a folder, not followed")
    return sorted(found.items())


def left_out(origin: Origin, exclude: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Files and folders (with a `/`) that a walk does not look at, each with the reason; without hidden ones."""
    rules, only_markdown, found = ignore_rules(origin, exclude), origin.source == VAULT, list[tuple[str, str]]()
    for folder, folders, names in os.walk(origin.root) if not origin.only else ():
        prefix = folder[len(origin.root) :].replace(os.sep, "/").strip("/")
        for name in (*folders, *names):
            path, is_folder = path_of(prefix, name), name in folders
            reason = rules.reason(path, is_folder) if rules else None
            if reason is None and only_markdown and not is_folder and not adapter_of(origin).wants(name):
                reason = "not Markdown"
            if reason and name[0] != ".":
                found.append((f"{path}/" if is_folder else path, reason))
        gone = {path for path, _ in found}
        folders[:] = [name for name in folders if name[0] != "." and f"{path_of(prefix, name)}/" not in gone]
    return found


def would_list(origin: Origin, paths: Iterable[str], exclude: Sequence[str] = ()) -> list[str]:
    """Those of these paths that a walk of the origin would list. No other path may be opened by a ref."""
    wants, rules = adapter_of(origin).wants, None
    wanted = [path for path in paths if origin.only in ("", path) and wants(place_of(path)[1])]
    if wanted:
        rules = ignore_rules(origin, exclude)
    return [path for path in wanted if is_listed(origin.root, path, rules)]


def is_listed(root: str, path: str, excluded: IgnoreRules | None) -> bool:
    """The same for any origin, with the rules of an earlier walk."""
    file = os.path.join(root, path)
    folder, name = os.path.split(file)
    original = copy_of(name)
    is_copy = original is not None and os.path.isfile(os.path.join(folder, original))
    return os.path.isfile(file) and not is_copy and may_list(root, path, excluded)


def may_list(root: str, path: str, excluded: IgnoreRules | None) -> bool:
    """Whether a walk would list a file at this path, which need not exist: not if it is hidden, excluded or a link."""
    parts = path.split("/")
    full = os.path.join(root, *parts)
    if os.path.realpath(full) != full or any(part.startswith(".") for part in parts):
        return False
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    return excluded is None or not (any(excluded(folder, True) for folder in folders) or excluded(path, False))


def entries_of(listing: bytes) -> dict[str, int]:
    """Names to the numbers that stand for their state."""
    if not listing:
        return {}
    (count,) = COUNT.unpack_from(listing)
    names = listing[COUNT.size + 8 * count :].decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(names, struct.unpack_from(f"={count}q", listing, COUNT.size), strict=True))


def with_numbers(listing: bytes, numbers: dict[str, int]) -> bytes:
    """The listing with other numbers for some of its names."""
    entries = {**entries_of(listing), **numbers}
    return _pack(list(entries), list(entries.values()))


def path_of(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def place_of(path: str) -> tuple[str, str]:
    """The folder of a path, and its name there."""
    folder, _, name = path.rpartition("/")
    return folder, name


def _list_folder(origin: Origin, folder: str, scan: Scan, waiting: list[str]) -> tuple[list[str], list[int]]:
    """The names of the notes in one folder, with their numbers. Its folders are added to `waiting`."""
    names: list[str] = []
    numbers: list[int] = []
    wants, only, excluded = adapter_of(origin).wants, origin.only, scan.excluded
    prefix = f"{folder}/" if folder else ""
    with os.scandir(os.path.join(origin.root, folder)) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                if name.startswith(TEMPORARY):
                    scan.unfinished.append(prefix)
                continue
            is_folder = entry.is_dir(follow_symlinks=False) and not _is_junction(entry)
            if (only and name != only) or not (is_folder or wants(name)):
                continue
            if excluded and excluded(prefix + name, is_folder):
                continue
            if to_utf8(name) != name:
                scan.odd.append((prefix + name, "the name is not valid UTF-8; rename it"))
            elif is_folder:
                waiting.append(prefix + name)
            elif entry.is_file(follow_symlinks=False):
                try:
                    state = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed during the walk
                names.append(name)
                numbers.append(hash((state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns)))
            else:
                reason = "symbolic link, not followed" if entry.is_symlink() else "not a regular file"
                scan.odd.append((prefix + name, reason))
    there = set(names)
    copies = {name for name in names if copy_of(name) in there}
    if not copies:
        return names, numbers
    fix = "see `co note review`" if origin.source == VAULT else "merge both, and delete it"
    scan.odd.extend((prefix + name, f"{SECOND_VERSION}; {fix}") for name in sorted(copies))
    kept = [(name, number) for name, number in zip(names, numbers, strict=True) if name not in copies]
    return [name for name, _ in kept], [number for _, number in kept]


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """A folder of Windows that leads to another one, perhaps to one that it is in. Python 3.11 has no call for it."""
    return os.name == "nt" and getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == JUNCTION


def _pack(names: list[str], numbers: list[int]) -> bytes:
    head = struct.pack(f"={len(numbers) + 1}q", len(names), *numbers)
    return head + "\0".join(names).encode("utf-8", "surrogateescape")


def ignore_rules(origin: Origin, setting: Sequence[str]) -> IgnoreRules | None:
    """None if nothing is excluded, which is usual and costs nothing."""
    patterns, files = adapter_of(origin).exclusions(origin)
    if (
        not any(patterns.values())
        and not setting
        and not any(os.path.lexists(os.path.join(origin.root, name)) for name in files)
    ):
        return None
    rules = IgnoreRules(origin.root, patterns, files, setting)
    rules("_", False)  # reads the files at the root, so that a broken one is reported
    return rules


def _lines_of(path: str) -> list[str]:
    """The patterns in an ignore file. Raises VaultError for a file that exists and cannot be read."""
    try:
        with open_regular(path) as stream:
            text = stream.read(LARGEST_IGNORE_FILE + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return []
    except OSError as error:
        raise VaultError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > LARGEST_IGNORE_FILE:
        raise VaultError(f"{path} has more than {LARGEST_IGNORE_FILE:,} bytes; shorten it")
    lines = text.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _spec(lines: Sequence[str]) -> GitIgnoreSpec | None:
    """None for no patterns. A line that is not a pattern, such as `bin\\`, matches nothing, as in git."""
    if not lines:
        return None
    from pathspec import GitIgnoreSpec  # 20 ms, and most vaults exclude nothing

    def is_pattern(line: str) -> bool:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            return False
        return True

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(filter(is_pattern, lines))
