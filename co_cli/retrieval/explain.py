"""Explain a note's rank, or why it is missing: run the search again and follow the note through its trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from co_cli.ground.hits import Filters
from co_cli.index.indexed_notes import IndexedNotes
from co_cli.index.tokens import tokens
from co_cli.retrieval.candidates import terms_having
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.results import best_of_each_note
from co_cli.retrieval.score import Scored
from co_cli.retrieval.selection import select
from co_cli.retrieval.steps import Trace


@dataclass(frozen=True, slots=True)
class Step:
    """The note after one step of the search."""

    name: str
    rank: int | None
    """Its rank among the notes after this step; None if it is not among them."""
    of: int
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a note is where it is."""

    query: str
    ref: str
    title: str
    rank: int | None
    """Its rank in the answer; None if it is not in it."""
    limit: int
    score: float | None
    signals: dict[str, float]
    """The parts that add up to the score."""
    lost_in: str | None
    """The step in which it was lost, if it was."""
    steps: list[Step]
    hints: list[str]
    """What would rank it higher."""


class Subject(NamedTuple):
    """The note that is explained."""

    note: int
    words: frozenset[str]
    """The query's words that it has, as they were typed."""
    cosine: float | None
    passes_filters: bool


def explain_note(index: IndexedNotes, request: SearchRequest, ref: str, title: str) -> Explanation:
    """Why a note is where it is in the answer to a request: follow it through the search."""
    _, trace = search(index, request)
    subject = _subject(index, trace, ref)
    if subject is None:
        text = "it is not indexed yet: `co index sync` updates the index from your files"
        step = Step("index", None, 0, text)
        return Explanation(request.query, ref, title, None, request.limit, None, {}, "index", [step], [text])
    limit, steps = trace.ranking.limit, _steps(trace, subject)
    order = best_of_each_note(trace.ranking.ranked, trace.facts.conversations)
    place = next((number for number, candidate in enumerate(order, 1) if candidate.note == subject.note), None)
    rank = place if place is not None and place <= limit else None
    hints: list[str] = []
    if place is not None and rank is None:
        steps.append(Step("limit", None, limit, f"rank {place} is beyond the {limit} that were asked for"))
        hints.append(f"--limit {place} shows it")
    lost_in = None if rank else _lost_in(steps, place)
    if rank is None:
        hints += _hints(trace, subject, lost_in)
    signals = {name: round(part, 4) for name, part in order[place - 1].signals.items()} if place else {}
    score = round(sum(signals.values()), 4) if place else None
    return Explanation(request.query, ref, title, rank, limit, score, signals, lost_in, steps, hints)


def _subject(index: IndexedNotes, trace: Trace, ref: str) -> Subject | None:
    with index.engine.reading() as snapshot:
        prepared, query = trace.prepared, trace.prepared.attempt.query
        view = index.view(snapshot, prepared.attempt.filters)
        everywhere = index.view(snapshot, Filters())
        for vault in everywhere.scope.origins:
            prefix = everywhere.prefixes.get(vault, "")
            notes = [stored.id for stored in snapshot.find_notes(vault, "ref", [ref.removeprefix(prefix)])]
            ids = list(snapshot.passages(notes=notes)) if ref.startswith(prefix) else []
            if not ids:
                continue
            having = terms_having(snapshot, query.words, query.words.terms, ids)
            found = {term for terms in having.values() for term in terms}
            spelled = {word for word in query.spelled if set(tokens(word)) & found}
            near = snapshot.cosines(view.space, prepared.vector, ids) if view.space and prepared.vector else {}
            scope = select(snapshot, view.scope, query.condition).scope if query.condition else view.scope
            inside = any(stored.id == notes[0] for stored in snapshot.list_notes(scope))
            return Subject(notes[0], frozenset(spelled), max(near.values(), default=None), inside)
    return None


def _steps(trace: Trace, subject: Subject) -> list[Step]:
    candidates, attempt, left = trace.candidates, trace.prepared.attempt, trace.facts.left
    scored, ranked = trace.scores.scored, trace.ranking.ranked
    note, query = subject.note, attempt.query
    steps: list[Step] = []
    if not subject.passes_filters:
        exact = attempt.query.condition is not None
        text = "the filters, or what must or must not be in it, leave it out" if exact else "the filters leave it out"
        steps.append(Step("filters", None, 0, text))
    if attempt.listing:
        text = left.get(note, "the query only narrows: what passes is listed, newest first")
        name = "validity" if note in left else "listing"
        return [*steps, Step(name, *_place([candidate.note for candidate in ranked], note), text)]
    named = next((found for found in candidates.named if found.note == note), None)
    if named:
        part = "" if named.share == 1 else "a part of "
        steps.append(
            Step("name", 1, len(candidates.named), f"the query is {part}its {named.kind}, and that comes first")
        )
    lacking = [word for word in query.spelled if word not in subject.words]
    has = [word for word in query.spelled if word in subject.words]
    parts = [f"has {_listed(has)}" if has else "", f"lacks {_listed(lacking)}" if lacking else ""]
    words = " and ".join(filter(None, parts)) or "the query has no words to look for"
    steps.append(Step("words", *_place([match.note for match in candidates.matches], note), words))
    if candidates.cosines:
        nearness = "it has no vector yet" if subject.cosine is None else f"cosine {subject.cosine:.2f}"
        if candidates.near:
            nearness += f"; the last one proposed has {candidates.near[-1].score:.2f}"
        steps.append(Step("meaning", *_place([neighbour.note for neighbour in candidates.near], note), nearness))
    proposed = note in candidates.notes.values()
    lost = "its score is not above zero" if proposed else "neither its words, its meaning nor its name match"
    total = _sum(scored, note) or lost
    steps.append(Step("score", *_place([candidate.note for candidate in scored], note), total))
    if note in left:
        steps.append(Step("validity", None, len({candidate.note for candidate in ranked}), left[note]))
    elif [candidate.note for candidate in ranked] != [candidate.note for candidate in scored]:
        steps.append(Step("signals", *_place([candidate.note for candidate in ranked], note), _sum(ranked, note) or ""))
    return steps


def _place(notes: Sequence[int], note: int) -> tuple[int | None, int]:
    order = list(dict.fromkeys(notes))
    return (order.index(note) + 1 if note in order else None), len(order)


def _sum(scored: Sequence[Scored], note: int) -> str | None:
    best = next((candidate for candidate in scored if candidate.note == note), None)
    if best is None:
        return None
    parts = " + ".join(f"{name} {part:.3f}" for name, part in best.signals.items() if part)
    return f"{parts} = {best.score:.3f}"


def _lost_in(steps: Sequence[Step], place: int | None) -> str:
    names = [step.name for step in steps]
    if "filters" in names or "validity" in names:
        return "filters" if "filters" in names else "validity"
    if place is not None or "listing" in names:
        return "limit"
    proposed = any(step.rank for step in steps if step.name in ("name", "words", "meaning"))
    return "score" if proposed else "candidates"


def _hints(trace: Trace, subject: Subject, lost_in: str | None) -> list[str]:
    query = trace.prepared.attempt.query
    if lost_in == "filters":
        excluding = [f"ask without excluding {_listed(query.refused)}"] if query.refused else []
        return excluding or ["leave the filter out, or give the note what it asks for"]
    if lost_in == "validity":
        return ["--outdated shows what is no longer valid, and --as-of DATE what was valid then"]
    lacking = [word for word in query.spelled if word not in subject.words]
    return [f"give the note an alias or a tag that says {_listed(lacking)}"] if lacking else []


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)
