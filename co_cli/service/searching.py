"""One search of the index, from what was typed to hits, by words and by meaning."""

from __future__ import annotations

import time

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Vector, VectorSpace
from co_cli.embedding.word_codes import cosine_table
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.match import WordQuery, quotes_in_passing, read_query
from co_cli.index.reader import Counts
from co_cli.index.spaceless import runs
from co_cli.index.vectors import StoredSpace, dot
from co_cli.retrieval.abstain import ABSENT, confidence
from co_cli.retrieval.candidates import OVERFETCH, how_many, propose
from co_cli.retrieval.diversify import one_a_note
from co_cli.retrieval.evidence import likeness, measure
from co_cli.retrieval.fuse import Scored, Weights, fuse, score_words
from co_cli.retrieval.profiles import DEFAULT_PROFILE, Profile
from co_cli.retrieval.question import SHORT, asks, asks_for_newer, may_name_a_date, understand
from co_cli.retrieval.rerank import RERANKED, how_telling, rerank
from co_cli.retrieval.snippets import around, from_marked
from co_cli.retrieval.trace import Trace
from co_cli.retrieval.validity import Left, holding
from co_cli.values import Filters, Hit, Searched, SearchResult, State, moment_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from co_cli.index.names import Called
    from co_cli.retrieval.dates import Dates
    from co_cli.retrieval.evidence import Evidence
    from co_cli.retrieval.question import Term
    from co_cli.retrieval.reranker import Reranker

FEW = 50
"""Passages of a vault so small that the nearest are shown even when they are no nearer than unrelated texts, and that
words tell as far as they are there."""
MEASURED = ("static", "minilm")
"""Providers of whose cosines it is known how near a passage is that has the words of a question on purpose."""
KEPT = 10
"""Passages, the nearest, that are kept though they are mere noise by themselves, where words do not tell and something
is nearer than noise: the answer to a question in other words is often no nearer."""
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
        left: list[Left] | None = None,
        filters: Filters | None = None,
    ) -> None:
        self.backend, self.hits, self.searched, self.degraded = backend, hits, searched, degraded
        self.trace = trace
        """What each step made of it; None if words alone or the files answered."""
        self.ranked, self.called = ranked or [], called or []
        """Every candidate in its order, and those that a name proposed; empty if the files answered."""
        self.left = left or []
        """Notes that were found and do not hold."""
        self.filters = filters or Filters()
        """What it was narrowed to in the end."""
        self.drift: list[str] = []
        """What it tripped over: `words` or `vectors` that some passages lack."""
        self.understood: list[str] = []
        """What was read out of the query beside its words, such as dates."""


def answer(query: str, finding: Finding, started: float) -> SearchResult:
    """Found, absent, or inconclusive: an agent must know whether everything was searched."""
    sure = finding.trace.confidence if finding.trace else None
    there = finding.hits and (sure is None or sure >= ABSENT)
    state: State = "found" if there else "inconclusive" if finding.degraded else "absent"
    took = round((time.perf_counter() - started) * 1000, 1)
    rounded = None if sure is None else round(sure, 4)
    found = (finding.backend, finding.searched, finding.hits, took, rounded)
    return SearchResult(query, state, finding.degraded, *found, tuple(finding.understood))


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
    """By words, and with embedders by words and meaning. Wants to be asked inside a snapshot.

    A question may quote what no note has as it stands: then its quotes are read as words, and `understood` says so.
    """
    asked = (filters, limit, weights, profile, reranker)
    found = _search_dated(index, embedders, query, *asked)
    if found.hits or '"' not in query or not quotes_in_passing(read_query(query)):
        return found
    plain = _search_dated(index, embedders, query.replace('"', " "), *asked)
    plain.understood.append("the words in quotes like any others: no note has them as they stand")
    return plain


