"""A search that answers whatever became of search.db: from the index, else from the files, and it says why.

The one way to it, for notes and for skills.
"""

from __future__ import annotations

from co_cli.embedding.embedders import NotAskedYet, Unhurried
from co_cli.errors import IndexUnavailableError
from co_cli.service.searching import search_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from co_cli.index.knowledge_index import KnowledgeIndex
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.retrieval.reranker import Reranker
    from co_cli.service.asking import Asked
    from co_cli.service.searching import Finding

    T = TypeVar("T")


def find(
    kb: KnowledgeBase,
    index: KnowledgeIndex,
    query: str,
    asked: Asked,
    reranker: Reranker | None = None,
    unsynced: IndexUnavailableError | None = None,
    exclude: tuple[str, ...] = (),
) -> Finding:
    """From an index of this knowledge base; from the files if it cannot be used, is damaged, or was not brought up to
    them (`unsynced` says why). What it lacks is made again, and a damaged file is set aside.

    `tag:NAME` in a query is the filter of that name. If it leaves nothing, all is searched: whoever guesses a tag must
    not take that for an answer.
    """
    way = (reranker, unsynced, exclude)
    if "tag:" not in query.lower():
        return _find(kb, index, query, asked, *way)
    from co_cli.service.narrowing import missed, within_tags  # few queries name a tag

    within = within_tags(query, asked.filters)
    if within is None:
        return _find(kb, index, query, asked, *way)
    tags, rest, filters = within
    found = _find(kb, index, rest, asked._replace(filters=filters), *way)
    named = " and ".join(f"tag:{tag}" for tag in tags)
    if found.hits:
        found.understood.append(f"{named}, and only that was searched")
        return found
    found = _find(kb, index, query, asked, *way)
    found.understood.append(f"{named}, {missed(tags, lambda: list(index.tags()))}: all were searched")
    return found


def _find(
    kb: KnowledgeBase,
    index: KnowledgeIndex,
    query: str,
    asked: Asked,
    reranker: Reranker | None,
    unsynced: IndexUnavailableError | None,
    exclude: tuple[str, ...],
) -> Finding:
    filters, limit, backend, profile, weights = asked
    # an index that was not synced may be read, and does not have what changed: the files do
    reason = None if backend == "grep" else unsynced
    if backend != "grep" and reason is None:
        try:
            embedders = Unhurried(kb.embedders) if backend == "hybrid" else None
            if reranker is not None:
                from co_cli.retrieval.reranker import UnhurriedReranker  # imports threads and typing

                reranker = UnhurriedReranker(reranker)
            way = (index, embedders, query, filters, limit, weights, profile, reranker)
            finding = at_one_moment(index, lambda: search_index(*way))
            if finding.drift and _mended(kb, finding):
                finding = at_one_moment(index, lambda: search_index(*way))
            if not kb.database.set_aside or index.counts().synced_at is not None:
                return finding
            reason = IndexUnavailableError(f"{kb.database.path} is being made anew: `co sync` does it now")
        except IndexUnavailableError as error:
            reason = error
        except Exception as error:
            from co_cli.index.damage import damage_behind  # for the day when it happens

            reason = damage_behind(kb.database, error)
            if reason is None:
                raise
    from co_cli.service.searching_files import search_files  # reads and parses every file

    origins = (index.origin, *index.beside)
    return search_files(origins, query, filters, limit, exclude, kb.settings.knowledge_max_note_bytes, reason)


def at_one_moment(index: KnowledgeIndex, work: Callable[[], T]) -> T:
    """Work whose reads are all of one moment. While it waits for somebody slow, nothing is being read."""
    while True:
        try:
            with index.snapshot():
                return work()
        except NotAskedYet as question:
            wanted = question
        wanted.ask()


def _mended(kb: KnowledgeBase, finding: Finding) -> bool:
    """A search tripped over rows that lack their words or vectors: they are made again."""
    from co_cli.service.mending import mend

    return mend(kb, finding)
