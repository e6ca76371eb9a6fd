"""The steps of a search as values, and the functions that make one from another.

Results are made from these values, and `explain` follows a note through them. They are named
tuples, as other inner values: every search makes these classes, and that of a dataclass takes four times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.engine import ReadTransaction
from co_cli.index.indexed_notes import IndexedNotes, View
from co_cli.index.links import links_around
from co_cli.index.stored import StoredNote, StoredPassage
from co_cli.notes.similarity import NO_WORDS
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.request import Attempt, SearchRequest
from co_cli.retrieval.rerank import READING, Reading, is_readable_question
from co_cli.retrieval.score import Scored, best_first
from co_cli.retrieval.signals import NEED_LINKS, NEED_USES, VALUES, Material, add_signals

NAME = 0.99
"""What a name fills of the gap between a note's score and the highest there can be."""


class PreparedQuery(NamedTuple):
    """What is asked, in one of the ways to read it, and of what."""

    request: SearchRequest
    attempt: Attempt
    view: View
    now: float
    """The moment at which notes must be valid."""
    weights: Mapping[str, float]
    """Those of the request, and what several vaults and a reader add."""
    vector: Vector | None
    problem: str | None
    """Why there is no vector although one was wanted."""
    space: VectorSpace | None
    """That of the vectors that answer, with what was fitted for it; None if meaning was not asked."""
    unchecked: str | None = None
    """Why some notes were not compared with what must be there."""

    @property
    def reading(self) -> tuple[int, float]:
        """How many notes are read, and what that weighs."""
        return self.space.reading if self.space else READING


class Scores(NamedTuple):
    """The candidates after the formula."""

    weights: Mapping[str, float]
    """Those that were used."""
    scored: Sequence[Scored] = ()
    """Best first."""
    earlier: Mapping[int, int] = {}
    """The passages of superseded notes whose place these took."""


class NoteFacts(NamedTuple):
    """What signals and validity need to know of the candidates' notes."""

    material: Material
    left: Mapping[int, str]
    """Notes that are left out, and why."""
    conversations: Collection[int] = ()
    """Notes of which every passage is a hit."""
    newer: Mapping[int, str] = {}
    """The refs of notes that superseded some of those."""


class RankedPassages(NamedTuple):
    """Every passage at its rank."""

    limit: int
    ranked: Sequence[Scored]
    deeper: Sequence[Scored] = ()
    """The last ones of these: more candidates, for a large limit."""


class Texts(NamedTuple):
    """The passages of hits, of what is read, and of an expired note that may answer."""

    passages: Mapping[int, StoredPassage] = {}
    expired: Scored | None = None
    """The best of the first candidates that has expired."""


class Trace(NamedTuple):
    """The values of one search."""

    prepared: PreparedQuery
    candidates: Candidates
    scores: Scores
    facts: NoteFacts
    ranking: RankedPassages
    texts: Texts = Texts()
    suggestions: tuple[str, ...] = ()
    """Words of the vault, for a query that found nothing."""
    reading: Reading | None = None
    """What a model made of the first candidates."""

    @property
    def is_read(self) -> bool:
        """Whether a model reads the first candidates.

        The reader does so where the first stage is not sure: if the first candidate is not called what was asked for,
        and does not have every word of the question. It reads English only.
        """
        request, first = self.prepared.request, self.scores.scored[:1]
        if request.reranker is not None or request.reader is None or self.prepared.attempt.listing:
            return request.reranker is not None
        sure = self.candidates.named or any(self.candidates.has_every_word(best.passage) for best in first)
        return (request.read_always or not sure) and is_readable_question(self.prepared.attempt.query.text)

    @property
    def read_scores(self) -> Mapping[int, float]:
        """What the reader says of passages."""
        return self.reading.scores if self.reading else {}


def score(prepared: PreparedQuery, candidates: Candidates, weights: Mapping[str, float]) -> Scores:
    """Apply the formula; notes that are named exactly as asked come first."""
    if not candidates.cosines:  # words decide alone, with the weight of both
        both = weights.get("words", 0.0) + weights.get("meaning", 0.0)
        weights = {**{name: weight for name, weight in weights.items() if name != "meaning"}, "words": both}
    named, ceiling = {found.note: found.share for found in candidates.named}, sum(weights.values())
    scored = prepared.request.profile.formula(candidates, weights)
    mentions = max((candidate.score for candidate in scored if candidate.note not in named), default=0.0)
    scored = [
        candidate.plus("name", _name_part(candidate.score, mentions, ceiling, named[candidate.note]))
        if candidate.note in named
        else candidate
        for candidate in scored
    ]
    return Scores(weights, best_first([candidate for candidate in scored if candidate.score > 0]))


def _name_part(score: float, mentions: float, ceiling: float, share: float) -> float:
    """What a name, of which this share was asked for, adds to a score: it is then above those of mentions."""
    least = max(score, mentions)
    return least - score + (ceiling - least) * (NAME * share + (1 - NAME) * score / ceiling)


