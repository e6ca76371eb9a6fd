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
import re
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from co_cli.activity import acting
from co_cli.errors import GitError, IndexUnavailableError, InvalidInputError, NoteFileError, VaultError
from co_cli.git import Repository, blob_name
from co_cli.index.authority import AuthorityHealth, SavedVersion
from co_cli.index.postgres.postgres_engine import VERSION, PostgresEngine
from co_cli.index.postgres.postgres_statements import Connection, fetch
from co_cli.logbook import logger
from co_cli.notes.files import locked
from co_cli.notes.refs import ENDINGS
from co_cli.notes.store import NoteStore, content_hash, reporting
from co_cli.saves import SaveReceipt
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE
from co_cli.team.schema import CHANNEL, connect_team
from co_cli.team.team_tokens import TeamTokens
from co_cli.team.vault_copy import LARGE_FILE, Position, VaultCopy

if TYPE_CHECKING:
    from co_cli.knowledge_index import KnowledgeIndex

VAULT_LOCK = 716_506_474
"""Advisory locks with this number and the vault's: one save at a time."""
POLL = 0.05
KEEPER_SECONDS = 120.0
"""After which a keeper that says nothing is not there."""
SHOWN, LONGEST_SHOWN = 3, 100
"""Skipped files that are named, and letters of each path."""
MANY = 20
"""With this many files, reading all listings of the folder is faster than indexing each file."""
log = logger("team")

LOCK = f"set local lock_timeout = '60s'; select pg_advisory_xact_lock({VAULT_LOCK}, {{vault}})"
"""Others may take that long to index all of a vault, or a large push."""
NOTIFY = "select pg_notify(%(channel)s, %(vault)s::text)"
POSITION = """
select trimmed, newest.seq, newest.saved_at, applied.saved_at from team.vaults
left join team.changes applied on applied.vault_id = vaults.id and applied.seq = %(seq)s
left join lateral (
    select seq, saved_at from team.changes where vault_id = vaults.id order by seq desc limit 1
) newest on true
where vaults.id = %(vault)s
"""
VAULT = "select first_commit, commit from team.vaults where id = %(vault)s"
ADOPT = """
update team.vaults set commit = %(commit)s, first_commit = %(first)s, skipped = %(skipped)s where id = %(vault)s
"""
NEWER = """
select max(seq), path, (array_agg(data order by seq desc))[1], array_agg(before), bool_or(version <> %(version)s),
    (array_agg(saved_at order by seq desc))[1]
from team.changes where vault_id = %(vault)s and seq > %(after)s group by path
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
STATE = """
select commit, epoch, keeper, behind, checked_at, problem,
    (select count(*) from team.changes where vault_id = vaults.id and not pushed),
    (select min(saved_at) from team.changes where vault_id = vaults.id and not pushed), skipped
from team.vaults where id = %(vault)s
"""


class TeamState(NamedTuple):
    """What is known about a vault's way into git."""

    commit: str | None
    epoch: int
    keeper: str | None
    behind: int
    """Commits of the remote that were not taken over yet."""
    checked_at: float | None
    """When the keeper last finished."""
    problem: str | None
    """What went wrong in its last round, such as that the remote could not be reached."""
    outbox: int
    """Changes that are not pushed yet."""
    oldest: float | None
    """When the first of them was saved."""
    skipped: dict[str, str]
    """Files of the commit that no server has, with the reasons."""