def _search_dated(
    index: KnowledgeIndex,
    embedders: Embedders | None,
    query: str,
    filters: Filters,
    limit: int,
    weights: Weights | None,
    profile: Profile,
    reranker: Reranker | None,
) -> Finding:
    """What a date in the query asks for is understood first."""
    asked = (filters, limit, weights, profile, reranker)
    if not (profile.dates and filters.since is None and filters.until is None and may_name_a_date(query)):
        return _search(index, embedders, query, *asked)
    from co_cli.retrieval.dates import told  # few questions name a date
    from co_cli.service.weighing import dates_in

    dates = dates_in(index, query, filters, time.time() if filters.as_of is None else filters.as_of)
    if dates is None:
        return _search(index, embedders, query, *asked)
    if not dates.narrows:
        found = _search(index, embedders, query, *asked, dates, dates.until and dates.until - 0.001)
        if any("date" in candidate.signals for candidate in found.ranked):
            found.understood.append(f"{told(dates)}, which counts a little")
        return found
    then = None if dates.until is None else dates.until - 0.001
    rest = query.replace(dates.phrase, " ")
    rest = rest if read_query(rest).words else query
    # everything of that time may be meant
    open_profile = profile._replace(noise=False, abstain=profile.abstain and len(read_query(rest).words) > 1)
    narrowed = (filters._replace(since=dates.since, until=then), limit, weights, open_profile, reranker)
    found = _search(index, embedders, rest, *narrowed, then=then)
    if found.hits:
        found.understood.append(f"{told(dates)}, and only that was searched")
        return found
    found = _search(index, embedders, query, *asked)
    found.understood.append(f"{told(dates)}, but no note is of that time: all were searched")
    return found


def _search(
    index: KnowledgeIndex,
    embedders: Embedders | None,
    query: str,
    filters: Filters,
    limit: int,
    weights: Weights | None,
    profile: Profile,
    reranker: Reranker | None,
    dates: Dates | None = None,
    then: float | None = None,
) -> Finding:
    """`then` is the end of the time that the question is about: what held then answers it."""
    words = read_query(query)
    counts = index.counts_within(filters)
    degraded = [] if counts.synced_at is not None else ["this vault was never synced: run `co sync`"]
    # who excludes a word of a name does not mean the note that has it
    called = index.called(query, filters) if profile.names and not words.excluded else []
    backend, trace = "fts5", None
    drift = ["words"] if index.lacks_words() else []
    if embedders is not None:
        backend = "hybrid"
        if profile.meaning:
            asked = (index, embedders, words, query, filters, limit, weights, profile, called, counts.passages)
            trace, problem = _by_meaning(*asked)
            degraded += [problem] if problem else []
            drift += ["vectors"] if trace and trace.lost else []
    ranked = trace.ranked if trace else score_words(index.search(query, filters, limit * OVERFETCH))
    now = time.time() if filters.as_of is None else filters.as_of
    if profile.mix is not None and ranked:
        from co_cli.retrieval.mix import mixed
        from co_cli.service.weighing import values_of

        ranked = mixed(ranked, profile.mix, values_of(index, ranked, profile.mix, profile, query, now))
    if dates is not None and ranked:
        from co_cli.retrieval.dates import nearer_in_time
        from co_cli.service.weighing import moments_of

        ranked = nearer_in_time(ranked, dates, moments_of(index, _notes(ranked)))
    if reranker is not None:
        ranked, problem = _by_reranker(index, reranker, query, ranked, limit)
        degraded += [problem] if problem else []
    if called:
        from co_cli.retrieval.called import name_first  # few questions are names

        ranked = name_first(ranked, called, propose=not words.phrases)
        there = {candidate.doc_id for candidate in ranked}
        called = [one for one in called if one.doc_id in there]
    left: list[Left] = []
    if profile.validity and ranked:
        at = now if then is None else min(now, then)
        standings = index.standings(_notes(ranked), filters, at)
        ranked, left = holding(ranked, standings, at, filters.outdated, fading=at == now)
    tiers = index.tiers
    if profile.tier and tiers and ranked:
        from co_cli.retrieval.tier import nearer_first  # few searches span several vaults

        ranked = nearer_first(ranked, index.tiers_of(_notes(ranked)), tiers.values, tiers.own)
    chosen = one_a_note(ranked, limit, profile.diversify)
    hits = _hits(index, words, query, chosen)
    if index.unread and not hits:
        degraded.append(f"could not be read, and may say it: {', '.join(index.unread[:3])}")
    finding = Finding(backend, hits, _searched(index, counts), degraded, trace, ranked, called, left, filters)
    finding.drift = drift
    return finding


