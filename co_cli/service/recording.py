"""Tell activity.db what became of documents, once a sync or a save has been through the index.

A sync that changed nothing tells nothing: no second database is touched for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from co_cli.activity import Activity
from co_cli.activity.versions import Head
from co_cli.errors import KnowledgeError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.values import SyncReport


def record_sync(activity: Activity, index: KnowledgeIndex, report: SyncReport, saved: bool = False) -> None:
    """What a sync added, changed, moved and removed; `saved` says that we wrote or removed these files ourselves."""
    if report.touched:
        paths = [*report.added, *report.changed, *(path for _, path in report.moved)]
        try:
            heads = heads_of(index, paths)
        except KnowledgeError as error:
            activity.drop(1, error)
            return
        everything = None if saved else lambda: heads_of(index)
        activity.indexed(heads, report.moved, report.removed, root=index.root, saved=saved, everything=everything)


def heads_of(index: KnowledgeIndex, paths: Sequence[str] | None = None) -> list[Head]:
    """These documents, or all, as the index has them; the size is that of the file now."""
    notes = index.notes_here() if paths is None else index.own_notes("path", *paths)
    return [Head(note.path, note.hash, note.title, _size(index.root, note.path)) for note in notes]


def _size(root: str, path: str) -> int | None:
    try:
        return os.stat(os.path.join(root, path)).st_size
    except OSError:
        return None