@dataclass(slots=True)
class Save:
    """One transaction that changes the vault."""

    connection: Connection
    start: Position | None
    """Where the folder was when it began."""
    before: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    """The texts of the files that it changes; None for new ones."""
    received: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Files that came from git: the author and the commit."""
    last: Position | None = None
    """Its last change."""


class TeamVault:
    """One vault on this server. Safe to share between threads; several processes may share the folder."""

    def __init__(self, index: KnowledgeIndex, repository: Repository) -> None:
        assert isinstance(index.engine, PostgresEngine)
        self.engine, self.index, self.repository = index.engine, index, repository
        self.root, self.copy = index.root, VaultCopy(index.root)
        self._local = threading.local()
        self._joining = threading.Lock()
        self._id: int | None = None
        self._person: str | None = None

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

    def health(self) -> list[AuthorityHealth]:
        """Whether a server brings what is saved to git, and which files no server can have."""
        state = self.state()
        waits, fix = f"saved changes that are not pushed: {state.outbox:,}", ""
        if state.checked_at is None or time.time() - state.checked_at > KEEPER_SECONDS:
            text, fix = f"no server commits what is saved; {waits}", "co serve"
        elif state.problem:
            remote = re.match("git (fetch|push)", state.problem)
            fix = "make the git remote reachable: git remote -v" if remote else f"read co.log of {state.keeper}"
            text = f"{state.problem}; {waits}"
        else:
            text = f"{state.keeper} commits what is saved; {waits}"
        found = [AuthorityHealth("team", text, fix)]
        if state.skipped:
            named = "; ".join(f"{path[:LONGEST_SHOWN]}: {why}" for path, why in list(state.skipped.items())[:SHOWN])
            notes = any(path.lower().endswith((*ENDINGS, IGNORE_FILE)) for path in state.skipped)
            text = f"files of the git repository that no server has: {len(state.skipped):,} ({named})"
            found.append(AuthorityHealth("team files", text, "rename or shorten them in git" if notes else ""))
        return found

    def state(self) -> TeamState:
        state = TeamState(*self._ask(STATE)[0])
        return state._replace(skipped=json.loads(str(state.skipped)))

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
            applied, newest = self._positions()
            if applied == newest:
                return
            if applied:
                with self.copy.held():
                    if not self._apply_newer(only_indexed=True):
                        return
            with self.lock():
                pass
        except IndexUnavailableError:
            return  # whoever needs the index says why
        except (GitError, NoteFileError, OSError) as error:  # such as a full disk; a save says so
            log.warning("the folder could not be updated: %s", error)

    def differences(self) -> list[str]:
        """Files of the folder that differ from the truth. Outside of `lock`, one may have been saved just now."""
        return sorted(self._differing())

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
            with self.copy.held():
                self.copy.undo()
            start = self.copy.position()
            try:
                with self.engine.transaction() as connection:
                    fetch(connection, LOCK.format(vault=vault))
                    with self.copy.held(), reporting("write", self.root):
                        unindexed = self._apply()
                    save = self._local.save = Save(connection, start)
                    self._index({path: self.copy.read(path) for path in unindexed})
                    yield save
                    self._record(save)
            except BaseException:
                with self.copy.held():
                    self.copy.undo()
                raise
            finally:
                self._local.save = None
            with self.copy.held():
                self.copy.finish(save.last)
            self._local.seq = save.last and save.last.seq

    def touch(self, *paths: str) -> None:
        """Write down what these files are before they change. Only inside `lock`."""
        save: Save = self._local.save
        fresh = [path for path in paths if path not in save.before]
        save.before |= {path: self.copy.read(path) for path in fresh}
        if fresh:
            self.copy.remember(save.start, save.before)

    def write(
        self, path: str, data: bytes | None, known: bytes | None, received: tuple[str, str] | None = None
    ) -> None:
        """Write or remove a file inside `lock` that has the text `known`. `received`: its author and commit in git."""
        self.touch(path)
        self._local.save.before[path] = known  # the file may have more already, if it was committed here by hand
        self.copy.put(path, data, [] if known is None else [content_hash(known)])
        if received:
            self._local.save.received[path] = received

    def _record(self, save: Save) -> None:
        """Add what was changed, and index it."""
        now = {path: self.copy.read(path) for path in save.before}
        changed = {path: data for path, data in now.items() if data != save.before[path]}
        if not changed:
            return
        self._index(changed)
        person = self.person()
        for path, data in changed.items():
            author, commit = save.received.get(path, (person, None))
            save.last = self._add(path, data, save.before[path], author, commit)
        self._ask(NOTIFY, channel=CHANNEL)

    def _add(
        self, path: str, data: bytes | None, before: bytes | None, author: str, commit: str | None = None
    ) -> Position:
        action = "create" if before is None else "remove" if data is None else "change"
        now = time.time()
        about = {"path": path, "author": author, "now": now}
        old, new = (None if text is None else content_hash(text) for text in (before, data))
        self._ask(ADD_AUDIT, **about, action=action, hash=new)
        made = {"version": VERSION, "commit": commit, "final": commit is not None}
        return Position(self._ask(ADD_CHANGE, **about, **made, data=data, before=old)[0][0], now)

    def _index(self, texts: Mapping[str, bytes | None]) -> None:
        """Index what the writer has not: files that came from git, and those of importers."""
        if not texts:
            return
        if len(texts) > MANY or any(os.path.basename(path) in (IGNORE_FILE, GIT_FILE) for path in texts):
            self.index.sync(seconds=0)  # other files may be notes now
        notes = {
            path: content_hash(data) for path, data in texts.items() if data is not None and self.index.opens(path)
        }
        with self.engine.reading() as reader:
            vault = reader.vault(self.index.origin)
            known = reader.files(vault.id, list(texts)) if vault else {}
        gone = [path for path in known if path not in notes]
        if gone:
            self.index.forget_files(gone)
        for path, hashed in notes.items():
            if path not in known or known[path].hash != hashed:
                self.index.index_file(None, path, embed=False)

    def person(self) -> str:
        """Who saves: the owner of the token that was used, else whoever git is configured for here."""
        return acting.get().partition(":")[2] or self._own_name()

    def _own_name(self) -> str:
        if self._person is None:
            self._person = self.repository.person() or getpass.getuser()
        return self._person

    # -- inside --------------------------------------------------------------------------------------------------------

    def _ask(self, statement: str, **values: object) -> Any:
        vault = self.id()
        with self.engine.asking() as connection:
            return fetch(connection, statement, {"vault": vault, **values})

    def _apply(self) -> list[str]:
        """Make the folder the truth, while the vault is locked. Returns what this version must index."""
        (first, _), (applied, newest) = self._ask(VAULT)[0], self._positions()
        if first is None:
            self._adopt()
        elif applied is None:
            self._require_same_repository(first)
            self._put_right(self._differing())
        else:
            return self._apply_newer() if applied != newest else []
        self.copy.set_position(self._positions()[1])
        return []

    def _positions(self) -> tuple[Position | None, Position]:
        """Where the folder is, and where the truth is. None: the folder has to be compared with all of the truth."""
        applied = self.copy.position()
        ((trimmed, seq, saved_at, known),) = self._ask(POSITION, seq=applied.seq if applied else 0)
        if applied and (applied.seq < trimmed or (applied.seq > trimmed and known != applied.saved_at)):
            applied = None
        at_start = Position(trimmed, applied.saved_at if applied else None)
        return applied, Position(seq, saved_at) if seq else at_start

    def _apply_newer(self, only_indexed: bool = False) -> list[str]:
        """Write the changes that the folder lacks. Returns those that a server of another version has indexed.

        `only_indexed`: if there are any of them, nothing is written.
        """
        applied = self.copy.position()
        rows = self._ask(NEWER, after=applied.seq if applied else 0, version=VERSION)
        unindexed = [row[1] for row in rows if row[4]]
        if unindexed and only_indexed:
            return unindexed
        if unindexed:
            self.copy.remember(applied, {})  # if they are not indexed after all, they are applied again
        for _, path, data, before, *_ in sorted(rows, key=lambda row: row[2] is not None):  # a folder may take a name
            self.copy.put(path, data, before)
        if rows:
            self.copy.set_position(max(Position(row[0], row[5]) for row in rows))
        return unindexed

    def _adopt(self) -> None:
        """Make this folder the first copy of a new team vault. What is not committed or pushed is the first change."""
        self.repository.fetch()
        head, tip = self.repository.head(), self.repository.tip()
        newest = tip or head
        roots = self.repository.first_commits(newest) if newest else []
        commit = self.repository.common(head, tip)
        skipped = json.dumps(self.repository.skipped(commit))
        self._ask(ADOPT, commit=commit, first=roots[-1] if roots else "", skipped=skipped)
        for path, wanted in self._differing(everything=True).items():
            self._add(path, self.copy.read(path), wanted, self.person())

    def _require_same_repository(self, first: str) -> None:
        head = self.repository.head()
        found = self.repository.first_commits(head) if head else []
        if first and found and first not in found:
            name = self.engine.roots[self.root]
            raise VaultError(
                f"{self.engine.path} has another vault named {name}: `git config co.vault OTHER-NAME` in {self.root}"
            )

    def _differing(self, everything: bool = False) -> dict[str, bytes | None]:
        """Files of the folder that are not as the truth says, with what they should be.

        Files that are neither known nor notes are left alone, unless `everything` is asked for.
        """
        repository, (_, commit) = self.repository, self._ask(VAULT)[0]
        if commit:
            repository.get(commit)
        files, rows = repository.files(commit), self._ask(NEWER, after=0, version=VERSION)
        newest: dict[str, bytes | None] = {row[1]: row[2] for row in rows}
        wanted: dict[str, bytes | None] = {}
        unread: dict[str, str] = {}
        for path in {*repository.own_files(), *files, *newest}:
            data, file = self.copy.read(path), files.get(path)
            if path in newest:
                wanted |= {path: newest[path]} if newest[path] != data else {}
            elif file is not None:
                unread |= {path: file.blob} if data is None or blob_name(data, file.blob) != file.blob else {}
            elif data is not None and (everything or self.index.opens(path)):
                wanted[path] = None
        texts = repository.texts(unread.values())
        changed = {path: texts[blob] for path, blob in unread.items()}
        return wanted | {path: data for path, data in changed.items() if not data.startswith(LARGE_FILE)}

    def _put_right(self, wanted: Mapping[str, bytes | None]) -> None:
        checked_out = self.repository.files(self.repository.head())
        blobs = {path: checked_out[path].blob for path in wanted if path in checked_out}
        texts = self.repository.texts(blobs.values())
        for path, data in sorted(wanted.items(), key=lambda item: item[1] is not None):
            self.copy.put(path, data, [content_hash(texts[blobs[path]])] if path in blobs else [])


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
