"""One search, from what was typed to hits: query → candidates → score → rerank → signals → results.

Everything is read in one transaction. Whatever may be slow, embedding the query and a reranker, happens outside it.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from co_cli.embedding.multilingual import is_english
from co_cli.embedding.space import Vector, VectorSpace
from co_cli.ground.errors import EmbeddingError, SettingsError
from co_cli.ground.hits import SearchResult
from co_cli.ground.priority import answering
from co_cli.index.engine import ReadTransaction
from co_cli.index.indexed_notes import IndexedNotes, View
from co_cli.index.stored import EXPIRED, StoredPassage
from co_cli.notes.language import guess_language
from co_cli.retrieval.candidates import DEPTH, Ask, Candidates, gather
from co_cli.retrieval.query import LONGEST_EMBEDDED, Query, parse
from co_cli.retrieval.request import Attempt, SearchRequest, attempts
from co_cli.retrieval.rerank import TOO_BUSY, Reading, is_readable, read, rerank
from co_cli.retrieval.results import answers, best_of_each_note, make_result, read_text
from co_cli.retrieval.score import Scored, with_share
from co_cli.retrieval.selection import select
from co_cli.retrieval.spelling import find_parts, part_text, respell, suggest
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
    with_successors,
)

TIER = 0.1
"""What a note's tier adds where several vaults are searched: it decides between notes that answer as well."""
FEW_MATCHES = 50
PASSAGES_PER_NOTE = 5
"""Passages looked at for each note wanted beyond the usual candidates."""


@answering()
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
    if respelled := _respelled(index, answer[1]):
        answer = _answer(index, request, respelled)
    elif parts := _parts_of_words(index, answer[1]):
        answer = _answer(index, replace(request, meaning=False, reader=None), parts)  # the part itself means nothing
    result, trace = answer
    took = round((time.perf_counter() - started) * 1000, 1)
    return replace(result, took_ms=took, meta={**result.meta, "took_ms": took}), trace


def find_similar(index: IndexedNotes, request: SearchRequest) -> Trace:
    """What is most like a text: nothing in it is a filter, and its words need no other spelling."""
    return _trace(index, request, next(attempts(request, dates=False)), suggests=False)


def _respelled(index: IndexedNotes, trace: Trace) -> Attempt | None:
    """The same query with words that notes have, for those that none has; None if there are no such words."""
    attempt, candidates = trace.prepared.attempt, trace.candidates
    query = attempt.query
    if not candidates.unknown or candidates.named or query.words.prefixes or not query.plain:
        return None
    with index.engine.reading() as snapshot:
        scope = index.view(snapshot, attempt.filters).scope
        found = respell(snapshot, scope, query.text, candidates.unknown)
    text = query.text
    for typed, meant in found.items():
        text = re.sub(rf"\b{re.escape(typed)}\b", meant, text)
    understood = tuple(f'no note has "{typed}": searched for "{meant}"' for typed, meant in found.items())
    spelled = parse(text, operators=False)
    respelled = replace(query, text=text, words=spelled.words, spelled=spelled.spelled)
    return replace(attempt, query=respelled, understood=(*attempt.understood, *understood)) if found else None


def _parts_of_words(index: IndexedNotes, trace: Trace) -> Attempt | None:
    """The query as parts of words, if nothing else answers it; None if no note has them."""
    attempt, candidates = trace.prepared.attempt, trace.candidates
    query, unknown = attempt.query, len(candidates.unknown) == len(candidates.idf) > 0
    if not unknown or candidates.named or query.words.prefixes or not query.plain or attempt.listing:
        return None
    if trace.ranking.ranked and answers(trace) and not candidates.is_one_odd_word:
        return None
    with index.engine.reading() as snapshot:
        found = find_parts(snapshot, index.view(snapshot, attempt.filters).scope, query.text)
    words = tuple(dict.fromkeys(word for around in found.values() for word in around))
    understood = tuple(part_text(part, around) for part, around in found.items())
    parts = replace(query, text=" ".join(words), words=parse(" ".join(words), operators=False).words, spelled=words)
    return replace(attempt, query=parts, parts=words, understood=(*attempt.understood, *understood)) if found else None


def _answer(index: IndexedNotes, request: SearchRequest, attempt: Attempt) -> tuple[SearchResult, Trace]:
    trace = _trace(index, request, attempt)
    return make_result(index, trace), trace


