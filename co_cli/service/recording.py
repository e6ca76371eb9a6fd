"""Tell activity.db what became of documents, once a sync or a save has been through the index.

A sync that changed nothing tells nothing: no second database is touched for it.
"""

from __future__ import annotations

from co_cli.activity import Activity
from co_cli.activity.heads import heads_of
from co_cli.errors import KnowledgeError
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.values import SyncReport


def record_sync(activity: Activity, index: KnowledgeIndex, report: SyncReport, saved: bool = False) -> None:
    """What a sync added, changed, moved and removed; `saved` says that we wrote or removed these files ourselves."""
    if report.touched:
        paths = [*report.added, *report.changed, *(path for _, path in report.moved)]
        try:
            heads = heads_of(index.rows, index.root, paths)
        except KnowledgeError as error:
            activity.drop(1, error)
            return
        everything = None if saved else lambda: heads_of(index.rows, index.root)
        activity.indexed(heads, report.moved, report.removed, root=index.root, saved=saved, everything=everything)
