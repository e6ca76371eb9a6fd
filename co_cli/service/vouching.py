"""A watcher vouches for the index, so that a command in a large vault need not walk it first.

Below the data folder a watcher has a folder of its own, with a sign that says what it watches. Whoever wants to know
whether the index is up to the files lays a slip there, an empty file, and waits until it is taken away. The system
tells of changes in the order in which they were made: when the watcher hears of the slip it has heard of all that
changed before, and takes it away when that is indexed. A watcher that does not answer in time loses its sign, and hangs
it out again when it is able to; whoever asked walks.
"""

from __future__ import annotations

import os
import sys
import time

from co_cli.errors import KnowledgeError
from co_cli.index.connection import SCHEMA_VERSION, inode_of
from co_cli.places import WATCHERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.sources.origin import Origin
    from co_cli.values import SyncReport

SIGN = "watches"
SLIP = "asked-"
PATIENCE = 2.0
"""Seconds that are waited for an answer. A watcher that has to index something first may need some of them."""
GLANCE = 0.004
VOUCHES_FROM = 20_000
"""Files from which on asking is sooner done than a walk: the watcher hears of a slip after up to 50 ms."""
TELLING = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs tmpfs overlay".split())
"""File systems that nobody can change without the system's knowing. Of a network drive another machine can."""


def watches(kb: KnowledgeBase) -> str:
    """All that a sync of this knowledge base depends on: two that say the same keep one index up to the same files."""
    settings, index = kb.settings, kb.index
    chosen = (
        settings.knowledge_embedding_provider,
        settings.knowledge_embedding_model,
        settings.knowledge_embedding_host,
        settings.boundaries_model,
    )
    what = (
        SCHEMA_VERSION,
        inode_of(kb.database.path),
        settings.knowledge_exclude,
        settings.knowledge_max_note_bytes,
        chosen,
    )
    return repr((what, [tuple(origin) for origin in (index.origin, *index.beside)]))


def is_vouched_for(kb: KnowledgeBase) -> bool:
    """Does a watcher say that the index is up to the files as they are now? Without one this costs a look."""
    place = os.path.join(kb.settings.data_dir, WATCHERS)
    try:
        names = os.listdir(place)
    except OSError:
        return False
    started, wanted = time.time(), watches(kb)
    vouched = any(_answers(os.path.join(place, name), name, wanted) for name in names)
    if vouched:
        kb.index.fresh_as_of = started
    return vouched


