"""One search, from what was typed to hits: query → candidates → score → rerank → signals → results.

Everything is read in one transaction. Whatever may be slow, embedding the query and a reranker, happens outside it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.hits import Hit, Searched, SearchResult, State
from co_cli.index.engine import EXPIRED, ReadTransaction, StoredNote, StoredPassage, Validity, WordQuery
from co_cli.index.indexed_notes import IndexedNotes, View
from co_cli.index.links import links_around
from co_cli.notes.similarity import fingerprint
from co_cli.retrieval.candidates import DEPTH, Ask, Candidates, gather
from co_cli.retrieval.query import LONGEST_EMBEDDED, parse
from co_cli.retrieval.request import Attempt, SearchRequest, attempts
from co_cli.retrieval.rerank import READ, read, rerank
from co_cli.retrieval.results import (
    ABSENT,
    WEAK,
    Fit,
    best_of_each_note,
    confidence,
    expired_answer,
    is_weak,
    make_hit,
    read_text,
    unsearched_text,
)
from co_cli.retrieval.score import Scored, best_first, trust
from co_cli.retrieval.signals import NEED_LINKS, NEED_USES, VALUES, Material, add_signals
from co_cli.retrieval.spelling import respell, suggest
from co_cli.values import moment_text

TIER = 0.1
"""The weight of a note's tier where several vaults are searched: it decides between notes that answer as well."""
FEW_MATCHES = 50
NO_WORDS = fingerprint("")
"""Notes without a text are not the same note."""
PASSAGES_PER_NOTE = 5
"""Passages looked at for each note wanted beyond the usual candidates."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The intermediate results of one search, for `explain`."""

    attempt: Attempt
    limit: int
    vector: Vector | None
    candidates: Candidates
    scored: list[Scored]  # after the formula
    ranked: list[Scored]  # at the end, every passage
    left: Mapping[int, str]  # notes that were found and left out, and why
    read: Mapping[int, float]  # the reader's scores of passages
    conversations: Collection[int] = ()  # notes of which every passage is a hit


def search(index: IndexedNotes, request: SearchRequest) -> tuple[SearchResult, Trace]:
    """Hits, and how they came about: from the narrowest reading of the query that finds something."""
    started = time.perf_counter()
    answers = (_answer(index, request, attempt) for attempt in attempts(request))
    first = next(answers)
    result, trace = first if first[0].hits else next((answer for answer in answers if answer[0].hits), first)
    respelled = _respelled(index, trace)
    if respelled is not None:
        result, trace = _answer(index, request, respelled)
    took = round((time.perf_counter() - started) * 1000, 1)
    return result._replace(took_ms=took, meta={**result.meta, "took_ms": took}), trace


def _respelled(index: IndexedNotes, trace: Trace) -> Attempt | None:
    """The same query with words that notes have, for those that none has; None if there are no such words."""
    attempt, query = trace.attempt, trace.attempt.query
    if not trace.candidates.unknown or trace.candidates.named or query.words.prefixes or not query.plain:
        return None
    with index.engine.reading() as reader:
        scope = index.view(reader, attempt.filters).scope
        found = respell(reader, scope, query.text, trace.candidates.unknown)
    text = query.text
    for typed, meant in found.items():
        text = re.sub(rf"\b{re.escape(typed)}\b", meant, text)
    understood = tuple(f'no note has "{typed}": searched for "{meant}"' for typed, meant in found.items())
    respelled = replace(query, text=text, words=parse(text).words)
    return replace(attempt, query=respelled, understood=(*attempt.understood, *understood)) if found else None


def _answer(index: IndexedNotes, request: SearchRequest, attempt: Attempt) -> tuple[SearchResult, Trace]:
    space = index.seen.space
    while True:
        vector, problem = _query_vector(index, request, attempt, space)
        with index.engine.reading() as reader:
            view = index.view(reader, attempt.filters)
            answering = view.space.space if view.space else None
            if request.wants_meaning and answering is not None and (space is None or space.key != answering.key):
                space = index.seen.space = answering
                continue  # the first search, or another model took over
            work = _Work(index, request, attempt, view, vector)
            work.read(reader)
        return work.finish([problem] if problem else [])


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


