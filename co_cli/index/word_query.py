"""The words of a query as the tokens that an index has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from co_cli.index.tokens import SNOWBALL, tokens

Term = str
Needle = tuple[Term, ...]
"""Tokens that must follow each other."""


def needles_of(texts: Iterable[str], languages: Iterable[str]) -> list[Needle]:
    """The tokens of each text as passages in English and in these languages have them."""
    spoken = ("", *languages)
    found = dict.fromkeys(tuple(tokens(text, language)) for text in texts for language in spoken)
    return [needle for needle in found if needle]


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The words of a query as tokens: any of `terms`, all of `phrases`."""

    terms: tuple[Term, ...] = ()
    phrases: tuple[Needle, ...] = ()
    prefixes: tuple[Term, ...] = ()
    """Beginnings of words that count like terms: for completion as you type."""
    hints: tuple[Term, ...] = ()
    """Words that nobody typed but an answer is likely to have. They count like terms."""
    typed: tuple[str, ...] = ()
    """The word of each term as it was typed."""
    stems: Mapping[str, Mapping[Term, Term]] = field(default_factory=dict[str, Mapping[Term, Term]])
    """For other languages that passages are in: what stands there for each term. It counts like the term."""

    def in_languages(self, languages: Iterable[str]) -> WordQuery:
        """The same words as passages in these languages have them, too."""
        words, stemmed = (
            dict(zip(self.terms, self.typed, strict=False)),
            [code for code in languages if code in SNOWBALL],
        )
        stems = {language: {term: _stem(word, language) for term, word in words.items()} for language in stemmed}
        prefixes = (_stem(start, language) for language in stems for start in self.prefixes)
        return replace(self, stems=stems, prefixes=tuple(dict.fromkeys((*self.prefixes, *prefixes))))

    def stem(self, term: Term, language: str) -> Term:
        """A term as a passage in this language has it."""
        return self.stems.get(language, {}).get(term, term)

    def variants(self, term: Term) -> tuple[Term, ...]:
        """A term in every language."""
        return tuple(dict.fromkeys((term, *(self.stem(term, language) for language in self.stems))))

    @property
    def counting(self) -> tuple[Term, ...]:
        """All that counts in a passage that has it."""
        return tuple(dict.fromkeys((*(stem for term in self.terms for stem in self.variants(term)), *self.hints)))

    @property
    def empty(self) -> bool:
        return not (self.terms or self.phrases or self.prefixes)


def _stem(word: str, language: str) -> Term:
    return next(iter(tokens(word, language)), word)
