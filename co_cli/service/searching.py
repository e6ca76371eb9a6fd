"""One search, from what was typed to hits, whichever backend answers. Never raises for want of an index."""

from __future__ import annotations

import time

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Vector, VectorSpace
from co_cli.embedding.word_codes import cosine_table
from co_cli.errors import EmbeddingError, IndexUnavailableError, SettingsError
from co_cli.index.knowledge_index import Counts, KnowledgeIndex
from co_cli.index.match import WordQuery, read_query
from co_cli.index.spaceless import runs
from co_cli.index.vectors import StoredSpace
from co_cli.retrieval.abstain import ABSENT, confidence
from co_cli.retrieval.candidates import OVERFETCH, how_many, propose
from co_cli.retrieval.diversify import one_a_note
from co_cli.retrieval.evidence import likeness, measure
from co_cli.retrieval.fuse import Scored, Weights, fuse, score_words
from co_cli.retrieval.profiles import DEFAULT_PROFILE, Profile
from co_cli.retrieval.question import asks_for_now, understand
from co_cli.retrieval.rerank import RERANKED, how_telling, rerank
from co_cli.retrieval.snippets import around, from_marked
from co_cli.retrieval.trace import Trace
from co_cli.values import Filters, Hit, Searched, SearchResult, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from co_cli.index.names import Called
    from co_cli.retrieval.evidence import Evidence
    from co_cli.retrieval.question import Term
    from co_cli.retrieval.reranker import Reranker

LONGEST_EMBEDDED = 4_000
"""Characters of a query that are embedded; what follows hardly moves its vector."""


class Finding:
    """What a backend brought back, before it becomes an answer."""

    def __init__(
        self,
        backend: str,
        hits: list[Hit],
        searched: Searched,
        degraded: list[str],
        trace: Trace | None = None,
        ranked: list[Scored] | None = None,
        called: list[Called] | None = None,
    ) -> None:
        self.backend, self.hits, self.searched, self.degraded = backend, hits, searched, degraded
        self.trace = trace
        """What each step made of it; None if words alone or the files answered."""
        self.ranked, self.called = ranked or [], called or []
        """Every candidate in its order, and those that a name proposed; empty if the files answered."""


def answer(query: str, finding: Finding, started: float) -> SearchResult:
    """Found, absent, or inconclusive: an agent must know whether everything was searched."""
    sure = finding.trace.confidence if finding.trace else None
    there = finding.hits and (sure is None or sure >= ABSENT)
    state: State = "found" if there else "inconclusive" if finding.degraded else "absent"
    took = round((time.perf_counter() - started) * 1000, 1)
    rounded = None if sure is None else round(sure, 4)
    return SearchResult(query, state, finding.degraded, finding.backend, finding.searched, finding.hits, took, rounded)


def search_index(
    index: KnowledgeIndex,
    embedders: Embedders | None,
    query: str,
    filters: Filters,
    limit: int,
    weights: Weights | None,
    profile: Profile = DEFAULT_PROFILE,
    reranker: Reranker | None = None,
) -> Finding:
    """By words, and with embedders by words and meaning. Wants to be asked inside a snapshot."""
    words = read_query(query)
    counts = index.counts()
    degraded = [] if counts.synced_at is not None else ["this vault was never synced: run `co sync`"]
    # who excludes a word of a name does not mean the note that has it
    called = index.called(query, filters) if profile.names and not words.excluded else []
    backend, trace = "fts5", None
    if embedders is not None:
        backend = "hybrid"
        if profile.meaning:
            trace, problem = _by_meaning(index, embedders, words, query, filters, limit, weights, profile, called)
            degraded += [problem] if problem else []
    ranked = trace.ranked if trace else score_words(index.search(query, filters, limit * OVERFETCH))
    if reranker is not None:
        ranked, problem = _by_reranker(index, reranker, query, ranked, limit)
        degraded += [problem] if problem else []
    if called:
        from co_cli.retrieval.called import name_first  # few questions are names

        ranked = name_first(ranked, called, propose=not words.phrases)
        there = {candidate.doc_id for candidate in ranked}
        called = [one for one in called if one.doc_id in there]
    chosen = one_a_note(ranked, limit, profile.diversify)
    hits = _hits(index, words, query, chosen)
    if index.unread and not hits:
        degraded.append(f"could not be read, and may say it: {', '.join(index.unread[:3])}")
    return Finding(backend, hits, _searched(index, counts), degraded, trace, ranked, called)