class _Work:
    """One attempt: what it reads in the transaction, and what it makes of that afterwards."""

    def __init__(
        self, index: IndexedNotes, request: SearchRequest, attempt: Attempt, view: View, vector: Vector | None
    ) -> None:
        self.index, self.request, self.attempt, self.view, self.vector = index, request, attempt, view, vector
        self.now = time.time() if attempt.filters.as_of is None else attempt.filters.as_of
        self.limit, self.weights = request.limit, dict(request.weights)
        if len(set(view.tiers.values())) > 1:
            self.weights.setdefault("tier", TIER)
        if request.reranker is not None:
            self.weights.setdefault("reader", 1.0)
        elif request.reader is not None:
            self.weights.setdefault("reader", request.reader.model.weight)
        self.candidates, self.scored = Candidates(), list[Scored]()
        self.ranked: list[Scored] = []
        self.deeper: list[Scored] = []
        asked = " ".join((attempt.query.text, *attempt.filters.tags))
        profile = request.profile
        half_life = profile.half_life or request.half_life
        self.material = Material(asked, self.now, half_life, use_renews=profile.use_renews)
        self.validities: Mapping[int, Validity] = {}
        self.left: dict[int, str] = {}
        self.conversations: set[int] = set()
        self.sure: float | None = None
        self.logits: dict[int, float] = {}
        """What the reader says of passages."""
        self.passages: dict[int, StoredPassage] = {}
        self.expired: Scored | None = None
        """The best of the first candidates that has expired."""
        self.suggestions: tuple[str, ...] = ()

    def read(self, reader: ReadTransaction) -> None:
        """Everything that the transaction is needed for."""
        if self.attempt.listing:
            self._read_listing(reader)
            return
        overfetch = self.request.profile.overfetch
        depth = max(3 * self.limit, 30, FEW_MATCHES) if overfetch else DEPTH
        self._read_candidates(reader, depth)
        matches = len(self.candidates.matches)
        if overfetch and matches < FEW_MATCHES and self.limit < matches / 2:
            self.limit = len(self.candidates.notes)
        self.ranked = self._rank(self.scored)
        notes = self._best(self.ranked)
        if self.limit > len(notes) and depth in (matches, len(self.candidates.near)):
            notes = self._read_deeper(reader)
        read = self._best(self.scored)[:READ] if self._is_read() else []
        first = self._best(self.scored)[:READ] if self.attempt.filters.as_of is None else []
        self.expired = next((one for one in first if self.left.get(one.note) == EXPIRED), None)
        wanted = (*notes[: self.limit], *read, *([self.expired] if self.expired else []))
        self.passages = reader.passages([one.passage for one in wanted])
        self.sure = self._confidence()
        if not notes or (self.sure is not None and self.sure < self._least_confidence()):
            self.suggestions = suggest(reader, self.view.scope, self.attempt.query)

    def _read_listing(self, reader: ReadTransaction) -> None:
        """The newest notes that pass the filters and are valid, each by its first passage."""
        scope, words = self.view.scope, self.attempt.query.words
        for needle in words.excluded:
            refused = reader.words(scope, WordQuery(phrases=(needle,)), self.view.passages)
            self.left |= {one.note: "it has a word that the query excludes" for one in refused}
        daily = {one.note for one in reader.named(scope, self.attempt.day, longer=True)}
        notes = sorted(reader.list_notes(scope), key=lambda note: note.id not in daily)
        self.validities = reader.validities([note.id for note in notes], self.now)
        listed = [Scored(0, note.id, {}) for note in notes if self._is_valid(note.id)]
        if len(self.view.tiers) > 1:
            facts = {note.id: note for note in notes}
            listed = _highest_tier(listed, replace(self.material, facts=facts, tiers=self._tiers_of(facts)))
        chosen = [one.note for one in listed][: self.limit]
        first: dict[int, StoredPassage] = {}
        for passage in reader.passages(notes=chosen).values():
            first.setdefault(passage.note, passage)
        self.ranked = [Scored(first[note].id, note, {}) for note in chosen if note in first]
        self.passages = {passage.id: passage for passage in first.values()}

    def _read_candidates(self, reader: ReadTransaction, depth: int) -> None:
        """Candidates with their scores, and what signals and validity need to know of their notes."""
        words = self.request.words and self.request.weights.get("words", 0.0) > 0
        ask = Ask(self.attempt.query, self.view.scope, depth, words or self.vector is None)
        self.candidates = gather(reader, ask, self.view.space, self.vector)
        self.scored = self._score()
        notes = list(dict.fromkeys(self.candidates.notes.values()))
        asked = {name for name, weight in self.weights.items() if weight}
        wanted = notes if len(self.view.tiers) > 1 or asked & VALUES.keys() else []
        facts = {note.id: note for note in reader.find_notes(None, "id", wanted)} if wanted else {}
        self.material = replace(
            self.material,
            facts=facts,
            links=links_around(reader, facts) if asked & NEED_LINKS else (),
            uses=self.index.uses(facts) if asked & self._need_uses() else {},
            tiers=self._tiers_of(facts),
        )
        self.validities = reader.validities(notes, self.now)
        self.conversations |= reader.conversations(notes)

    def _read_deeper(self, reader: ReadTransaction) -> list[Scored]:
        """More candidates for a large limit. They come after the others: a limit only truncates."""
        first, candidates, scored = self.ranked, self.candidates, self.scored
        self._read_candidates(reader, self.limit * PASSAGES_PER_NOTE)
        known, ceiling = {one.passage for one in first}, first[-1].score if first else 1.0
        more = [_capped(one, ceiling) for one in self._rank(self.scored) if one.passage not in known]
        cosines = {**self.candidates.cosines, **candidates.cosines}
        self.deeper, self.candidates, self.scored = more, replace(candidates, cosines=cosines), scored
        self.ranked = [*first, *more]
        return self._best(self.ranked)

    def _score(self) -> list[Scored]:
        """Apply the formula; notes that are named exactly as asked come first."""
        profile, candidates = self.request.profile, self.candidates
        if not candidates.cosines:  # words decide alone, with the weight of both
            self.weights["words"] = self.weights.get("words", 0.0) + self.weights.pop("meaning", 0.0)
        named, ceiling = {one.note for one in candidates.named}, sum(self.weights.values())
        scored = profile.formula(candidates, self.weights)
        scored = [one.plus("name", ceiling) if one.note in named else one for one in scored]
        return best_first([one for one in scored if one.score > 0])

    def _rank(self, scored: Sequence[Scored]) -> list[Scored]:
        """With signals, without what is not valid, and each note of several vaults once."""
        ranked = add_signals(scored, self.weights, self.material)
        ranked = [one for one in ranked if self._is_valid(one.note)]
        if len(self.view.tiers) > 1:
            ranked = _highest_tier(ranked, self.material)
        least = self.request.min_score
        return ranked if least is None else [one for one in ranked if one.score >= least]

    def _need_uses(self) -> set[str]:
        return {*NEED_USES, "recency"} if self.material.use_renews else {*NEED_USES}

    def _tiers_of(self, facts: Mapping[int, StoredNote]) -> dict[int, float]:
        """How much the vault of each note counts."""
        return {note: self.view.tiers.get(one.vault, 0.0) for note, one in facts.items()}

    def _best(self, ranked: Sequence[Scored]) -> list[Scored]:
        return best_of_each_note(ranked, self.conversations)

    def _is_valid(self, note: int) -> bool:
        problem = self.validities[note].problem(self.now) if note in self.validities else None
        if problem and not self.attempt.filters.outdated:
            self.left[note] = problem
        return note not in self.left

    def finish(self, degraded: list[str]) -> tuple[SearchResult, Trace]:
        """The result, from what was read. Only a reranker may take its time here."""
        request, view = self.request, self.view
        if self._is_read() and self.scored:
            problem = self._read_first()
            degraded += [problem] if problem else []
        sure = self.sure
        chosen = [one for one in self._best(self.ranked) if one.passage in self.passages][: self.limit]
        hits = [self._hit(one) for one in chosen]
        answered = bool(hits) and (sure is None or sure >= self._least_confidence())
        degraded += self._shortcomings(answered)
        state: State = "found" if answered else "inconclusive" if degraded else "absent"
        fresh = self.index.seen.fresh_as_of or view.synced_at
        result = SearchResult(
            query=request.query,
            state=state,
            degraded=degraded,
            backend=self._answering(),
            searched=Searched(view.notes, view.passages, moment_text(fresh) if fresh else None),
            hits=hits,
            took_ms=0.0,
            confidence=None if sure is None else round(sure, 4),
            understood=(*self.attempt.understood, *self._expired_answer(answered)),
            suggestions=self.suggestions,
            meta={
                "profile": request.profile.name,
                "weights": {name: round(weight, 4) for name, weight in self.weights.items() if weight},
                "candidates": len(self.candidates.notes) or len(self.ranked),
                "trust": round(trust(self.candidates), 4) if self.candidates.cosines else None,
                "reader": request.reader.model.name if request.reader and not request.reranker else None,
                "read": len(self.logits),
            },
        )
        steps = self.candidates, self.scored, self.ranked, self.left, self.logits
        return result, Trace(self.attempt, self.limit, self.vector, *steps, self.conversations)

    def _expired_answer(self, answered: bool) -> list[str]:
        """Mention an expired note that would answer: where nothing does, or where it would come first."""
        one = self.expired
        passage = self.passages.get(one.passage) if one else None
        if one is None or passage is None or (answered and one.note != self.scored[0].note):
            return []
        if is_weak(one, passage, self.candidates, self._fit(False)):
            return []
        return [expired_answer(self.view.prefixes.get(passage.vault, "") + passage.ref)]

    def _answering(self) -> str:
        """The backend that answered: without vectors to compare, hybrid is words alone."""
        by_meaning = self.vector is not None and self.view.space is not None
        return self.request.backend if by_meaning or self.attempt.listing else "fts5"

    def _is_read(self) -> bool:
        """Whether a model reads the first candidates. A note that is named exactly as asked needs no reader."""
        read = self.request.reader is not None and not self.candidates.named and not self.attempt.listing
        return self.request.reranker is not None or read

    def _read_first(self) -> str | None:
        """Put the first candidates into the order of the model that reads them; or say what was wrong."""
        request, query, weight = self.request, self.attempt.query.text, self.weights["reader"]
        first = [one for one in self._best(self.scored)[:READ] if one.passage in self.passages]
        texts = [read_text(self.passages[one.passage]) for one in first]
        ranked = [*first, *(one for one in self.scored if one not in first)]
        if request.reranker is not None:
            reading = rerank(request.reranker, query, ranked, texts, weight)
        else:
            assert request.reader is not None
            reading = read(request.reader, query, ranked, texts, weight, request.read_seconds)
        self.logits = {one.passage: score for one, score in zip(first, reading.scores, strict=False)}
        self.ranked = [*self._rank(reading.ranked), *self.deeper]
        if self.logits and not self.candidates.named and self.candidates.cosines:
            self.sure = self._confidence()
        return reading.problem

    def _hit(self, one: Scored) -> Hit:
        passage, view = self.passages[one.passage], self.view
        score = [self.logits[one.passage]] if one.passage in self.logits else []
        weak = is_weak(one, passage, self.candidates, self._fit(bool(score)), *score)
        hit = make_hit(one, passage, self.attempt.query.words, view.prefixes.get(passage.vault, ""), weak)
        return hit._replace(missing=hit.missing or passage.vault in view.away)

    def _fit(self, is_read: bool) -> Fit | None:
        """What was fitted for the answering vectors, and for the reader; None if meaning was not asked."""
        space = self.view.space
        embedder = self.index.embedders.of(space.space) if self.vector is not None and space else None
        certainty = embedder.space.certainty if embedder else None
        if certainty is not None and is_read and self.request.reader is not None:
            certainty = self.request.reader.model.certainty
        return None if certainty is None else Fit(certainty, self.view.passages)

    def _confidence(self) -> float | None:
        """How sure it is that something answers. What is not valid answers nothing."""
        candidates = self.candidates
        if any(self._is_valid(one.note) for one in candidates.named):
            return 1.0
        if not candidates.cosines:
            return None
        valid = {passage for passage, note in candidates.notes.items() if self._is_valid(note)}
        cosine = max((candidates.cosines[one] for one in valid & candidates.cosines.keys()), default=0.0)
        coverage = max(
            (candidates.share(candidates.having[one]) for one in valid & candidates.having.keys()), default=0.0
        )
        best = sorted(self.logits[one] for one in valid & self.logits.keys())[-1:]
        return confidence(self._fit(bool(best)), cosine, coverage, *best)

    def _least_confidence(self) -> float:
        """What an answer needs. A single word that no note has may be no word at all, so its hits must not be weak."""
        candidates = self.candidates
        return WEAK if len(candidates.idf) == 1 and candidates.unknown else ABSENT

    def _shortcomings(self, answered: bool) -> list[str]:
        """What was missing for a full answer."""
        found: list[str] = []
        view, embedders = self.view, self.index.embedders
        by_meaning = self.request.wants_meaning and embedders.space is not None
        if view.synced_at is None:
            found.append("this vault was never synced: run `co index sync`")
        elif by_meaning and view.space is None and view.passages and not self.attempt.listing:
            found.append("no note has a vector yet: answered by words")
        elif by_meaning and view.unready and self.vector is not None:
            found.append(f"answered by words, for lack of vectors: {', '.join(view.unready)}")
        elif self.vector is not None and view.space and view.space.space != embedders.space:
            problem = embedders.outage.problem  # of the server whose vectors are not there yet
            found += [f"answered with the vectors of {view.space.space.provider}: {problem}"] if problem else []
        found += view.outdated
        found += [] if answered else unsearched_text(self.index.unsearched(view.scope))
        return found


def _highest_tier(ranked: Sequence[Scored], material: Material) -> list[Scored]:
    """A note that is in several vaults, under the same ref or with the same words, from the highest tier only.

    A file of two sources, one in the other, is also shown once.
    """
    best: dict[str, float] = {}
    facts = {one.note: material.facts[one.note] for one in ranked if one.note in material.facts}
    keys = {note: {known.ref, known.fingerprint} - {NO_WORDS} for note, known in facts.items()}
    for note, names in keys.items():
        for name in names:
            best[name] = max(best.get(name, 0.0), material.tiers.get(note, 0.0))
    mine = material.tiers.get
    highest = [one for one in ranked if all(best[name] <= mine(one.note, 0.0) for name in keys.get(one.note, ()))]
    files = {one.note: f"{known.root}/{known.path}" for one in highest if (known := facts.get(one.note))}
    first: dict[str, int] = {}
    return [one for one in highest if first.setdefault(files.get(one.note, ""), one.note) == one.note]


def _capped(one: Scored, ceiling: float) -> Scored:
    if one.score <= ceiling:
        return one
    return Scored(one.passage, one.note, {name: part * ceiling / one.score for name, part in one.signals.items()})
