"""Rerank: a model that reads question and passage together scores the first candidates.

The reader of this package is one such model (`read`), any callable another (`rerank`). If it cannot be used, fails, is
late or answers nonsense, the order stays as it was, and the result says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from math import exp, fsum, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from co_cli.embedding.space import is_english_word
from co_cli.ground.errors import KnowledgeError
from co_cli.notes.language import LOOKED_AT, WORDS, common_words, guess_language
from co_cli.retrieval.score import Scored, best_first

if TYPE_CHECKING:
    from co_cli.embedding.reader import CrossEncoder

READING = 20, 1.2
"""Notes that are read, each with its best passage, and the weight of that, where words answer alone."""
IN_OTHER_LANGUAGES = 0.75
"""What a passage that the reader cannot read counts as: so far from the mean of those that were read to the best one.
Measured in vaults half in English, half in German or French, with English questions: at the mean such notes are far
behind, at the best one English notes are."""
MOST_SHORT, SHORT = 2, 3
"""Words of another language in a question of English words that do not make it one in that language: how many, and
their letters."""
SCALE = 4.0
"""What a score is divided by before it becomes a signal of 0 to 1: plain odds hardly tell good passages apart."""
TOO_BUSY = "results are in the order without the reader: this server is too busy to read for every search"
SECONDS = 10.0
"""What any other model may take."""


class Reranker(Protocol):
    """The query and the texts of the first candidates into one score each: more is better, on any scale."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]: ...


class Reading(NamedTuple):
    """What a model made of the candidates: their new order, and the reader's scores of the passages that it read."""

    ranked: list[Scored]
    scores: Mapping[int, float] = MappingProxyType({})
    unreadable: frozenset[int] = frozenset()
    """Passages of these that are not in English."""
    problem: str | None = None
    weight: float = 0.0
    """That of the signal `reader`, beside 1 for all others; 0: there is none."""


def is_readable(language: str) -> bool:
    """Whether the reader can read a text in it. Names, commands and a few nouns, which are in no language, it can."""
    return language in ("en", "")


def is_readable_question(text: str) -> bool:
    """Whether the reader can read what is asked. A few short words of another language do not tell that of English
    words: `hi` is Catalan, too, and nothing else in "hi, good morning" is."""
    language = guess_language(text)
    if is_readable(language):
        return True
    words = {word.lower() for word in WORDS.findall(text[:LOOKED_AT])}
    telling = words & common_words(language)
    short = len(telling) <= MOST_SHORT and all(word.isascii() and len(word) <= SHORT for word in telling)
    return short and 2 * len(telling) < len(words) and all(map(is_english_word, words - telling))


def read(
    reader: CrossEncoder,
    query: str,
    ranked: Sequence[Scored],
    texts: Sequence[str | None],
    weight: float,
    seconds: float | None,
    has_every_word: Callable[[int], bool],
) -> Reading:
    """Add the signal `reader` to the first candidates, which have these texts: the odds that a passage answers.

    A passage with every word of the question counts as if it had been read best: reading is for other words. One
    without a text is not in English, is not read, and counts as most of those that were. Other candidates get nothing,
    and so stay behind all before them.
    """
    first = dict(zip((candidate.passage for candidate in ranked), texts, strict=False))
    english = {passage: text for passage, text in first.items() if text is not None}
    try:
        found = reader.scores(query, list(english.values()), seconds) if english else []
    except KnowledgeError as error:
        return Reading(list(ranked), problem=f"results are in the order without the reader: {error}")
    scores = {passage: score for passage, score in zip(english, found, strict=True) if score is not None}
    late = f"read {len(scores)} of {len(english)}: there was no time for more (`knowledge_reader_ms`)"
    problem = late if len(scores) < len(english) else None
    unreadable = frozenset(first.keys() - english.keys())
    parts = {passage: 1 / (1 + exp(-score / SCALE)) for passage, score in scores.items()}
    if not parts:
        return Reading(list(ranked), unreadable=unreadable, problem=problem)
    best, mean = max(parts.values()), fsum(parts.values()) / len(parts)  # the module statistics takes 4 ms
    parts |= dict.fromkeys(unreadable, mean + IN_OTHER_LANGUAGES * (best - mean))
    parts |= {passage: best for passage in parts if has_every_word(passage)}
    return Reading(_blended(ranked, parts, weight), scores, unreadable, problem, weight)


def rerank(reranker: Reranker, query: str, ranked: Sequence[Scored], texts: Sequence[str], weight: float) -> Reading:
    """Add the signal `reader` to the first candidates, with any model's scores spread from 0 to 1 and weighed."""
    scores, problem = _ask(reranker, query, texts)
    if problem:
        return Reading(list(ranked), problem=f"the reranker {problem}: results are in the order without it")
    low, spread = min(scores), max(scores) - min(scores) or 1.0
    parts = {candidate.passage: (score - low) / spread for candidate, score in zip(ranked, scores, strict=False)}
    return Reading(_blended(ranked, parts, weight), weight=weight)


def _blended(ranked: Sequence[Scored], parts: Mapping[int, float], weight: float) -> list[Scored]:
    """In a new order, with a signal `reader` of this weight beside 1 for all others. A name needs no reading."""
    share = 1 / (1 + weight)
    blended = [
        candidate.times(share).plus("reader", weight * share * parts.get(candidate.passage, 0.0))
        if "name" not in candidate.signals
        else candidate
        for candidate in ranked
    ]
    return best_first(blended)


def _ask(reranker: Reranker, query: str, texts: Sequence[str]) -> tuple[list[float], str | None]:
    answers: list[list[float]] = []
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append([float(score) for score in reranker(query, texts)])
        except BaseException as error:
            problems.append(error)

    # a daemon: what hangs must not keep the process from ending
    asking = threading.Thread(target=ask, name="co-rerank", daemon=True)
    asking.start()
    asking.join(SECONDS)
    if problems:
        return [], f"failed ({' '.join(str(problems[0]).split())[:200] or type(problems[0]).__name__})"
    if not answers:
        return [], f"did not answer within {SECONDS:g} s"
    scores = answers[0]
    if len(scores) != len(texts) or not all(isfinite(score) for score in scores):
        return [], f"answered with {len(scores)} scores for {len(texts)} texts, or with one that is not a number"
    return scores, None
