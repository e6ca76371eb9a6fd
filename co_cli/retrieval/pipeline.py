"""One search, from what was typed to hits: query → candidates → score → rerank → signals → results.

Everything is read in one transaction. Whatever may be slow, embedding the query and a reranker, happens outside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Vector
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.index.engine import Counts, Engine, NoteFacts, Reader, Scope, Standing, StoredPassage, StoredSpace
from co_cli.index.links import links_around
from co_cli.index.tokens import fold, spans
from co_cli.retrieval.candidates import DEPTH, Ask, Candidates, gather
from co_cli.retrieval.periods import asks_only_for_period, describe, find_period
from co_cli.retrieval.profiles import DEFAULT, Profile
from co_cli.retrieval.query import LONGEST_EMBEDDED, Query, parse, without_quotes
from co_cli.retrieval.rerank import READ, Reranker, rerank
from co_cli.retrieval.results import ABSENT, best_of_each_note, confidence, make_hit, weak_hits
from co_cli.retrieval.score import Scored, best_first, trust
from co_cli.retrieval.signals import NEED_FACTS, NEED_LINKS, Material, add_signals, strength, why_not_valid
from co_cli.values import Filters, Hit, Searched, SearchResult, State, moment_text

TIER = 0.1
"""The weight of a note's tier where several vaults are searched: it decides between notes that answer as well."""
FEW_MATCHES = 50
PASSAGES_PER_NOTE = 5
"""Passages looked at for each note wanted beyond the usual candidates."""
MOST_SUGGESTED, CLOSE = 3, 70
"""Words of the vault suggested for a query that found nothing, and how alike they must be, 0 to 100."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that one search needs to know."""

    query: str
    limit: int = 10
    filters: Filters = field(default_factory=Filters)
    profile: Profile = DEFAULT
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT.weights))
    """The weights that count, from the profile, the settings and the caller."""
    half_life: float = 365.0
    words: bool = True
    meaning: bool = True
    """Each side can be switched off."""
    min_score: float | None = None
    prefix: bool = False
    reranker: Reranker | None = None
    backend: str = "hybrid"


class View(NamedTuple):
    """What a search sees of an index, within one transaction."""

    scope: Scope
    space: StoredSpace | None
    """The vectors that answer; None: there are none yet."""
    counts: Counts
    prefixes: Mapping[int, str]
    """What comes before the refs of other people's vaults."""
    tiers: Mapping[int, float]
    """How much each vault counts, where several people's are searched together."""
    unready: Sequence[str] = ()
    """Sources whose vectors are of another model."""


class SearchedIndex(Protocol):
    """What is searched."""

    engine: Engine
    embedders: Embedders | None

    @property
    def unread(self) -> Sequence[str]: ...

    @property
    def fresh_as_of(self) -> float | None: ...

    def view(self, reader: Reader, filters: Filters) -> View: ...

    def uses(self, facts: Mapping[int, NoteFacts]) -> Mapping[int, tuple[int, int]]: ...


class Left(NamedTuple):
    """A note that was found and left out, and why."""

    note: int
    reason: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What each step of one search made of it: what an explanation is written from."""

    query: Query
    filters: Filters
    weights: Mapping[str, float]
    candidates: Candidates
    scored: list[Scored]
    """After the formula."""
    ranked: list[Scored]
    """At the end, every passage."""
    left: list[Left] = field(default_factory=list[Left])
    passages: Mapping[int, StoredPassage] = field(default_factory=dict[int, StoredPassage])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to read what was typed."""

    query: Query
    filters: Filters
    understood: tuple[str, ...] = ()
    listing: bool = False
    """Nothing but filters is asked for: list what passes them."""


def search(index: SearchedIndex, request: SearchRequest) -> tuple[SearchResult, Trace]:
    """Hits, and how they came about."""
    started = time.perf_counter()
    found: tuple[SearchResult, Trace] | None = None
    for attempt in _attempts(request):
        answer = _answer(index, request, attempt)
        if found is None or answer[0].hits:
            found = answer
        if found[0].hits:
            break
    assert found is not None
    result, trace = found
    took = round((time.perf_counter() - started) * 1000, 1)
    return result._replace(took_ms=took, meta={**result.meta, "took_ms": took}), trace


