"""An origin in the file system: which changes concern it, and whether it is there at all."""

from __future__ import annotations

import os
import stat
from enum import Enum

from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.sources.origin import Origin, kind_of

DATABASES = ("search.db", "activity.db", "sources.toml")


class Concern(Enum):
    """What a change is to an origin."""

    NOTHING = 0
    FILE = 1
    """A file that it reads came, went or changed."""
    FOLDERS = 2
    """There may be other folders to watch now."""


class Watched:
    """One origin, as it stands in the file system when this is made."""

    def __init__(self, origin: Origin, index: KnowledgeIndex, data_dir: str) -> None:
        self.origin, self._kind, self._data_dir = origin, kind_of(origin), os.path.realpath(data_dir)
        folders, self._excluded = index.folders()
        self.folders = frozenset(folders)
        self._rules = self._kind.exclusions(origin)[1]

    def concern(self, path: str) -> Concern:
        """What a change of this path means here."""
        root = self.origin.root.rstrip(os.sep)
        if path in self.folders:
            return Concern.FOLDERS
        if not path.startswith(root + os.sep):
            return Concern.NOTHING
        inside = path[len(root) + 1 :].replace(os.sep, "/")
        if inside in self._rules:
            return Concern.FOLDERS
        if any(part.startswith(".") for part in inside.split("/")) or self._is_ours(path):
            return Concern.NOTHING
        if self.origin.only:
            return Concern.FILE if inside == self.origin.only else Concern.NOTHING
        is_folder = _is_folder(path)
        if self._is_excluded(inside, is_folder):
            return Concern.NOTHING
        if is_folder:
            return Concern.FOLDERS
        return Concern.FILE if self._kind.wants(inside.rpartition("/")[2]) else Concern.NOTHING

    def _is_ours(self, path: str) -> bool:
        """What we write ourselves must not wake us."""
        folder, name = os.path.split(path)
        return folder == self._data_dir and name.startswith(DATABASES)

    def _is_excluded(self, inside: str, is_folder: bool) -> bool:
        if self._excluded is None:
            return False
        parts = inside.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return self._excluded(inside, is_folder) or any(self._excluded(folder, True) for folder in above)


class Presence:
    """Are the folders there, and are they still the ones that were synced?"""

    def __init__(self) -> None:
        self._seen: dict[Origin, tuple[int, int]] = {}

    def identity(self, origin: Origin) -> tuple[int, int] | None:
        """The drive and the inode of its folder; None if there is none."""
        try:
            state = os.stat(origin.root)
        except OSError:
            return None
        return state.st_dev, state.st_ino

    def saw(self, origin: Origin, identity: tuple[int, int] | None) -> None:
        """It was synced, and that was the folder."""
        if identity:
            self._seen[origin] = identity

    def is_another(self, origin: Origin) -> bool:
        """Is another folder there than the one that was synced?"""
        return origin in self._seen and self.identity(origin) != self._seen[origin]

    def missing(self, origin: Origin) -> str | None:
        """Why it counts as not being there. An empty folder on another drive than before is one that is not mounted."""
        identity, before = self.identity(origin), self._seen.get(origin)
        if identity is None:
            return f"{origin.root} is not there: what was indexed of it is kept"
        if before and identity[0] != before[0] and _is_empty(origin.root):
            return f"{origin.root} is empty, as a drive that is not mounted: what was indexed of it is kept"
        return None


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False  # the sync says what is wrong with it


def state_of(file: str) -> tuple[int, int, int] | None:
    """Enough to see that a file changed; None if there is none."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
