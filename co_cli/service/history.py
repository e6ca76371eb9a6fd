"""The history of one document: the heads that activity.db saw, and git's commits where there are some, by time."""

from __future__ import annotations

from typing import NamedTuple

from co_cli.activity import Activity
from co_cli.activity.background import write_now
from co_cli.activity.database import available
from co_cli.activity.versions import Known, known, versions, went
from co_cli.activity.writing import Indexed, still_there
from co_cli.errors import KnowledgeError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.service.git_history import commits_of
from co_cli.service.recording import heads_of

MOST = 200


class Change(NamedTuple):
    """One thing that happened to a document, as we saw it or as git has it."""

    at: float
    source: str
    """activity or git"""
    what: str
    """seen, created, updated, moved, removed, restored; of git, the commit's subject"""
    hash: str | None
    """Of the file's bytes; of git, the commit."""
    title: str | None = None
    size: int | None = None
    grew: int | None = None
    """Bytes more than before, as we saw it."""
    before: str | None = None
    """Of a move: the path it had."""
    author: str | None = None
    lines_added: int | None = None
    lines_deleted: int | None = None


class History(NamedTuple):
    """Everything known of what became of a document."""

    path: str
    head: Known | None
    """As activity.db has it, with how it was used; None if it was never told of it."""
    changes: list[Change]
    """Newest first."""
    problems: list[str]
    """What was left out, and why."""


def history_of(activity: Activity, index: KnowledgeIndex, path: str, now: float, limit: int = MOST) -> History:
    """`path` is inside the vault or origin of this index; one that a document had before it moved will do.

    A head that nobody told of yet is written down first, and so is that it is gone.
    """
    problems: list[str] = []
    head, seen = None, []
    try:
        activity.flush()
        heads = heads_of(index, [path])
        gone = [] if heads or still_there(index.root, path) else [path]
        write_now(activity, [Indexed(index.root, now, heads, removed=gone)])
        with available(activity.database.path), activity.database.reading() as connection:
            if known(connection, index.root, path) is None:
                path = went(connection, index.root, path) or path
            head = known(connection, index.root, path)
            seen = versions(connection, head.id, limit) if head else []
    except KnowledgeError as error:
        problems.append(str(error))
    changes: list[Change] = []
    for place, version in enumerate(seen):
        earlier = seen[place + 1] if place + 1 < len(seen) else None
        sizes = version.size, earlier.size if earlier else None
        grew = sizes[0] - sizes[1] if sizes[0] is not None and sizes[1] is not None else None
        changes.append(
            Change(
                version.at,
                "activity",
                version.what,
                version.hash,
                version.title,
                version.size,
                grew if version.what == "updated" else None,
                version.before,
            )
        )
    git = commits_of(index.root, path, limit)
    for name in (version.before for version in seen if version.before):
        if not git.commits:  # moved, and not committed yet: git knows it by the name it had
            git = commits_of(index.root, name, limit)
    problems += [git.problem] if git.problem else []
    for one in git.commits:
        changes.append(
            Change(
                one.at,
                "git",
                one.subject,
                one.commit,
                author=one.author,
                lines_added=one.added,
                lines_deleted=one.deleted,
            )
        )
    changes.sort(key=lambda change: -change.at)  # stable: of one moment, ours before git's
    return History(path, head, changes[:limit], problems)