def _attempts(request: SearchRequest) -> Iterator[Attempt]:
    """What was typed, read as narrowly as it may be meant; then more widely, for when that finds nothing."""
    query, filters, notes = parse(request.query, request.prefix), request.filters, list[str]()
    period = None
    if filters.since is None and filters.until is None:
        now = time.time() if filters.as_of is None else filters.as_of
        period, rest = find_period(request.query, now)
        if period is not None:
            filters = filters._replace(since=period.since, until=period.until and period.until - 0.001)
            query = parse(rest, request.prefix)
            notes.append(f"{describe(period)}: only notes of that time were searched")
    narrowed = query.narrow(filters)
    if narrowed != filters:
        notes.append(f"only notes with {_operators(query)} were searched")
    listing = query.words.empty or (period is not None and asks_only_for_period(query.text))
    yield Attempt(query, narrowed, tuple(notes), listing and narrowed != Filters())
    if query.quotes_in_passing:
        yield Attempt(without_quotes(query), narrowed, (*notes, "no note has the quoted words as they are"))
    if narrowed != filters:
        wide = parse(f"{query.text} {' '.join((*query.tags, *query.paths, *query.files))}", request.prefix)
        yield Attempt(wide, request.filters, (f"nothing was found with {_operators(query)}: all notes were searched",))
    elif period is not None:
        query = parse(request.query, request.prefix)
        yield Attempt(query, request.filters, (f"{describe(period)}: nothing was found, all notes were searched",))


def _operators(query: Query) -> str:
    named = [f"tag:{one}" for one in query.tags] + [f"path:{one}" for one in query.paths]
    return " and ".join([*named, *(f"file:{one}" for one in query.files)])


def _answer(index: SearchedIndex, request: SearchRequest, attempt: Attempt) -> tuple[SearchResult, Trace]:
    while True:
        with index.engine.reading() as reader:
            space = index.view(reader, attempt.filters).space
        vector, problem = _query_vector(index, request, attempt, space)
        with index.engine.reading() as reader:
            view = index.view(reader, attempt.filters)
            if vector is not None and view.space != space:
                continue  # another model took over meanwhile
            work = _Work(index, request, attempt, view, vector)
            work.read(reader)
        return work.finish([problem] if problem else [])


def _query_vector(
    index: SearchedIndex, request: SearchRequest, attempt: Attempt, space: StoredSpace | None
) -> tuple[Vector | None, str | None]:
    """The query's vector, or why there is none although one was wanted."""
    embedders = index.embedders
    wanted = request.backend == "hybrid" and request.meaning and request.weights.get("meaning", 0.0) > 0
    if not wanted or embedders is None or embedders.space is None or attempt.listing or not attempt.query.text.strip():
        return None, None
    if space is None:
        return None, None  # nothing is embedded yet: the result says so if there are notes
    try:
        embedder = embedders.of(space.space)
        if embedder is None:
            return None, f"the embedder of {space.space.key} is gone: answered by words until new vectors are complete"
        return embedder.embed([attempt.query.text[:LONGEST_EMBEDDED]], "query")[0], None
    except (EmbeddingError, SettingsError) as error:
        return None, f"answered by words: {error}"