def _notes(ranked: list[Scored]) -> list[int]:
    return list(dict.fromkeys(candidate.doc_id for candidate in ranked))


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
    passages_searched: int,
) -> tuple[Trace | None, str | None]:
    """Candidates of both kinds, ranked; or None and what was missing for that, if anything was."""
    if words.phrases or words.excluded or words.empty:
        return None, None  # the query says itself which words must stand and which must not
    if embedders.space is None:
        return None, None  # the settings want words alone
    active = index.spaces().active
    if active is None:
        return None, "no note has a vector yet: answered by words" if passages_searched else None
    vector, problem = _query_vector(embedders, active.space, query)
    if vector is None:
        return None, problem
    by_words, by_meaning = how_many(limit)
    matches = index.search(words, filters, by_words, relaxed=not profile.every_term)
    near = index.nearest(active, vector, filters, by_meaning)
    if not near and _id(index.spaces().active) != active.id:
        # another space took over since it was asked for: its vectors are the ones that are there
        return _by_meaning(index, embedders, words, query, filters, limit, weights, profile, called, passages_searched)
    candidates = propose(matches, near, called, profile.every_term)
    matches = candidates.matches
    cosines = {**candidates.cosines, **index.cosines(active, vector, candidates.unmeasured)}
    lacking = [passage for passage in candidates.unmeasured if passage not in cosines]
    docs = {**candidates.docs, **index.docs_of(candidates.unplaced)}
    space = (embedders.of(active.space) or active).space  # with today's weight and noise, not those it was stored with
    weights = weights or Weights(space.vector_weight, 1 - space.vector_weight)
    sizes = index.passage_counts(list(set(docs.values()))) if profile.crowd else {}
    trust, together = index.coverage(words, matches) if profile.trust else (1.0, len(words.words))
    terms: list[Term] = []
    telling = untold = 0.0
    # who wants one of them alone gets that alone; and without spaces there are no words to compare
    closely = profile.rerank and docs and weights.meaning and weights.words and not runs(query)
    if closely:
        terms = understand(query, words.words, index.facts(words.words))
        # skills, which are alike, say what they are for in words that are asked for
        known = space.provider in MEASURED and not profile.apart
        nearest = max(cosines.values(), default=1.0) if known else 1.0
        telling, untold = _how_words_tell(terms, trust, together, bool(matches), passages_searched, nearest)
    if profile.by_rank:
        from co_cli.retrieval.mix import by_rank

        fused = by_rank(matches, candidates.near, docs, weights)
    else:
        noise = space.noise if profile.noise else -1.0
        if untold:
            noise = _lowered(noise, cosines)
        told = telling if weights.meaning > weights.words else 0.0  # else what long notes give up hardly counts
        far = 1.0 if profile.apart else untold
        # for the embedded model alone: what passages have in common helps MiniLM to tell which are near
        meanings = _apart(index, active, vector, cosines, filters, far) if far and space.provider == "static" else None
        fused = fuse(matches, trust, cosines, docs, weights, noise, sizes, told, untold, meanings)
    faint = not fused and profile.abstain and passages_searched < FEW
    if faint:  # nothing has to do with it, but so few are quickly looked through
        fused = fuse(matches, trust, cosines, docs, weights, sizes=sizes)
    evidence: dict[int, Evidence] = {}
    ranked = fused
    if closely and fused:
        evidence = _looked_at(index, terms, fused, titles=bool(untold))
        ranked = rerank(fused, evidence, weights, telling, profile.shares, asks(query), untold)
    newer = asks_for_newer(query) if profile.recency else 0.0
    if newer:
        from co_cli.service.weighing import newer_first  # not every question asks so

        ranked = newer_first(index, ranked, newer, profile, time.time() if filters.as_of is None else filters.as_of)
    # chosen with the embedded model; with MiniLM it harms as often as it helps
    if profile.alike and telling and len(terms) > SHORT and space.provider == "static":
        from co_cli.retrieval.alike import LOOKED_AT, how_far, like_the_best  # most questions are short

        first = [candidate.passage_id for candidate in ranked[:LOOKED_AT]]
        ranked = like_the_best(ranked, index.vectors(active, first), how_far(len(terms), telling))
    covered = trust if matches or runs(query) else 0.0  # where no word was found, none speaks for an answer
    proposed = (profile, matches, cosines, candidates.near, covered, weights)
    trace = Trace(*proposed, fused, terms, evidence, ranked, telling, tuple(called))
    unready = index.unready(active, filters) if index.beside else []
    sure = 0.0 if faint else confidence(trace, space, passages_searched) if profile.abstain else None
    lost = bool(lacking) and index.lost_vectors(active, lacking)
    return trace._replace(confidence=sure, lost=lost), (
        f"answered by words, for lack of vectors: {', '.join(unready)}" if unready else None
    )


