"""What a walk leaves out: patterns as in .gitignore, at the root and, where git's own files are read, in every folder.

A folder's patterns count for what is below it and come before those above, as in git. What the person excludes in the
settings stays out whatever a folder says, and what a .coignore says holds whatever a .gitignore says.
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

    def __init__(
        self, root: str, patterns: Sequence[str], asked: Sequence[str], files: Sequence[str], below: bool
    ) -> None:
        """`patterns` are the weakest word, `asked` (in the settings) the strongest; of `files` the last one's counts
        before the others'. `below`: every folder may have such files, not the root alone.
        """
        self._root, self._files, self._deep = root, tuple(reversed(files)), below
        self._asked = _spec_of(asked) if asked else None
        self._patterns = _spec_of(patterns) if patterns else None
        self._read: dict[str, dict[str, GitIgnoreSpec]] = {"": self._specs("", self._files)}

    @property
    def says_nothing(self) -> bool:
        """Can nothing be excluded, wherever it lies?"""
        return not (self._asked or self._patterns or self._deep or self._read[""])

    def __call__(self, path: str, is_folder: bool) -> bool:
        asked = f"{path}/" if is_folder else path
        if self._asked and self._asked.match_file(asked):
            return True
        for name in self._files:
            said = self._said(name, path.rpartition("/")[0] if self._deep else "", asked)
            if said is not None:
                return said
        return self._patterns is not None and self._patterns.match_file(asked)

    def _said(self, name: str, folder: str, asked: str) -> bool | None:
        """What the files of this name say, the nearest first; None: nothing."""
        while True:
            spec = self._of(folder).get(name)
            said = spec.check_file(asked[len(folder) + 1 :] if folder else asked).include if spec else None
            if said is not None or not folder:
                return said
            folder = folder.rpartition("/")[0]

    def look(self, folder: str, names: Iterable[str]) -> None:
        """A walk says what it saw in a folder: most have no such file, and nobody has to look for one."""
        if self._deep and folder:
            self._read[folder] = self._specs(folder, [name for name in names if name in self._files])

    def _of(self, folder: str) -> dict[str, GitIgnoreSpec]:
        if folder not in self._read:
            self._read[folder] = self._specs(folder, self._files)
        return self._read[folder]

    def _specs(self, folder: str, names: Iterable[str]) -> dict[str, GitIgnoreSpec]:
        place = os.path.join(self._root, *folder.split("/"))
        read = {name: _lines_of(os.path.join(place, name)) for name in names}
        return {name: _spec_of(lines) for name, lines in read.items() if lines}


def _lines_of(path: str) -> list[str]:
    """The patterns in a file; none if it is not there. Raises VaultError for one that is there and cannot be read."""
    try:
        with open_regular(path) as stream:
            text = stream.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return []
    except OSError as error:
        raise VaultError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > LARGEST:
        raise VaultError(f"{path} has more than {LARGEST:,} bytes; shorten it")
    lines = text.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


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
