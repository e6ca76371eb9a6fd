"""Results: one hit for each note, or turn of a conversation, with a snippet, and whether anything answers at all."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from math import exp, log
from typing import NamedTuple

from co_cli.hits import Hit, Searched, SearchResult
from co_cli.index.engine import EXPIRED, StoredPassage, WordQuery
from co_cli.index.indexed_notes import IndexedNotes
from co_cli.index.tokens import spans, tokens
from co_cli.notes.markdown import plain_text
from co_cli.notes.refs import ENDINGS
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.score import Scored, trust
from co_cli.retrieval.steps import PreparedQuery, Trace
from co_cli.values import moment_text

SNIPPET = 240  # characters
LONGEST_MARKED = 20_000
MOST_NAMED = 3
CODE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:\n[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.M | re.S)
ABSENT = 0.01
"""Below this confidence nothing is there. So low because a wrong `absent` costs more than a doubtful hit."""
WEAK = 0.1
"""Below this confidence a hit is labelled as weak."""


class Snippet(NamedTuple):
    """One line of text, but code has its own lines, and where in it the matched words are."""

    text: str
    marks: tuple[tuple[int, int], ...]


def best_of_each_note(ranked: Sequence[Scored], conversations: Collection[int] = ()) -> list[Scored]:
    """The best passage of each note, in order, and every one of these conversations."""
    seen: dict[tuple[int, int], Scored] = {}
    for one in ranked:
        seen.setdefault((one.note, one.passage if one.note in conversations else 0), one)
    return list(seen.values())


class Fit(NamedTuple):
    """What a search's confidence is made of: what was fitted for these models, and how many passages were searched."""

    certainty: Sequence[float]
    passages: int


def confidence(fit: Fit | None, cosine: float, coverage: float, *score: float) -> float | None:
    """How sure it is that something answers, 0 to 1; None for vectors that nobody measured.

    A logistic in the cosine, the share of the question's words, the size of the vault (among more passages, one is near
    by chance), and the reader's score if it was read. Fitted by `python -m benchmarks absence`.
    """
    if fit is None:
        return None
    figures = (cosine, coverage, log(max(fit.passages, 1)), *score, 1.0)
    return 1 / (1 + exp(-sum(weight * figure for weight, figure in zip(fit.certainty, figures, strict=True))))


def make_result(index: IndexedNotes, trace: Trace) -> SearchResult:
    """The answer, from the values of a search."""
    prepared, candidates, ranking = trace.prepared, trace.candidates, trace.ranking
    request, view, read = prepared.request, prepared.view, trace.read_scores
    best = best_of_each_note(ranking.ranked, trace.facts.conversations)
    chosen = [one for one in best if one.passage in trace.texts.passages][: ranking.limit]
    sure = confidence_of(trace)
    answered = bool(chosen) and answers(trace)
    problems = (prepared.problem, trace.reading.problem if trace.reading else None)
    degraded = [*filter(None, problems), *_shortcomings(index, prepared, answered)]
    fresh = index.seen.fresh_as_of or view.synced_at
    by_meaning = prepared.vector is not None and view.space is not None
    return SearchResult(
        query=request.query,
        state="found" if answered else "inconclusive" if degraded else "absent",
        degraded=degraded,
        # without vectors to compare, hybrid is words alone
        backend=request.backend if by_meaning or prepared.attempt.listing else "fts5",
        searched=Searched(view.notes, view.passages, moment_text(fresh) if fresh else None),
        hits=[_hit(trace, one) for one in chosen],
        took_ms=0.0,
        confidence=None if sure is None else round(sure, 4),
        understood=(*prepared.attempt.understood, *_expired_answer(trace, answered)),
        suggestions=trace.suggestions,
        meta={
            "profile": request.profile.name,
            "weights": {name: round(weight, 4) for name, weight in trace.scores.weights.items() if weight},
            "candidates": len(candidates.notes) or len(ranking.ranked),
            "trust": round(trust(candidates), 4) if candidates.cosines else None,
            "reader": request.reader.model.name if request.reader and not request.reranker else None,
            "read": len(read),
        },
    )