class _Work:
    """One attempt: what it reads in the transaction, and what it makes of that afterwards."""

    def __init__(
        self, index: SearchedIndex, request: SearchRequest, attempt: Attempt, view: View, vector: Vector | None
    ) -> None:
        self.index, self.request, self.attempt, self.view, self.vector = index, request, attempt, view, vector
        self.now = time.time() if attempt.filters.as_of is None else attempt.filters.as_of
        self.weights = dict(request.weights)
        if len(set(view.tiers.values())) > 1:
            self.weights.setdefault("tier", TIER)
        self.limit = request.limit
        self.candidates, self.scored, self.ranked = Candidates(), list[Scored](), list[Scored]()
        self.left: dict[int, Left] = {}
        self.passages: Mapping[int, StoredPassage] = {}
        self.material = Material(attempt.query.text, self.now, request.profile.half_life or request.half_life)
        self.standings: Mapping[int, Standing] = {}
        self.suggestions: tuple[str, ...] = ()

    # -- inside the transaction ----------------------------------------------------------------------------------------

    def read(self, reader: Reader) -> None:
        if self.attempt.listing:
            self._read_listing(reader)
            return
        depth = max(3 * self.limit, 30, FEW_MATCHES) if self.request.profile.overfetch else DEPTH
        self._read_candidates(reader, depth)
        if self.request.profile.overfetch and len(self.candidates.matches) < FEW_MATCHES:
            if self.limit < len(self.candidates.matches) / 2:
                self.limit = len(self.candidates.notes)
        self.ranked = self._rank(self.scored)
        notes = best_of_each_note(self.ranked)
        if self.limit > len(notes) and depth in map(len, (self.candidates.matches, self.candidates.near)):
            self._read_deeper(reader, self.limit * PASSAGES_PER_NOTE)
            notes = best_of_each_note(self.ranked)
        wanted = notes[: max(self.limit, READ)] + (self.scored[: 5 * READ] if self.request.reranker else [])
        self.passages = reader.passages([one.passage for one in wanted])
        if not notes:
            self.suggestions = _suggestions(reader, self.view.scope, self.attempt.query)

    def _read_candidates(self, reader: Reader, depth: int) -> None:
        """Candidates with their scores, and what signals and validity need to know of their notes."""
        words = self.request.words and self.request.weights.get("words", 0.0) > 0
        ask = Ask(self.attempt.query, self.view.scope, depth, words or self.vector is None, self.vector is not None)
        self.candidates = gather(reader, ask, self.view.space, self.vector)
        self.scored = self._score()
        notes = list(dict.fromkeys(self.candidates.notes.values()))
        asked = {name for name, weight in self.weights.items() if weight}
        facts = reader.facts(notes) if asked & NEED_FACTS or len(self.view.tiers) > 1 else {}
        links: Sequence[tuple[int, int]] = ()
        if asked & NEED_LINKS:
            known = facts or reader.facts(notes)
            links = links_around(reader, {note: (one.vault, one.path) for note, one in known.items()})
        uses = self.index.uses(facts) if "use" in asked else {}
        tiers = {note: self.view.tiers.get(one.vault, 0.0) for note, one in facts.items()}
        self.material = replace(self.material, facts=facts, links=links, uses=uses, tiers=tiers)
        self.standings = reader.standings(notes, self.now)

    def _read_deeper(self, reader: Reader, depth: int) -> None:
        """More candidates for a large limit. They come after the others: a limit only truncates."""
        first, before = self.ranked, (self.candidates, self.scored)
        self._read_candidates(reader, depth)
        known = {one.passage for one in first}
        ceiling = first[-1].score if first else 1.0
        more = [_capped(one, ceiling) for one in self._rank(self.scored) if one.passage not in known]
        self.ranked = [*first, *more]
        self.candidates, self.scored = replace(self.candidates, having=before[0].having), before[1]

    def _read_listing(self, reader: Reader) -> None:
        """The newest notes that pass the filters, each by its first passage."""
        for note in reader.list_notes(self.view.scope, self.limit):
            first = next(reader.passages_of(note.vault, note.ref), None)
            if first is not None:
                self.ranked.append(Scored(first.id, note.id, {}))
                self.passages = {**self.passages, first.id: first}

    # -- afterwards: pure ----------------------------------------------------------------------------------------------

    def _score(self) -> list[Scored]:
        """The formula, with what is called exactly so in front."""
        profile, candidates = self.request.profile, self.candidates
        if not candidates.cosines:
            given = profile.without_vectors
            instead = {"words": self.weights.get("words", 0.0) + self.weights.get("meaning", 0.0), "meaning": 0.0}
            self.weights |= instead if given is None else given
        named = {one.note for one in candidates.named}
        ceiling = sum(self.weights.values())
        scored = [
            one.plus("name", ceiling) if one.note in named else one
            for one in profile.formula(candidates, self.weights)
        ]
        return best_first([one for one in scored if one.score > 0])

    def _rank(self, scored: Sequence[Scored]) -> list[Scored]:
        """With signals, without what is not valid, and each note of several vaults once."""
        ranked = add_signals(scored, self.weights, self.material)
        if self.standings and not self.attempt.filters.outdated:
            ranked = [one for one in ranked if self._holds(one.note)]
        if len(self.view.tiers) > 1:
            ranked = _highest_tier(ranked, self.material)
        least = self.request.min_score
        return ranked if least is None else [one for one in ranked if one.score >= least]

    def _holds(self, note: int) -> bool:
        standing = self.standings.get(note)
        if standing is None or strength(standing, self.now) > 0:
            return True
        if standing.superseded_by:
            prefix = self.view.prefixes.get(self.material.facts[note].vault, "") if note in self.material.facts else ""
            standing = standing._replace(superseded_by=prefix + standing.superseded_by)
        self.left.setdefault(note, Left(note, why_not_valid(standing, self.now)))
        return False

    def finish(self, degraded: list[str]) -> tuple[SearchResult, Trace]:
        request, view, query = self.request, self.view, self.attempt.query
        if request.reranker is not None and self.scored:
            first = [one for one in best_of_each_note(self.scored)[:READ] if one.passage in self.passages]
            texts = [_reading_text(self.passages[one.passage]) for one in first]
            others = [one for one in self.scored if one not in first]
            weight = self.weights.setdefault("reader", 1.0)
            reranked, problem = rerank(request.reranker, query.text, [*first, *others], texts, weight)
            degraded += [problem] if problem else []
            self.ranked = self._rank(reranked)
        chosen = [one for one in best_of_each_note(self.ranked) if one.passage in self.passages][: self.limit]
        space = view.space.space if view.space else None
        embedders = self.index.embedders
        if space is not None and embedders is not None:
            known = embedders.of(space) if self.vector is not None else None
            space = known.space if known else space  # with what was fitted for it
        weak = weak_hits(chosen, self.candidates, space, view.counts.passages)
        hits = [self._hit(one, weak[one.passage]) for one in chosen]
        degraded += self._shortcomings(hits)
        sure = self._confidence(space)
        answered = bool(hits) and (sure is None or sure >= ABSENT)
        state: State = "found" if answered else "inconclusive" if degraded else "absent"
        result = SearchResult(
            query=request.query,
            state=state,
            degraded=degraded,
            backend=request.backend,
            searched=_searched(view.counts, self.index.fresh_as_of),
            hits=hits,
            took_ms=0.0,
            confidence=None if sure is None else round(sure, 4),
            understood=self.attempt.understood,
            suggestions=self.suggestions,
            meta={
                "profile": request.profile.name,
                "weights": {name: round(weight, 4) for name, weight in self.weights.items() if weight},
                "candidates": len(self.candidates.notes) or len(self.ranked),
                "trust": round(trust(self.candidates), 4) if self.candidates.cosines else None,
            },
        )
        passages = self.passages
        trace = Trace(query, self.attempt.filters, self.weights, self.candidates, self.scored, self.ranked)
        return result, replace(trace, left=list(self.left.values()), passages=passages)

    def _hit(self, one: Scored, weak: bool) -> Hit:
        passage = self.passages[one.passage]
        return make_hit(one, passage, self.attempt.query.words, self.view.prefixes.get(passage.vault, ""), weak)

    def _confidence(self, space: object) -> float | None:
        candidates = self.candidates
        if candidates.named:
            return 1.0
        if not candidates.cosines or self.attempt.listing:
            return None
        nearest = max(candidates.cosines.values())
        return confidence(space, nearest, candidates.best_coverage, self.view.counts.passages)  # type: ignore[arg-type]

    def _shortcomings(self, hits: Sequence[Hit]) -> list[str]:
        """What was missing for a full answer."""
        found: list[str] = []
        view, embedders = self.view, self.index.embedders
        wants_meaning = self.request.backend == "hybrid" and self.request.meaning and not self.attempt.listing
        if view.counts.synced_at is None:
            found.append("this vault was never synced: run `co sync`")
        elif wants_meaning and embedders is not None and embedders.space is not None:
            if view.space is None and view.counts.passages:
                found.append("no note has a vector yet: answered by words")
            elif view.unready and self.vector is not None:
                found.append(f"answered by words, for lack of vectors: {', '.join(view.unready)}")
        if self.index.unread and not hits:
            found.append(f"could not be read, and may say it: {', '.join(list(self.index.unread)[:3])}")
        return found


