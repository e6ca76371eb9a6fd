"""The history of a note, from activity.db and git; and a search of the vault as it was at a moment.

A vault may be somebody else's clone, so git starts nothing that its configuration names (git.py). To search an
older state, its files are written to a folder below the data folder and indexed there; neither the vault nor its
repository is touched. The last few states are kept.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from co_cli.activity import Activity, heads_of
from co_cli.activity.events import Indexed
from co_cli.activity.judgements import change_learned
from co_cli.activity.versions import Known, gone_named, known, known_roots, move_vault, moved_to, versions
from co_cli.errors import GitError, InvalidInputError, KnowledgeError
from co_cli.git import Repository
from co_cli.index.engines import engine_of
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.files import locked
from co_cli.searching.requests import find
from co_cli.settings import Settings
from co_cli.sources.origin import IGNORE_FILE, THE_VAULT, Added, change_registry
from co_cli.upkeep.review import Dismissals
from co_cli.values import SaveReceipt, moment_text

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.retrieval.request import SearchRequest
    from co_cli.values import SearchResult

MOST = 200
SECONDS = 5.0
FORMAT = "%x1e%H%x1f%at%x1f%an%x1f%s"

FOLDER = "as-of"
KEPT = 5
IN_USE = 3_600.0
"""Seconds after a search in which its files are not removed."""
LARGEST = 500_000_000


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


def history_of(activity: Activity, index: KnowledgeIndex, path: str, limit: int = MOST) -> History:
    """`path` is inside the vault or source of this index; one that a document had before it moved will do, and so will
    the title of one that is gone.

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
    for one in commits:
        change = NoteChange(moment_text(one.at), "git", one.subject, one.commit, author=one.author)
        changes.append(change._replace(lines_added=one.added, lines_deleted=one.deleted))
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


def in_repository(folder: str) -> bool:
    """Whether there is a `.git` here or above. Saves starting git where there is none."""
    return any(os.path.exists(os.path.join(one, ".git")) for one in (folder, *map(str, Path(folder).parents)))


def repository_of(root: str) -> Repository:
    """The repository that a folder is in, as far as it is on this machine."""
    return Repository(root, GIT_NO_LAZY_FETCH="1")


def commits_of(root: str, path: str, limit: int) -> tuple[list[Commit], str | None]:
    """The commits of a file, newest first, followed across renames; and why they may be incomplete."""
    if not in_repository(root):
        return [], None
    repository = repository_of(root)
    command = ["log", "--follow", "--numstat", "--no-color", "--no-ext-diff", "--no-textconv"]
    command += [f"--format={FORMAT}", f"--max-count={limit}", "--", path]
    try:
        if repository.head is None:
            return [], None
        printed = repository.run(*command, seconds=SECONDS).stdout.decode("utf-8", "replace")
    except GitError as error:
        return [], f"{error}: commits are left out"
    commits: list[Commit] = []
    for block in printed.split("\x1e")[1:]:
        head, _, numstat = block.partition("\n")
        number, at, author, subject = head.split("\x1f", 3)
        counts = next((line.split("\t") for line in numstat.splitlines() if line.count("\t") >= 2), ["", ""])
        added, deleted = (int(count) if count.isdigit() else None for count in counts[:2])
        commits.append(Commit(float(at), number, author, subject, added, deleted))
    return commits, None


def search_as_of(kb: KnowledgeBase, request: SearchRequest) -> tuple[SearchResult | None, str | None]:
    """Search the vault as it was committed by `as_of`, and what could not be searched. None if git does not know."""
    try:
        then = _open_as_of(kb, request.filters.as_of or 0.0)
    except (GitError, OSError) as error:
        return None, f"the files as they were then could not be read: {error}"
    if then is None:
        return None, None
    with then:
        then.index.on_change = None  # a temporary copy has no history
        then.sync()
        with then.engine.reading() as reader:
            indexed = [vault.origin for vault in reader.vaults() if vault.notes]
        for origin in indexed:
            if not os.path.isdir(origin.root):
                then.index.of(origin).drop_all()
        found = find(then.index, request, then.unsynced)
    others = ", ".join(origin.label for origin in kb.index.linked)
    return found, f"only the vault itself was searched as of that time, not {others}" if others else None


def _open_as_of(kb: KnowledgeBase, moment: float) -> KnowledgeBase | None:
    """A copy of the vault at its last commit before this moment, with an index of its own."""
    if not in_repository(kb.root):
        return None
    repository = repository_of(kb.root)
    if repository.head is None:
        return None
    last = ("log", "--max-count=1", "--format=%H %ct", f"--before={int(moment)}", "HEAD", "--", ".")
    commit, _, committed = repository.run(*last, seconds=SECONDS).stdout.decode().strip().partition(" ")
    if not commit:
        return None
    tree = repository.run("rev-parse", "--verify", "--end-of-options", f"{commit}:./").stdout.decode().strip()
    data = os.path.join(kb.settings.data_dir, FOLDER)
    folder = os.path.join(data, tree)
    if not os.path.isdir(folder):
        _write_files(folder, _read_files(repository, tree), float(committed))
    os.utime(folder)
    origins = {**kb.settings.origins, "vault": f"commit {commit[:12]}"}
    return type(kb)(kb.settings._replace(vault=folder, data_dir=data, engine="sqlite", origins=origins))


def _read_files(repository: Repository, tree: str) -> dict[str, bytes]:
    """The notes of a tree and its ignore file, as they are stored: no filter of the repository runs."""
    files = repository.files(tree)
    wanted = [name for name in files if name == IGNORE_FILE or THE_VAULT.wants(os.path.basename(name))]
    total = sum(files[name].size for name in wanted)
    if total > LARGEST:
        raise GitError(f"{total:,} bytes are too many to unpack")
    texts = repository.texts(files[name].blob for name in wanted)
    return {name: texts[files[name].blob] for name in wanted}


def _write_files(folder: str, files: dict[str, bytes], committed: float) -> None:
    """Write the files of a commit, with its time; the folder appears only when it is complete."""
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with locked(parent):
        if os.path.isdir(folder):
            return
        partial = f"{folder}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        for name, data in files.items():
            path = os.path.join(partial, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.utime(path, (committed, committed))
        os.rename(partial, folder)
        folders = [entry for entry in os.scandir(parent) if entry.is_dir()]
        for entry in sorted(folders, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            if entry.stat().st_mtime < time.time() - IN_USE:
                shutil.rmtree(entry.path, ignore_errors=True)


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
    engine = engine_of(settings, {old: old})  # PostgreSQL shows no vault that is not named
    with engine.reading() as reader:
        indexed = [vault.origin for vault in reader.vaults() if moved(vault.origin.root) != vault.origin.root]
    for origin in indexed:  # the next sync reads the files at their new place
        KnowledgeIndex(engine, origin).drop_all()
    engine.close()
    return result
