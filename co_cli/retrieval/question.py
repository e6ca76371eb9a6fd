"""Understand the query: what was typed into terms, each with its weight and with what other words are compared by.

Pure: what the vault knows of each word comes in as plain values.
"""

from __future__ import annotations

from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.index.lexicon import WordFacts

MOST_TERMS = 16
"""Of a longer question, the rarest words are compared."""
SHORT = 5
"""Terms up to which a question asks for one thing, and does not describe what it is about."""

OWN = frozenset("i i'm i've i'll i'd my me mine we we're we've we'll our us let's".split())
MINE = frozenset("i i'm i've i'll i'd my me mine".split())
"""What `we` know is a team's, and of that the newest is no more likely to be asked for."""
NOW = frozenset(
    """
    now today current currently latest newest recent recently lately still already last next continue update updated
    """.split()
)
PAST = frozenset("did was were had used been when ago said told".split())
ASKING = frozenset("what what's when where where's which who who's whom whose why how how's did does".split())
MARKS = {ord(mark): " " for mark in '.,;:!?"()*'} | {0x2019: "'"}


DATES = frozenset(
    """
    yesterday today ago week weeks weekend month months quarter year years since after before until till
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec last past previous
    """.split()
)


class Term(Record):
    """A word of the question."""

    stem: str
    weight: float
    """How rare it is: the logarithm of how many passages lack it for each that has it."""
    code: int
    """Its direction in the embedded model; 0 if it has none."""
    named: bool
    """A number or a name: who asks for 2023 or for Melanie does not mean something like it."""


def asks_for_now(text: str) -> bool:
    """Does somebody ask how their own affairs stand: "what did we say last time", "my current address"?

    Of "when did Melanie last paint", which asks for what was, neither half is enough.
    """
    words = text.lower().translate(MARKS).split()
    return not OWN.isdisjoint(words) and not NOW.isdisjoint(words)


def asks_for_newer(text: str) -> float:
    """How far newer notes are wanted: 1 for who asks how their own affairs stand now, a half for who asks about what is
    theirs alone without a word of what was, and 0 for everybody else.
    """
    if asks_for_now(text):
        return 1.0
    words = text.lower().translate(MARKS).split()
    return 0.5 if not MINE.isdisjoint(words) and PAST.isdisjoint(words) else 0.0


def asks(text: str) -> bool:
    """Is it a question, and not some words to look for?"""
    return text.rstrip().endswith("?") or next(iter(text.lower().translate(MARKS).split()), "") in ASKING


def may_name_a_date(text: str) -> bool:
    """Is it worth to look for a date? Cheap, and often wrongly yes."""
    words = text.lower().translate(MARKS).split()
    return not DATES.isdisjoint(words) or any(word[:4].isdigit() and word[:2] in ("19", "20") for word in words)


def understand(text: str, words: Sequence[str], facts: dict[str, WordFacts]) -> list[Term]:
    """The telling words of a question as terms, in the order they were typed, each stem once."""
    first = next(iter(text.split()), "")
    found: dict[str, Term] = {}
    for word in words:
        fact = facts.get(word)
        if fact is None or fact.stem in found:
            continue
        named = any(letter.isdigit() for letter in word) or (word[:1].isupper() and not first.startswith(word))
        found[fact.stem] = Term(fact.stem, fact.weight, fact.code, named)
    rarest = sorted(found.values(), key=lambda term: -term.weight)[:MOST_TERMS]
    kept = {term.stem for term in rarest}
    return [term for term in found.values() if term.stem in kept]
