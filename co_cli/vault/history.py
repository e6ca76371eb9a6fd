"""The history of a note, from activity.db and git.

A vault may be somebody else's clone, so git starts nothing that its configuration names (git.py).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from co_cli.activity import Activity, heads_of
from co_cli.activity.events import Indexed
from co_cli.activity.versions import Changed, Known, changed_since, gone_named, known, moved_to, versions
from co_cli.ground.errors import ActivityUnavailableError, GitError, KnowledgeError
from co_cli.ground.hits import Filters
from co_cli.ground.saves import SaveReceipt
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import moment_text
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.git import LOG_SECONDS, WITH_DROPPED, repository_around
from co_cli.notes.refs import kind_in, source_ref
from co_cli.vault.lookup import Lookup
from co_cli.vault.vault import Vault

MOST = 200
FORMAT = "%x1e%H%x1f%at%x1f%an%x1f%s"


class NoteChange(NamedTuple):
    """One thing that happened to a document."""

    at: str
    source: str
    """activity, git, or team: another server saved it"""
    what: str
    """seen, created, updated, moved, removed, restored; of git, the commit's subject"""
    hash: str | None
    """Of the file's bytes; of git, the commit."""
    title: str | None = None
    size: int | None = None
    grew: int | None = None
    """Bytes more than before."""
    before: str | None = None
    """Of a move: the path it had."""
    front_end: str | None = None
    """That saved it; None if the file was changed outside of co."""
    author: str | None = None
    lines_added: int | None = None
    lines_deleted: int | None = None
    receipt: SaveReceipt | None = None
    """Of a save in a team vault; None when it was pushed more than a day ago."""


class History(NamedTuple):
    """Everything known of a document."""

    path: str
    head: Known | None
    """As activity.db has it, with how it was used; None if it is unknown there."""
    changes: list[NoteChange]
    """Newest first."""
    problems: list[str]
    """What was left out, and why."""


@dataclass(frozen=True, slots=True)
class ChangedNote:
    """A note that changed since a moment, and what happened to it. Of one that was removed little is known."""

    note: NoteSummary
    what: str
    """created, updated, moved, removed or restored"""
    at: str
    before: str | None = None
    """The ref that it had, if it was moved last."""


def changed_notes(vault: Vault, filters: Filters) -> tuple[list[ChangedNote], list[str]]:
    """The notes that changed since `filters.since`, newest first, and why some may be missing.

    A note that says itself that it was created since then counts, also if its file is older than this index.
    """
    since, problems = filters.since or 0.0, list[str]()
    changes: dict[str, tuple[str, Changed]] = {}
    for root, tier in ((vault.root, ""), *((origin.root, f"{origin.tier}:") for origin in vault.linked if origin.tier)):
        try:
            with vault.activity.written().reading() as connection:
                found = changed_since(connection, root, since)
        except ActivityUnavailableError as error:
            problems, found = [f"only new notes are listed, not what was updated or removed: {error}"], []
        changes |= {os.path.join(root, *change.path.split("/")): (tier, change) for change in found}
    order = {file: -place for place, file in enumerate(changes)}  # moments are written without fractions of a second
    listed: list[ChangedNote] = []
    start = moment_text(since)
    for note in Lookup(vault).summaries(filters._replace(since=None)):
        tier, change = changes.pop(note.path, ("", None))
        if change and change.what != "removed":
            what = "created" if note.created >= start else change.what
            before = tier + source_ref(change.before) if change.before and what == "moved" else None
            listed.append(ChangedNote(note, what, moment_text(change.at), before))
        elif note.created >= start:
            listed.append(ChangedNote(note, "created", note.created))
    for file, (tier, change) in changes.items():
        kind, at = kind_in(change.path), moment_text(change.at)
        if change.what == "removed" and not filters.tags and (not filters.sources or kind in filters.sources):
            gone = NoteSummary(tier + source_ref(change.path), kind, file, change.title, (), None, "")
            listed.append(ChangedNote(gone, "removed", at))
    listed.sort(key=lambda changed: (changed.at, order.get(changed.note.path, -len(order))), reverse=True)
    return listed, problems


def history_of(activity: Activity, index: KnowledgeIndex, path: str, limit: int = MOST) -> History:
    """`path` is inside the vault or source of this index; one that a document had before it moved will do, and so will
    the title of one that is gone.

    Records the current state first if it is not recorded yet.
    """
    problems: list[str] = []
    head, seen = None, []
    try:
        heads = heads_of(index.notes, [path])
        gone = [] if heads or os.path.lexists(os.path.join(index.root, path)) else [path]
        activity.write([Indexed(index.root, activity.clock(), heads, removed=gone)])
        with activity.database.reading() as connection:
            if known(connection, index.root, path) is None:
                path = moved_to(connection, index.root, path) or gone_named(connection, index.root, path) or path
            head = known(connection, index.root, path)
            seen = versions(connection, head.id, limit) if head else []
    except KnowledgeError as error:
        problems.append(str(error))
    changes: list[NoteChange] = []
    for version, earlier in zip(seen, [*seen[1:], None], strict=False):
        grew = None
        if version.what == "updated" and earlier and version.size is not None and earlier.size is not None:
            grew = version.size - earlier.size
        at, what, file_hash, title, size, before, front_end = version
        changes.append(NoteChange(moment_text(at), "activity", what, file_hash, title, size, grew, before, front_end))
    commits, problem = commits_of(index.root, path, limit)
    for name in (version.before for version in seen if version.before):
        if not commits:  # moved and not committed yet: git knows it by its old name
            commits, problem = commits_of(index.root, name, limit)
    problems += [problem] if problem else []
    for commit in commits:
        change = NoteChange(moment_text(commit.at), "git", commit.subject, commit.commit, author=commit.author)
        changes.append(change._replace(lines_added=commit.added, lines_deleted=commit.deleted))
    changes.sort(key=lambda change: change.at, reverse=True)  # stable: of one moment, ours before git's
    return History(path, head, changes[:limit], problems)


class Commit(NamedTuple):
    """One commit of a file."""

    at: float
    commit: str
    author: str
    subject: str
    added: int | None
    """Lines; None if git does not treat the file as text."""
    deleted: int | None


def commits_of(root: str, path: str, limit: int) -> tuple[list[Commit], str | None]:
    """The commits of a file, newest first, followed across renames; and why they may be incomplete."""
    repository = repository_around(root)
    if repository is None:
        return [], None
    command = ["log", "--follow", "--numstat", "--no-color", "--no-ext-diff", "--no-textconv"]
    command += [f"--format={FORMAT}", f"--max-count={limit}", *WITH_DROPPED, "--", path]
    try:
        if repository.head() is None:
            return [], None
        dropped = repository.dropped_commits() if repository.dropped() else set[str]()
        printed = repository.run(*command, seconds=LOG_SECONDS).stdout.decode("utf-8", "replace")
    except GitError as error:
        return [], f"{error}: commits are left out"
    commits: list[Commit] = []
    for block in printed.split("\x1e")[1:]:
        head, _, numstat = block.partition("\n")
        number, at, author, subject = head.split("\x1f", 3)
        counts = next((line.split("\t") for line in numstat.splitlines() if line.count("\t") >= 2), ["", ""])
        added, deleted = (int(count) if count.isdigit() else None for count in counts[:2])
        subject += " (dropped by a force-push)" if number in dropped else ""
        commits.append(Commit(float(at), number, author, subject, added, deleted))
    return commits, None