def confidence_of(trace: Trace) -> float | None:
    """How sure it is that something answers. What is not valid answers nothing."""
    candidates, left, read = trace.candidates, trace.facts.left, trace.read_scores
    if any(one.note not in left for one in candidates.named):
        return 1.0
    if not candidates.cosines:
        return None
    valid = {passage for passage, note in candidates.notes.items() if note not in left}
    cosine = max((candidates.cosines[one] for one in valid & candidates.cosines.keys()), default=0.0)
    coverage = max((candidates.share(candidates.having[one]) for one in valid & candidates.having.keys()), default=0.0)
    best = sorted(read[one] for one in valid & read.keys())[-1:]
    return confidence(_fit(trace.prepared, bool(best)), cosine, coverage, *best)


def answers(trace: Trace) -> bool:
    """Whether it is sure enough. A single word that no note has may be no word: then no hit may be weak."""
    sure, candidates = confidence_of(trace), trace.candidates
    return sure is None or sure >= (WEAK if len(candidates.idf) == 1 and candidates.unknown else ABSENT)


def _fit(prepared: PreparedQuery, is_read: bool) -> Fit | None:
    """What was fitted for the answering vectors, and for the reader; None if meaning was not asked."""
    certainty, reader = prepared.certainty, prepared.request.reader
    if certainty is not None and is_read and reader is not None:
        certainty = reader.model.certainty
    return None if certainty is None else Fit(certainty, prepared.view.passages)


def _expired_answer(trace: Trace, answered: bool) -> list[str]:
    """Mention an expired note that would answer: where nothing does, or where it would come first."""
    one, texts = trace.texts.expired, trace.texts.passages
    passage = texts.get(one.passage) if one else None
    if one is None or passage is None or (answered and one.note != trace.scores.scored[0].note):
        return []
    if is_weak(one, passage, trace.candidates, _fit(trace.prepared, False)):
        return []
    return [expired_answer(trace.prepared.view.prefixes.get(passage.vault, "") + passage.ref)]


def _shortcomings(index: IndexedNotes, prepared: PreparedQuery, answered: bool) -> list[str]:
    """What was missing for a full answer."""
    found: list[str] = []
    view, embedders, by_vectors = prepared.view, index.embedders, prepared.vector is not None
    by_meaning = prepared.request.wants_meaning and embedders.space is not None
    if view.synced_at is None:
        found.append("this vault was never synced: run `co index sync`")
    elif by_meaning and view.space is None and view.passages and not prepared.attempt.listing:
        found.append("no note has a vector yet: answered by words")
    elif by_meaning and view.unready and by_vectors:
        found.append(f"answered by words, for lack of vectors: {', '.join(view.unready)}")
    elif by_vectors and view.space and view.space.space != embedders.space:
        problem = embedders.outage.problem  # of the server whose vectors are not there yet
        found += [f"answered with the vectors of {view.space.space.provider}: {problem}"] if problem else []
    found += view.outdated
    found += [] if answered else unsearched_text(index.unsearched(view.scope))
    return found


def _hit(trace: Trace, one: Scored) -> Hit:
    passage, view, read = trace.texts.passages[one.passage], trace.prepared.view, trace.read_scores
    score = [read[one.passage]] if one.passage in read else []
    weak = is_weak(one, passage, trace.candidates, _fit(trace.prepared, bool(score)), *score)
    words, prefix = trace.prepared.attempt.query.words, view.prefixes.get(passage.vault, "")
    hit = make_hit(one, passage, words, prefix, weak)
    return hit._replace(missing=hit.missing or passage.vault in view.away)


def make_hit(one: Scored, passage: StoredPassage, words: WordQuery, prefix: str, weak: bool) -> Hit:
    """`prefix` comes before the refs of other people's vaults."""
    snippet = make_snippet(passage.body, words)
    lines = (passage.first_line, passage.last_line)
    # a memory is opened whole, anything longer at its lines
    ref = passage.ref if passage.source == "memory" else f"{passage.ref}#L{lines[0]}-{lines[1]}"
    parts = {name: round(part, 4) for name, part in one.signals.items()}
    return Hit(
        ref=prefix + ref,
        source=passage.source,
        path=os.path.join(passage.root, *passage.path.split("/")),
        title=passage.title,
        snippet=snippet.text,
        lines=lines,
        score=round(sum(parts.values()), 4),
        signals=parts,
        tags=passage.tags,
        created=moment_text(passage.created),
        marks=snippet.marks,
        heading=shown_heading(passage.heading, passage.title, passage.source, passage.path),
        missing=passage.missing is not None,
        category=passage.category,
        weak=weak,
    )


