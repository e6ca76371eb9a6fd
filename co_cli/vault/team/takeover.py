"""Take over what others pushed to a team vault, a part at a time: a save waits for one part at most.

Each part is a transaction of its own, with the texts, their index rows and the blobs of theirs that are in the vault
now (`team.taken`). The vault's commit moves when all parts are in. Whoever keeps the vault after a kill goes on with
the next part, also if the remote has other commits by then: a file that was taken over is compared with what it was
taken from.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from co_cli.ground.errors import FrontmatterError
from co_cli.ground.values import content_hash
from co_cli.index.postgres.postgres_statements import Connection, fetch
from co_cli.notes.editing import set_fields
from co_cli.notes.git import LARGEST, Edit, Repository, blob_name
from co_cli.notes.refs import ENDINGS, slugify, source_ref
from co_cli.vault.team.team_vault import ADD_AUDIT, Received, Save, TeamVault, Written
from co_cli.vault.team.vault_copy import LARGE_FILE

LONGEST_NAME = 150
"""Bytes of a file's name that the name of a conflict copy has."""
IN_LFS, NOT_HERE = "a large file of git-lfs", "cannot be a file on the server that took it over"
PART_SECONDS, FIRST_PART, LEAST_FILES, MOST_FILES, MOST_BYTES = 0.5, 50, 20, 500, 5_000_000
"""How long a part should take, how many files the first one has, and the least and the most of any."""
PAUSE = 0.02
"""Seconds between two parts, in which those who wait for the folder get it."""
MANY = 1_000
"""After this many files the engine is compacted."""

TAKEN = "select path, blob from team.taken where vault_id = %(vault)s"
TAKE = """
insert into team.taken (vault_id, path, blob)
select %(vault)s, path, nullif(blob, '') from unnest(%(paths)s::text[], %(blobs)s::text[]) as theirs (path, blob)
on conflict (vault_id, path) do update set blob = excluded.blob
"""
FORGET_TAKEN = "delete from team.taken where vault_id = %(vault)s"
PROGRESS = """
update team.vaults set
    checked_at = extract(epoch from clock_timestamp()), behind = %(commits)s, files_behind = %(files)s
where id = %(vault)s
"""
OURS = """
select distinct on (changes.path) changes.path, data, author, pushed
from unnest(%(paths)s::text[]) as asked (path) join team.changes on changes.path = asked.path collate "C"
where vault_id = %(vault)s order by changes.path, seq desc
"""
MERGED = """
update team.changes set merged = true from unnest(%(paths)s::text[]) as asked (path)
where vault_id = %(vault)s and changes.path = asked.path collate "C" and not pushed
"""
ADVANCE = """
update team.vaults set commit = %(commit)s, first_commit = coalesce(%(first)s, first_commit) where id = %(vault)s
"""
SKIPPED = "select skipped from team.vaults where id = %(vault)s"
SKIP = "update team.vaults set skipped = %(skipped)s where id = %(vault)s"


