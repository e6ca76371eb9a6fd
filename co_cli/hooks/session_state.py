"""Which notes a session of a coding agent was given: a small file for each session, in the data folder.

Not in activity.db, which a setting may leave empty and which a short process should not have to open.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time

from co_cli.notes.files import make_folders, open_private

FOLDER = "sessions"
KEPT_DAYS = 14


class SessionNotes:
    """The refs that one session was given. What cannot be written is not remembered."""

    def __init__(self, data_dir: str, client: str, session: str) -> None:
        self._folder = os.path.join(data_dir, FOLDER)
        name = hashlib.sha256(f"{client}\n{session}".encode("utf-8", "replace")).hexdigest()[:24]
        self._path = os.path.join(self._folder, name) if session else ""

    def refs(self) -> set[str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return set(file.read().split("\n")) - {""}
        except (OSError, UnicodeDecodeError):
            return set()

    def add(self, refs: list[str]) -> None:
        if not refs or not self._path:
            return
        with contextlib.suppress(OSError):
            make_folders(self._folder, private=True)
            with open(self._path, "a", encoding="utf-8", errors="replace", opener=open_private) as file:
                file.write("".join(f"{ref}\n" for ref in refs))

    def restart(self) -> None:
        """The model has nothing of it any more. Sessions that ended long ago are forgotten, too."""
        oldest = time.time() - KEPT_DAYS * 86_400
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.path == self._path or entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
