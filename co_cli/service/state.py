"""What there is, in numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.notes.moments import moment_text
from co_cli.values import Status

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase


def status_of(kb: KnowledgeBase) -> Status:
    counts, meaning = kb.index.counts(), kb.index.meaning()
    by_meaning = kb.embedders.space is not None
    active, building = (meaning.spaces.active, meaning.spaces.building) if by_meaning else (None, None)
    skipped, problems = kb.index.reported()
    return Status(
        vault=kb.root,
        search_db=kb.database.path,
        search_db_bytes=os.path.getsize(kb.database.path),
        backend=kb.settings.search_backend,
        notes=kb.index.by_source(),
        passages=counts.passages,
        synced_at=moment_text(counts.synced_at) if counts.synced_at else None,
        skipped=skipped,
        problems=problems,
        trashed=len(kb.store.trashed()),
        space=active.space.key if active else None,
        building=building.space.key if building else None,
        unembedded=max(meaning.waiting.values(), default=0) if by_meaning else 0,
        cache_entries=meaning.cache.entries,
        cache_bytes=meaning.cache.bytes,
        cache_hit_rate=meaning.cache.hit_rate,
        missing=len(kb.index.missing()),
        odd=tuple(kb.index.unread_entries()),
        beside={origin.label: kb.index.of(origin).counts().notes for origin in kb.index.beside},
    )
