"""How a vault is used: what was asked, and which notes came of it. Reads activity.db and the index, changes neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.activity import Activity
from co_cli.activity.database import ActivityDatabase, available
from co_cli.activity.folding import fold_spool
from co_cli.activity.query_log import DAY, clear_some
from co_cli.activity.statistics import Asking, asking, most_recalled, recalled_paths
from co_cli.activity.versions import vault_id
from co_cli.errors import ActivityUnavailableError
from co_cli.knowledge_index import KnowledgeIndex

STEP = 20_000


class NoteUse(NamedTuple):
    """A note and how often it was in an answer, and opened."""

    ref: str
    title: str
    recalls: int = 0
    recalled: float | None = None
    opens: int = 0
    opened: float | None = None


class Usage(NamedTuple):
    """The use of a vault."""

    asking: Asking
    recalled: list[NoteUse]
    """Most often first."""
    never_recalled: list[NoteUse]
    """Newest first, a few of them."""
    never: int
    """How many there are of those."""
    notes: int


def usage_of(activity: Activity, indexes: Sequence[KnowledgeIndex], now: float, days: int, limit: int) -> Usage:
    """The last `days` of searching; recalls are of all time. The first index is the vault's, others stand beside it."""
    activity.flush()
    database, last = activity.database, int(now // DAY)
    with available(database.path):
        fold_spool(database, activity.data_dir)
        with database.reading() as connection:
            asked = asking(connection, activity.root, last - days + 1, last, limit)
            used = most_recalled(connection, [index.root for index in indexes], limit)
            known = {index.root: recalled_paths(connection, index.root) for index in indexes}
    names: dict[tuple[str, str], tuple[str, str]] = {}
    never: list[NoteUse] = []
    notes = 0
    for index in indexes:
        wanted = {one.path for one in used if one.root == index.root}
        for note in index.notes_here():
            path, ref, title = note.path, note.ref, note.title
            notes += 1
            if path in wanted:
                names[index.root, path] = ref, title
            if path not in known[index.root]:
                never.append(NoteUse(ref, title))
    recalled = [
        NoteUse(*names.get((one.root, one.path), (one.path, "")), one.recalls, one.recalled, one.opens, one.opened)
        for one in used
    ]
    return Usage(asked, recalled, never[:limit], len(never), notes)


def unsound(data_dir: str, fix: bool = False) -> str | None:
    """What is wrong with activity.db; None if it is sound, or not there yet. `fix` sets a damaged one aside."""
    database = ActivityDatabase(data_dir)
    if not os.path.exists(database.path):
        return None
    try:
        with available(database.path), database.reading() as connection:
            broken = [str(row[0]) for row in connection.execute("pragma quick_check(3)") if row[0] != "ok"]
    except ActivityUnavailableError as error:
        return str(error)
    finally:
        database.close()
    if broken and fix:
        database.retire(os.stat(database.path).st_ino, ValueError("; ".join(broken)))
    if database.set_aside:
        return f"activity.db was unusable; it is kept as {database.set_aside}"
    return f"{database.path} is damaged: {'; '.join(broken)}; `co doctor --fix` begins a new one" if broken else None


def clear_log(activity: Activity, progress: Callable[[int], None] | None = None) -> int:
    """Delete the vault's query log, what was counted of it, and its words from the file. Returns how many rows."""
    activity.flush()
    database, cleared = activity.database, 0
    with available(database.path):
        fold_spool(database, activity.data_dir, rest=-1.0)
        while True:
            with database.writing() as connection:
                connection.pragma("secure_delete", 1)  # free pages would keep the words
                count = clear_some(connection, vault_id(connection, activity.root)[0], STEP)
            cleared += count
            if progress:
                progress(cleared)
            if count < STEP:
                break
        database.shrink()
    return cleared
