"""What search is compared with: seven plain ways to rank notes, over the same index, vectors and indexed text.

None of them is in the product's path. Each takes 100 passages by words and 100 by meaning, as far as it needs them, and
ranks notes by their best passage. Query words are words: quotation marks and minus signs mean nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from co_cli.embedding.space import Vector
from co_cli.index.grep import read_origin
from co_cli.index.match import WordQuery, is_stop_word, read_query
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sources.passages import passages_of
from co_cli.values import Filters

DEPTH = 100
"""Passages that words and meaning propose, each."""
RRF_K = 60
SPEC_MEANING = 0.7
SIMPLE_MEANING = {"static": 0.4}
OTHER_MEANING = 0.6
"""How much meaning counts in `simple`, by provider: the best of 0.3 to 0.7 over public sets."""
LONGEST_EMBEDDED = 4_000

Ranking = list[tuple[str, float]]
"""Refs and scores, best first."""


class Desk:
    """An open vault, with what baselines read once and use for every question."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.index = kb, kb.index
        self.owed = 0.0
        """Seconds of work that this answer needed and an earlier method did: embedding the question."""
        self._texts: list[tuple[str, float, list[str]]] | None = None
        self._vector: tuple[str, Vector | None, float] | None = None
        self._embedded = False

    def refresh(self) -> None:
        """The vault has changed."""
        self._texts = None

    def begin(self) -> None:
        """Another method, or another question."""
        self.owed, self._embedded = 0.0, False

    def words(self, query: WordQuery, any_term: bool) -> dict[int, float]:
        """Passages and their bm25, turned round so that more is better, best first."""
        if not any_term:  # then each of them must stand, as a phrase must
            query = query._replace(terms=(), phrases=(*query.phrases, *query.terms), pairs=())
        return {match.passage_id: -match.rank for match in self.index.search(query, None, DEPTH, relaxed=any_term)}

    def near(self, text: str) -> dict[int, float]:
        """Passages and their cosine, best first."""
        space, vector = self.index.spaces().active, self.vector(text)
        if space is None or vector is None:
            return {}
        found = self.index.nearest(space, vector, Filters(), DEPTH)
        return {neighbour.passage_id: neighbour.cosine for neighbour in found}

    def cosines(self, text: str, passages: Sequence[int]) -> dict[int, float]:
        space, vector = self.index.spaces().active, self.vector(text)
        return {} if space is None or vector is None else self.index.cosines(space, vector, passages)

    @property
    def provider(self) -> str | None:
        """Who makes the vectors; None if the settings want words alone."""
        return self.kb.embedders.space.provider if self.kb.embedders.space else None

    def vector(self, text: str) -> Vector | None:
        """Embedded once a question; the next methods owe the time that it took."""
        if self._vector and self._vector[0] == text:
            self.owed = 0.0 if self._embedded else self._vector[2]
            return self._vector[1]
        started = time.perf_counter()
        space = self.kb.embedders.space
        embedder = self.kb.embedders.of(space) if space else None
        vector = embedder.embed([text[:LONGEST_EMBEDDED]], "query")[0] if embedder else None
        self._vector, self._embedded = (text, vector, time.perf_counter() - started), True
        return vector

    def texts(self) -> list[tuple[str, float, list[str]]]:
        """Every note: its ref, when it was made, and its passages as grep sees them."""
        if self._texts is None:
            self._texts = []
            for note, mtime in read_origin(
                self.kb.root, self.kb.settings.knowledge_exclude, self.kb.settings.knowledge_max_note_bytes
            ):
                around = " ".join((note.title, *note.aliases, *note.tags, note.description))
                texts = [f"{around}\n{part.heading}\n{part.text}".casefold() for part in passages_of(note)]
                self._texts.append((note.ref, mtime if note.created is None else note.created, texts))
        return self._texts

    def notes(self, passages: dict[int, float]) -> dict[int, float]:
        """Notes by their best passage, best first."""
        docs = self.index.docs_of(list(passages))
        found: dict[int, float] = {}
        for passage, score in _best_first(passages):
            found.setdefault(docs[passage], score)
        return found

    def ranking(self, passages: dict[int, float], limit: int) -> Ranking:
        """The refs of the best notes."""
        docs = self.index.docs_of(list(passages))
        chosen: dict[int, tuple[int, float]] = {}
        for passage, score in _best_first(passages):
            chosen.setdefault(docs[passage], (passage, score))
            if len(chosen) == limit:
                break
        scores = dict(chosen.values())
        return [(passage.ref, scores[passage.id]) for passage in self.index.passages(list(scores))]


