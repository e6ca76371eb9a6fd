"""The keeper of a team vault: turns saves into commits, pushes them, and takes over what others pushed.

One server keeps a vault at a time: the one that holds its lease, a lock that ends with a database session. Each new
keeper raises the vault's epoch, and one with an older epoch may not write. A remote that others pushed to refuses our
push; then their changes are merged first, one file at a time. Texts that do not merge are both kept, as two notes.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from itertools import groupby, takewhile
from typing import NamedTuple

import psycopg

from co_cli.ground.errors import BrokenError, GitError, KnowledgeError
from co_cli.ground.values import DAY
from co_cli.index.postgres.postgres_engine import CONNECT
from co_cli.index.postgres.postgres_statements import ROLE, Connection, fetch
from co_cli.notes.git import Group
from co_cli.notes.logbook import logger
from co_cli.vault.team.schema import CHANNEL
from co_cli.vault.team.takeover import Takeover, advance, new_roots
from co_cli.vault.team.team_vault import TeamVault, in_parts

LEASE_LOCK = 716_506_475
"""Advisory locks with this number and the vault's."""
EVERY, RETRY = 5.0, 2.0
"""Seconds between two looks at the remote, and after a failure."""
LEASE_SECONDS = 10
"""A keeper whose process is silent for this long, such as a frozen one, loses its lease."""
RENEW_SECONDS = 2.0
STEP_SECONDS = 150
"""How long the lease is renewed for one step of a keeper. Longer than git may take."""
MOST_TRIES = 5
"""How often a push that was refused is repeated at once."""
log = logger("team")

TRY_LEASE = "select pg_try_advisory_lock(%(key)s, %(vault)s)"
TAKE_OVER = "update team.vaults set epoch = epoch + 1, keeper = %(name)s where id = %(vault)s returning epoch"
FENCE = "select commit from team.vaults where id = %(vault)s and epoch = %(epoch)s for no key update"
OUTBOX = """
select seq, path, author, saved_at, commit, merged from team.changes
where vault_id = %(vault)s and not pushed order by seq
"""
COMMITTED = """
update team.changes set commit = made.commit from unnest(%(seqs)s::bigint[], %(commits)s::text[]) as made (seq, commit)
where vault_id = %(vault)s and changes.seq = made.seq
"""
PUSHED = """
update team.changes set pushed = true where vault_id = %(vault)s and seq <= %(last)s and not pushed
"""
REPORT = """
update team.vaults set checked_at = extract(epoch from clock_timestamp()), problem = %(problem)s, behind = %(behind)s
where id = %(vault)s
"""
TRIM = """
with old as (
    delete from team.changes where vault_id = %(vault)s and seq < coalesce(
        (select min(seq) from team.changes where vault_id = %(vault)s and (not pushed or saved_at > %(before)s)),
        (select max(seq) from team.changes where vault_id = %(vault)s)
    ) and not exists (select from team.taken where vault_id = %(vault)s) returning seq
)
update team.vaults set trimmed = (select max(seq) from old) where id = %(vault)s and exists (select from old)
"""
"""The last one stays: by it, a server knows that its folder is of this database and not of one before a restore."""
TRIM_AUDIT = "delete from team.audit where vault_id = %(vault)s and moment < %(before)s"


class LeaseLostError(BrokenError):
    """Another server keeps the vault now."""


class Lease:
    """The right to write as the keeper, as long as its process renews it and the keeper gets on with its work."""

    def __init__(self, connection: Connection, ears: Connection, epoch: int) -> None:
        """`ears`: hears of saves. PostgreSQL would not end a session that waits to tell its client of them."""
        self.connection, self.ears, self.epoch = connection, ears, epoch
        self._end = threading.Event()
        self._step = time.monotonic()

    def renew(self) -> None:
        """Raises psycopg.Error if it is lost."""
        self._step = time.monotonic()
        fetch(self.connection, "select 1")

    @contextlib.contextmanager
    def renewed(self) -> Generator[Lease]:
        """Renew it while a step takes longer, such as when git pushes."""
        renewing = threading.Thread(target=self._renew, name="co-lease", daemon=True)
        renewing.start()
        try:
            yield self
        finally:
            self._end.set()
            renewing.join()

    def _renew(self) -> None:
        while not self._end.wait(RENEW_SECONDS) and time.monotonic() - self._step < STEP_SECONDS:
            try:
                fetch(self.connection, "select 1")
            except psycopg.Error:
                return  # the keeper's next step says so


class Unpushed(NamedTuple):
    """A change of the outbox, without its text."""

    seq: int
    path: str
    author: str
    saved_at: float
    commit: str | None
    merged: bool


