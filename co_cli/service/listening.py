"""Hear of changes in the folders of every origin, as far as the system tells of them.

Linux tells of one folder at a time, so each folder that a sync looks into is watched and no other: not `.git`, not what
is excluded, and nothing behind a link. macOS and Windows tell of a whole tree, and what does not concern us is left out
afterwards.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from co_cli.record import Record
from co_cli.service.watched import Concern, Watched
from co_cli.sources.origin import Origin

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

WHOLE_TREES = sys.platform in ("darwin", "win32")
STEP = 50
"""Milliseconds between two looks at what the system told."""
MOST_TOLD = 4_000
"""Changes at once from which on some may be missing: Linux keeps 16,384 events, drops the rest, and nobody says so."""
RENEWALS = 5
"""How often folders are listed anew because one came or went meanwhile."""


class Unwatchable(Exception):
    """The system will not tell of changes; the message says why, in a few words."""


class Told(Record):
    """What the system told of."""

    anything: bool
    origins: tuple[Origin, ...]
    """Those that changed."""
    folders: bool
    """There may be other folders to watch now."""
    beside: tuple[str, ...] = ()
    """What changed in the folders that are watched beside them."""


LOST = Told(True, (), True)
"""Something changed, and nobody knows what."""


class Listening:
    """Watches every folder of every origin, and knows what a change concerns. Used by one thread."""

    def __init__(self) -> None:
        self._events: Events | None = None
        self._paths: frozenset[str] = frozenset()
        self._beside: frozenset[str] = frozenset()
        self._watched: dict[Origin, Watched] = {}

    def renew(self, look: Callable[[], dict[Origin, Watched]], beside: Iterable[str] = ()) -> bool:
        """Watch the folders as they are now, and these. False: they come and go, and should be looked at again soon.

        A folder of the same name may be another one, so even the same paths are watched anew. Raises Unwatchable.
        """
        renewed = False
        self._beside = frozenset(beside)
        for _ in range(RENEWALS):
            self._watched = look()
            paths = _paths_of(self._watched.values()) | self._beside
            if self._events and paths == self._paths and (renewed or WHOLE_TREES):
                return True  # nobody made or moved a folder while the others were put under watch
            try:
                events = Events(paths)
            except FileNotFoundError:
                continue
            self.stop()
            self._events, self._paths, renewed = events, paths, True
        return False

    def wait(self, seconds: float, stop: threading.Event) -> Told:
        """What changed, as soon as something did; nothing after so many seconds."""
        if self._events is None:
            stop.wait(seconds)
            return Told(False, (), False)
        paths = self._events.wait(seconds, stop)
        if paths is None:
            self.stop()
        if paths is None or len(paths) > MOST_TOLD:
            return LOST
        beside = {path for path in paths if os.path.dirname(path) in self._beside} if self._beside else set[str]()
        paths -= beside
        concerns = [(origin, one.concern(path)) for path in paths for origin, one in self._watched.items()]
        origins = {origin for origin, concern in concerns if concern is not Concern.NOTHING}
        folders = any(concern is Concern.FOLDERS for _, concern in concerns)
        return Told(bool(paths), tuple(origins), folders, tuple(beside))

    def stop(self) -> None:
        if self._events:
            self._events.close()
        self._events = None


class Events:
    """What the system tells of changes in folders. A few file handles and a thread, for any number of folders."""

    def __init__(self, paths: Iterable[str]) -> None:
        try:
            # with anyio, a tenth of a second to import; none of what only searches needs it
            from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError
        except ImportError as error:
            raise Unwatchable(f"watchfiles cannot be imported: {error}") from None
        self._broken: type[Exception] = WatchfilesRustInternalError
        # what cannot be read is left out here: told to ignore it, watchfiles would ignore every limit too
        readable = [path for path in paths if _is_text(path) and os.access(path, os.R_OK)]
        try:
            self._notify: RustNotify = RustNotify(readable, False, False, 0, WHOLE_TREES, False)
        except FileNotFoundError:
            raise  # a folder went away since it was listed
        except (OSError, WatchfilesRustInternalError) as error:
            raise Unwatchable(_reason(error)) from None

    def wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        """Paths that changed, as soon as there are some; none after so many seconds. None: some changes got lost."""
        try:
            changes = self._notify.watch(1, STEP, max(1, int(seconds * 1000)), stop)
        except self._broken:  # as for a name that is not UTF-8; it stays broken
            return None
        return set() if isinstance(changes, str) else {path for _, path in changes}

    def close(self) -> None:
        self._notify.close()


def _paths_of(watched: Iterable[Watched]) -> frozenset[str]:
    return frozenset(path for one in watched for path in ([one.origin.root] if WHOLE_TREES else one.folders))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: Exception) -> str:
    text = str(error)
    if "watch limit" in text or "No space left" in text:
        return "there are more folders than the system watches (fs.inotify.max_user_watches)"
    if "Too many open files" in text:
        return "too many programs watch folders already (fs.inotify.max_user_instances)"
    return " ".join(text.split())[:200]
