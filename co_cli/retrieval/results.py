"""Results: one hit for each note, or turn of a conversation, with a snippet, and whether anything answers at all."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import exp, log, log10
from typing import NamedTuple

from co_cli.ground.hits import Hit, Searched, SearchResult
from co_cli.ground.values import moment_text
from co_cli.index.indexed_notes import IndexedNotes
from co_cli.index.stored import EXPIRED, StoredPassage
from co_cli.index.tokens import spans, tokens
from co_cli.index.word_query import WordQuery
from co_cli.notes.markdown import WIKI, plain_text
from co_cli.notes.refs import ENDINGS
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.matching import Condition
from co_cli.retrieval.query import MOST_NAMED, Query
from co_cli.retrieval.score import Scored, trust
from co_cli.retrieval.steps import PreparedQuery, Trace

SNIPPET = 240  # characters
LONGEST_MARKED = 20_000
SEPARATOR = " \u00b7 "
CODE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:\n[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.M | re.S)
TABLE = re.compile(
    r"\n(?:(?:\|.*\|[ \t]*(?:\n|\Z))+"
    r"|[^|\n]*\|.*\n(?=.*\|)[ \t|:]*-[ \t|:-]*(?:\n|\Z)(?:[^|\n]*\|.*(?:\n|\Z))*)"
)
"""Rows between bars, or a header and a line of dashes below it, with the rows that follow."""
QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+(?:\[![\w-]+\][+-]?)?", re.M)
LINK = re.compile(rf"(?!!?\[\[\s){WIKI}")
CELL_END = re.compile(r"(?<!\\)\|")
ABSENT = 0.2
"""Below this confidence nothing is there: with a reader, so are 1 to 8 % of the questions that notes answer."""
JUDGED = (0.6, 0.2, 0.2)
"""What the odds that something answers are made of where notes were read: the reader's best score, the odds without it,
and a constant. Fitted on the sample vault, short notes and lives (benchmarks/reader/data/part-05.jsonl), where .5 was
fitted; with .2 a few more of the questions that notes do not answer are recognized."""
UNKNOWN = 0.5
"""The same for a single word that no note has, if it may be no word."""
BEFORE = "Before: "
"""How the text of an earlier note begins, for a model that reads."""
UNLIKE = 0.05
"""Below this confidence a hit is weak where nothing was read, which half of the wrong ones are; if others were read,
below `ABSENT`."""
WEAK_SHARE = 0.4
"""Of the best score, where nothing was read and nobody measured how near the vectors of answers are: what has less is
weak. On 418 questions of three vaults that loses no answer."""
LEAST, NEAR = -1.39, 4.0
"""The reader's score that a note needs to answer, and how far it may be below the best one. Fitted on the half `tune`
of benchmarks/quality/precision."""
CROWDED = 0.3, 1.0
"""What ten times as many notes as a hundred add to that score, and take from that distance: among more, some are near
by chance. Chosen on the questions of the sample vault among 5,000 notes of other people (benchmarks/NOTES.md)."""
ALMOST = 2.0
"""How far below `LEAST` a weak hit is still near enough for a count of what was left out. What has less is far."""


class Snippet(NamedTuple):
    """One line of text, also of a table, but code has its own lines; and where in it the matched words are."""

    text: str
    marks: tuple[tuple[int, int], ...]


def best_of_each_note(ranked: Sequence[Scored], conversations: Collection[int] = ()) -> list[Scored]:
    """The best passage of each note, in order, and every one of these conversations."""
    seen: dict[tuple[int, int], Scored] = {}
    for candidate in ranked:
        seen.setdefault((candidate.note, candidate.passage if candidate.note in conversations else 0), candidate)
    return list(seen.values())


class Fit(NamedTuple):
    """What a search's confidence is made of: what was fitted for these vectors, and how many passages were searched."""

    certainty: Sequence[float]
    passages: int