def _trace(index: IndexedNotes, request: SearchRequest, attempt: Attempt, suggests: bool = True) -> Trace:
    """What is found for one attempt. `suggests`: with other words, where nothing answers."""
    space = index.seen.space
    while True:
        embedded = _query_vector(index, request, attempt, space)
        with index.engine.reading() as snapshot:
            view = index.view(snapshot, attempt.filters)
            languages = snapshot.languages(view.scope.origins)
            attempt = replace(attempt, query=attempt.query.in_languages(languages))
            condition, unchecked = attempt.query.condition, None
            answering = view.space.space if view.space else None
            if request.wants_meaning and answering is not None and (space is None or space.key != answering.key):
                space = index.seen.space = answering
                continue  # the first search, or another model took over
            if (
                answering
                and not all(map(answering.knows, languages))
                and not answering.knows(_asked_in(snapshot, view, attempt.query))
            ):
                embedded = None, None  # only words compare English notes with those in other languages
            if condition is not None:
                selected = select(snapshot, view.scope, condition)
                view, unchecked = view._replace(scope=selected.scope), selected.problem
            prepared = _prepare(index, request, attempt, view, embedded)._replace(unchecked=unchecked)
            if attempt.listing:
                trace = _list_notes(snapshot, prepared)
            else:
                ask = _look_for(prepared, _depth(request))
                trace = _rank_candidates(index, snapshot, prepared, gather(snapshot, ask, view.space, prepared.vector))
                if suggests and not (trace.ranking.ranked and answers(trace)):
                    unknown = [term for term in attempt.query.words.terms if term in trace.candidates.unknown]
                    trace = trace._replace(suggestions=suggest(snapshot, view.scope, unknown))
        return _read_first(trace) if trace.is_read and trace.scores.scored else trace


def _asked_in(snapshot: ReadTransaction, view: View, query: Query) -> str:
    """The language of a query. One too short to tell, with words that are not English, is in that of its best match."""
    language = guess_language(query.text)
    told = language or is_english(query.text)
    best = [] if told else [match.passage for match in snapshot.words(view.scope, query.words, 1)]
    return snapshot.passages(best)[best[0]].language if best else language


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
    weights = {name: weight for name, weight in request.weights.items() if name != "reader"}
    if len(set(view.tiers.values())) > 1 and "tier" not in weights:
        weights = with_share(weights, "tier", TIER)
    now = time.time() if attempt.filters.as_of is None else attempt.filters.as_of
    embedder = index.embedders.of(view.space.space) if vector is not None and view.space else None
    return PreparedQuery(request, attempt, view, now, weights, vector, problem, embedder.space if embedder else None)


def _depth(request: SearchRequest) -> int:
    """Passages that words and vectors propose, each."""
    return max(3 * request.limit, 30, FEW_MATCHES) if request.profile.overfetch else DEPTH


def _look_for(prepared: PreparedQuery, depth: int) -> Ask:
    """What candidates are looked for with, this many of each kind."""
    request = prepared.request
    words = request.words and request.weights.get("words", 0.0) > 0
    return Ask(prepared.attempt.query, prepared.view.scope, depth, words or prepared.vector is None)


def _rank_candidates(
    index: IndexedNotes, snapshot: ReadTransaction, prepared: PreparedQuery, candidates: Candidates
) -> Trace:
    """Score and rank them, and read the texts of those that are shown or read."""
    request, matches = prepared.request, len(candidates.matches)
    few = request.profile.overfetch and matches < FEW_MATCHES and request.limit < matches / 2
    limit = len(candidates.notes) if few else request.limit
    scores = score(prepared, candidates, prepared.weights)
    facts = read_facts(index, snapshot, prepared, candidates, scores)
    scores = with_successors(snapshot, prepared, scores, facts)
    ranking = RankedPassages(limit, rank(prepared, scores.weights, scores.scored, facts))
    trace = Trace(prepared, candidates, scores, facts, ranking)
    notes = best_of_each_note(ranking.ranked, facts.conversations)
    if limit > len(notes) and _depth(request) in (matches, len(candidates.near)):
        trace = _look_deeper(index, snapshot, trace)
        notes = best_of_each_note(trace.ranking.ranked, trace.facts.conversations)
    return trace._replace(texts=_read_texts(snapshot, trace, notes[:limit]))