def _by_meaning(
    index: KnowledgeIndex,
    embedders: Embedders,
    words: WordQuery,
    query: str,
    filters: Filters,
    limit: int,
    weights: Weights | None,
    profile: Profile,
    called: list[Called],
) -> tuple[Trace | None, str | None]:
    """Candidates of both kinds, ranked; or None and what was missing for that, if anything was."""
    if words.phrases or words.excluded or words.empty:
        return None, None  # the query says itself which words must stand and which must not
    if embedders.space is None:
        return None, None  # the settings want words alone
    active = index.spaces().active
    if active is None:
        return None, "no note has a vector yet: answered by words"
    vector, problem = _query_vector(embedders, active.space, query)
    if vector is None:
        return None, problem
    by_words, by_meaning = how_many(limit)
    matches = index.search(words, filters, by_words, relaxed=not profile.every_term)
    near = index.nearest(active, vector, filters, by_meaning)
    if not near and _id(index.spaces().active) != active.id:
        # another space took over since it was asked for: its vectors are the ones that are there
        return _by_meaning(index, embedders, words, query, filters, limit, weights, profile, called)
    candidates = propose(matches, near, called, profile.every_term)
    matches = candidates.matches
    cosines = {**candidates.cosines, **index.cosines(active, vector, candidates.unmeasured)}
    docs = {**candidates.docs, **index.docs_of(candidates.unplaced)}
    space = (embedders.of(active.space) or active).space  # with today's weight and noise, not those it was stored with
    weights = weights or Weights(space.vector_weight, 1 - space.vector_weight)
    sizes = index.passage_counts(list(set(docs.values()))) if profile.crowd else {}
    trust = index.coverage(words, matches) if profile.trust else 1.0
    fused = fuse(matches, trust, cosines, docs, weights, space.noise if profile.noise else -1.0, sizes)
    terms: list[Term] = []
    evidence: dict[int, Evidence] = {}
    ranked, telling = fused, 0.0
    # who wants one of them alone gets that alone; and without spaces there are no words to compare
    if profile.rerank and fused and weights.meaning and weights.words and not runs(query):
        terms = understand(query, words.words, index.facts(words.words))
        passages, known = index.words_of([candidate.passage_id for candidate in fused[:RERANKED]])
        evidence = measure(terms, passages, likeness(terms, known, cosine_table()))
        telling = how_telling(trust, terms, index.counts().passages)
        ranked = rerank(fused, evidence, weights, telling)
    if profile.recency and asks_for_now(query):
        from co_cli.retrieval.recency import DATED, newer_nearer  # few questions ask so

        ranked = newer_nearer(ranked, index.dated(list({candidate.doc_id for candidate in ranked[:DATED]})))
    proposed = (profile, matches, cosines, candidates.near, trust, weights)
    trace = Trace(*proposed, fused, terms, evidence, ranked, telling, tuple(called))
    return trace._replace(
        confidence=confidence(trace, space, index.counts().passages) if profile.abstain else None
    ), None


def _by_reranker(
    index: KnowledgeIndex, reranker: Reranker, query: str, ranked: list[Scored], limit: int
) -> tuple[list[Scored], str | None]:
    """One passage a note, the first of them in the order of whoever was brought along."""
    from co_cli.retrieval.reranker import ASKED, rerank_with  # imports threads and typing

    notes = one_a_note(ranked, max(limit, ASKED))
    passages = {passage.id: passage for passage in index.passages([one.passage_id for one in notes[:ASKED]])}
    there = [passages[one.passage_id] for one in notes[:ASKED] if one.passage_id in passages]
    if len(there) < len(notes[:ASKED]):
        return ranked, None  # forgotten by another process since it was found
    texts = ["\n".join(part for part in (one.title, one.heading, one.body) if part) for one in there]
    order, problem = rerank_with(reranker, query, notes, texts)
    return (ranked, problem) if problem else (order, None)


