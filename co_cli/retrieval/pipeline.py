"""One search, from what was typed to hits: query → candidates → score → rerank → signals → results.

Everything is read in one transaction. Whatever may be slow, embedding the query and a reranker, happens outside it.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.hits import SearchResult
from co_cli.index.engine import EXPIRED, ReadTransaction, StoredPassage, WordQuery
from co_cli.index.indexed_notes import IndexedNotes, View
from co_cli.retrieval.candidates import DEPTH, Ask, Candidates, gather
from co_cli.retrieval.query import LONGEST_EMBEDDED, parse
from co_cli.retrieval.request import Attempt, SearchRequest, attempts
from co_cli.retrieval.rerank import READ, read, rerank
from co_cli.retrieval.results import answers, best_of_each_note, make_result, read_text
from co_cli.retrieval.score import Scored
from co_cli.retrieval.spelling import respell, suggest
from co_cli.retrieval.steps import (
    NoteFacts,
    PreparedQuery,
    RankedPassages,
    Scores,
    Texts,
    Trace,
    highest_tier,
    invalid_notes,
    material_of,
    rank,
    read_facts,
    score,
)

TIER = 0.1
"""The weight of a note's tier where several vaults are searched: it decides between notes that answer as well."""
FEW_MATCHES = 50
PASSAGES_PER_NOTE = 5
"""Passages looked at for each note wanted beyond the usual candidates."""


def search(index: IndexedNotes, request: SearchRequest) -> tuple[SearchResult, Trace]:
    """Hits, and how they came about: from the narrowest reading of the query that finds something."""
    started = time.perf_counter()
    first: tuple[SearchResult, Trace] | None = None
    for attempt in attempts(request):
        answer = _answer(index, request, attempt)
        first = first or answer
        if answer[0].hits:
            break
    else:
        assert first is not None
        answer = first
    respelled = _respelled(index, answer[1])
    result, trace = answer if respelled is None else _answer(index, request, respelled)
    took = round((time.perf_counter() - started) * 1000, 1)
    return result._replace(took_ms=took, meta={**result.meta, "took_ms": took}), trace


def _respelled(index: IndexedNotes, trace: Trace) -> Attempt | None:
    """The same query with words that notes have, for those that none has; None if there are no such words."""
    attempt, candidates = trace.prepared.attempt, trace.candidates
    query = attempt.query
    if not candidates.unknown or candidates.named or query.words.prefixes or not query.plain:
        return None
    with index.engine.reading() as reader:
        scope = index.view(reader, attempt.filters).scope
        found = respell(reader, scope, query.text, candidates.unknown)
    text = query.text
    for typed, meant in found.items():
        text = re.sub(rf"\b{re.escape(typed)}\b", meant, text)
    understood = tuple(f'no note has "{typed}": searched for "{meant}"' for typed, meant in found.items())
    respelled = replace(query, text=text, words=parse(text).words)
    return replace(attempt, query=respelled, understood=(*attempt.understood, *understood)) if found else None


def _answer(index: IndexedNotes, request: SearchRequest, attempt: Attempt) -> tuple[SearchResult, Trace]:
    space = index.seen.space
    while True:
        embedded = _query_vector(index, request, attempt, space)
        with index.engine.reading() as reader:
            view = index.view(reader, attempt.filters)
            answering = view.space.space if view.space else None
            if request.wants_meaning and answering is not None and (space is None or space.key != answering.key):
                space = index.seen.space = answering
                continue  # the first search, or another model took over
            prepared = _prepare(index, request, attempt, view, embedded)
            if attempt.listing:
                trace = _list_notes(reader, prepared)
            else:
                ask = _look_for(prepared, _depth(request))
                trace = _rank_candidates(index, reader, prepared, gather(reader, ask, view.space, prepared.vector))
        trace = _read_first(trace) if trace.is_read and trace.scores.scored else trace
        return make_result(index, trace), trace


