"""Candidates: which passages are ranked at all. Words, vectors and names each propose some; each gets both scores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, log

from co_cli.embedding.space import Vector, is_english_word
from co_cli.index.engine import ReadTransaction
from co_cli.index.names import MOST_NAMED, fold_name, numbers_of
from co_cli.index.stored import Match, Named, Scope, StoredSpace
from co_cli.index.tokens import fold
from co_cli.index.word_query import Term, WordQuery
from co_cli.retrieval.query import Query

DEPTH = 100
"""Passages that words and vectors propose, each."""
ENDING = r"\.[^\W_]{1,5}$"
LIGHT_VERBS = frozenset("go get need want must make take find know tell give".split())
"""Words of a question that an answer need not have."""
MOST_COUNTED = 16
"""Words of a question that are counted."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What candidates are looked for with."""

    query: Query
    scope: Scope
    depth: int = DEPTH
    words: bool = True


@dataclass(frozen=True)
class Candidates:
    """What was proposed, and what is known of it."""

    matches: list[Match] = field(default_factory=list[Match])  # by words, best first
    near: list[Match] = field(default_factory=list[Match])  # by meaning, nearest first
    named: list[Named] = field(default_factory=list[Named])
    notes: Mapping[int, int] = field(default_factory=dict[int, int])
    """Each candidate passage and its note."""
    cosines: Mapping[int, float] = field(default_factory=dict[int, float])
    """Of every candidate that has a vector; empty when vectors cannot answer."""
    idf: Mapping[Term, float] = field(default_factory=dict[Term, float])
    """How rare each word of the question is in these vaults."""
    having: Mapping[int, set[Term]] = field(default_factory=dict[int, set[Term]])
    """Which words of the question each of the matches has."""
    unknown: frozenset[Term] = frozenset()
    """Words of the question that no passage has."""
    words: WordQuery = field(default_factory=WordQuery)
    """The words of the question in the languages of these vaults."""
    passages: int = 0
    """How many there are in these vaults."""

    def share(self, terms: Iterable[Term]) -> float:
        """How much of the question these words are, rare words counting more, 0 to 1."""
        total = fsum(self.idf.values())  # the same in any order: sets have a new one in each process
        return fsum(self.idf[term] for term in terms) / total if total else 1.0  # nothing but beginnings of words

    @cached_property
    def coverages(self) -> dict[int, float]:
        """How much of the question each match has in words. Many have the same words."""
        shares = {terms: self.share(terms) for terms in {frozenset(terms) for terms in self.having.values()}}
        return {passage: shares[frozenset(terms)] for passage, terms in self.having.items()}

    def coverage(self, passage: int) -> float:
        """How much of the question this passage has in words."""
        found = self.coverages.get(passage)
        return self.share(()) if found is None else found

    def has_every_word(self, passage: int) -> bool:
        """Whether this passage has all words of the question."""
        return bool(self.idf) and self.idf.keys() <= self.having.get(passage, set())

    def has_every_content_word(self, passage: int) -> bool:
        """The same without verbs such as `go`, unless there are no other words."""
        content = self.idf.keys() - LIGHT_VERBS or self.idf.keys()
        return bool(content) and content <= self.having.get(passage, set())

    @property
    def is_one_odd_word(self) -> bool:
        """Whether nothing is asked for but a word that no passage has and that may be no word."""
        return len(self.idf) == len(self.unknown) == 1 and not any(map(is_english_word, self.words.typed))

    @property
    def best_coverage(self) -> float:
        return max(self.coverages.values(), default=0.0)

    @property
    def surprise(self) -> float:
        """How far it is from chance that one passage has the words of the best match together.

        0 if one of so many passages would have them anyway, were words spread at random; 1 if only one of a vault with
        the square of its passages would.
        """
        told = self.best_coverage * fsum(self.idf.values())  # an idf is about -log of the share of passages
        return told / log(max(self.passages, 2)) - 1