def _highest_tier(ranked: Sequence[Scored], material: Material) -> list[Scored]:
    """A note that is in several vaults, under the same ref or with the same words, from the highest tier only."""
    best: dict[str, float] = {}
    keys = {note: (facts.ref, facts.fingerprint) for note, facts in material.facts.items()}
    for note, names in keys.items():
        for name in names:
            best[name] = max(best.get(name, 0.0), material.tiers.get(note, 0.0))
    return [
        one
        for one in ranked
        if not any(best[name] > material.tiers.get(one.note, 0.0) for name in keys.get(one.note, ()))
    ]


def _capped(one: Scored, ceiling: float) -> Scored:
    if one.score <= ceiling:
        return one
    return replace(one, signals={name: part * ceiling / one.score for name, part in one.signals.items()})


def _reading_text(passage: StoredPassage) -> str:
    return "\n".join(part for part in (passage.title, passage.heading, passage.body) if part)


def _searched(counts: Counts, fresh_as_of: float | None) -> Searched:
    fresh = fresh_as_of or counts.synced_at
    return Searched(counts.notes, counts.passages, moment_text(fresh) if fresh else None)


def _suggestions(reader: Reader, scope: Scope, query: Query) -> tuple[str, ...]:
    """Words of these vaults that are spelled nearly like those of the query."""
    if not query.words.terms:
        return ()
    from rapidfuzz import fuzz, process  # 40 ms, only for a query that found nothing

    vocabulary = sorted(reader.vocabulary(scope.vaults))
    found: list[str] = []
    for term in query.words.terms:
        for close, _, _ in process.extract(term, vocabulary, scorer=fuzz.ratio, limit=2, score_cutoff=CLOSE):
            word = _spelled(reader, scope, close)
            if word and word not in found:
                found.append(word)
    return tuple(found[:MOST_SUGGESTED])


def _spelled(reader: Reader, scope: Scope, term: str) -> str | None:
    """A word as some passage spells it, for its token."""
    for match in reader.words(scope, replace(parse("").words, terms=(term,)), 1):
        passage = reader.passages([match.passage])[match.passage]
        for text in (passage.title, passage.heading, passage.body, " ".join(passage.tags), passage.aliases):
            for span in spans(text):
                if span.token == term:
                    return fold(text[span.start : span.end])
    return None

