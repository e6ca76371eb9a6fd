"""Which memories of a vault say nearly the same, or something else about the same, without comparing all with all.

Who says nearly the same shares rare words; who contradicts shares a subject. So memories are laid into drawers by
these, and only those of one drawer are compared. A drawer that holds too many tells nothing and is left out. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from co_cli.index.match import is_stop_word
from co_cli.index.overview import Overview
from co_cli.notes.claims import Claim, claims_of
from co_cli.notes.disagreeing import says_otherwise, subject_keys
from co_cli.notes.twins import likeness_of_words, words_of

TELLING = 8
"""The rarest words of a memory, by which it is looked for."""
MOST_IN_A_DRAWER = 60
NEAR = 0.8
RELATED = 0.45
"""The share of words in common from which on two memories may be one."""
LONGER = 2.0


class Pair(NamedTuple):
    """Two notes, by their places in the list, the older first, and what was found."""

    older: int
    newer: int
    found: str


def near_pairs(notes: Sequence[Overview], at_least: float = NEAR) -> list[Pair]:
    """Memories that say nearly the same, and notes of any kind that say exactly the same."""
    twins: dict[str, list[int]] = {}
    for place, note in enumerate(notes):
        if note.body.strip():
            twins.setdefault(f"{note.source} {note.fingerprint}", []).append(place)
    pairs = {(one, other): "the same words" for same in twins.values() for one, other in pairwise(same)}
    words = {place: words_of(note.body) for place, note in enumerate(notes) if note.source == "memory"}
    for one, other in _sharing(words):
        left, right = words[one], words[other]
        if (one, other) in pairs or not 1 / LONGER <= len(left) / max(len(right), 1) <= LONGER:
            continue
        alike = likeness_of_words(left, right, at_least)
        if alike:
            pairs[one, other] = f"{alike:.0%} the same words" if alike < 1 else "the same words"
    return [Pair(*places, found) for places, found in sorted(pairs.items())]


def related_pairs(notes: Sequence[Overview]) -> list[Pair]:
    """Memories that have many of their telling words in common, whatever numbers they state."""
    words = {place: words_of(note.body) for place, note in enumerate(notes) if note.source == "memory"}
    telling = {place: {word for word in said if not is_stop_word(word)} for place, said in words.items()}
    pairs: list[Pair] = []
    for one, other in _sharing(words):
        shared, every = telling[one] & telling[other], telling[one] | telling[other]
        if len(shared) >= 3 and len(shared) >= RELATED * len(every):
            pairs.append(Pair(one, other, f"{len(shared)} words in common"))
    return pairs


def contradicting_pairs(notes: Sequence[Overview]) -> list[Pair]:
    """Memories that say something else about the same."""
    claims: list[tuple[int, Claim]] = []
    for place, note in enumerate(notes):
        if note.source == "memory":
            claims += [(place, claim) for claim in claims_of(note.body, note.title)]
    keys = {number: subject_keys(claim) for number, (_, claim) in enumerate(claims)}
    found: dict[tuple[int, int], str] = {}
    for one, other in _together(_drawers(keys)):
        (older, left), (newer, right) = claims[one], claims[other]
        if older != newer and (older, newer) not in found and says_otherwise(left, right):
            found[older, newer] = f"{left.text} | {right.text}"
    return [Pair(*places, texts) for places, texts in sorted(found.items())]


def groups(pairs: Iterable[Pair], most: int) -> list[list[int]]:
    """Those that hang together, a few at most; each note is in one group."""
    group_of: dict[int, list[int]] = {}
    for older, newer, _ in pairs:
        one, other = group_of.setdefault(older, [older]), group_of.setdefault(newer, [newer])
        if one is not other and len(one) + len(other) <= most:
            one += other
            for place in other:
                group_of[place] = one
    found = {id(group): sorted(group) for group in group_of.values() if len(group) > 1}
    return sorted(found.values())


def _sharing(words: dict[int, list[str]]) -> list[tuple[int, int]]:
    """Pairs that share some of what is rare in them: two words, or the only one there is."""
    counts = Counter(word for said in words.values() for word in set(said))
    rare: dict[int, list[str]] = {}
    for place, said in words.items():
        several = [word for word in set(said) if counts[word] >= 2 and not is_stop_word(word)]
        rare[place] = sorted(several, key=lambda word: (counts[word], word))[:TELLING]
    shared = Counter(_together(_drawers(rare)))
    return [pair for pair, times in shared.items() if times >= min(2, len(rare[pair[0]]), len(rare[pair[1]]))]


def _drawers(keys: dict[int, list[str]] | dict[int, list[frozenset[str]]]) -> Iterable[list[int]]:
    drawers: dict[Hashable, list[int]] = {}
    for number, those in keys.items():
        for key in those:
            drawers.setdefault(key, []).append(number)
    return (those for those in drawers.values() if 2 <= len(those) <= MOST_IN_A_DRAWER)


def _together(drawers: Iterable[list[int]]) -> Iterable[tuple[int, int]]:
    for those in drawers:
        for at, one in enumerate(those):
            for other in those[at + 1 :]:
                yield (one, other) if one < other else (other, one)