def grep(desk: Desk, text: str, limit: int) -> Ranking:
    """Notes by the share of the words that they contain as substrings; the newest of equals first."""
    words = [word.casefold() for word in plain_query(text).words]
    needles = [word for word in words if not is_stop_word(word)] or words
    found = [
        (ref, max(sum(map(passage.__contains__, needles)) for passage in passages) / len(needles), created)
        for ref, created, passages in desk.texts()
        if needles and passages
    ]
    best = sorted((row for row in found if row[1] > 0), key=lambda row: (-row[1], -row[2]))
    return [(ref, share) for ref, share, _ in best[:limit]]


def fts5_all(desk: Desk, text: str, limit: int) -> Ranking:
    return desk.ranking(desk.words(plain_query(text), any_term=False), limit)


def fts5_any(desk: Desk, text: str, limit: int) -> Ranking:
    return desk.ranking(desk.words(plain_query(text), any_term=True), limit)


def vectors(desk: Desk, text: str, limit: int) -> Ranking:
    return desk.ranking(desk.near(text), limit)


def spec(desk: Desk, text: str, limit: int) -> Ranking:
    """The formula as specified: all terms, 0.7 of meaning and 0.3 of words."""
    return _hybrid(desk, text, limit, any_term=False, share=SPEC_MEANING)


def simple(desk: Desk, text: str, limit: int) -> Ranking:
    """The best simple hybrid: any term, and the share of meaning that suits the model."""
    share = SIMPLE_MEANING.get(desk.provider or "", OTHER_MEANING)
    return _hybrid(desk, text, limit, any_term=True, share=share)


def rrf(desk: Desk, text: str, limit: int) -> Ranking:
    """Reciprocal rank fusion of `fts5-any` and `vectors`: places count, scores do not."""
    words, near = desk.words(plain_query(text), any_term=True), desk.near(text)
    fused: dict[int, float] = {}
    for passages in (words, near):
        for place, doc in enumerate(desk.notes(passages), 1):
            fused[doc] = fused.get(doc, 0.0) + 1 / (RRF_K + place)
    docs = desk.index.docs_of([*words, *near])
    return desk.ranking({passage: fused[doc] for passage, doc in docs.items()}, limit)


BASELINES: dict[str, Callable[[Desk, str, int], Ranking]] = {
    "grep": grep,
    "fts5-all": fts5_all,
    "fts5-any": fts5_any,
    "vectors": vectors,
    "spec": spec,
    "rrf": rrf,
    "simple": simple,
}
WITH_VECTORS = ("vectors", "spec", "rrf", "simple")


def plain_query(text: str) -> WordQuery:
    """The words of a question, without stop words if that leaves any."""
    return read_query(text.replace('"', " ").replace("-", " "))


def blend(words: dict[int, float], cosines: dict[int, float], share: float) -> dict[int, float]:
    """bm25 over the best bm25, and the cosine min-max over all candidates, of which `share` counts for the latter."""
    best = max(words.values(), default=0.0)
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    return {
        passage: share * ((cosines.get(passage, low) - low) / (high - low) if high > low else 0.0)
        + (1 - share) * (words.get(passage, 0.0) / best if best > 0 else float(passage in words))
        for passage in {**words, **cosines}
    }


def _hybrid(desk: Desk, text: str, limit: int, any_term: bool, share: float) -> Ranking:
    """Both lists of candidates, each candidate with its own bm25, if it has one, and its exact cosine."""
    words, near = desk.words(plain_query(text), any_term), desk.near(text)
    missing = [passage for passage in words if passage not in near]
    return desk.ranking(blend(words, {**near, **desk.cosines(text, missing)}, share), limit)


def _best_first(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