def _answers(folder: str, name: str, wanted: str) -> bool:
    try:
        if not _is_there(int(name.rpartition("-")[2])):
            _clear(folder)  # it was killed
            return False
        with open(os.path.join(folder, SIGN), encoding="utf-8") as sign:
            if sign.read() != wanted:
                return False
        slip = os.path.join(folder, f"{SLIP}{os.getpid()}-{time.monotonic_ns()}")
        os.close(os.open(slip, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except (OSError, ValueError, OverflowError):
        return False  # no sign, or it was taken in just now
    sign_file, until = os.path.join(folder, SIGN), time.monotonic() + PATIENCE
    while os.path.exists(slip):
        if not os.path.exists(sign_file) or time.monotonic() > until:
            _remove([sign_file, slip])
            return False
        time.sleep(GLANCE)
    return os.path.exists(sign_file)  # one that ends takes all of its folder with it, which is no answer


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Vouching:
    """A watcher's side of it. Used by its thread alone."""

    def __init__(self, kb: KnowledgeBase, least: int) -> None:
        self._kb, self._least = kb, least
        # a process may have several watchers, and one must not answer for what another one watches
        name = f"{time.monotonic_ns()}-{os.getpid()}"  # last, so that `.gone` makes it no number
        self.folder = os.path.join(os.path.realpath(kb.settings.data_dir), WATCHERS, name)
        self.asked: set[str] = set()
        """Slips that may be answered once what is known to have changed is indexed."""
        self._all_told = False
        self._mounted: list[list[tuple[str, str, str]]] | None = None
        self._covered: str | None = None
        """What the last sync of everything was a sync of."""
        self._flawed: set[Origin] = set()
        """Where something could not be read: whoever walks says so."""
        self._left: dict[Origin, object] = {}
        """What of each origin the index had after its sync. Somebody with other settings may leave less of it."""
        self._says: str | None = None

    def open(self) -> list[str]:
        """The folder to be watched for slips; none where the system does not tell of everything, and in order."""
        roots = [origin.root for origin in self._origins()]
        self._mounted = [_mounts(root) for root in roots]
        self._all_told = sys.platform == "linux" and all(all_is_told(root) for root in roots)
        if self._all_told:
            try:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
            except OSError:
                self._all_told = False  # where nothing can be written nobody can ask
        return [self.folder] if self._all_told else []

    def is_remounted(self) -> bool:
        """Was a drive mounted in an origin, or taken out of it? The system does not tell of that."""
        return self._mounted is not None and self._mounted != [_mounts(one.root) for one in self._origins()]

    def hear(self, paths: Iterable[str]) -> None:
        """These changed in the folder: new slips, and those that were taken away."""
        self.asked |= self._slips().intersection(paths)

    def begin(self, everything: bool) -> None:
        """A sync begins. After one of everything, all that lie here now may be answered."""
        if everything:
            self._covered = watches(self._kb)
            self.asked |= self._slips()

    def saw(self, origin: Origin, report: SyncReport) -> None:
        """One origin was synced."""
        unread = any("cannot be read" in reason for _, reason in report.skipped)
        (self._flawed.add if unread else self._flawed.discard)(origin)
        self._left[origin] = self._there(origin)

    def may(self, sound: bool, files: int) -> bool:
        """May somebody rely on this watcher, and is it worth asking? If not, the sign is taken in."""
        flawed = not self._flawed.isdisjoint(self._origins())  # a source that was removed is no longer one
        able = sound and self._all_told and not flawed and files >= self._least
        if not able:
            self.refuse()
        return able

    def say(self) -> bool:
        """Hang out the sign. False: there is another search.db, or others in it, and all has to be synced first."""
        text = watches(self._kb)
        if text != self._covered or not all(map(self._is_as_left, self._origins())):
            self.refuse()
            return False
        sign = os.path.join(self.folder, SIGN)
        if text != self._says or not os.path.exists(sign):
            try:
                with open(f"{sign}.new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(f"{sign}.new", sign)
            except OSError as error:
                from co_cli.logbook import logger  # whoever only asks needs no log

                self._all_told = False
                logger("watching").info("%s cannot be written, so nobody can ask: %s", sign, error.strerror)
            self._says = text
        return True

    @property
    def vouches(self) -> bool:
        """Does the sign hang out?"""
        return self._says is not None

    def refuse(self) -> None:
        """Take the sign in; whoever waits for an answer sees that."""
        if self._says is not None:
            _remove([os.path.join(self.folder, SIGN)])
            self._says = None

    def answer(self, slips: Iterable[str]) -> None:
        _remove(slips)

    def close(self) -> None:
        _clear(self.folder)

    def _origins(self) -> list[Origin]:
        return [self._kb.index.origin, *self._kb.index.beside]

    def _is_as_left(self, origin: Origin) -> bool:
        there = self._there(origin)
        return there is not None and there == self._left.get(origin)

    def _there(self, origin: Origin) -> object:
        """How much of an origin the index has; None if it was never synced, or nobody can tell now."""
        try:
            counts = self._kb.index.of(origin).counts()
        except KnowledgeError:
            return None
        return None if counts.synced_at is None else (counts.notes, counts.passages)

    def _slips(self) -> set[str]:
        """Those that lie here now."""
        try:
            return {os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith(SLIP)}
        except OSError:
            return set()


def all_is_told(folder: str) -> bool:
    """Are this folder and what is mounted below it on file systems that tell of every change?"""
    inside, mounts = os.path.join(folder, ""), _mounts(folder)
    above = [(len(point), kind) for point, kind, _ in mounts if inside.startswith(os.path.join(point, ""))]
    below = [kind for point, kind, _ in mounts if point.startswith(inside)]
    return bool(above) and TELLING.issuperset([max(reversed(above), key=lambda one: one[0])[1], *below])


def _mounts(folder: str) -> list[tuple[str, str, str]]:
    """What is mounted above and below a folder: where, of which kind, and what."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [(_plain(point), kind, what) for what, point, kind, *_ in (line.split(" ") for line in lines)]
    except (OSError, ValueError):
        return []
    inside = os.path.join(folder, "")
    return [one for one in mounts if one[0].startswith(inside) or inside.startswith(os.path.join(one[0], ""))]


def _plain(point: str) -> str:
    """The kernel writes blanks and the like as octal numbers."""
    for code, mark in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, mark)
    return point


def _clear(folder: str) -> None:
    """Remove a folder of slips with all that lies in it: under another name first, where nobody looks for an answer."""
    gone = f"{folder}.gone"
    try:
        os.rename(folder, gone)
        _remove(os.path.join(gone, name) for name in os.listdir(gone))
        os.rmdir(gone)
    except OSError:
        return  # there was none, or another one clears it too


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.remove(path)
        except OSError:
            continue  # somebody else was sooner, or it is not ours to remove