def _id(space: StoredSpace | None) -> int | None:
    return space.id if space else None


def _query_vector(embedders: Embedders, space: VectorSpace, query: str) -> tuple[Vector | None, str | None]:
    embedder = embedders.of(space)
    if embedder is None:
        return None, f"the embedder of {space.key} is gone: answered by words until the new vectors are complete"
    try:
        return embedder.embed([query[:LONGEST_EMBEDDED]], "query")[0], None
    except (EmbeddingError, SettingsError) as error:
        _warn_once(space, error)
        return None, f"answered by words: {error}"


def _warn_once(space: VectorSpace, error: Exception) -> None:
    if space.key not in _warned:
        import logging  # slow to import, and rarely needed

        _warned.add(space.key)
        logging.getLogger("co_cli").warning("search goes on by words: %s", error)


_warned: set[str] = set()


def search_files(
    root: str,
    query: str,
    filters: Filters,
    limit: int,
    exclude: tuple[str, ...],
    largest: int,
    why: IndexUnavailableError | None,
) -> Finding:
    from co_cli.index.grep import grep  # reads and parses every file

    words = read_query(query).words or (query.strip(),)
    matches, count = grep(root, query, filters, exclude, largest) if query.strip() else ([], 0)
    hits: list[Hit] = []
    for match in matches[:limit]:
        snippet = around(match.passage.text, words)
        note, lines = match.note, (match.passage.first_line, match.passage.last_line)
        hits.append(
            Hit(
                ref=_ref_with_lines(note.ref, note.source, lines),
                source=note.source,
                path=_absolute(root, note.path),
                title=note.title,
                snippet=snippet.text,
                lines=lines,
                score=round(match.share, 4),
                signals={"words": round(match.share, 4)},
                tags=note.tags,
                created=_moment(match.created),
                marks=snippet.marks,
                heading=match.passage.heading,
            )
        )
    degraded = [f"answered from the files by substring: {why}"] if why else []
    return Finding("grep", hits, Searched(count, count, _moment(time.time())), degraded)


def _hits(index: KnowledgeIndex, words: WordQuery, query: str, chosen: list[Scored]) -> list[Hit]:
    ids = [candidate.passage_id for candidate in chosen]
    marked = index.marked(words, ids)
    stored = {passage.id: passage for passage in index.passages(ids)}
    hits: list[Hit] = []
    for candidate in chosen:
        passage = stored.get(candidate.passage_id)
        if passage is None:
            continue  # forgotten by another process since it was found
        snippet = from_marked(marked.get(passage.id, ""))
        if not snippet.marks:
            snippet = around(passage.body, words.words or (query.strip(),))
        lines = (passage.first_line, passage.last_line)
        hits.append(
            Hit(
                ref=_ref_with_lines(passage.ref, passage.source, lines),
                source=passage.source,
                path=_absolute(index.root, passage.path),
                title=passage.title,
                snippet=snippet.text,
                lines=lines,
                score=round(candidate.score, 4),
                signals={name: round(value, 4) for name, value in candidate.signals.items()},
                tags=passage.tags,
                created=_moment(passage.created),
                marks=snippet.marks,
                heading=passage.heading,
            )
        )
    return hits


def _searched(index: KnowledgeIndex, counts: Counts) -> Searched:
    fresh = index.fresh_as_of or counts.synced_at
    return Searched(counts.notes, counts.passages, _moment(fresh) if fresh else None)


def _ref_with_lines(ref: str, source: str, lines: tuple[int, int]) -> str:
    """A memory is opened whole, an article at its lines."""
    return ref if source == "memory" else f"{ref}#L{lines[0]}-{lines[1]}"


def _absolute(root: str, path: str) -> str:
    import os

    return os.path.join(root, *path.split("/"))


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
