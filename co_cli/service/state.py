"""What there is, in numbers; and what was forgotten."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from co_cli.notes.refs import source_ref
from co_cli.notes.store import NoteStore
from co_cli.service.tiers import tier_of
from co_cli.values import Status, moment_text

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase


class Trashed(NamedTuple):
    """A forgotten note."""

    path: str
    """Where it was, inside its vault."""
    trash: str
    """Where it is now, inside its vault."""
    tier: str | None = None
    """Whose vault that is; None: the one that is open."""

    @property
    def name(self) -> str:
        """What `co note restore` takes."""
        return f"{self.tier}:{self.path}" if self.tier else self.path

    @property
    def ref(self) -> str:
        return f"{self.tier}:{source_ref(self.path)}" if self.tier else source_ref(self.path)


def trash_of(kb: KnowledgeBase) -> list[Trashed]:
    """What was forgotten in this vault, and then in the other tiers' that are searched with it."""
    own = [Trashed(home, kept) for kept, home in kb.store.trashed()]
    tiers = [origin for origin in kb.index.beside if origin.tier]
    return [
        *own,
        *(Trashed(home, kept, tier.tier) for tier in tiers for kept, home in NoteStore(tier.root).trashed()),
    ]


def status_of(kb: KnowledgeBase) -> Status:
    counts, vectors = kb.index.counts(), kb.index.vectors()
    by_meaning = kb.embedders.space is not None
    active, building = vectors.spaces if by_meaning else (None, None)
    skipped, problems = kb.index.reported()
    trash = [one.tier for one in trash_of(kb)]
    return Status(
        vault=kb.root,
        search_db=kb.engine.path,
        search_db_bytes=os.path.getsize(kb.engine.path),
        backend=kb.settings.knowledge_search_backend,
        notes=kb.index.by_source(),
        passages=counts.passages,
        synced_at=moment_text(counts.synced_at) if counts.synced_at else None,
        skipped=skipped,
        problems=problems,
        trashed=trash.count(None),
        space=active.space.key if active else None,
        building=building.space.key if building else None,
        unembedded=vectors.waiting if by_meaning else 0,
        cache_entries=vectors.cache.entries,
        cache_bytes=vectors.cache.bytes,
        cache_hit_rate=vectors.cache.hit_rate,
        trashed_beside={tier: trash.count(tier) for tier in trash if tier},
        tier=tier_of(kb.settings) if kb.index.tiers else None,
        missing=len(kb.index.missing()),
        odd=tuple(kb.index.unread_entries()),
        beside={origin.label: kb.index.of(origin).counts().notes for origin in kb.index.beside},
    )