def confidence(fit: Fit, cosine: float, coverage: float, score: float | None) -> float:
    """How sure it is that something answers, 0 to 1.

    A logistic in the cosine, the share of the question's words, and the size of the vault (among more passages, one is
    near by chance); where notes were read, in these odds and the reader's best score. Fitted by
    `python -m benchmarks absence`.
    """
    odds = odds_unread(fit, cosine, coverage)
    if score is not None:
        odds = JUDGED[0] * score + JUDGED[1] * odds + JUDGED[2]
    return 1 / (1 + exp(-odds))


def odds_unread(fit: Fit, cosine: float, coverage: float) -> float:
    """The logarithm of the odds that something answers, before anything is read."""
    figures = (cosine, coverage, log(max(fit.passages, 1)), 1.0)
    return sum(weight * figure for weight, figure in zip(fit.certainty, figures, strict=True))


def crowding(notes: int) -> float:
    """0 up to a hundred notes, and 1 more for each ten times as many."""
    return max(0.0, log10(max(notes, 1)) - 2)


def make_result(index: IndexedNotes, trace: Trace) -> SearchResult:
    """The answer, from the values of a search."""
    prepared, candidates, ranking = trace.prepared, trace.candidates, trace.ranking
    request, view, read = prepared.request, prepared.view, trace.read_scores
    best, weak = best_of_each_note(ranking.ranked, trace.facts.conversations), weak_ones(trace)
    chosen = [candidate for candidate in best if candidate.passage in trace.texts.passages][: ranking.limit]
    sure = confidence_of(trace)
    answered = bool(chosen) and answers(trace)
    problems = (prepared.problem, prepared.unchecked, trace.reading.problem if trace.reading else None)
    degraded = [*filter(None, problems), *_shortcomings(index, prepared, answered)]
    is_cut = prepared.unchecked and not request.deadline.left
    fresh = index.seen.fresh_as_of or view.synced_at
    by_meaning = prepared.vector is not None and view.space is not None
    return SearchResult(
        query=request.query,
        state="inconclusive" if is_cut else "found" if answered else "inconclusive" if degraded else "absent",
        degraded=degraded,
        # without vectors to compare, hybrid is words alone
        backend=request.backend if by_meaning or prepared.attempt.listing else "fts5",
        searched=Searched(view.notes, view.passages, moment_text(fresh) if fresh else None),
        hits=[_hit(trace, candidate, weak) for candidate in chosen],
        took_ms=0.0,
        confidence=None if sure is None else round(sure, 4),
        understood=(*prepared.attempt.understood, *_expired_answer(trace, answered)),
        suggestions=trace.suggestions,
        meta={
            "profile": request.profile.name,
            "weights": {name: round(weight, 4) for name, weight in trace.scores.weights.items() if weight},
            "candidates": len(candidates.notes) or len(ranking.ranked),
            "trust": round(trust(candidates), 4) if candidates.cosines else None,
            "read": len(read),
            "near": sum(
                _is_near(candidate.passage, read) for candidate in chosen if candidate.passage in weak or not answered
            ),
        },
    )


def confidence_of(trace: Trace) -> float | None:
    """How sure it is that something answers. What is not valid answers nothing, and what has all the words of the
    question may."""
    candidates, left, read = trace.candidates, trace.facts.left, trace.read_scores
    if any(found.note not in left for found in candidates.named):
        return 1.0
    fit = _fit(trace.prepared)
    if not candidates.cosines or fit is None:
        return None
    valid = {passage for passage, note in candidates.notes.items() if note not in left}
    best = max((read[passage] for passage in valid & read.keys()), default=None)
    # where English notes were read, one in another language may still answer
    unread = valid if best is None or trace.reading is None else valid & trace.reading.unreadable
    least = ABSENT if any(map(candidates.has_every_content_word, valid)) else 0.0
    sure = [least, confidence(fit, *_nearest(candidates, valid), best)]
    return max(*sure, confidence(fit, *_nearest(candidates, unread), None)) if unread else max(sure)


