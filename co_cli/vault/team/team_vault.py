"""A team vault on one server: the folder is a copy of the truth, and a save changes both in one transaction.

The truth is the tree of the vault's commit, and over it the newest row of each path in `team.changes`. Before a request
and before a save, the folder gets what others saved. What a save replaces is written down first, so that a save that
fails, or a process that is killed, leaves the folder as it was. Whoever makes a change indexes it in the same
transaction. A text in the folder that nobody saved is moved to `.git/co-kept` when its place is needed.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from co_cli.activity import acting
from co_cli.ground.errors import GitError, IndexUnavailableError, InvalidInputError, NoteFileError, VaultError
from co_cli.ground.saves import Saved, SaveKey, SaveReceipt
from co_cli.ground.values import content_hash
from co_cli.index.authority import AuthorityHealth, DroppedText, SavedVersion
from co_cli.index.postgres.postgres_engine import VERSION, PostgresEngine
from co_cli.index.postgres.postgres_statements import Connection, fetch, run, take_lock
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.files import locked
from co_cli.notes.git import Repository, blob_name
from co_cli.notes.logbook import logger
from co_cli.notes.refs import ENDINGS
from co_cli.notes.store import NoteStore, reporting
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE
from co_cli.vault.team.schema import CHANNEL, connect_team
from co_cli.vault.team.team_answers import add_answers, find_answer
from co_cli.vault.team.team_state import STATE, TeamState, health_of
from co_cli.vault.team.team_tokens import TeamTokens
from co_cli.vault.team.vault_copy import LARGE_FILE, FileText, Position, VaultCopy

VAULT_LOCK = 716_506_474
"""Advisory locks with this number and the vault's: one save at a time."""
POLL = 0.05
BEHIND = "the folder could not be updated: %s"
DELETED = "old changes were deleted while they were read: try again"
AT_ONCE = 500
"""Texts that are in memory together."""
log = logger("team")
T = TypeVar("T")

LOCK_SECONDS = 60
"""Others may take that long to index all of a vault."""
NOW = "select extract(epoch from clock_timestamp())::float8"
COMPARE = "set local idle_in_transaction_session_timeout = '10min'"
"""While all of the folder is compared with git, and nothing asks the database."""
NOTIFY = "select pg_notify(%(channel)s, %(vault)s::text)"
POSITION = """
select first_commit, trimmed, newest.seq, newest.saved_at, applied.saved_at from team.vaults
left join team.changes applied on applied.vault_id = vaults.id and applied.seq = %(seq)s
left join lateral (
    select seq, saved_at from team.changes where vault_id = vaults.id order by seq desc limit 1
) newest on true
where vaults.id = %(vault)s
"""
COMMIT = "select commit from team.vaults where id = %(vault)s"
ADOPT = """
update team.vaults set commit = %(commit)s, first_commit = %(first)s, skipped = %(skipped)s where id = %(vault)s
"""
NEWER = """
select seq, path, replaced, unindexed, saved_at, trimmed from (
    select max(seq) as seq, array_agg(before) as replaced, bool_or(version <> %(version)s) as unindexed
    from team.changes where vault_id = %(vault)s and seq > %(after)s group by path
) newest join team.changes using (seq) join team.vaults on vaults.id = vault_id order by data is not null
"""
TEXTS = "select seq, data from team.changes where vault_id = %(vault)s and seq = any(%(seqs)s)"
LAG = """
select extract(epoch from clock_timestamp())::float8 - min(saved_at) from team.changes
where vault_id = %(vault)s and seq > %(after)s
"""
ADD_CHANGE = """
insert into team.changes (vault_id, path, data, before, author, saved_at, version, commit, pushed)
values (%(vault)s, %(path)s, %(data)s, %(before)s, %(author)s, %(now)s, %(version)s, %(commit)s, %(final)s)
returning seq
"""
ADD_AUDIT = """
insert into team.audit (vault_id, moment, who, action, path, hash)
values (%(vault)s, %(now)s, %(author)s, %(action)s, %(path)s, %(hash)s)
"""
RECEIPT = """
select vaults.commit, changes.commit, pushed, %(seq)s between 1 and trimmed
from team.vaults left join team.changes on vault_id = vaults.id and seq = %(seq)s where vaults.id = %(vault)s
"""
HISTORY = """
select moment, who, action, hash, seq, commit, pushed from team.audit
left join team.changes on changes.vault_id = audit.vault_id and changes.path = audit.path and saved_at = moment
where audit.vault_id = %(vault)s and audit.path = %(path)s order by audit.id desc limit %(limit)s
"""