def _query_vector(
    index: IndexedNotes, request: SearchRequest, attempt: Attempt, space: VectorSpace | None
) -> tuple[Vector | None, str | None]:
    """The query's vector, or why there is none although one was wanted."""
    embedders, text = index.embedders, attempt.query.text[:LONGEST_EMBEDDED]
    unwanted = attempt.listing or not any(map(str.isalnum, text)) or not request.wants_meaning
    if unwanted or embedders.space is None or space is None:
        return None, None
    try:
        embedder = embedders.of(space)
        if embedder is None:
            return None, f"the embedder of {space.key} is gone: answered by words until new vectors are complete"
        return embedder.embed([text], "query")[0], None
    except (EmbeddingError, SettingsError) as error:
        return None, f"answered by words: {error}"


def _prepare(
    index: IndexedNotes,
    request: SearchRequest,
    attempt: Attempt,
    view: View,
    embedded: tuple[Vector | None, str | None],
) -> PreparedQuery:
    """The weights, the moment and the vector of one attempt."""
    vector, problem = embedded
    weights = dict(request.weights)
    if len(set(view.tiers.values())) > 1:
        weights.setdefault("tier", TIER)
    if request.reranker is not None:
        weights.setdefault("reader", 1.0)
    elif request.reader is not None:
        weights.setdefault("reader", request.reader.model.weight)
    now = time.time() if attempt.filters.as_of is None else attempt.filters.as_of
    embedder = index.embedders.of(view.space.space) if vector is not None and view.space else None
    certainty = embedder.space.certainty if embedder else None
    return PreparedQuery(request, attempt, view, now, weights, vector, problem, certainty)


def _depth(request: SearchRequest) -> int:
    """Passages that words and vectors propose, each."""
    return max(3 * request.limit, 30, FEW_MATCHES) if request.profile.overfetch else DEPTH


def _look_for(prepared: PreparedQuery, depth: int) -> Ask:
    """What candidates are looked for with, so many of each kind."""
    request = prepared.request
    words = request.words and request.weights.get("words", 0.0) > 0
    return Ask(prepared.attempt.query, prepared.view.scope, depth, words or prepared.vector is None)


def _rank_candidates(
    index: IndexedNotes, reader: ReadTransaction, prepared: PreparedQuery, candidates: Candidates
) -> Trace:
    """Score and rank them, and read the texts of those that are shown or read."""
    request, matches = prepared.request, len(candidates.matches)
    few = request.profile.overfetch and matches < FEW_MATCHES and request.limit < matches / 2
    limit = len(candidates.notes) if few else request.limit
    scores = score(prepared, candidates, prepared.weights)
    facts = read_facts(index, reader, prepared, candidates, scores)
    ranking = RankedPassages(limit, rank(prepared, scores.weights, scores.scored, facts))
    trace = Trace(prepared, candidates, scores, facts, ranking)
    notes = best_of_each_note(ranking.ranked, facts.conversations)
    if limit > len(notes) and _depth(request) in (matches, len(candidates.near)):
        trace = _look_deeper(index, reader, trace)
        notes = best_of_each_note(trace.ranking.ranked, trace.facts.conversations)
    trace = replace(trace, texts=_read_texts(reader, trace, notes[:limit]))
    if not notes or not answers(trace):
        trace = replace(trace, suggestions=suggest(reader, prepared.view.scope, prepared.attempt.query))
    return trace


def _look_deeper(index: IndexedNotes, reader: ReadTransaction, trace: Trace) -> Trace:
    """More candidates for a large limit. They come after the others: a limit only truncates."""
    prepared, first = trace.prepared, trace.ranking.ranked
    ask = _look_for(prepared, trace.ranking.limit * PASSAGES_PER_NOTE)
    candidates = gather(reader, ask, prepared.view.space, prepared.vector)
    scores = score(prepared, candidates, trace.scores.weights)
    facts = read_facts(index, reader, prepared, candidates, scores)
    facts = replace(
        facts,
        left={**trace.facts.left, **facts.left},
        conversations={*trace.facts.conversations, *facts.conversations},
    )
    known, ceiling = {one.passage for one in first}, first[-1].score if first else 1.0
    ranked = rank(prepared, scores.weights, scores.scored, facts)
    more = [_capped(one, ceiling) for one in ranked if one.passage not in known]
    cosines = {**candidates.cosines, **trace.candidates.cosines}
    return replace(
        trace,
        candidates=replace(trace.candidates, cosines=cosines),
        facts=facts,
        ranking=replace(trace.ranking, ranked=[*first, *more], deeper=more),
    )


