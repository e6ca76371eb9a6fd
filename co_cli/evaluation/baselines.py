"""Seven plain ways to rank notes, to compare search with. The product uses none of them.

Each takes 100 passages by keywords and 100 by vectors. Quotation marks and minus signs have no meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from co_cli.embedding.space import Vector
from co_cli.index.engine import ReadTransaction
from co_cli.index.grep import read_origin
from co_cli.index.stored import Scope, StoredSpace
from co_cli.index.word_query import WordQuery
from co_cli.retrieval.query import Query, parse
from co_cli.sources.origin import adapter_of
from co_cli.vault.vault import Vault

DEPTH, RRF_K = 100, 60
SPEC_MEANING, STATIC_MEANING, OTHER_MEANING = 0.7, 0.4, 0.6
"""The share of the cosine: as specified, and in `simple` by provider, the best of 0.3 to 0.7 over public sets."""
Ranking = list[tuple[str, float]]  # refs and scores, best first
Scored = dict[int, float]  # passages and scores


class Desk:
    """All that the baselines need from an open vault. Only this class knows how the index is built."""

    def __init__(self, vault: Vault) -> None:
        self.vault, space = vault, vault.embedders.space
        self.simple_share = STATIC_MEANING if space and space.provider == "static" else OTHER_MEANING
        self._vector: tuple[str, Vector | None] | None = None
        self._texts: dict[str, str] = {}

    def begin(self) -> None:
        """Forget the last question, so that every method pays for its own embedding."""
        self._vector = None

    def _query(self, text: str) -> Query:
        return parse(re.sub(r'["#:-]', " ", text), operators=False)

    @contextmanager
    def _reading(self) -> Generator[tuple[ReadTransaction, Scope, StoredSpace | None]]:
        with self.vault.engine.reading() as snapshot:
            state = self.vault.index.notes.state()
            sources = adapter_of(state.origin).sources
            yield snapshot, Scope(tuple((state.id, source) for source in sources)), state.active

    def keywords(self, text: str) -> list[str]:
        """The words of a question, without stop words if that leaves any."""
        return [word.casefold() for word in self._query(text).spelled]

    def words(self, text: str, any_term: bool, limit: int = DEPTH) -> Scored:
        """bm25 by passage; more is better."""
        query = self._query(text).words
        query = query if any_term else WordQuery(phrases=tuple((term,) for term in query.terms))
        with self._reading() as (snapshot, scope, _):
            return {match.passage: match.score for match in snapshot.words(scope, query, limit)}

    def nearest(self, text: str, limit: int = DEPTH) -> Scored:
        """The cosine of the nearest passages."""
        vector = self._embedded(text)
        with self._reading() as (snapshot, scope, space):
            found = snapshot.nearest(scope, space, vector, limit) if space and vector else []
            return {match.passage: match.score for match in found}

    def cosines(self, text: str, passages: Iterable[int]) -> Scored:
        vector = self._embedded(text)
        with self._reading() as (snapshot, _, space):
            return snapshot.cosines(space, vector, list(passages)) if space and vector else {}

    def notes_of(self, passages: Iterable[int]) -> dict[int, str]:
        """The ref of each passage's note."""
        with self._reading() as (snapshot, _, _):
            return {number: passage.ref for number, passage in snapshot.passages(list(passages)).items()}

    def texts(self) -> dict[str, str]:
        """Every note's text in lower case by its ref, newest first."""
        if not self._texts:
            settings = self.vault.settings
            notes = read_origin(self.vault.index.origin, settings.knowledge_exclude, settings.knowledge_max_note_bytes)
            newest = sorted(notes, key=lambda pair: -(pair[1] if pair[0].created is None else pair[0].created))
            for note, _ in newest:
                parts = (note.title, *note.aliases, *note.tags, note.description, note.body)
                self._texts[note.ref] = "\n".join(parts).casefold()
        return self._texts

    def _embedded(self, text: str) -> Vector | None:
        if self._vector is None or self._vector[0] != text:
            space = self.vault.embedders.space
            embedder = self.vault.embedders.of(space) if space else None
            self._vector = text, embedder.embed([text[:4_000]], "query")[0] if embedder else None
        return self._vector[1]


def grep(desk: Desk, text: str) -> Ranking:
    """Notes by the share of the words that they contain as substrings; newest first among equals."""
    words = desk.keywords(text)
    found = [(ref, sum(word in note for word in words) / len(words)) for ref, note in desk.texts().items() if words]
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: -pair[1])


def rrf(desk: Desk, text: str) -> Ranking:
    """Reciprocal rank fusion of `fts5-any` and `vectors`: places count, scores do not."""
    fused: dict[str, float] = {}
    for passages in (desk.words(text, any_term=True), desk.nearest(text)):
        for place, (ref, _) in enumerate(_by_note(desk, passages), 1):
            fused[ref] = fused.get(ref, 0.0) + 1 / (RRF_K + place)
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))


def hybrid(desk: Desk, text: str, any_term: bool, share: float) -> Ranking:
    """Candidates of both kinds, each with its bm25, if it has one, and its exact cosine."""
    words, near = desk.words(text, any_term), desk.nearest(text)
    cosines = near | desk.cosines(text, [passage for passage in words if passage not in near])
    return _by_note(desk, blend(words, cosines, share))


def blend(words: Scored, cosines: Scored, share: float) -> Scored:
    """bm25 divided by the best bm25, and the cosine scaled to 0..1 over all candidates, weighted with `share`."""
    best = max(words.values(), default=0.0)
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    return {
        passage: share * ((cosines.get(passage, low) - low) / (high - low) if high > low else 0.0)
        + (1 - share) * (words.get(passage, 0.0) / best if best > 0 else float(passage in words))
        for passage in words | cosines
    }


BASELINES: dict[str, Callable[[Desk, str], Ranking]] = {
    "grep": grep,
    "fts5-all": lambda desk, text: _by_note(desk, desk.words(text, any_term=False)),
    "fts5-any": lambda desk, text: _by_note(desk, desk.words(text, any_term=True)),
    "vectors": lambda desk, text: _by_note(desk, desk.nearest(text)),
    "spec": lambda desk, text: hybrid(desk, text, any_term=False, share=SPEC_MEANING),
    "rrf": rrf,
    "simple": lambda desk, text: hybrid(desk, text, any_term=True, share=desk.simple_share),
}
WITH_VECTORS = ("vectors", "spec", "rrf", "simple")


def _by_note(desk: Desk, passages: Scored) -> Ranking:
    """Notes by their best passage."""
    refs = desk.notes_of(passages)
    found: dict[str, float] = {}
    for passage, score in sorted(passages.items(), key=lambda pair: (-pair[1], pair[0])):
        found.setdefault(refs[passage], score)
    return list(found.items())
