"""The history of one note, from activity.db and git; and what keeps it when the folder of a vault is moved."""

from __future__ import annotations

import os
from typing import NamedTuple

from co_cli.activity import Activity, heads_of
from co_cli.activity.events import Indexed
from co_cli.activity.judgements import change_learned
from co_cli.activity.versions import Known, known, known_roots, move_vault, moved_to, versions
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.service.git import commits_of
from co_cli.service.review import Dismissals
from co_cli.settings import Settings
from co_cli.sources.origin import Added, change_registry

MOST = 200


class NoteChange(NamedTuple):
    """One thing that happened to a document."""

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
    """Bytes more than before."""
    before: str | None = None
    """Of a move: the path it had."""
    author: str | None = None
    lines_added: int | None = None
    lines_deleted: int | None = None


class History(NamedTuple):
    """Everything known of a document."""

    path: str
    head: Known | None
    """As activity.db has it, with how it was used; None if it is unknown there."""
    changes: list[NoteChange]
    """Newest first."""
    problems: list[str]
    """What was left out, and why."""


def history_of(activity: Activity, index: KnowledgeIndex, path: str, limit: int = MOST) -> History:
    """`path` is inside the vault or source of this index; one that a document had before it moved will do.

    Records the current state first if it is not recorded yet.
    """
    problems: list[str] = []
    head, seen = None, []
    try:
        heads = heads_of(index, [path])
        gone = [] if heads or os.path.lexists(os.path.join(index.root, path)) else [path]
        activity.write([Indexed(index.root, activity.clock(), heads, removed=gone)])
        with activity.database.reading() as connection:
            if known(connection, index.root, path) is None:
                path = moved_to(connection, index.root, path) or path
            head = known(connection, index.root, path)
            seen = versions(connection, head.id, limit) if head else []
    except KnowledgeError as error:
        problems.append(str(error))
    changes: list[NoteChange] = []
    for version, earlier in zip(seen, [*seen[1:], None], strict=False):
        grew = None
        if version.what == "updated" and earlier and version.size is not None and earlier.size is not None:
            grew = version.size - earlier.size
        at, what, file_hash, title, size, before = version
        changes.append(NoteChange(at, "activity", what, file_hash, title, size, grew, before))
    commits, problem = commits_of(index.root, path, limit)
    for name in (version.before for version in seen if version.before):
        if not commits:  # moved and not committed yet: git knows it by its old name
            commits, problem = commits_of(index.root, name, limit)
    problems += [problem] if problem else []
    for one in commits:
        change = NoteChange(one.at, "git", one.subject, one.commit, author=one.author)
        changes.append(change._replace(lines_added=one.added, lines_deleted=one.deleted))
    changes.sort(key=lambda change: -change.at)  # stable: of one moment, ours before git's
    return History(path, head, changes[:limit], problems)


class Moved(NamedTuple):
    """What `co index move` carried to a new folder."""

    folders: list[str]
    """Vaults and sources whose history was carried along, where they are now."""
    sources: list[str]
    """Labels of the sources that belong to the vault at the new place now."""
    left: list[str]
    """Labels of sources that were left, because the new vault has others of that name or folder."""


def move_history(settings: Settings, old: str, new: str) -> Moved:
    """Carry history, use, feedback, review decisions and sources from a folder that was moved to its new place.

    Everything known of `old` or a folder in it is known of the same place in `new` from now on. Trust is not carried
    along: other notes may have taken the place of yours.
    """
    old, new = (os.path.realpath(os.path.expanduser(folder)) for folder in (old, new))
    if not os.path.isdir(new):
        raise InvalidInputError(f"{new} is not a folder: name the folder where the vault is now")
    if os.path.isdir(old):
        raise InvalidInputError(f"{old} still exists and keeps its history: move it first, a copy starts its own")

    def moved(path: str) -> str:
        return new + path[len(old) :] if path == old or path.startswith(old + os.sep) else path

    result = Moved([], [], [])

    def move_sources(entries: list[Added]) -> list[Added]:
        changed: list[Added] = []
        taken = {(one.vault, value) for one in entries for value in (one.origin.name, one.origin.path)}
        for entry in entries:
            vault, origin = moved(entry.vault), entry.origin._replace(root=moved(entry.origin.root))
            clash = vault != entry.vault and {(vault, origin.name), (vault, origin.path)} & taken
            changed.append(entry if clash else entry._replace(vault=vault, origin=origin))
            if vault != entry.vault:
                (result.left if clash else result.sources).append(origin.label)
        return changed

    def move_learned(learned: dict[str, object]) -> None:
        for root in [root for root in learned if moved(root) != root]:
            learned.setdefault(moved(root), learned.pop(root))

    with Activity(settings, new) as activity, activity.written().writing() as connection:
        for root in [root for root in known_roots(connection) if moved(root) != root]:
            move_vault(connection, root, moved(root))
            result.folders.append(moved(root))
    change_learned(settings.data_dir, move_learned)
    Dismissals(settings.data_dir, new).move(moved)
    change_registry(settings.data_dir, move_sources)
    if not (result.folders or result.sources or result.left):
        raise InvalidInputError(f"nothing is known of a vault at {old}")
    engine = SqliteEngine.at(os.path.join(settings.data_dir, "search.db"))
    with engine.reading() as reader:
        indexed = [origin for origin in reader.origins().values() if moved(origin.root) != origin.root]
    for origin in indexed:  # the next sync reads the files at their new place
        KnowledgeIndex(engine, origin).drop_all()
    engine.close()
    return result