def shown_heading(heading: str, title: str, source: str, path: str) -> str:
    """Headings of Markdown as plain text, without the first one if that is the title."""
    if source == "conversation" or not path.lower().endswith(ENDINGS):  # a speaker, a name of code
        return heading
    shown = plain_text(heading)
    return shown.removeprefix(title).removeprefix(" > ") if f"{shown} > ".startswith(f"{title} > ") else shown


def make_snippet(body: str, words: WordQuery) -> Snippet:
    """The stretch of a text with most of the matched words; its beginning if none of them occurs."""
    text = _flat(body[:LONGEST_MARKED])
    wanted = {*words.terms, *(token for phrase in words.phrases for token in phrase)}
    found = [
        (start, end, token) for start, end, token in spans(text) if token in wanted or token.startswith(words.prefixes)
    ]
    start = _best_start(text, found)
    end = len(text) if len(text) - start <= SNIPPET else _word_start(text, start + SNIPPET)
    cut = text[start:end].rstrip()
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    marks = [(first + shift, last + shift) for first, last, _ in found if start <= first and last <= start + len(cut)]
    return Snippet(f"{head}{cut}{tail}", _joined(marks))


def _flat(body: str) -> str:
    """Prose on one line; code blocks keep their lines and lose their fences."""
    parts = CODE.split(body)
    for place, part in enumerate(parts):
        lines = [line.rstrip() for line in part.splitlines()] if place % 2 else [" ".join(part.split())]
        parts[place] = "\n".join(line for line in lines if line)
    return "\n".join(part for part in parts if part)


def is_weak(one: Scored, passage: StoredPassage, candidates: Candidates, fit: Fit | None, *score: float) -> bool:
    """Whether a hit hardly has to do with the question, taken by itself."""
    cosine = candidates.cosines.get(one.passage)
    if cosine is None or "name" in one.signals:
        return False
    coverage = 0.0
    if one.signals.get("words"):
        coverage = candidates.share(candidates.idf.keys() & tokens(searched_text(passage)))
    sure = confidence(fit, cosine, coverage, *score)
    return sure is not None and sure < WEAK


def unsearched_text(names: Sequence[str]) -> list[str]:
    """What to say of files that may answer a question and could not be searched."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return [f"not searched, and may answer it: {', '.join(names[:MOST_NAMED])}{more}; see `co doctor`"] if names else []


def expired_answer(ref: str) -> str:
    return f"{ref} would answer, but it is {EXPIRED}: --outdated includes it"


def read_text(passage: StoredPassage) -> str:
    """What a model reads: the title, unless the text begins with it or is a turn, the heading, and the text."""
    repeats = passage.body.startswith(passage.title.rstrip("….")) or passage.source == "conversation"
    title = "" if repeats else passage.title
    return "\n".join(part for part in (title, passage.heading, passage.body) if part)


def searched_text(passage: StoredPassage) -> str:
    return "\n".join((passage.title, passage.heading, passage.body, *passage.tags, passage.aliases, passage.path))


def _best_start(text: str, found: Sequence[tuple[int, int, str]]) -> int:
    if not found or len(text) <= SNIPPET:
        return 0
    best, most = found[0][0], 0
    for first, _, _ in found[:200]:
        inside = len({token for start, end, token in found if first <= start and end <= first + SNIPPET * 2 // 3})
        if inside > most:
            best, most = first, inside
    return 0 if best < SNIPPET // 2 else _word_start(text, best - SNIPPET // 3)


def _word_start(text: str, place: int) -> int:
    """The first place after a blank at or before this one; the place itself in a text without blanks."""
    first = max(0, place - 40)
    blank = max(text.rfind(" ", first, place + 1), text.rfind("\n", first, place + 1))
    return blank + 1 if blank >= 0 else place


def _joined(marks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Marks that touch or overlap, as pairs of letters do, become one."""
    found: list[tuple[int, int]] = []
    for first, last in marks:
        if found and first <= found[-1][1] and first < last:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)