def _capped(one: Scored, ceiling: float) -> Scored:
    if one.score <= ceiling:
        return one
    return Scored(one.passage, one.note, {name: part * ceiling / one.score for name, part in one.signals.items()})


def _read_texts(reader: ReadTransaction, trace: Trace, hits: list[Scored]) -> Texts:
    """The passages that these hits, the reader and a remark about an expired note need."""
    first = _first(trace)
    now = trace.prepared.attempt.filters.as_of is None
    expired = next((one for one in first if now and trace.facts.left.get(one.note) == EXPIRED), None)
    wanted = (*hits, *(first if trace.is_read else ()), *([expired] if expired else ()))
    return Texts(reader.passages([one.passage for one in wanted]), expired)


def _first(trace: Trace) -> list[Scored]:
    """The first candidates, by the formula alone: what a model reads."""
    return best_of_each_note(trace.scores.scored, trace.facts.conversations)[:READ]


def _list_notes(reader: ReadTransaction, prepared: PreparedQuery) -> Trace:
    """The newest notes that pass the filters and are valid, each by its first passage."""
    attempt, view = prepared.attempt, prepared.view
    scope = view.scope
    left: dict[int, str] = {}
    for needle in attempt.query.words.excluded:
        refused = reader.words(scope, WordQuery(phrases=(needle,)), view.passages)
        left |= {one.note: "it has a word that the query excludes" for one in refused}
    daily = {one.note for one in reader.named(scope, attempt.day, longer=True)}
    notes = sorted(reader.list_notes(scope), key=lambda note: note.id not in daily)
    left |= invalid_notes(reader, prepared, [note.id for note in notes])
    material = material_of(prepared, {note.id: note for note in notes})
    listed = [Scored(0, note.id, {}) for note in notes if note.id not in left]
    if len(view.tiers) > 1:
        listed = highest_tier(listed, material)
    limit = prepared.request.limit
    chosen = [one.note for one in listed][:limit]
    first: dict[int, StoredPassage] = {}
    for passage in reader.passages(notes=chosen).values():
        first.setdefault(passage.note, passage)
    ranked = [Scored(first[note].id, note, {}) for note in chosen if note in first]
    return Trace(
        prepared=prepared,
        candidates=Candidates(),
        scores=Scores(prepared.weights),
        facts=NoteFacts(material, left),
        ranking=RankedPassages(limit, ranked),
        texts=Texts({passage.id: passage for passage in first.values()}),
    )


def _read_first(trace: Trace) -> Trace:
    """Put the first candidates into the order of the model that reads them."""
    prepared, scores, passages = trace.prepared, trace.scores, trace.texts.passages
    request, query, weight = prepared.request, prepared.attempt.query.text, scores.weights["reader"]
    first = [one for one in _first(trace) if one.passage in passages]
    texts = [read_text(passages[one.passage]) for one in first]
    ranked = [*first, *(one for one in scores.scored if one not in first)]
    if request.reranker is not None:
        reading = rerank(request.reranker, query, ranked, texts, weight)
    else:
        assert request.reader is not None
        reading = read(request.reader, query, ranked, texts, weight, request.read_seconds)
    reranked = rank(prepared, scores.weights, reading.ranked, trace.facts)
    ranking = replace(trace.ranking, ranked=[*reranked, *trace.ranking.deeper])
    return replace(trace, ranking=ranking, reading=reading)