def _look_deeper(index: IndexedNotes, snapshot: ReadTransaction, trace: Trace) -> Trace:
    """More candidates for a large limit. They come after the others: a limit only truncates."""
    prepared, first = trace.prepared, trace.ranking.ranked
    ask = _look_for(prepared, trace.ranking.limit * PASSAGES_PER_NOTE)
    candidates = gather(snapshot, ask, prepared.view.space, prepared.vector)
    scores = score(prepared, candidates, trace.scores.weights)
    facts = read_facts(index, snapshot, prepared, candidates, scores)
    facts = facts._replace(
        left={**trace.facts.left, **facts.left},
        conversations={*trace.facts.conversations, *facts.conversations},
    )
    known, ceiling = {candidate.passage for candidate in first}, first[-1].score if first else 1.0
    ranked = rank(prepared, scores.weights, scores.scored, facts)
    more = [_capped(candidate, ceiling) for candidate in ranked if candidate.passage not in known]
    cosines = {**candidates.cosines, **trace.candidates.cosines}
    return trace._replace(
        candidates=replace(trace.candidates, cosines=cosines),
        facts=facts,
        ranking=trace.ranking._replace(ranked=[*first, *more], deeper=more),
    )


def _capped(candidate: Scored, ceiling: float) -> Scored:
    if candidate.score <= ceiling:
        return candidate
    return Scored(
        candidate.passage,
        candidate.note,
        {name: part * ceiling / candidate.score for name, part in candidate.signals.items()},
    )


def _read_texts(snapshot: ReadTransaction, trace: Trace, hits: list[Scored]) -> Texts:
    """The passages that these hits, the reader and a remark about an expired note need."""
    first = _first(trace)
    now = trace.prepared.attempt.filters.as_of is None
    expired = next((candidate for candidate in first if now and trace.facts.left.get(candidate.note) == EXPIRED), None)
    wanted = (*hits, *(first if trace.is_read else ()), *([expired] if expired else ()))
    earlier = trace.scores.earlier.values() if trace.is_read else ()
    return Texts(snapshot.passages([*(candidate.passage for candidate in wanted), *earlier]), expired)


def _first(trace: Trace) -> list[Scored]:
    """The first candidates, by the formula alone: what a model reads."""
    return best_of_each_note(trace.scores.scored, trace.facts.conversations)[: trace.prepared.reading[0]]


def _list_notes(snapshot: ReadTransaction, prepared: PreparedQuery) -> Trace:
    """The newest notes that pass the filters and are valid, each by its first passage."""
    attempt, view = prepared.attempt, prepared.view
    scope = view.scope
    daily = {found.note for found in snapshot.named(scope, attempt.day, longer=True)}
    notes = sorted(snapshot.list_notes(scope), key=lambda note: note.id not in daily)
    left, _ = invalid_notes(snapshot, prepared, [note.id for note in notes])
    material = material_of(prepared, {note.id: note for note in notes})
    listed = [Scored(0, note.id, {}) for note in notes if note.id not in left]
    if len(view.tiers) > 1:
        listed = highest_tier(listed, material)
    limit = prepared.request.limit
    chosen = [entry.note for entry in listed][:limit]
    first: dict[int, StoredPassage] = {}
    for passage in snapshot.passages(notes=chosen).values():
        if scope.only is None or passage.id in scope.only:
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
    request, query = prepared.request, prepared.attempt.query.text
    first = [candidate for candidate in _first(trace) if candidate.passage in passages]
    words = prepared.attempt.query.words
    earlier = {passage: passages.get(old) for passage, old in scores.earlier.items()}
    read_as = (candidate.passage for candidate in first)
    texts = [read_text(passages[passage], words, earlier.get(passage)) for passage in read_as]
    ranked = [*first, *(candidate for candidate in scores.scored if candidate not in first)]
    given = request.weights.get("reader")
    if request.reranker is not None:
        reading = rerank(request.reranker, query, ranked, texts, 1.0 if given is None else given)
    else:
        assert request.reader is not None
        weight = prepared.reading[1] if given is None else given
        every = trace.candidates.has_every_word
        spoken = [passages[candidate.passage].language for candidate in first]
        english = [text if is_readable(language) else None for text, language in zip(texts, spoken, strict=True)]
        if request.deadline.shared and not (request.deadline.left or request.read_always):
            reading = Reading(ranked, problem=TOO_BUSY)  # or the line gets longer and longer
        else:
            reading = read(request.reader, query, ranked, english, weight, request.read_seconds, every)
    weights = with_share(scores.weights, "reader", reading.weight)
    reranked = rank(prepared, weights, reading.ranked, trace.facts)
    ceiling = reranked[-1].score if reranked else 1.0
    deeper = [_capped(candidate, ceiling) for candidate in trace.ranking.deeper]
    ranking = trace.ranking._replace(ranked=[*reranked, *deeper], deeper=deeper)
    return trace._replace(scores=scores._replace(weights=weights), ranking=ranking, reading=reading)