def _how_words_tell(
    terms: list[Term], trust: float, together: int, matched: bool, passages: int, nearest: float
) -> tuple[float, float]:
    """How far the words of a question tell, and how far meaning decides because they do not; each 0 to 1."""
    if passages < FEW:  # among so few, how rare a word is says nothing, and words tell as far as they are there
        return how_telling(trust, terms, passages), 0.0
    # where no word was found, those that are like it are not there by chance, but none of them tells either
    telling = how_telling(trust, terms, passages, together, nearest) if matched else 0.0
    return telling, 1.0 - telling


def _looked_at(index: KnowledgeIndex, terms: list[Term], fused: list[Scored], titles: bool) -> dict[int, Evidence]:
    """What the first candidates say word by word; `titles`: and how near their titles are by meaning."""
    passages, known = index.words_of([candidate.passage_id for candidate in fused[:RERANKED]])
    alike = cosine_table()
    evidence = measure(terms, passages, likeness(terms, known, alike))
    if not titles:
        return evidence
    from co_cli.retrieval.titled import titles_near  # not where words tell

    near = titles_near(terms, passages, known, alike)
    return {one: found._replace(titled=near.get(one, 0.0)) for one, found in evidence.items()}


def _lowered(noise: float, cosines: dict[int, float]) -> float:
    """The noise level where words do not tell: if anything is nearer than noise, so many of the nearest are kept."""
    nearest = sorted(cosines.values(), reverse=True)[:KEPT]
    return min(noise, nearest[-1]) if nearest and nearest[0] >= noise else noise


def _apart(
    index: KnowledgeIndex, space: StoredSpace, vector: Vector, cosines: dict[int, float], filters: Filters, far: float
) -> dict[int, float] | None:
    """What meaning is worth without what all passages have in common, as far as `far` says; None for too few."""
    from struct import pack

    from co_cli.retrieval.apart import cosines_apart, in_common, partly_apart  # not where words tell

    common = in_common(index.spread(space, filters, list(cosines)))
    if common is None:
        return None
    length = sum([number * number for number in common]) ** 0.5 or 1.0
    direction = pack(f"<{len(common)}f", *[number / length for number in common])
    asked = dot(memoryview(vector).cast("f"), memoryview(direction).cast("f"))
    apart = cosines_apart(cosines, index.cosines(space, direction, list(cosines)), asked, length)
    return partly_apart(cosines, apart, far)


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
        from co_cli.logbook import logger  # slow to import, and rarely needed

        _warned.add(space.key)
        logger().warning("search goes on by words: %s", error)


_warned: set[str] = set()


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
                ref=ref_with_lines(passage.ref, passage.source, lines),
                source=passage.source,
                path=absolute(passage.root, passage.path),
                title=passage.title,
                snippet=snippet.text,
                lines=lines,
                score=round(candidate.score, 4),
                signals={name: round(value, 4) for name, value in candidate.signals.items()},
                tags=passage.tags,
                created=moment_text(passage.created),
                marks=snippet.marks,
                heading=passage.heading,
                missing=passage.missing is not None,
            )
        )
    return hits


def _searched(index: KnowledgeIndex, counts: Counts) -> Searched:
    fresh = index.fresh_as_of or counts.synced_at
    return Searched(counts.notes, counts.passages, moment_text(fresh) if fresh else None)


def ref_with_lines(ref: str, source: str, lines: tuple[int, int]) -> str:
    """A memory is opened whole, an article at its lines."""
    return ref if source == "memory" else f"{ref}#L{lines[0]}-{lines[1]}"


def absolute(root: str, path: str) -> str:
    import os

    return os.path.join(root, *path.split("/"))