class Received(NamedTuple):
    """Where a text came from."""

    author: str
    commit: str
    after_others: bool = False
    """Whether it is not the first text of the file in its push."""


@dataclass(slots=True)
class Save:
    """One transaction that changes the vault."""

    connection: Connection
    start: Position | None
    """Where the folder was when it began."""
    now: float
    """When it began, by the clock of the database: those of servers differ."""
    before: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    """The texts of the files that it changes; None for new ones."""
    received: dict[str, Received] = field(default_factory=dict[str, Received])
    """Files that came from git."""
    authors: dict[str, str] = field(default_factory=dict[str, str])
    """Of files that somebody else saved before."""
    last: Position | None = None
    """Its last change."""
    answers: dict[SaveKey, Saved] = field(default_factory=dict[SaveKey, Saved])
    """What to answer if it is asked for again."""
    afterwards: list[Callable[[], object]] = field(default_factory=list["Callable[[], object]"])
    """What to do when it is committed and the vault is free."""


class Written(NamedTuple):
    """A file to write; None if it should not be there."""

    path: str
    data: bytes | None
    known: bytes | None
    """What it was."""
    received: Received | None = None
    """None if it did not come from git."""
    author: str | None = None
    """None: whoever saves now."""


class TeamVault:
    """One vault on this server. Safe to share between threads; several processes may share the folder."""

    def __init__(self, index: KnowledgeIndex, repository: Repository) -> None:
        assert isinstance(index.engine, PostgresEngine)
        self.engine, self.index, self.repository = index.engine, index, repository
        self.root, self.copy = index.root, VaultCopy(index.root)
        self._local = threading.local()
        self._joining = threading.Lock()
        self._id: int | None = None

    def id(self) -> int:
        """Its number in the database."""
        with self._joining:
            if self._id is None:
                self._id = connect_team(self.engine, self.engine.roots[self.root])
            return self._id

    @property
    def last_seq(self) -> int | None:
        """The number of the last save of this thread."""
        return getattr(self._local, "seq", None)

    def tokens(self) -> TeamTokens:
        """Who may use it."""
        return TeamTokens(self.engine, self.engine.roots[self.root], self.id())

    def store(self, largest: int | None = None, secrets: str = "refuse") -> TeamStore:
        return TeamStore(self, largest, secrets)

    # -- what front ends ask -------------------------------------------------------------------------------------------

    def receipt(self, seq: int) -> SaveReceipt:
        """How far a save has come. Raises InvalidInputError if there was none with this number."""
        ((newest, commit, pushed, trimmed),) = self._ask(RECEIPT, seq=seq)
        if pushed is None and not trimmed:
            raise InvalidInputError(f"there is no save {seq}")
        return SaveReceipt(seq, True, newest if trimmed else commit, bool(trimmed or pushed))

    def wait_pushed(self, seq: int, seconds: float) -> SaveReceipt:
        """The receipt as soon as a save is pushed, or after this many seconds."""
        end = time.monotonic() + seconds
        while not (receipt := self.receipt(seq)).pushed and time.monotonic() < end:
            time.sleep(POLL)
        return receipt

    def history(self, path: str, limit: int) -> list[SavedVersion]:
        """Who created, changed or removed a file, newest first."""
        rows = self._ask(HISTORY, path=path, limit=limit)
        return [
            SavedVersion(moment, who, action, version, SaveReceipt(seq, True, commit, pushed) if seq else None)
            for moment, who, action, version, seq, commit, pushed in rows
        ]

    def dropped(self) -> list[DroppedText]:
        """The notes that force-pushes dropped and that are not there now, as far as this server has seen them."""
        repository, found = self.repository, dict[str, DroppedText]()
        heads = repository.dropped()
        now = self._ask(COMMIT)[0][0] if heads else None
        for commit, moment in heads:
            changed = repository.difference(repository.common(commit, now), commit).changes
            for path in sorted(path for path, (_, blob) in changed.items() if blob and path.lower().endswith(ENDINGS)):
                hidden = any(part.startswith(".") for part in path.split("/"))
                if not hidden and path not in found and not os.path.lexists(os.path.join(self.root, path)):
                    found[path] = DroppedText(path, commit, moment)
        return list(found.values())

    def dropped_text(self, text: DroppedText) -> bytes:
        return self.repository.run("cat-file", "blob", text.name).stdout

    def health(self) -> list[AuthorityHealth]:
        """Whether a server brings what is saved to git, and which files no server can have."""
        return health_of(self.state())

    def state(self) -> TeamState:
        return TeamState.read(self._ask(STATE)[0])

    def lag(self) -> float:
        """How many seconds ago the first change was saved that this server's folder lacks; 0.0 if it lacks none."""
        applied, *_ = self._positions()
        ((seconds,),) = self._ask(LAG, after=applied.seq if applied else 0)
        return 0.0 if seconds is None else max(0.0, seconds)

    def wake(self) -> None:
        """Let the keeper look at the outbox and at the remote now, wherever it runs."""
        self._ask(NOTIFY, channel=CHANNEL)

    # -- the folder follows the truth ----------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Write what others saved to the folder. Where the database or git cannot say what, the folder stays."""
        try:
            if self.copy.unfinished():  # if nobody saves now, the lock is free
                with contextlib.suppress(BlockingIOError), locked(self.root, wait=False), self.copy.held():
                    self.copy.undo()
            applied, newest, _ = self._positions()
            if applied == newest:
                return
            if applied:
                with self.copy.held():
                    if not self._apply_newer(only_indexed=True):
                        return
            with self.lock():
                pass
        except IndexUnavailableError:
            return  # what needs the index reports why
        except (GitError, NoteFileError, OSError) as error:  # such as a full disk; a save says so
            log.warning(BEHIND, error)

    def differences(self) -> list[str]:
        """Files of the folder that differ from the truth. Outside of `lock`, one may have been saved just now."""
        return sorted(self._differing())

    def texts(self, seqs: Sequence[int]) -> dict[int, bytes | None]:
        """What was saved with these changes; None removed a file."""
        found: dict[int, bytes | None] = dict(self._ask(TEXTS, seqs=list(seqs))) if seqs else {}
        if len(found) < len(seqs):
            raise IndexUnavailableError(DELETED)
        return found

    def repair(self) -> None:
        """Put the folder right."""
        with self.lock():
            self._put_right(self._differing())

    # -- saving --------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self) -> Generator[Save]:
        """One transaction: the folder is the truth when it begins, and what was touched is saved when it ends.

        An error takes everything back. Inside another one of the same thread, that one.
        """
        current: Save | None = getattr(self._local, "save", None)
        if current is not None:
            yield current
            return
        vault, self._local.seq = self.id(), None  # before the locks: it may have to be made
        if not os.path.isdir(os.path.join(self.root, ".git")):
            raise VaultError(f"the vault {self.root} is not there: was it moved, or is its drive not mounted?")
        with locked(self.root):
            self._take_back()
            start = self.copy.position()
            if start is None:
                with contextlib.suppress(GitError):  # the keeper says that the remote is away
                    self.repository.fetch()  # not inside the transaction: nobody should wait for it
            try:
                with self.engine.transaction() as connection:
                    fetch(connection, f"set local lock_timeout = '{LOCK_SECONDS}s'")
                    take_lock(connection, VAULT_LOCK, vault)
                    now: float = fetch(connection, NOW)[0][0]  # of the database
                    with self.copy.held(), reporting("write", self.root):
                        unindexed = self._apply(now)
                    save = self._local.save = Save(connection, start, now)
                    self._index({path: self.copy.read(path) for path in unindexed})
                    yield save
                    self._record(save)
            except BaseException:
                self._take_back()
                raise
            finally:
                self._local.save = None
            try:
                with self.copy.held():
                    self.copy.finish(save.last)
            except OSError as error:  # such as a full disk: it is saved, and will be applied again
                log.warning(BEHIND, error)
            self._local.seq = save.last and save.last.seq
        for call in save.afterwards:
            call()

    def _take_back(self) -> None:
        """Undo what a failed or killed save changed. If the disk is full, the next save does it."""
        with reporting("write", self.root), self.copy.held():
            self.copy.undo()

    def afterwards(self, call: Callable[[], object]) -> None:
        """Call a function now, or inside `lock` when its changes are saved. If they are not, it is not called."""
        current: Save | None = getattr(self._local, "save", None)
        if current is None:
            call()
        else:
            current.afterwards.append(call)

    def touch(self, *paths: str) -> None:
        """Write down what these files are before they change. Only inside `lock`."""
        save: Save = self._local.save
        fresh = [path for path in paths if path not in save.before]
        save.before |= {path: self.copy.read(path) for path in fresh}
        if fresh:
            self.copy.remember(save.start, save.before)

    def write(self, *files: Written) -> None:
        """Write or remove files inside `lock`."""
        save: Save = self._local.save
        self.touch(*(file.path for file in files))
        for path, _, known, received, author in files:
            save.before[path] = known  # the file may have more already, if it was committed here by hand
            if received:
                save.received[path] = received
            if author:
                save.authors[path] = author
        self.copy.put(
            *(FileText(path, data, () if known is None else [content_hash(known)]) for path, data, known, *_ in files)
        )

    def _record(self, save: Save) -> None:
        """Add what was changed, and index it."""
        now = {path: self.copy.read(path) for path in save.before}
        changed = {path: data for path, data in now.items() if data != save.before[path]}
        if changed:
            self._index(changed)
            self._add_changes(save, changed)
        add_answers(save.connection, self.id(), save.answers, save.last and save.last.seq)

    def _add_changes(self, save: Save, changed: Mapping[str, bytes | None]) -> None:
        person = self.person()
        with save.connection.pipeline():
            for path, data in changed.items():
                author = save.authors.get(path, person)
                save.last = self._add(save.now, path, data, save.before[path], author, save.received.get(path))
            run(save.connection, NOTIFY, {"channel": CHANNEL, "vault": self.id()})

    def _add(
        self,
        now: float,
        path: str,
        data: bytes | None,
        before: bytes | None,
        person: str,
        received: Received | None = None,
    ) -> Position:
        is_new = before is None and not (received and received.after_others)
        action = "create" if is_new else "remove" if data is None else "change"
        commit = received and received.commit
        about = {"path": path, "author": received.author if received else person, "now": now}
        old, new = (None if text is None else content_hash(text) for text in (before, data))
        with self.engine.asking() as connection:
            run(connection, ADD_AUDIT, {"vault": self.id(), **about, "action": action, "hash": new})
        made = {"version": VERSION, "commit": commit, "final": commit is not None}
        return Position(self._ask(ADD_CHANGE, **about, **made, data=data, before=old)[0][0], now)

    def answer_to(self, key: SaveKey) -> Saved | None:
        """What a save with this key was answered. Only inside `lock`. Raises KeyReusedError if it was another one."""
        return find_answer(self._local.save.connection, self.id(), key)

    def keep_answer(self, key: SaveKey, saved: Saved) -> None:
        """Keep the answer to what is saved inside `lock`, in the same transaction."""
        self._local.save.answers[key] = saved

    def _index(self, texts: Mapping[str, bytes | None]) -> None:
        """Index what the writer has not: files that came from git, and those of importers."""
        if not texts:
            return
        if any(os.path.basename(path) in (IGNORE_FILE, GIT_FILE) for path in texts):
            self.index.sync(seconds=0)  # other files may be notes now
        there = self.index.opened(path for path, data in texts.items() if data is not None)
        hashes = {path: content_hash(texts[path] or b"") for path in there}
        with self.engine.reading() as snapshot:
            vault = snapshot.origin(self.index.origin)
            known = snapshot.files(vault.id, list(texts)) if vault else {}
        self.index.index_files([path for path in there if path not in known or known[path].hash != hashes[path]])
        gone = [path for path in known if path not in hashes]
        if gone:  # last, so that the history of a moved note goes on
            self.index.forget_files(gone)

    def person(self) -> str:
        """Who saves: the owner of the token that was used, else whoever git is configured for here."""
        return acting.get().partition(":")[2] or self._own_name

    @cached_property
    def _own_name(self) -> str:
        return self.repository.person() or getpass.getuser()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _ask(self, statement: str, **values: object) -> Any:
        vault = self.id()
        with self.engine.asking() as connection:
            return fetch(connection, statement, {"vault": vault, **values})

    def _apply(self, now: float) -> list[str]:
        """Make the folder the truth, while the vault is locked. Returns what this version must index."""
        applied, newest, first = self._positions()
        if first is None or applied is None:
            self._ask(COMPARE)
        if first is None:
            self._adopt(now)
        elif applied is None:
            self._require_same_repository(first)
            self._put_right(self._differing())
        else:
            return self._apply_newer() if applied != newest else []
        self.copy.set_position(self._positions()[1])
        return []

    def _positions(self) -> tuple[Position | None, Position, str | None]:
        """Where the folder is (None: compare it with all of the truth), where the truth is, and the first commit."""
        applied = self.copy.position()
        ((first, trimmed, seq, saved_at, known),) = self._ask(POSITION, seq=applied.seq if applied else 0)
        if applied and (applied.seq < trimmed or known != applied.saved_at):
            applied = None
        at_start = Position(trimmed, applied.saved_at if applied else None)
        return applied, Position(seq, saved_at) if seq else at_start, first

    def _apply_newer(self, only_indexed: bool = False) -> list[str]:
        """Write the changes that the folder lacks. Returns those that a server of another version has indexed.

        `only_indexed`: if there are any of them, nothing is written.
        """
        applied = self.copy.position()
        after = applied.seq if applied else 0
        rows = self._ask(NEWER, after=after, version=VERSION)
        if rows and rows[0][5] > after:
            raise IndexUnavailableError(DELETED)
        unindexed = [row[1] for row in rows if row[3]]
        if unindexed and only_indexed:
            return unindexed
        if unindexed:
            self.copy.remember(applied, {})  # if they are not indexed after all, they are applied again
        for few in in_parts(rows):
            texts = self.texts([row[0] for row in few])
            self.copy.put(*(FileText(path, texts[seq], before) for seq, path, before, *_ in few))
        if rows:
            self.copy.set_position(max(Position(row[0], row[4]) for row in rows))
        return unindexed

    def _adopt(self, now: float) -> None:
        """Make this folder the first copy of a new team vault. What is not committed or pushed is the first change."""
        head, tip = self.repository.head(), self.repository.tip()
        newest = tip or head
        roots = self.repository.first_commits(newest) if newest else []
        commit = self.repository.common(head, tip)
        skipped = json.dumps(self.repository.skipped(commit))
        self._ask(ADOPT, commit=commit, first=roots[-1] if roots else "", skipped=skipped)
        for few in in_parts(self._differing(everything=True).items()):
            for path, text in self._read(few).items():
                self._add(now, path, self.copy.read(path), text, self.person())

    def _require_same_repository(self, first: str) -> None:
        head = self.repository.head()
        found = self.repository.first_commits(head) if head else []
        if first and found and first not in found:
            name = self.engine.roots[self.root]
            raise VaultError(
                f"{self.engine.path} has another vault named {name}: `git config co.vault OTHER-NAME` in {self.root}"
            )

    def _differing(self, everything: bool = False) -> dict[str, int | str | None]:
        """Files of the folder that are not as the truth says, with the change or the blob that has their text.

        None: it should not be there; these come first. Files that are neither known nor notes are left alone, unless
        `everything` is asked for.
        """
        repository, ((commit,),) = self.repository, self._ask(COMMIT)
        if commit:
            repository.get(commit)
        files, rows = repository.files(commit), self._ask(NEWER, after=0, version=VERSION)
        newest: dict[str, int] = {path: seq for seq, path, *_ in rows}
        removed: dict[str, int | str | None] = {}
        wanted: dict[str, int | str | None] = {}
        for few in in_parts(newest.items()):
            texts = self.texts([seq for _, seq in few])
            differing = {path: seq for path, seq in few if texts[seq] != self.copy.read(path)}
            removed |= {path: None for path, seq in differing.items() if texts[seq] is None}
            wanted |= {path: seq for path, seq in differing.items() if texts[seq] is not None}
        unread: dict[str, str] = {}
        for number, path in enumerate({*repository.own_files(), *files}.difference(newest)):
            if number % AT_ONCE == 0:
                self._ask("select 1")  # thousands of files must not look like a process that stopped
            data, file = self.copy.read(path), files.get(path)
            if file is not None:
                unread |= {path: file.blob} if data is None or blob_name(data, file.blob) != file.blob else {}
            elif data is not None and (everything or self.index.opens(path)):
                removed[path] = None
        for some in in_parts(unread.items()):
            found = repository.texts(blob for _, blob in some)
            wanted |= {path: blob for path, blob in some if not found[blob].startswith(LARGE_FILE)}
        return removed | wanted

    def _read(self, wanted: Iterable[tuple[str, int | str | None]]) -> dict[str, bytes | None]:
        """The texts of these files, from the changes or the blobs that have them."""
        sources = dict(wanted)
        saved = self.texts([seq for seq in sources.values() if isinstance(seq, int)])
        blobs = self.repository.texts(blob for blob in sources.values() if isinstance(blob, str))
        found: dict[int | str | None, bytes | None] = {**saved, **blobs, None: None}
        return {path: found[source] for path, source in sources.items()}

    def _put_right(self, wanted: Mapping[str, int | str | None]) -> None:
        checked_out = self.repository.files(self.repository.head())
        for few in in_parts(wanted.items()):
            blobs = {path: checked_out[path].blob for path, _ in few if path in checked_out}
            texts = self.repository.texts(blobs.values())
            known = {path: [content_hash(texts[blob])] for path, blob in blobs.items()}
            self.copy.put(*(FileText(path, data, known.get(path, ())) for path, data in self._read(few).items()))


def in_parts(values: Iterable[T]) -> Generator[list[T]]:
    """So many that their texts fit into memory."""
    whole = list(values)
    for start in range(0, len(whole), AT_ONCE):
        yield whole[start : start + AT_ONCE]


class TeamStore(NoteStore):
    """The files of a team vault: a lock is a transaction, and what changes inside is saved with it."""

    def __init__(self, team: TeamVault, largest: int | None, secrets: str) -> None:
        super().__init__(team.root, None, largest, secrets)
        self.team = team

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        with self.team.lock():
            yield

    def touch(self, *paths: str) -> None:
        self.team.touch(*paths)

    @property
    def last_seq(self) -> int | None:
        return self.team.last_seq
