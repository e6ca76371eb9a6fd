"""What a walk leaves out: patterns as in .gitignore, at the root and, where git's own files are read, in every folder.

A folder's patterns count for what is below it and come before those above, as in git. What the person excludes in the
settings stays out whatever a folder says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from pathspec import GitIgnoreSpec

from co_cli.errors import VaultError
from co_cli.regular import open_regular

LARGEST = 1_000_000


class Ignoring:
    """Is this path (inside the folder) excluded? The flag says whether it is a folder. For one walk: files are kept."""

    def __init__(self, root: str, lines: Sequence[str], asked: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        """`lines` are those of the root, `asked` the ones of the settings among them, `files` what folders may have."""
        self._root, self._files = root, files
        self._top, self._asked = _spec_of(lines), _spec_of(asked) if asked else None
        self._below: dict[str, GitIgnoreSpec | None] = {}

    def __call__(self, path: str, is_folder: bool) -> bool:
        asked = f"{path}/" if is_folder else path
        if self._asked and self._asked.match_file(asked):
            return True
        folder = path.rpartition("/")[0] if self._files else ""
        while folder:
            spec = self._spec(folder)
            said = spec.check_file(asked[len(folder) + 1 :]).include if spec else None
            if said is not None:
                return said
            folder = folder.rpartition("/")[0]
        return self._top.match_file(asked)

    def look(self, folder: str, names: Iterable[str]) -> None:
        """A walk says what it saw in a folder: most have no such file, and nobody has to look for one."""
        if self._files and folder:
            there = [name for name in names if name in self._files]
            lines = ignored_in(os.path.join(self._root, *folder.split("/")), there) if there else []
            self._below[folder] = _spec_of(lines) if lines else None

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._below:
            place = os.path.join(self._root, *folder.split("/"))
            self.look(folder, [name for name in self._files if os.path.lexists(os.path.join(place, name))])
        return self._below[folder]


def ignored_in(folder: str, files: Sequence[str]) -> list[str]:
    """The lines of a folder's files of patterns. Raises VaultError for one that is there and cannot be read."""
    lines: list[str] = []
    for name in files:
        path = os.path.join(folder, name)
        try:
            with open_regular(path) as stream:
                text = stream.read(LARGEST + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        except OSError as error:
            raise VaultError(f"{path} cannot be read: {error.strerror}") from None
        if len(text) > LARGEST:
            raise VaultError(f"{path} has more than {LARGEST:,} bytes; shorten it")
        lines += text.decode("utf-8", "replace").splitlines()
    return lines


def _spec_of(lines: Sequence[str]) -> GitIgnoreSpec:
    """A line that is no pattern, such as `bin\\`, matches nothing, as in git."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