def gather(snapshot: ReadTransaction, ask: Ask, space: StoredSpace | None, vector: Vector | None) -> Candidates:
    """Everything that is proposed, each with its cosine if there are vectors."""
    query, scope = ask.query, ask.scope
    terms = _counted(query.words)
    variants = {term: query.words.variants(term) for term in terms}
    stems = list(dict.fromkeys(stem for found in variants.values() for stem in found))
    matches = _find_words(snapshot, ask, query.words, stems) if ask.words else []
    near: list[Match] = []
    if space is not None and vector is not None:
        near = snapshot.nearest(scope, space, vector, ask.depth)
    elif query.plain and matches and len(terms) > 1:  # words answer alone: no match with all of them may be missing
        proposed = {match.passage: match for match in _with_every_word(snapshot, ask, terms)}
        matches += [proposed[passage] for passage in proposed.keys() - {match.passage for match in matches}]
    having = terms_having(snapshot, query.words, terms, [match.passage for match in matches])
    named: list[Named] = []
    if query.plain:
        with_all = [match for match in matches if having[match.passage].issuperset(terms)]
        named = _named(snapshot, ask) or _partly_named(snapshot, ask, with_all)
    notes = {match.passage: match.note for match in matches} | {neighbour.passage: neighbour.note for neighbour in near}
    proposed = set(notes.values())
    notes |= {match.passage: match.note for match in named if match.note not in proposed}
    cosines = {neighbour.passage: neighbour.score for neighbour in near}
    if space is not None and vector is not None:
        cosines |= snapshot.cosines(space, vector, [passage for passage in notes if passage not in cosines])
    total, counted = snapshot.term_counts(scope.origins, stems)
    # a passage has words in one language
    counts = {term: min(total, sum(counted[stem] for stem in found)) for term, found in variants.items()}
    idf = {term: log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    unknown = frozenset(term for term, count in counts.items() if not count)
    return Candidates(matches, near, named, notes, cosines, idf, having, unknown, query.words, total)


def terms_having(
    snapshot: ReadTransaction, words: WordQuery, terms: Sequence[Term], passages: Sequence[int]
) -> dict[int, set[Term]]:
    """Which of these terms of a question each passage has, in its language."""
    variants = {term: words.variants(term) for term in terms}
    found = snapshot.terms_in(passages, {stem for stems in variants.values() for stem in stems})
    if not words.stems:  # all of them are English
        return found
    stored = snapshot.passages(passages)
    spoken = {passage: kept.language for passage, kept in stored.items()}
    return {
        passage: {term for term in terms if words.stem(term, spoken.get(passage, "")) in had}
        for passage, had in found.items()
    }


def _with_every_word(snapshot: ReadTransaction, ask: Ask, terms: Sequence[Term]) -> list[Match]:
    """Passages with all of these terms, in one language or another."""
    words = ask.query.words
    readings = [{term: term for term in terms}, *words.stems.values()]
    every = dict.fromkeys(tuple((stems.get(term, term),) for term in terms) for stems in readings)
    found: list[Match] = []
    for phrases in every:
        found += _find_words(snapshot, ask, WordQuery(phrases=phrases), [stem for (stem,) in phrases])
    return found


def _find_words(snapshot: ReadTransaction, ask: Ask, words: WordQuery, terms: Sequence[Term]) -> list[Match]:
    """Passages with these words, best first.

    bm25 takes each vault for itself, and in one of three notes no word is rare. Of several vaults, scores are corrected
    by how rare the words are in all of them.
    """
    scope = ask.scope
    if len(scope.origins) < 2:
        return snapshot.words(scope, words, ask.depth)
    counts = {vault: snapshot.term_counts((vault,), terms) for vault in scope.origins}
    total = sum(passages for passages, _ in counts.values())
    everywhere = {term: _rarity(total, sum(had[term] for _, had in counts.values())) for term in terms}
    found: list[Match] = []
    for vault, (passages, had) in counts.items():
        parts = tuple(part for part in scope.parts if part[0] == vault)
        matches = snapshot.words(replace(scope, parts=parts), words, ask.depth)
        having = snapshot.terms_in([match.passage for match in matches], terms)
        for match in matches:
            here = fsum(_rarity(passages, had[term]) for term in having[match.passage])
            share = fsum(everywhere[term] for term in having[match.passage]) / here if here else 1.0
            found.append(match._replace(score=match.score * share))
    return sorted(found, key=lambda match: (-match.score, match.passage))[: ask.depth]


def _rarity(passages: int, having: int) -> float:
    """What a word counts in the bm25 of FTS5, if this many passages have it."""
    return max(log((passages - having + 0.5) / (having + 0.5)), 1e-6)


def _named(snapshot: ReadTransaction, ask: Ask) -> list[Named]:
    """Notes that are called what was asked for; else those whose name begins with the number that was asked for."""
    name = fold_name(ask.query.text)
    found = snapshot.named(ask.scope, name) or _with_file(snapshot, ask)
    if found:
        return found
    numbered = [match for number in numbers_of(name) for match in snapshot.named(ask.scope, number, longer=True)]
    return [match._replace(kind="number") for match in numbered]


def _partly_named(snapshot: ReadTransaction, ask: Ask, matches: Sequence[Match]) -> list[Named]:
    """Those of the matches that have a name with every word that was asked for: `tomasz` is Tomasz Wójcik."""
    asked = {*fold_name(ask.query.text).split()}
    first = {match.note: match.passage for match in reversed(matches)}
    found: dict[int, Named] = {}
    for note, name, kind in snapshot.names_of(list(first)) if asked else ():
        words = name.split()
        share = len(asked) / len(words) if asked.issubset(words) else 0.0
        if share > (found[note].share if note in found else 0.0):
            found[note] = Named(first[note], note, kind, share)
    return list(found.values()) if len(found) <= MOST_NAMED else []


def _with_file(snapshot: ReadTransaction, ask: Ask) -> list[Named]:
    """Notes whose file name, with its ending, was asked for."""
    text = fold(ask.query.text.strip())
    found = snapshot.named(ask.scope, fold_name(re.sub(ENDING, "", text))) if re.search(ENDING, text) else []
    if not found:
        return []
    stored = snapshot.find_notes(None, "id", [named.note for named in found])
    files = {note.id for note in stored if f"/{fold(note.path)}".endswith(f"/{text}")}
    return [named for named in found if named.note in files]


def _counted(words: WordQuery) -> tuple[Term, ...]:
    """The whole words of the question, those of its phrases too. The beginning of a word is not a word."""
    terms = (*words.terms, *(term for phrase in words.phrases for term in phrase))
    return tuple(dict.fromkeys(term for term in terms if term not in words.prefixes))[:MOST_COUNTED]
