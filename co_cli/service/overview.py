"""What the vault and its sources hold: numbers for `co index status`, files for `co source tree`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from co_cli.service.tiers import tier_of
from co_cli.values import Status, moment_text

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase

Branch = dict[str, "Branch | str"]


def status_of(kb: KnowledgeBase) -> Status:
    counts, vectors = kb.index.counts(), kb.index.vectors()
    semantic = kb.embedders.space is not None
    active, building = vectors.spaces if semantic else (None, None)
    skipped, problems = kb.index.reported()
    trash = Counter(one.tier for one in kb.lookup.trashed())
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
        trashed=trash.pop(None, 0),
        space=active.space.key if active else None,
        building=building.space.key if building else None,
        unembedded=vectors.waiting if semantic else 0,
        cache_entries=vectors.cache.entries,
        cache_bytes=vectors.cache.bytes,
        cache_hit_rate=vectors.cache.hit_rate,
        trashed_in_tiers={str(tier): count for tier, count in trash.items()},
        tier=tier_of(kb.settings) if kb.index.tiers else None,
        missing=len(kb.index.missing()),
        odd=tuple(kb.index.unread_entries()),
        linked={origin.label: kb.index.of(origin).counts().notes for origin in kb.index.linked},
    )


class Tree(NamedTuple):
    """The files of one source."""

    source: str
    path: str
    files: dict[str, str]
    """Each path, with its title, `missing`, or why it is not indexed."""

    def lines(self, depth: int | None = None) -> Iterator[str]:
        """The tree, drawn with lines."""
        root: Branch = {}
        for path, remark in self.files.items():
            *folders, name = path.split("/")
            branch = root
            for folder in folders:
                found = branch.setdefault(folder + "/", {})
                branch = found if isinstance(found, dict) else branch
            branch[name] = remark
        yield from _draw(root, "", depth)


def trees(kb: KnowledgeBase, source: str | None = None) -> list[Tree]:
    """The vault and every linked source, or one of them: `vault`, a tier, a label or a name."""
    tiers = [origin for origin in kb.index.linked if origin.tier]
    if source in ("vault", "memory", "article"):
        origins = [kb.index.origin]
    elif source is None:
        origins = [kb.index.origin, *tiers, *kb.sources.all()]
    else:
        origins = [origin for origin in tiers if origin.tier == source] or [kb.sources.find(source)]
    found: list[Tree] = []
    for origin in origins:
        own = origin == kb.index.origin
        index = kb.index if own else kb.index.of(origin)
        found.append(Tree("vault" if own else origin.label, origin.path, dict(sorted(index.listed()))))
    return found


def _draw(branch: Branch, indent: str, depth: int | None) -> Iterator[str]:
    for number, (name, inside) in enumerate(branch.items()):
        last = number == len(branch) - 1
        mark, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(inside, str):
            yield f"{indent}{mark}{name}" + (f"  ({inside})" if inside else "")
        elif depth == 1:
            yield f"{indent}{mark}{name}  ({_count(inside):,} files)"
        else:
            yield f"{indent}{mark}{name}"
            yield from _draw(inside, indent + below, None if depth is None else depth - 1)


def _count(branch: Branch) -> int:
    return sum(1 if isinstance(inside, str) else _count(inside) for inside in branch.values())
