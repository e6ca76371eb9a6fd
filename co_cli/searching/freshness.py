"""Keep the index fresh while a process runs: sync before searches, and whenever watchfiles reports changes.

A search should see a file saved a moment ago, but not wait for ten thousand new ones. So a Freshener syncs in a thread
of its own before each search, and callers say how long they can wait. If nothing changed, that is a walk over the
folders: file systems report changes too late to rely on them. A Watcher syncs when files change, and every 30 seconds,
because network drives do not report every change.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from co_cli.ground.errors import IndexUnavailableError, KnowledgeError
from co_cli.ground.priority import lower_priority
from co_cli.ground.reports import Progress, SyncReport
from co_cli.notes.logbook import logger
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE, Origin, adapter_of, registry_version
from co_cli.sources.walk import folders_of
from co_cli.vault.vault import Vault, embed_vault, sync_vault

if TYPE_CHECKING:
    from watchfiles import Change

QUICK, EVERY = 0.5, 2.0
"""Seconds: where a sync that finds no change takes longer than the first, searches start one only every so often."""
EMBEDDING, BETWEEN = 10.0, 0.5
"""Seconds for which vectors are made without a break, and of the break, in which another process may take over."""
BEHIND = "files changed and are still being indexed: the newest ones may be missing"
UNCHECKED = f"files that changed in the last {EVERY:.0f} seconds may be missing: this vault takes long to check"
QUIET_MS, LONGEST = 200, 5.0
"""Changes are synced after a pause of 200 ms, so that half-written files are left alone, or after 5 seconds."""
POLL_MS = 2_000
"""How often files are checked where folders cannot be watched."""
SAFETY, RETRY = 30.0, 2.0
"""Seconds between two syncs when nothing is reported, and after one that failed or did not finish."""
RECURSIVE = sys.platform in ("darwin", "win32")
"""Linux needs a watch for each folder, so only those that are searched get one: not `.git`, nothing behind a link."""
SAID_SECONDS = 60.0
"""Between two lines in the log of a server about passages that wait for their vectors."""
log = logger("watching")
server_log = logger("server")

Identity = tuple[int, ...]


class Watched(Protocol):
    """A vault that is kept open. Its value changes when sources are added or removed."""

    vault: Vault

    def reload(self) -> None:
        """Read again what is searched with it."""
        ...


class Synced(Protocol):
    """A vault that may be on a server, which watches its files itself."""

    @property
    def local(self) -> Watched: ...

    def catch_up(self) -> None: ...

    def sync(self, progress: Progress | None = None, seconds: float | None = None) -> SyncReport: ...

    def embed(self, seconds: float | None = None, progress: Progress | None = None) -> bool: ...


class VectorThread:
    """Makes the vectors that wait in a thread at low priority, which ends when none do, or when they cannot be made."""

    def __init__(self, embed: Callable[[float, Progress], bool]) -> None:
        self._embed, self._stop, self._starting = embed, threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._said = time.monotonic()

    def wake(self) -> None:
        """Begin, unless it is at work."""
        with self._starting:
            if not self._stop.is_set() and not (self._thread and self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="co-vectors", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """What was made so far stays. A server that does not answer is not waited for."""
        with self._starting:  # a thread that is being started cannot be joined
            self._stop.set()
        if self._thread:
            self._thread.join(1.0)

    def _run(self) -> None:
        lower_priority()
        try:
            while self._embed(EMBEDDING, self._go_on) and not self._stop.wait(BETWEEN):
                pass
        except KnowledgeError:
            pass  # it was closed, or the next search meets the same error
        except Exception:
            log.exception("embedding failed")

    def _go_on(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise StoppedError
        if time.monotonic() - self._said > SAID_SECONDS:
            self._said = time.monotonic()
            server_log.info("%d passages wait for their vectors", total - done)


class Freshener:
    """Syncs a vault in the background. Safe to share between threads."""

    def __init__(self, kb: Synced, clock: Callable[[], float] = time.monotonic) -> None:
        self._kb, self._clock = kb, clock
        self._lock, self._vectors = threading.Lock(), VectorThread(kb.embed)
        self._running: threading.Event | None = None
        self._next: threading.Event | None = None
        self._ended, self._took = 0.0, 0.0
        self._problem: BaseException | None = None
        self.watcher: Watcher | None = None

    def watch(self, after: float = 1.0) -> None:
        """Watch the files, starting after this many seconds: the first caller should not wait for imports."""
        self.watcher = Watcher(self._kb.local, delay=after).start()

    def close(self) -> None:
        """Stop watching. Call this before the knowledge base is closed."""
        self._vectors.close()
        if self.watcher:
            self.watcher.close()

    def ensure(self, seconds: float) -> list[str]:
        """Wait until the index has every file as it is now, at most this long. Returns what it lacks, in words."""
        self._kb.catch_up()
        with self._lock:
            large = self._running is None and self._took > QUICK and self._clock() - self._ended < EVERY
            done = None if large else self._begin()
        if done is not None and not done.wait(seconds):
            return [BEHIND]
        problem = self._problem
        if problem is None or isinstance(problem, IndexUnavailableError):
            return [UNCHECKED] if large else []  # the search meets the same error, answers from the files and says so
        if isinstance(problem, KnowledgeError):
            return [str(problem)]
        raise problem

    def _begin(self) -> threading.Event:
        """Set after a sync that begins now, or after the one that runs: that may have passed a changed file already."""
        if self._running is None:
            done = threading.Event()
            threading.Thread(target=self._sync, args=(done,), name="co-sync", daemon=True).start()
            self._running = done  # only now: if the thread could not start, nobody may wait for it
            return done
        self._next = self._next or threading.Event()
        return self._next

    def _sync(self, done: threading.Event | None) -> None:
        while done is not None:
            problem: BaseException | None = None
            began, took = self._clock(), self._took
            try:
                if not self._kb.sync(seconds=0).touched:
                    took = self._clock() - began  # to find out that nothing changed
            except BaseException as error:  # raised again in the threads that wait for this sync
                problem = error
            with self._lock:
                self._problem, self._ended, self._took = problem, self._clock(), took
                self._running, self._next = self._next, None
                done, ended = self._running, done
            ended.set()
        self._vectors.wake()


class Batch(NamedTuple):
    """The changes that one sync found, by the folder they are in."""

    reports: tuple[tuple[Origin, SyncReport], ...]
    seconds: float
    files: tuple[str, ...] = ()
    """What the file system reported. Another process may have indexed it already."""


class Notice(NamedTuple):
    """Something about the watcher itself that the user should know."""

    event: Literal["polling", "missing", "back", "sources", "failed"]
    text: str


class StoppedError(KnowledgeError):
    """Raised inside a sync to end it; the next sync continues."""


class Watcher:
    """Watches a knowledge base until it is closed; close it before the knowledge base.

    `listener` is called with each Batch and Notice, in the watcher's thread.
    """

    def __init__(
        self,
        kb: Watched,
        listener: Callable[[Batch | Notice], None] | None = None,
        *,
        poll: bool = False,
        progress: Progress | None = None,
        delay: float = 0.0,
        files: bool = False,
    ) -> None:
        """`files`: also report changes that another process, or another thread, has indexed already."""
        self._kb, self._listener, self._progress, self._delay = kb, listener, progress, delay
        self._reports_files, self._files = files, set[str]()
        self._stop, self.synced = threading.Event(), threading.Event()
        self._vectors = VectorThread(lambda seconds, go_on: embed_vault(kb.vault, seconds, go_on))
        self._thread = threading.Thread(target=self.run, name="co-watch", daemon=True)
        self._watched, self._missing = {*_origins_of(kb.vault)}, set[Origin]()
        self._problem, self._due = "", 0.0
        self.polls, self.syncs = False, 0
        if poll or os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in ("", "0", "false"):
            self._begin_polling()

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop watching; a running sync ends early without harm. Returns when the thread has ended."""
        self._stop.set()
        self._vectors.close()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> None:
        """Watch in this thread. Returns when the watcher is closed, or after an unexpected error."""
        try:
            self._stop.wait(self._delay)
            while not self._stop.is_set():
                self._watch()
        except StoppedError:
            pass
        except Exception as error:
            log.exception("watching ended")
            self._report(Notice("failed", f"watching ended unexpectedly ({type(error).__name__}: {error})"))

    def _watch(self) -> None:
        """Sync whenever something changes, until other folders have to be watched."""
        from watchfiles import watch  # slow to import

        origins, folders, armed = self._find_origins(), self._folders(), False
        waiting_since: float | None = None
        if not folders:
            self._stop.wait(RETRY)  # none of them is there
            return
        try:
            for changes in watch(
                *folders,
                watch_filter=self._matters,
                rust_timeout=QUIET_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                force_polling=self.polls,
                poll_delay_ms=POLL_MS,
                recursive=RECURSIVE,
            ):
                now = time.monotonic()
                self._files.update(path for _, path in changes)
                waiting_since = waiting_since or (now if changes else None)
                if changes and armed and waiting_since and now - waiting_since < LONGEST:
                    continue
                if not armed or waiting_since or now >= self._due:
                    armed, waiting_since = True, None  # the first sync comes when all changes are reported
                    self._sync()
                    if folders != self._folders():
                        return
                if origins != self._origins():
                    return
        except FileNotFoundError:
            self._stop.wait(QUIET_MS / 1_000)  # a folder was removed since it was listed
        except (OSError, RuntimeError) as error:
            if not armed and not self.polls:  # otherwise a file name that is not UTF-8, at which watchfiles gives up
                self._begin_polling(f"cannot watch folders ({str(error).partition(' about ')[0]}): ")

    def _begin_polling(self, reason: str = "") -> None:
        self.polls = True
        self._report(Notice("polling", f"{reason}checking files every {POLL_MS // 1_000} s"))

    def _find_origins(self) -> dict[Origin | None, Identity | None]:
        """Notice folders that were added or removed as sources, and those that disappeared or came back."""
        before = self._watched  # not what the vault has: a request may have noticed first
        self._kb.reload()
        found = self._origins()
        self._watched = now = {origin for origin in found if origin is not None}
        for origin in before ^ now:
            self._report(Notice("sources", f"{origin.label} is {'no longer' if origin in before else 'now'} watched"))
        missing = {origin for origin in now if found[origin] is None}
        for origin in missing ^ self._missing:
            gone = Notice("missing", f"{origin.root} is not there; its notes stay in the index")
            self._report(gone if origin in missing else Notice("back", f"{origin.root} is back"))
        self._missing = missing
        return found

    def _origins(self) -> dict[Origin | None, Identity | None]:
        """What is watched, and the state of its folder; None stands for the list of sources."""
        vault = self._kb.vault
        listed: dict[Origin | None, Identity | None] = {None: registry_version(vault.settings.data_dir)}
        return listed | {origin: _identity(origin.root) for origin in _origins_of(vault)}

    def _folders(self) -> set[str]:
        found, vault = set[str](), self._kb.vault
        for origin in _origins_of(vault):
            found.update([origin.root] if RECURSIVE else folders_of(origin, vault.index.of(origin).exclude))
        return {path for path in found if os.access(path, os.R_OK) and path.encode(errors="ignore").decode() == path}

    def _matters(self, change: Change, path: str) -> bool:
        """Whether a change is of a note, a folder or an ignore file."""
        parent, name = os.path.split(path)
        ignores = name in (IGNORE_FILE, GIT_FILE)
        for origin in _origins_of(self._kb.vault):
            root = os.path.join(origin.root, "")
            hidden = f"{os.sep}." in (parent if ignores else path)[len(root) - 1 :]
            if path.startswith(root) and not hidden:
                return ignores or "." not in name or adapter_of(origin).wants(name) or os.path.isdir(path)
        return False

    def _sync(self) -> None:
        started, self._due = time.monotonic(), time.monotonic() + RETRY
        vault = self._kb.vault
        self.syncs += 1
        try:
            report = sync_vault(vault, self._go_on, 0)
        except StoppedError:
            raise
        except KnowledgeError as error:
            if not self._problem and os.path.isdir(vault.root):
                self._report(Notice("failed", str(error)))
            self._problem = str(error)
            return
        took = time.monotonic() - started
        self._problem = ""
        self._due = time.monotonic() + SAFETY
        self._vectors.wake()
        self.synced.set()
        reports = zip(_origins_of(vault), [report, *(linked for _, linked in report.linked)], strict=True)
        changed = tuple((origin, synced) for origin, synced in reports if synced.touched or synced.kept)
        files = tuple(sorted(self._files))
        self._files.clear()
        if changed or (files and self._reports_files):
            self._report(Batch(changed, took, files))

    def _go_on(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise StoppedError
        if self._progress and not self.synced.is_set():
            self._progress(done, total)

    def _report(self, news: Batch | Notice) -> None:
        if self._listener:
            self._listener(news)
        elif isinstance(news, Notice):
            log.info("%s", news.text)


def _origins_of(vault: Vault) -> tuple[Origin, ...]:
    return vault.index.origin, *vault.linked


def _identity(path: str) -> Identity | None:
    """Changes when a folder is replaced; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