def read_facts(
    index: IndexedNotes, snapshot: ReadTransaction, prepared: PreparedQuery, candidates: Candidates, scores: Scores
) -> NoteFacts:
    """Read what the signals with weight are made from, and which notes are not valid."""
    notes = list(dict.fromkeys(candidates.notes.values()))
    asked = {name for name, weight in scores.weights.items() if weight}
    wanted = notes if len(prepared.view.tiers) > 1 or asked & VALUES.keys() else []
    facts = {note.id: note for note in snapshot.find_notes(None, "id", wanted)} if wanted else {}
    material = material_of(prepared, facts)
    need_uses = {*NEED_USES, "recency"} if material.use_renews else NEED_USES
    material = replace(
        material,
        links=links_around(snapshot, facts) if asked & NEED_LINKS else (),
        uses=index.uses(facts) if asked & need_uses else {},
    )
    left, newer = invalid_notes(snapshot, prepared, notes)
    return NoteFacts(material, left, snapshot.conversations(notes), newer)


def material_of(prepared: PreparedQuery, facts: Mapping[int, StoredNote]) -> Material:
    """What is known of notes without reading more."""
    attempt, request = prepared.attempt, prepared.request
    return Material(
        query=" ".join((attempt.query.text, *attempt.filters.tags)),
        now=prepared.now,
        half_life=request.profile.half_life or request.half_life,
        facts=facts,
        tiers={note: prepared.view.tiers.get(stored.origin_id, 0.0) for note, stored in facts.items()},
        use_renews=request.profile.use_renews,
    )


def invalid_notes(
    snapshot: ReadTransaction, prepared: PreparedQuery, notes: Sequence[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """Those of the notes that are not valid, and why; and the refs of those that superseded some of them."""
    if prepared.attempt.filters.outdated:
        return {}, {}
    validities = snapshot.validities(notes, prepared.now, prepared.view.scope.origins)
    problems = {note: validity.problem(prepared.now) for note, validity in validities.items()}
    newer = {note: validity.superseded_by for note, validity in validities.items() if validity.superseded_by}
    return {note: problem for note, problem in problems.items() if problem}, newer


def successors(snapshot: ReadTransaction, newer: Mapping[int, str], now: float) -> dict[int, int]:
    """The note that is valid instead of each of these, which a note with that ref superseded; none where it is gone."""
    origins = {note.id: note.origin_id for note in snapshot.find_notes(None, "id", [*newer])}
    found: dict[int, int] = {}
    for old, ref in newer.items():
        passed, named = {old}, snapshot.find_notes(origins[old], "ref", [ref])
        while named and named[0].id not in passed:
            passed.add(named[0].id)
            validity = snapshot.validities([named[0].id], now)[named[0].id]
            if validity.problem(now) is None:
                found[old] = named[0].id
            named = snapshot.find_notes(origins[old], "ref", [validity.superseded_by]) if validity.superseded_by else []
    return found


def with_successors(snapshot: ReadTransaction, prepared: PreparedQuery, scores: Scores, facts: NoteFacts) -> Scores:
    """Let a note take the score of the one that it superseded: a question may use words that only that one has.

    Of the candidates that are read, and if the newer note is a candidate, too.
    """
    depth = prepared.reading[0]
    gone = [candidate for candidate in scores.scored[:depth] if candidate.note in facts.newer]
    if not gone:
        return scores
    newer = successors(snapshot, {old.note: facts.newer[old.note] for old in gone}, prepared.now)
    best = {candidate.note: candidate for candidate in reversed(scores.scored)}
    earlier: dict[int, int] = {}
    for old in gone:
        new = best.get(newer.get(old.note, -1))
        if new is not None:
            earlier.setdefault(new.passage, old.passage)
            passed_on = {name: part for name, part in old.signals.items() if name != "name"}
            raised = replace(new, signals=passed_on)
            best[new.note] = raised if raised.score > new.score else new
    changed = {candidate.passage: candidate for candidate in best.values() if candidate.passage in earlier}
    scored = [changed.get(candidate.passage, candidate) for candidate in scores.scored]
    return scores._replace(scored=best_first(scored), earlier=earlier)


def rank(
    prepared: PreparedQuery, weights: Mapping[str, float], scored: Sequence[Scored], facts: NoteFacts
) -> list[Scored]:
    """With signals, without what is not valid, and each note of several vaults once."""
    ranked = add_signals(scored, weights, facts.material)
    ranked = [candidate for candidate in ranked if candidate.note not in facts.left]
    if len(prepared.view.tiers) > 1:
        ranked = highest_tier(ranked, facts.material)
    least = prepared.request.min_score
    return ranked if least is None else [candidate for candidate in ranked if candidate.score >= least]


def highest_tier(ranked: Sequence[Scored], material: Material) -> list[Scored]:
    """A note that is in several vaults, under the same ref or with the same words, from the highest tier only.

    A file of two sources, one in the other, is also shown once.
    """
    best: dict[str, float] = {}
    facts = {candidate.note: material.facts[candidate.note] for candidate in ranked if candidate.note in material.facts}
    # notes without a text are not the same note
    keys = {note: {known.ref, known.fingerprint} - {NO_WORDS} for note, known in facts.items()}
    for note, names in keys.items():
        for name in names:
            best[name] = max(best.get(name, 0.0), material.tiers.get(note, 0.0))
    mine = material.tiers.get
    highest = [
        candidate
        for candidate in ranked
        if all(best[name] <= mine(candidate.note, 0.0) for name in keys.get(candidate.note, ()))
    ]
    files = {
        candidate.note: f"{known.root}/{known.path}" for candidate in highest if (known := facts.get(candidate.note))
    }
    first: dict[str, int] = {}
    return [
        candidate
        for candidate in highest
        if first.setdefault(files.get(candidate.note, ""), candidate.note) == candidate.note
    ]
