"""Files that notes link to and that are no notes: pictures, PDFs, drawings. Is one there?"""

from __future__ import annotations

import os

from co_cli.notes.refs import name_key


class Attachments:
    """The files of a vault or a folder, by their paths and names. It is walked when a bare name is asked for."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: set[str] | None = None

    def has(self, target: str, linking: str) -> bool:
        """Is there a file that a link in this note can mean: from the note's folder, from the root, or by its name?"""
        target = target.replace("\\", "/").strip("/")
        if not target or "\0" in target:
            return False
        places = (os.path.join(os.path.dirname(linking), target), target)
        return any(map(self._inside, places)) or ("/" not in target and name_key(target) in self._all())

    def _inside(self, path: str) -> bool:
        path = os.path.normpath(path)
        return not path.startswith(("..", os.sep)) and os.path.exists(os.path.join(self._root, path))

    def _all(self) -> set[str]:
        if self._names is None:
            self._names = set()
            for _, folders, files in os.walk(self._root):
                folders[:] = [name for name in folders if not name.startswith(".")]
                self._names.update(map(name_key, files))
        return self._names
