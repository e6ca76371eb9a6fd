"""Turn what a person typed into a safe FTS5 MATCH expression.

Pure: no connection and no schema. Whatever a person types, the result parses: every word goes in as a quoted string.
`"an exact phrase"` must stand as it is, `-word` must not occur, and everything else is wanted: all of it first, any of
it when that finds too little.
"""

from __future__ import annotations

from co_cli.index.spaceless import run_grams, runs
from co_cli.record import Record
from co_cli.typed import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TERMS = 64
LONGEST_QUERY = 20_000
BLANKED = {place: " " for place in range(128) if not chr(place).isalnum() and chr(place) != "'"}
"""Leaves the words of an ASCII text, for `str.translate`."""
TELLING_BESIDE = 2
"""Words beside a phrase, stop words not counted, that make a question which quotes out of a search for the phrase."""
STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he her here hers herself him himself his how i if in into is
    isn't it its it's itself just let let's me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own same shan't she should shouldn't so some such than that that's the their theirs them
    themselves then there these they this those through to too under until up us very was wasn't we were weren't what
    what's when where which while who whom whose why will with won't would wouldn't you your yours yourself yourselves
    """.split()
)
"""Words that say nothing about what is looked for. They count only when a query has no others."""


class WordQuery(Record):
    """A query taken apart: each member is already a safe piece of a MATCH expression."""

    terms: tuple[str, ...]
    """What is wanted: one piece for each word."""
    phrases: tuple[str, ...]
    """What must stand as it was typed."""
    excluded: tuple[str, ...]
    pairs: tuple[str, ...]
    """Parts of wanted words that are written without spaces: enough when any term will do."""
    words: tuple[str, ...]
    """The bare words behind terms and phrases, for marking them in a snippet."""
    quoted: tuple[tuple[str, ...], ...] = ()
    """The words of each phrase, for those who look without FTS5."""

    @property
    def wanted(self) -> list[tuple[str, str]]:
        """Each wanted piece of MATCH with its word."""
        return list(zip(self.terms, self.words[len(self.words) - len(self.terms) :], strict=False))

    @property
    def empty(self) -> bool:
        return not self.terms and not self.phrases

    def all_terms(self) -> str:
        return self._own(" AND ".join((*self.phrases, *self.terms)))

    def any_term(self) -> str:
        wanted = f"({' OR '.join((*self.terms, *self.pairs))})" if self.terms else ""
        return self._own(" AND ".join(part for part in (*self.phrases, wanted) if part))

    def phrases_alone(self) -> str:
        return self._own(" AND ".join(self.phrases))

    def _own(self, expression: str) -> str:
        """Who says what must stand, or must not, means the passage: what stands around it neither helps nor harms."""
        if not expression or not (self.excluded or self.phrases):
            return expression
        refused = f" NOT ({' OR '.join(self.excluded)})" if self.excluded else ""
        return f"- context : (({expression}){refused})"


def read_query(text: str) -> WordQuery:
    # SQLite takes no lone surrogates
    text = whole(text)[:LONGEST_QUERY].replace("\0", " ")
    terms: dict[str, str] = {}
    phrases: dict[str, str] = {}
    excluded: list[str] = []
    for minus, phrase, refused, loose in _parts(text):
        if phrase is not None:
            piece = _phrase(phrase)
            if piece and minus:
                excluded.append(piece)
            elif piece:
                phrases[piece] = phrase
        elif refused is not None:
            excluded += list(_pieces(refused))
        else:
            terms.update(_pieces(loose))
    if not terms and not phrases and excluded:
        # nothing is wanted, so `-5` was not meant as a refusal
        return read_query(" ".join(word.lstrip("-") for word in text.split()))
    telling = {piece: word for piece, word in terms.items() if not is_stop_word(word)}
    chosen = telling if telling or phrases else terms
    kept = tuple(chosen)[:MOST_TERMS]
    must = tuple(phrases)[:MOST_TERMS]
    words = [word for piece in must for word in _words(phrases[piece])] + [chosen[piece] for piece in kept]
    pairs = [pair for word in words for run in runs(word) if len(run) > 2 for pair in run_grams(run)[:-1]]
    return WordQuery(
        terms=kept,
        phrases=must,
        excluded=tuple(excluded)[:MOST_TERMS],
        pairs=tuple(f"grams : {_quoted(pair)}" for pair in dict.fromkeys(pairs))[:MOST_TERMS],
        words=tuple(dict.fromkeys(words)),
        quoted=tuple(tuple(_words(phrases[piece])) for piece in must),
    )


def quotes_in_passing(query: WordQuery) -> bool:
    """Does it say more than what it quotes? Then it asks for what the rest says, and not for the phrase alone."""
    return bool(query.phrases) and not query.excluded and len(query.terms) >= TELLING_BESIDE


def _parts(text: str) -> Iterable[tuple[str | None, str | None, str | None, str]]:
    """(minus, phrase, refused word, anything else), of which one is what was typed."""
    if '"' not in text and "-" not in text:
        return ((None, None, None, word) for word in text.split())
    from co_cli.index.word_patterns import PART

    return ((part[1], part[2], part[3], part[4]) for part in PART.finditer(text))


def is_stop_word(word: str) -> bool:
    return word.lower().replace("\u2019", "'") in STOP_WORDS


def _pieces(text: str) -> dict[str, str]:
    """Each word of a stretch without blanks: its piece of MATCH, and the word."""
    found = {_quoted(word): word for word in _spaced_words(text)}
    found.update({_run_piece(run): run for run in runs(text)})
    return found


def _spaced_words(text: str) -> list[str]:
    if text.isascii():
        found = text.translate(BLANKED).split()
    else:
        from co_cli.index.word_patterns import WORD

        found = WORD.findall(text)
    words = (word.strip("'\u2019") for word in found)
    return [word for word in words if any(letter.isalnum() for letter in word)]


def _phrase(text: str) -> str:
    words = _spaced_words(text)
    pieces = [_quoted(" ".join(words))] if words else []
    pieces += [_run_piece(run) for run in runs(text)]
    return f"({' AND '.join(pieces)})" if len(pieces) > 1 else "".join(pieces)


def _words(text: str) -> list[str]:
    return [*_spaced_words(text), *runs(text)]


def _run_piece(run: str) -> str:
    """A run of letters without spaces: one letter starts a pair, more are a phrase of pairs."""
    if len(run) == 1:
        return f"grams : {_quoted(run)} *"
    return f"grams : {_quoted(' '.join(run_grams(run)[:-1]))}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