def server_name() -> str:
    """This process, as the keeper of a vault is called."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Keeper:
    """Keeps one vault as long as this server holds the lease."""

    def __init__(self, team: TeamVault, audit_days: Callable[[], int] = lambda: 0) -> None:
        """`audit_days`: how long the audit log is kept; 0: forever."""
        self.team, self.repository = team, team.repository
        self._audit_days, self._audit_trimmed = audit_days, 0.0
        self._followed: str | None = None
        self._away = self._stopped = False
        """Whether the last round could not reach the remote, or ended with an error: one line says so, not each try."""

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop. What goes wrong is logged, shown by `TeamVault.state()`, and tried again."""
        while not stop.is_set():
            try:
                with self.lease() as lease:
                    if lease is None:
                        self.stand_by()
                    while lease and not stop.is_set():
                        self.round(lease, stop)
                        if self._stopped:
                            log.warning("%s is kept again", self.team.root)
                        self._stopped = False
                        self._wait(lease, stop)
                    self._stopped = False
            except Exception as error:
                bug = not isinstance(error, KnowledgeError | psycopg.Error | OSError)
                text = " ".join(str(error).split())[:300]
                if bug or not self._stopped:
                    log.warning("keeping %s stopped: %s", self.team.root, text, exc_info=bug)
                self._stopped = True
            stop.wait(RETRY)

    def stand_by(self) -> None:
        """Follow another keeper: get what was saved and pushed, so that this clone knows the history of notes, too."""
        self.team.catch_up()
        commit = self.team.state().commit
        if commit and commit != self._followed:
            self.repository.get(commit)
            self.repository.follow(commit)
            self._followed = commit

    @contextlib.contextmanager
    def lease(self) -> Generator[Lease | None]:
        """The lease, or None if another has it."""
        vault = self.team.id()
        with psycopg.connect(self.team.engine.address, **CONNECT) as connection:
            fetch(connection, f"set idle_session_timeout = '{LEASE_SECONDS}s'")
            if not fetch(connection, TRY_LEASE, {"key": LEASE_LOCK, "vault": vault})[0][0]:
                yield None
                return
            with self.team.engine.transaction() as writing:
                ((epoch,),) = fetch(writing, TAKE_OVER, {"vault": vault, "name": server_name()})
            with psycopg.connect(self.team.engine.address, **CONNECT) as ears:
                fetch(ears, f"listen {CHANNEL}")
                with Lease(connection, ears, epoch).renewed() as lease:
                    yield lease

    def round(self, lease: Lease, stop: threading.Event | None = None) -> None:
        """Take over, commit and push once, or until told to stop.

        A remote that cannot be reached is no error: the outbox waits. Any other error is reported and raised, so that
        another server may try.
        """
        self.team.catch_up()  # nobody may ask this server for a while
        problem = None
        try:
            for _ in range(MOST_TRIES):
                self.repository.fetch()
                if not self._take_over(lease, stop or threading.Event()) or self._send(lease):
                    break
        except GitError as error:
            problem = str(error)
            if not self._away:
                log.warning("saves of %s wait until git works again: %s", self.team.root, problem)
            if self.repository.remote():
                with contextlib.suppress(GitError):
                    self._commit(lease)  # so that receipts say so
        except Exception as error:
            self._report(lease, " ".join(str(error).split())[:300])
            raise
        if self._away and problem is None:
            log.warning("git works again: saves of %s are pushed", self.team.root)
        self._away = problem is not None
        self._report(lease, problem)

    def _take_over(self, lease: Lease, stop: threading.Event) -> bool:
        """Bring what others pushed into the vault. False if there was no time for all of it."""

        def go_on() -> bool:
            lease.renew()
            return not stop.is_set()

        takeover = Takeover(self.team, partial(self._fence, lease=lease), go_on)
        theirs, before = self.repository.tip(), self._fenced(lease)
        if theirs is None or (theirs == before and not takeover.is_begun()):
            return True
        if before:
            self.repository.get(before)
        return takeover.run(self._arrived(lease, before, theirs) or before, theirs)

    def _arrived(self, lease: Lease, before: str | None, theirs: str) -> str | None:
        """The newest of our commits that the remote has although nobody wrote it down, such as after a kill."""
        with self.team.engine.asking() as connection:
            rows = self._outbox(connection)
        last = {row.commit: row.seq for row in rows if row.commit}
        arrived = last.keys() & self.repository.commits(before, theirs) if last else set[str]()
        commit = max(arrived, key=lambda found: last[found], default=None)
        if commit:
            there = [row.seq for row in takewhile(lambda row: row.commit in arrived, rows)]
            self._advance(lease, before, commit, there[-1] if there else 0)
        return commit

    def _advance(self, lease: Lease, before: str | None, commit: str | None, last: int) -> None:
        """Write down that the remote has a commit with the changes up to this one."""
        roots = new_roots(self.repository, before, commit)
        with self.team.engine.transaction() as connection:
            self._fence(connection, lease)
            advance(self.team, connection, commit, roots)
            fetch(connection, PUSHED, {"vault": self.team.id(), "last": last})

    def _send(self, lease: Lease) -> bool:
        """Commit the outbox and push it. False if others pushed, or committed, meanwhile."""
        before, tip, last = self._commit(lease)
        if not last:
            return True
        if tip and tip != before:
            self._fenced(lease)
            if not (
                self.repository.push(tip) if self.repository.remote() else self.repository.move_branch(tip, before)
            ):
                return False
        self._advance(lease, before, tip, last)
        self.repository.follow(tip)
        return True

    def _commit(self, lease: Lease) -> tuple[str | None, str | None, int]:
        """Make commits of the outbox, as few as its authors allow, on top of those that it has already.

        Returns the vault's commit, the newest of the outbox, and the number of the last change in it.
        """
        with self.team.engine.transaction() as connection:
            before = self._fence(connection, lease)
            rows = self._outbox(connection)
        done = list(takewhile(lambda row: row.commit, rows))
        tip = done[-1].commit if done else None
        if not tip or not self._builds_on(before, tip, {row.commit for row in done}):
            done, tip = [], before
        for few in in_parts(rows[len(done) :]):
            tip = self._commit_some(lease, tip, few)
        return before, tip, rows[-1].seq if rows else 0

    def _builds_on(self, before: str | None, tip: str, ours: set[str | None]) -> bool:
        """Whether a commit is here with the vault's commit and nothing but commits of ours on it.

        It may have others: a force-push has dropped them since.
        """
        if not self.repository.has(tip) or self.repository.common(before, tip) != before:
            return False
        return ours >= self.repository.commits(before, tip)

    def _commit_some(self, lease: Lease, parent: str | None, rows: Sequence[Unpushed]) -> str | None:
        """What was one commit before, which could not be pushed, is one again. Returns the newest."""
        saved = [row for row in rows if not row.merged]
        texts = self.team.texts([row.seq for row in saved])
        runs = list(in_commits(saved))
        groups = [
            Group(run[-1].author, int(run[-1].saved_at), {row.path: texts[row.seq] for row in run}) for run in runs
        ]
        tips = self.repository.commit(parent, groups)
        tip = tips[-1] if tips else parent
        with self.team.engine.transaction() as connection:
            self._fence(connection, lease)
            made = {row.seq: commit for run, commit in zip(runs, tips, strict=True) for row in run}
            made |= {row.seq: tip for row in rows if row.merged}
            known = {seq: commit for seq, commit in made.items() if commit}  # none before the first commit
            about = {"vault": self.team.id(), "seqs": list(known), "commits": list(known.values())}
            fetch(connection, COMMITTED, about)
        return tip

    def _outbox(self, connection: Connection) -> list[Unpushed]:
        return [Unpushed(*row) for row in fetch(connection, OUTBOX, {"vault": self.team.id()})]

    def _report(self, lease: Lease, problem: str | None) -> None:
        theirs, commit = self.repository.tip(), self._fenced(lease)
        known = commit is None or self.repository.has(commit)
        behind = self.repository.count(commit, theirs) if theirs and known else 0
        with self.team.engine.transaction() as connection:
            self._fence(connection, lease)
            now = time.time()
            fetch(connection, REPORT, {"vault": self.team.id(), "problem": problem, "behind": behind})
            fetch(connection, TRIM, {"vault": self.team.id(), "before": now - DAY})
            if (days := self._audit_days()) and now - self._audit_trimmed > DAY:
                before = {"vault": self.team.id(), "before": now - days * DAY}
                fetch(connection, "set local role none")  # those who save may only add to it
                fetch(connection, TRIM_AUDIT, before)
                fetch(connection, f"set local role {ROLE}")
                self._audit_trimmed = now

    def _fenced(self, lease: Lease) -> str | None:
        with self.team.engine.transaction() as connection:
            return self._fence(connection, lease)

    def _fence(self, connection: Connection, lease: Lease) -> str | None:
        """The vault's commit, which stays until the transaction ends. Raises LeaseLostError in an older epoch."""
        found = fetch(connection, FENCE, {"vault": self.team.id(), "epoch": lease.epoch})
        if not found:
            raise LeaseLostError(f"another server keeps {self.team.root} now")
        return found[0][0]

    def _wait(self, lease: Lease, stop: threading.Event) -> None:
        """Until somebody has saved or asks for it, or for some seconds. Raises if the lease is lost."""
        lease.renew()
        end = time.monotonic() + EVERY
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            for heard in lease.ears.notifies(timeout=min(left, 0.5), stop_after=1):
                if heard.payload == str(self.team.id()):
                    return


def in_commits(rows: Iterable[Unpushed]) -> Generator[list[Unpushed]]:
    """Changes that one commit has: those of an author, unless another one changed the same file in between.

    Git writes the folder of a note again for each commit, which takes 20 ms where it has thousands. The commit with
    the last change is the last.
    """
    groups: dict[object, list[Unpushed]] = {}
    owners: dict[str, object] = {}
    for owner, some in groupby(rows, key=lambda row: (row.author, row.commit)):
        run = list(some)
        if any(owners.get(row.path, owner) != owner for row in run):
            yield from sorted(groups.values(), key=lambda group: group[-1].seq)
            groups, owners = {}, {}
        groups.setdefault(owner, []).extend(run)
        owners |= {row.path: owner for row in run}
    yield from sorted(groups.values(), key=lambda group: group[-1].seq)