def _nearest(candidates: Candidates, passages: Collection[int]) -> tuple[float, float]:
    """The best cosine of these passages, and the largest share of the question's words that one of them has."""
    cosine = max((near for passage, near in candidates.cosines.items() if passage in passages), default=0.0)
    return cosine, max((share for passage, share in candidates.coverages.items() if passage in passages), default=0.0)


def answers(trace: Trace) -> bool:
    """Whether it is sure enough."""
    if trace.prepared.attempt.query.is_exact:  # every candidate has what must be there
        return True
    sure = confidence_of(trace)
    return sure is None or sure >= (UNKNOWN if trace.candidates.is_one_odd_word else ABSENT)


def _fit(prepared: PreparedQuery) -> Fit | None:
    """What was fitted for the answering vectors; None if meaning was not asked, or nobody measured them."""
    certainty = prepared.space and prepared.space.certainty
    return None if certainty is None else Fit(certainty, prepared.view.passages)


def _expired_answer(trace: Trace, answered: bool) -> list[str]:
    """Mention an expired note that would answer: where nothing does, or where it would come first."""
    candidate, texts = trace.texts.expired, trace.texts.passages
    passage = texts.get(candidate.passage) if candidate else None
    if candidate is None or passage is None or (answered and candidate.note != trace.scores.scored[0].note):
        return []
    if is_unlike(candidate, passage, trace.candidates, _fit(trace.prepared)):
        return []
    return [expired_answer(trace.prepared.view.prefixes.get(passage.origin_id, "") + passage.ref)]


def _shortcomings(index: IndexedNotes, prepared: PreparedQuery, answered: bool) -> list[str]:
    """What was missing for a full answer."""
    found: list[str] = []
    view, embedders, by_vectors = prepared.view, index.embedders, prepared.vector is not None
    by_meaning = prepared.request.wants_meaning and embedders.space is not None
    if view.synced_at is None:
        found.append("this vault was never synced: run `co index sync`")
    elif by_meaning and view.space is None and view.passages and not prepared.attempt.listing:
        found.append("no note has a vector yet: answered by words")
    elif by_vectors and view.space and view.space.space != embedders.space:
        problem = embedders.outage.problem()  # of the server whose vectors are not there yet
        found += [f"answered with the vectors of {view.space.space.provider}: {problem}"] if problem else []
    found += view.outdated
    found += [] if answered else unsearched_text(index.unsearched(view.scope))
    return found


def _is_near(passage: int, read: Mapping[int, float]) -> bool:
    return not read or read.get(passage, LEAST - ALMOST) > LEAST - ALMOST


def _hit(trace: Trace, candidate: Scored, weak: Collection[int]) -> Hit:
    passage, view = trace.texts.passages[candidate.passage], trace.prepared.view
    query, prefix = trace.prepared.attempt.query, view.prefixes.get(passage.origin_id, "")
    hit = make_hit(candidate, passage, query, prefix, candidate.passage in weak)
    searched = {*tokens(passage.searched_text)} if trace.prepared.attempt.parts else set[str]()
    parts = tuple(word for word in trace.prepared.attempt.parts if searched.issuperset(tokens(word)))
    return replace(hit, missing=hit.missing or passage.origin_id in view.away, part_of=parts)


def make_hit(candidate: Scored, passage: StoredPassage, query: Query, prefix: str, weak: bool) -> Hit:
    """`prefix` comes before the refs of other people's vaults."""
    properties = matched_properties(passage, query.words)
    snippet = make_snippet(passage.body, query.words, query.condition, passage.language)
    snippet = show_properties(properties, snippet)
    lines = (passage.first_line, passage.last_line)
    # a memory is opened whole, anything longer at its lines
    ref = passage.ref if passage.source == "memory" else f"{passage.ref}#L{lines[0]}-{lines[1]}"
    parts = {name: round(part, 4) for name, part in candidate.signals.items()}
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
        properties=tuple(f"{key}: {value.text}" for key, value in properties.items()),
    )