class Incoming(NamedTuple):
    """A file that others changed: what it was, what it is here, and what they pushed. None: it is not there."""

    path: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    saved_by: str
    received: Received


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left to do until the vault has a commit."""

    before: str | None
    theirs: str
    files: Mapping[str, tuple[str | None, str | None]]
    """The blobs of each file: of the text that was taken over last, and of theirs."""
    taken: Mapping[str, str | None]
    """Files whose text of a newer commit than `before` is in the vault, with its blob."""
    edits: Mapping[str, Sequence[Edit]]
    """What each commit did to the files."""
    sizes: Mapping[str, int]
    """Bytes of each blob."""
    skipped: dict[str, str]
    """Files that no server has, with the reasons."""
    commits: int
    author: str
    """Of the newest commit: it stands for those that are not known."""

    def received(self, path: str) -> Received:
        """Where their text comes from."""
        edits, blob = self.edits.get(path, ()), self.files[path][1]
        made = next((edit for edit in reversed(edits) if edit.blob == blob), edits[-1] if edits else None)
        return Received(made.author, made.commit, len(edits) > 1) if made else Received(self.author, self.theirs)

    def earlier(self, path: str) -> list[Edit]:
        """What other commits did to a file, oldest first."""
        last = self.received(path)
        others = (edit for edit in self.edits.get(path, ()) if edit.commit != last.commit)
        return [edit for edit in others if edit.blob is None or self.sizes[edit.blob] <= LARGEST]

    def follows(self, path: str, text: bytes | None) -> bool:
        """Whether their text came after this one: a commit before it has it."""
        return text is not None and blob_name(text, self.theirs) in {edit.blob for edit in self.edits.get(path, ())}

    def blobs(self, path: str) -> list[str]:
        """The texts of a file that are compared."""
        base, theirs = self.files[path]
        return [blob for blob in (None if path in self.taken else base, theirs) if blob]


class Takeover:
    """Brings the commits of others into a vault, for the server that keeps it."""

    def __init__(self, team: TeamVault, fence: Callable[[Connection], str | None], go_on: Callable[[], bool]) -> None:
        """`fence` refuses a keeper that lost its lease; `go_on` says between two parts whether there is time."""
        self.team, self.repository = team, team.repository
        self._fence, self._go_on = fence, go_on

    def is_begun(self) -> bool:
        """Whether parts of a push are in the vault, and others are not."""
        with self.team.engine.asking() as connection:
            return bool(fetch(connection, f"{TAKEN} limit 1", {"vault": self.team.id()}))

    def run(self, before: str | None, theirs: str) -> bool:
        """Bring the vault from one commit to another. False if it was stopped between two parts."""
        self.repository.keep_dropped(before, theirs)
        plan = self._plan(before, theirs)
        with self.team.engine.transaction() as connection:
            self._fence(connection)
            self._report(connection, plan, len(plan.files))
        waiting, left, size = deque(in_order(plan.files)), len(plan.files), FIRST_PART
        while waiting:
            part = _next_part(waiting, plan, size)
            left -= len(part)
            took = self._take(plan, part, left)
            size = min(MOST_FILES, max(LEAST_FILES, round(len(part) * PART_SECONDS / max(took, 0.01))))
            time.sleep(PAUSE)
            if not self._go_on():
                return False
        roots = new_roots(self.repository, before, theirs)
        with self.team.engine.transaction() as connection:
            self._fence(connection)
            advance(self.team, connection, theirs, roots)
            fetch(connection, FORGET_TAKEN, {"vault": self.team.id()})
            fetch(connection, SKIP, {"vault": self.team.id(), "skipped": json.dumps(plan.skipped)})
            self._report(connection, plan, 0)
        self.repository.follow(theirs)
        self.team.index.embed_saved()  # what waits for another model than the embedded one
        if len(plan.files) >= MANY:
            self.team.engine.compact()
        return True

    def _plan(self, before: str | None, theirs: str) -> Plan:
        repository, vault = self.repository, self.team.id()
        found = repository.difference(before, theirs)
        with self.team.engine.asking() as connection:
            taken: dict[str, str | None] = dict(fetch(connection, TAKEN, {"vault": vault}))
            known: dict[str, str] = json.loads(fetch(connection, SKIPPED, {"vault": vault})[0][0])
        files = {path: (taken.get(path, base), new) for path, (base, new) in found.changes.items()}
        same = [path for path in taken if path not in files and not (path in found.skipped and repository.stays(path))]
        there = repository.files(theirs, same)
        files |= {path: (taken[path], there[path].blob if path in there else None) for path in same}
        files = {path: blobs for path, blobs in files.items() if blobs[0] != blobs[1]}
        made = repository.edits(before, theirs)
        files |= self._arrived(theirs, {path: made[path] for path in made.keys() - files.keys() - taken.keys()})
        edits = {path: _later(made[path], path in taken, taken.get(path)) for path in made if path in files}
        sizes = found.sizes | {file.blob: file.size for file in there.values()}
        blobs = {edit.blob for of_file in edits.values() for edit in of_file if edit.blob}
        sizes |= repository.sizes(blobs - sizes.keys())
        done = taken.keys() - files.keys()
        kept = {path: why for path, why in known.items() if path not in found.paths or path in done}
        commits, author = repository.count(before, theirs), repository.author_of(theirs)
        return Plan(before, theirs, files, taken, edits, sizes, kept | found.skipped, commits, author)

    def _arrived(self, theirs: str, edits: Mapping[str, Sequence[Edit]]) -> dict[str, tuple[str | None, str | None]]:
        """Of files that are as they were although commits changed them, those whose unpushed text is of such a commit.

        After a restore, the outbox is older than the remote: a text in it had arrived, and was replaced or removed.
        """
        with self.team.engine.asking() as connection:
            rows = fetch(connection, OURS, {"vault": self.team.id(), "paths": sorted(edits)}) if edits else []
        unpushed = {
            path: None if data is None else blob_name(data, theirs) for path, data, _, final in rows if not final
        }
        paths = [path for path, blob in unpushed.items() if blob in {edit.blob for edit in edits[path]}]
        there = self.repository.files(theirs, paths)
        blobs = {path: there[path].blob if path in there else None for path in paths}
        return {path: (blob, blob) for path, blob in blobs.items()}

    def _take(self, plan: Plan, part: Sequence[str], left: int) -> float:
        """Take over some files in one transaction with the index. Returns the seconds that others waited."""
        texts = self.repository.texts(blob for path in part for blob in plan.blobs(path))
        texts |= self.repository.texts((blob for path in part if (blob := plan.taken.get(path))), required=False)
        hashes = self._hashes(plan, part)
        vault = self.team.id()
        with self.team.lock() as save:
            started = time.monotonic()
            self._fence(save.connection)
            ours = {path: rest for path, *rest in fetch(save.connection, OURS, {"vault": vault, "paths": list(part)})}
            self.team.touch(*part)
            changed: list[Incoming] = []
            for path in part:
                base, new = (texts.get(blob) if blob else None for blob in plan.files[path])
                own, saved_by, final = ours.get(path, (base, "", True))
                if (new or b"").startswith(LARGE_FILE):
                    plan.skipped[path] = IN_LFS
                elif new != own:
                    if (path in plan.taken and final) or plan.follows(path, own):
                        base = own  # nobody saved it since, or it had arrived: after a restore, the outbox is older
                    changed.append(Incoming(path, base, own, new, saved_by, plan.received(path)))
            self._merge(save, plan, changed, hashes)
            gone = (file.path for file in changed if file.theirs is not None and self.team.copy.read(file.path) is None)
            plan.skipped.update(dict.fromkeys(gone, NOT_HERE))
            blobs = [plan.files[path][1] or "" for path in part]
            fetch(save.connection, TAKE, {"vault": vault, "paths": list(part), "blobs": blobs})
            fetch(save.connection, SKIP, {"vault": vault, "skipped": json.dumps(plan.skipped)})
            self._report(save.connection, plan, left)
        return time.monotonic() - started

    def _hashes(self, plan: Plan, part: Sequence[str]) -> dict[str, str]:
        """Of what other commits did to these files: thousands may have changed one, so few texts are read at once."""
        blobs = sorted({edit.blob for path in part for edit in plan.earlier(path) if edit.blob})
        found: dict[str, str] = {}
        while blobs:
            few, size = list[str](), 0
            while blobs and size < MOST_BYTES:
                few.append(blobs.pop())
                size += plan.sizes[few[-1]]
            found |= {blob: content_hash(text) for blob, text in self.repository.texts(few).items()}
        return found

    def _merge(self, save: Save, plan: Plan, changed: Sequence[Incoming], hashes: Mapping[str, str]) -> None:
        """Take the files that others changed, merge them, or keep both texts, and write down who did what."""
        taken, merged, edits = list[Written](), list[str](), list[dict[str, object]]()
        for file in changed:
            plain = file.ours is None or file.ours == file.base
            if not plain:
                fetch(save.connection, "select 1")  # hundreds of merges must not look like a process that stopped
            if plain:
                taken.append(Written(file.path, file.theirs, file.ours, file.received))
            if plain or self._merge_both(file):
                merged.append(file.path)
                edits += self._audited(file, plan.earlier(file.path), hashes, save.now)
        self.team.write(*taken)
        fetch(save.connection, MERGED, {"vault": self.team.id(), "paths": merged})
        if edits:
            save.connection.cursor().executemany(ADD_AUDIT.encode(), edits)

    def _merge_both(self, file: Incoming) -> bool:
        """Merge a file that was changed here, too, or keep both texts. False if ours is the result."""
        path, base, ours, theirs, saved_by, received = file
        assert ours is not None
        # a file that they removed and we changed stays
        merged = ours if theirs is None else self.repository.merge(ours, base or b"", theirs)
        if merged is None:
            self.team.write(Written(*self._conflict_copy(path, ours, saved_by), None, author=saved_by))
            self.team.write(Written(path, theirs, ours, received))
        elif merged != ours:
            self.team.write(Written(path, merged, ours, author=saved_by))
        return merged != ours

    def _audited(
        self, file: Incoming, edits: Sequence[Edit], hashes: Mapping[str, str], now: float
    ) -> list[dict[str, object]]:
        """What commits before the last one, which is dated `now`, did to a file, for the audit: a millisecond apart."""
        rows, there = list[dict[str, object]](), file.base is not None
        for left, edit in zip(range(len(edits), 0, -1), edits, strict=True):
            action = "remove" if edit.blob is None else "change" if there else "create"
            there, made = edit.blob is not None, None if edit.blob is None else hashes[edit.blob]
            about = {"vault": self.team.id(), "now": now - left / 1_000, "path": file.path}
            rows.append({**about, "author": edit.author, "action": action, "hash": made})
        return rows

    def _conflict_copy(self, path: str, text: bytes, author: str) -> tuple[str, bytes]:
        """A second note for a text that does not merge, which names the first one."""
        stem, ending = os.path.splitext(path)
        folder, _, name = stem.rpartition("/")
        name = name.encode()[:LONGEST_NAME].decode("utf-8", "ignore")
        stem = os.path.join(folder, f"{name}-conflict-{slugify(author)}")
        names = (f"{stem}{number}{ending}" for number in ("", *(f"-{more}" for more in range(2, 1_000))))
        free = next(name for name in names if not os.path.lexists(os.path.join(self.team.root, name)))
        if path.lower().endswith(ENDINGS):
            ref = self.team.index.notes.ref_of(path) or source_ref(path)
            with contextlib.suppress(FrontmatterError):  # what cannot be edited safely stays as it is
                marked = set_fields(text.decode("utf-8", "surrogateescape"), {"conflict_with": ref}, path)
                return free, marked.encode("utf-8", "surrogateescape")
        return free, text

    def _report(self, connection: Connection, plan: Plan, left: int) -> None:
        """Report progress, which also shows that the keeper is working."""
        commits = plan.commits if left else 0
        fetch(connection, PROGRESS, {"vault": self.team.id(), "commits": commits, "files": left})


def in_order(files: Mapping[str, tuple[str | None, str | None]]) -> list[list[str]]:
    """The paths to take over, in groups that belong into one part.

    A file that is removed to make room for a folder, or the other way round, comes first. One that was moved is removed
    together with its new place, so that its history goes on and no search misses it; all others are removed at the end.
    """
    written = {path for path, (_, new) in files.items() if new is not None}
    removed = sorted(files.keys() - written)
    folders = {folder for path in written for folder in _folders_of(path)}
    first = [path for path in removed if path in folders or not written.isdisjoint(_folders_of(path))]
    homes: defaultdict[str | None, list[str]] = defaultdict(list)
    for path in sorted(set(removed).difference(first), reverse=True):
        homes[files[path][0]].append(path)
    groups = [[path] for path in first]
    for path in sorted(written):
        base, new = files[path]
        moved = [homes[new].pop()] if base is None and homes.get(new) else []
        groups.append([*moved, path])
    return groups + [[path] for home in homes.values() for path in reversed(home)]


def _later(edits: list[Edit], begun: bool, blob: str | None) -> list[Edit]:
    """The edits after the one whose text is in the vault already."""
    done = max((number for number, edit in enumerate(edits, 1) if edit.blob == blob), default=0) if begun else 0
    return edits[done:]


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _next_part(waiting: deque[list[str]], plan: Plan, most: int) -> list[str]:
    """The next files, at most this many, unless they belong together."""
    part: list[str] = []
    size = 0
    while waiting and (not part or (len(part) < most and size < MOST_BYTES)):
        group = waiting.popleft()
        part += group
        size += sum(plan.sizes.get(blob, 0) for path in group for blob in plan.blobs(path))
    return part


def new_roots(repository: Repository, before: str | None, commit: str | None) -> list[str]:
    """The first commits of a history that has nothing in common with the one before: it is new or rewritten."""
    is_new = commit is not None and repository.common(before, commit) is None
    return repository.first_commits(commit) if commit and is_new else []


def advance(team: TeamVault, connection: Connection, commit: str | None, roots: Sequence[str]) -> None:
    """Let the vault build on another commit."""
    fetch(connection, ADVANCE, {"vault": team.id(), "commit": commit, "first": roots[-1] if roots else None})
