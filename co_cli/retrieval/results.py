"""Results: one hit for each note, or turn of a conversation, with a snippet, and whether anything answers at all."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from math import exp, log
from typing import NamedTuple

from co_cli.hits import Hit
from co_cli.index.engine import EXPIRED, StoredPassage, WordQuery
from co_cli.index.tokens import spans, tokens
from co_cli.notes.markdown import plain_text
from co_cli.notes.refs import ENDINGS
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.score import Scored
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