def shown_heading(heading: str, title: str, source: str, path: str) -> str:
    """Headings of Markdown as plain text, without the first one if that is the title."""
    if source == "conversation" or not path.lower().endswith(ENDINGS):  # a speaker, a name of code
        return heading
    shown = plain_text(heading)
    return shown.removeprefix(title).removeprefix(" > ") if f"{shown} > ".startswith(f"{title} > ") else shown


def make_snippet(body: str, words: WordQuery, condition: Condition | None = None, language: str = "") -> Snippet:
    """The stretch of a text with most of what was matched; its beginning if nothing of it occurs."""
    text = _flat(body[:LONGEST_MARKED])
    exact = condition.spans(text) if condition else []
    wanted = {words.stem(term, language) for term in words.terms} - (
        {*tokens(condition.quoted, language)} if condition else set()
    )
    found = [
        (start, end, token)
        for start, end, token in spans(text, language)
        if token in wanted or token.startswith(words.prefixes)
    ]
    found = sorted([*found, *((start, end, text[start:end]) for start, end in exact)])
    start = _best_start(text, found)
    end = len(text) if len(text) - start <= SNIPPET else _word_start(text, start + SNIPPET)
    cut = text[start:end].rstrip()
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    marks = [(first + shift, last + shift) for first, last, _ in found if start <= first and last <= start + len(cut)]
    return Snippet(f"{head}{cut}{tail}", _joined(marks))


def matched_properties(passage: StoredPassage, words: WordQuery) -> dict[str, Snippet]:
    """The properties with words of the query that neither the title nor the text has."""
    return find_properties(passage.properties, f"{passage.title}\n{passage.body}", words, passage.language)


def find_properties(properties: str, text: str, words: WordQuery, language: str = "") -> dict[str, Snippet]:
    """Those of the properties, a line for each, with words of the query that are not in a text."""
    found: dict[str, Snippet] = {}
    known: set[str] | None = None
    for line in properties.splitlines():
        key, _, value = line.partition(": ")
        snippet = make_snippet(value, words, language=language)
        if snippet.marks:
            known = {*tokens(text[:LONGEST_MARKED], language)} if known is None else known
            matched = {token for first, last in snippet.marks for token in tokens(snippet.text[first:last], language)}
            if matched - known:
                found[key] = snippet
                known |= matched
    return found


def show_properties(properties: Mapping[str, Snippet], snippet: Snippet) -> Snippet:
    """A snippet behind these properties."""
    text, marks = "", list[tuple[int, int]]()
    parts = [*((f"{key}: ", value) for key, value in properties.items()), *([("", snippet)] if snippet.text else ())]
    for place, (name, part) in enumerate(parts):
        text += f"{SEPARATOR if place else ''}{name}"
        marks += [(first + len(text), last + len(text)) for first, last in part.marks]
        text += part.text
    return Snippet(text, tuple(marks))


def _flat(body: str) -> str:
    """Prose on one line, without the marks of tables, quotes, callouts and wikilinks; code blocks keep their lines and
    lose their fences."""
    parts = CODE.split(body)
    for place, part in enumerate(parts):
        prose = " ".join(TABLE.sub(_rows, LINK.sub(r"\1", QUOTE.sub("", f"\n{part}"))).split())
        lines = [line.rstrip() for line in part.splitlines()] if place % 2 else [prose]
        parts[place] = "\n".join(line for line in lines if line)
    return "\n".join(part for part in parts if part)


def _rows(table: re.Match[str]) -> str:
    """`service, port; tide clock, 8080` of a table: ASCII, because other text takes longer to mark."""
    rows = ([cell.strip().replace("\\|", "|") for cell in CELL_END.split(row)] for row in table[0].splitlines())
    shown = (", ".join(cell for cell in row if cell.strip(":-")) for row in rows)
    return f"\n{'; '.join(row for row in shown if row)}\n"


