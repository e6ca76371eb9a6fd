"""The copy of a team vault in one server's folder: written as the truth says, and put back if a save fails.

What a save replaces is written down before it changes, so that also a process that is killed leaves no trace. A text
that nobody saved is moved to `.git/co-kept` when its place is needed. All state is in `.git/co-cli`.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import NamedTuple

from co_cli.ground.errors import VaultError
from co_cli.ground.paths import open_regular
from co_cli.ground.values import content_hash
from co_cli.notes.files import NO_NAME, locked, make_folders, read_json, read_state, replace, replace_all
from co_cli.notes.logbook import logger
from co_cli.notes.store import NoteStore

NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, *NO_NAME)
"""Nothing is there, or a folder, a link or a device: no file that we would write."""
LARGE_FILE = b"version https://git-lfs.github.com/spec/"
"""How a text begins that stands in git for a large file. The file itself is left to git-lfs."""
AT_ONCE = 200
"""Files that are written together."""
log = logger("team")


class Position(NamedTuple):
    """A change that the folder has, with all before it: its number, and when it was saved.

    A database that was restored from a backup may give the number to another change.
    """

    seq: int
    saved_at: float | None


class FileText(NamedTuple):
    """What a file should be; None if it should not be there."""

    path: str
    data: bytes | None
    known: Collection[str | None] = ()
    """A text that is not of these hashes is nobody's save: it is kept."""


class VaultCopy:
    """The files of one server. Several processes may share them."""

    def __init__(self, root: str) -> None:
        self.root, self._store = root, NoteStore(root)
        self._place = os.path.join(root, ".git", "co-cli")
        self._undo_file, self._state_file = (os.path.join(self._place, f"{name}.json") for name in ("undo", "state"))

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Hold the folder against others who write what they got. Nobody waits for a save while they hold it."""
        make_folders(self._place)
        with locked(os.path.join(self._place, "lock")):
            yield

    def position(self) -> Position | None:
        """The last change that the folder has; None if it was never compared with the truth."""
        found = read_json(self._state_file).get("applied")
        return Position(*found) if found else None

    def set_position(self, position: Position | None) -> None:
        with open(f"{self._state_file}.new", "w", encoding="utf-8") as stream:
            json.dump({"applied": position}, stream)
        os.replace(stream.name, self._state_file)  # if the power is cut before it is on disk, changes are applied again

    def read(self, path: str) -> bytes | None:
        """The text of a file; None if there is none."""
        try:
            with open_regular(self._store.absolute(path), follow=False) as stream:
                return stream.read()
        except VaultError:
            return None
        except OSError as error:
            if error.errno in NO_FILE:
                return None
            raise

    def put(self, *texts: FileText) -> None:
        """Write and remove files, the latter first: another file may have the name of their folder."""
        order = sorted(texts, key=lambda text: text.data is not None)
        for start in range(0, len(order), AT_ONCE):
            self._put(order[start : start + AT_ONCE])

    def _put(self, texts: Sequence[FileText]) -> None:
        ready = {full: text for text in texts if (full := self._make_room(*text))}
        failed = replace_all({full: text.data for full, text in ready.items() if text.data is not None})
        for full, error in failed.items():
            log.warning("%s cannot be on this disk: %s", ready[full].path, error.strerror)  # git has it all the same

    def _make_room(self, path: str, data: bytes | None, known: Collection[str | None]) -> str | None:
        """Where to write a file, if there is something to write; one that should not be there is removed."""
        now = self.read(path)
        if now == data:
            return None
        try:
            full = self._store.absolute(path)
        except VaultError as error:  # git has it all the same
            log.warning("%s", error)
            return None
        if now is not None and content_hash(now) not in known:
            self._set_aside(path)
        if data is None:
            with contextlib.suppress(FileNotFoundError):  # set aside
                os.unlink(full)
            with contextlib.suppress(OSError):  # not empty
                os.removedirs(os.path.dirname(full))
            return None
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            place = os.path.join(self.root, *parts[:end])
            if os.path.lexists(place) and os.path.isdir(place) == (place == full):
                self._set_aside("/".join(parts[:end]))
        try:
            make_folders(os.path.dirname(full))
        except OSError as error:
            if error.errno not in NO_NAME:
                raise
            log.warning("%s cannot be on this disk: %s", path, error.strerror)  # git has it all the same
            return None
        return full

    def _set_aside(self, path: str) -> None:
        """Move a text that nobody saved out of the way, or a folder of them."""
        when = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{time.monotonic_ns():x}"
        kept = os.path.join(self.root, ".git", "co-kept", when, path)
        make_folders(os.path.dirname(kept))
        os.rename(os.path.join(self.root, path), kept)
        log.warning("a text of %s that was not saved is now in %s", path, kept)

    def unfinished(self) -> bool:
        """Whether somebody saves now, or was killed while they did."""
        return os.path.exists(self._undo_file)

    def remember(self, position: Position | None, texts: Mapping[str, bytes | None]) -> None:
        """Write down what files are before a save changes them, and where the folder was when it began."""
        coded = {path: None if data is None else base64.b64encode(data).decode() for path, data in texts.items()}
        replace(self._undo_file, json.dumps({"applied": position, "texts": coded}).encode())

    def undo(self) -> None:
        """Take back what a failed or killed save changed. If it was committed after all, it is applied again."""
        kept = read_state(self._undo_file)
        if kept:
            texts: dict[str, str | None] = kept["texts"]
            decoded = {path: None if text is None else base64.b64decode(text) for path, text in texts.items()}
            self.put(*(FileText(path, data) for path, data in decoded.items()))
            self.set_position(Position(*kept["applied"]) if kept["applied"] else None)
            os.unlink(self._undo_file)

    def finish(self, position: Position | None) -> None:
        """A save was committed, with this last change if it made any."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._undo_file)  # first: what is undone is applied again
        if position:
            self.set_position(position)