def weak_ones(trace: Trace) -> set[int]:
    """The passages that are merely near what answers: by the reader's score and its distance to the best one, or if
    nothing was read by meaning and words.

    What has the name that was asked for is not weak; nor, if everything is, what has every word of the question.
    """
    candidates, texts, read, reading = trace.candidates, trace.texts.passages, trace.read_scores, trace.reading
    if trace.prepared.attempt.query.is_exact:  # all have what must be there
        return set()
    shown = {candidate.passage: candidate for candidate in trace.ranking.ranked if candidate.passage in texts}
    fit, near = _fit(trace.prepared), trace.prepared.space.near if trace.prepared.space else None
    crowd = crowding(trace.prepared.view.notes)
    best = max((read[passage] for passage in shown if passage in read), default=LEAST)
    least = max(LEAST + CROWDED[0] * crowd, best - NEAR + CROWDED[1] * crowd)
    close: dict[int, float] = {}
    if not read and near is not None:
        close = {passage: _closeness(candidates, texts[passage]) for passage in shown}
    nearest = max(close.values(), default=0.0) - (near or 0.0)
    lowest = 0.0 if read or close else WEAK_SHARE * max((candidate.score for candidate in shown.values()), default=0.0)

    def is_weak(passage: int, candidate: Scored) -> bool:
        if "name" in candidate.signals:
            return False
        if passage in read:
            return read[passage] < least
        if read and reading and not reading.problem and passage not in reading.unreadable:
            return True  # it was not worth reading
        if close.get(passage, nearest) < nearest or candidate.score < lowest:
            return True
        return is_unlike(candidate, texts[passage], candidates, fit, ABSENT if read else UNLIKE)

    weak = {passage for passage, candidate in shown.items() if is_weak(passage, candidate)}
    if len(weak) < len(shown):
        return weak
    return weak - {passage for passage in weak if candidates.has_every_content_word(passage)}


def _closeness(candidates: Candidates, passage: StoredPassage) -> float:
    return 0.7 * candidates.cosines.get(passage.id, 0.0) + 0.3 * _coverage(candidates, passage)


def _coverage(candidates: Candidates, passage: StoredPassage) -> float:
    """The share of the question's words that a passage has, also in its names and properties."""
    had, words = {*tokens(passage.searched_text, passage.language)}, candidates.words
    return candidates.share(term for term in candidates.idf if words.stem(term, passage.language) in had)


def is_unlike(
    candidate: Scored, passage: StoredPassage, candidates: Candidates, fit: Fit | None, least: float = UNLIKE
) -> bool:
    """Whether a hit that was not read has hardly anything to do with the question, taken by itself."""
    cosine, certain = candidates.cosines.get(candidate.passage), candidates.has_every_content_word(candidate.passage)
    if cosine is None or fit is None or "name" in candidate.signals or certain:
        return False
    coverage = _coverage(candidates, passage) if candidate.signals.get("words") else 0.0
    return confidence(fit, cosine, coverage, None) < least


def unsearched_text(names: Sequence[str]) -> list[str]:
    """What to say of files that may answer a question and could not be searched."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return [f"not searched, and may answer it: {', '.join(names[:MOST_NAMED])}{more}; see `co doctor`"] if names else []


def expired_answer(ref: str) -> str:
    return f"{ref} would answer, but it is {EXPIRED}: --outdated includes it"


def read_text(passage: StoredPassage, words: WordQuery, earlier: StoredPassage | None = None) -> str:
    """What a model reads: the title, unless the text begins with it or is a turn, other names, the heading, properties
    with words of the query, the text, and that of an earlier note which it superseded."""
    repeats = passage.body.startswith(passage.title.rstrip("….")) or passage.source == "conversation"
    names = " · ".join(filter(None, ("" if repeats else passage.title, passage.aliases)))
    properties = [f"{key}: {value.text}" for key, value in matched_properties(passage, words).items()]
    before = f"{BEFORE}{earlier.body}" if earlier else ""
    return "\n".join(part for part in (names, passage.heading, *properties, passage.body, before) if part)


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
