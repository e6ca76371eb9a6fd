"""Do two claims say something else about the same? Pure.

Made to be right rather than complete: a false alarm at every save is worse than a miss. A subject must be the same word
for word, what is said of it must be of one sort (numbers, days, names), and it must be something of which there is one
at a time. What happened once (`met Anna on Monday`) contradicts nothing.
"""

from __future__ import annotations

import re

from co_cli.notes.claims import (
    FUNCTIONAL,
    LABELS,
    NUMBER_WORDS,
    WORD,
    Claim,
    content_of,
    sentences_of,
    sort_of,
    stem_of_word,
    units_of,
    value_of,
)

LONGEST_VALUE = 6
"""Words: what is told at length is a story, not a value."""
ROLE = re.compile(r"^(?P<who>.+?)\s+(?:owns|leads|heads|chairs|maintains|manages)\s+(?P<what>.+)$", re.I)
FROM_TO = re.compile(
    r"\bfrom\s+(?:the\s+)?(\S+)\s+to\b|\b(?:instead of|rather than|replaces|in place of)\s+(?:the\s+)?(\S+)", re.I
)
OVER = re.compile(r"^(.*\bprefers?)\s+(.+?)\s+(?:over|to)\s+(.+)$", re.I)
USE_FOR = re.compile(r"\b(?:use|uses|using)\s+(?P<what>\S+(?:\s+\S+)?)\s+(?P<why>(?:for|as)\s+.+)$", re.I)
OPPOSITES = (
    "enabled/disabled on/off allowed/forbidden allowed/prohibited open/closed required/optional likes/dislikes "
    "likes/hates public/private active/inactive mandatory/optional always/never before/after"
)
UNITS = frozenset(
    "euro dollar pound usd eur gbp day hour minute second percent people person gb mb tb ms km kg m cm month year "
    "request token".split()
)
PLACED = frozenset(("in", "on", "at", "to", ""))
NUMBERS_SAID = frozenset(NUMBER_WORDS.values())
"""What may stand as a word or as digits."""


def disagree(old: list[Claim], new: list[Claim]) -> tuple[Claim, Claim] | None:
    """The first two claims that say something else about the same, if there are any."""
    return next(((one, other) for other in new for one in old if says_otherwise(one, other)), None)


def may_disagree(text: str, new: list[Claim]) -> bool:
    """A quick look: has a sentence of this text the subject of one of the claims, or most of its words?"""
    lower = text.casefold()
    if not any(_may_have(lower, claim) for claim in new):
        return False
    for sentence in sentences_of(text):
        words = {stem_of_word(word) for word in WORD.findall(sentence)}
        for claim in new:
            if claim.subject and (claim.subject <= words or claim.subject <= {"i", "we"}):
                return True
            if 2 * len(claim.content & words) >= len(claim.content) and len(claim.content & words) >= 2:
                return True
    return False


def _may_have(lower: str, claim: Claim) -> bool:
    """The same of the whole text, letter by letter: words change their last letters only."""
    if claim.subject and (claim.subject <= {"i", "we"} or all(_stump(word) in lower for word in claim.subject)):
        return True
    here = sum(_stump(word) in lower for word in claim.content)
    return here >= 2 and 2 * here >= len(claim.content)


def _stump(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.isalpha() else "" if word in NUMBERS_SAID else word


def says_otherwise(old: Claim, new: Claim) -> bool:
    """Does `new` say something else about the same as `old`? Never if one tells what happened once."""
    if old.sometimes != new.sometimes:
        return False
    if _given_up(old, new) or _opposite(old, new):
        return True
    if old.event or new.event or old.negated != new.negated:
        return False
    return (
        _other_value(old, new)
        or _denied(old, new)
        or _denied(new, old)
        or _other_way_round(old, new)
        or _other_holder(old, new)
        or _other_tool(old, new)
        or _other_number(old, new)
    )


def subject_keys(claim: Claim) -> list[frozenset[str]]:
    """What two claims that may disagree share, to find them among many: the subject, the content, the frame."""
    frame = frozenset(word for word in claim.content if sort_of(word, word) == "plain")
    keys = {claim.subject, frame}
    for pattern, group in ((ROLE, "what"), (USE_FOR, "why")):
        found = pattern.search(claim.text)
        if found:
            keys.add(frozenset(content_of(found[group])))
    return [key for key in keys if key]


def _other_value(old: Claim, new: Claim) -> bool:
    """One subject, one relation, and another number, day or name."""
    if not old.subject or old.subject != new.subject or not old.relation & new.relation:
        return False
    if old.subject <= {"i", "we"} and old.relation & new.relation == frozenset(("be",)):
        return False  # people are many things
    one, other = old.value, new.value
    if max(sum(map(len, one)), sum(map(len, other))) > LONGEST_VALUE:
        return False
    if old.relation & new.relation & {"live", "work", "called", "runs"} and not old.relation & new.relation & {"be"}:
        apart = _apart(one.names, other.names)
        return apart or ("called" in old.relation and _apart(one.names | one.plain, other.names | other.plain))
    changed = "changed" in old.relation | new.relation or "live" in old.relation | new.relation
    alike = old.preposition == new.preposition or ({old.preposition, new.preposition} <= PLACED and changed)
    same_place = {old.preposition, new.preposition} <= {"in", "on", "at"}
    if not (alike or same_place):
        return False
    if _apart(one.numbers, other.numbers) and _apart(one.names, other.names):
        return False  # another time and another place: another flight
    plain_apart = _apart(one.plain, other.plain)
    if _apart(one.numbers, other.numbers):
        more = one.plain ^ other.plain if not (one.plain and other.plain) else frozenset[str]()
        if not plain_apart and more <= UNITS:
            return True
    if _apart(one.days, other.days) and not plain_apart:
        return True
    if _apart(one.names, other.names) and one.plain == other.plain:
        return True
    bare = not any((one.numbers, one.days, one.names, other.numbers, other.days, other.names))
    functional = any(stem_of_word(word) in old.subject for word in FUNCTIONAL)
    return bare and functional and len(old.subject) > 1 and plain_apart and max(len(one.plain), len(other.plain)) <= 3


def _opposite(old: Claim, new: Claim) -> bool:
    """The same with a negation, or with the opposite word."""
    if len(old.content) >= 2 and old.negated != new.negated and not (old.event and new.event):
        shared = old.content & new.content
        return len(shared) >= 2 and len(shared) > 0.75 * len(old.content | new.content)
    if old.event or new.event or old.negated != new.negated:
        return False
    return _differs_by_an_opposite(old.words, new.words)


def _differs_by_an_opposite(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    if len(old) != len(new) or len(old) < 3:
        return False
    pairs = [(one.lower(), other.lower()) for one, other in zip(old, new, strict=True) if one.lower() != other.lower()]
    return len(pairs) == 1 and any(set(pairs[0]) == set(both.split("/")) for both in OPPOSITES.split())


def _given_up(old: Claim, new: Claim) -> bool:
    """`from A to B` and `instead of A`, where the old one says A of the same."""
    found = FROM_TO.search(new.text)
    if not found or old.event or old.negated:
        return False
    name = found[1] or found[2]
    left = stem_of_word(name.strip(".,"))
    if left not in old.content or not name[:1].isupper():
        return False
    shared = (old.content & new.content) - {left}
    return len(shared) >= (1 if found[1] else 2) and bool(new.content - old.content)


def _denied(one: Claim, other: Claim) -> bool:
    """`prefers tea, not coffee`, and the other one says of the same that it is coffee."""
    frame = other.content - one.denied
    return bool(one.denied) and one.denied <= other.content and bool(frame) and frame < one.content


def _other_way_round(old: Claim, new: Claim) -> bool:
    one, other = OVER.match(old.text), OVER.match(new.text)
    if not one or not other or content_of(one[1]) != content_of(other[1]):
        return False
    return (
        bool(content_of(one[2]))
        and content_of(one[2]) == content_of(other[3])
        and content_of(one[3]) == content_of(other[2])
    )


def _other_holder(old: Claim, new: Claim) -> bool:
    """Of a role that one person has."""
    one, other = ROLE.match(old.text), ROLE.match(new.text)
    if not one or not other or len(content_of(one["what"])) < 2 or content_of(one["what"]) != content_of(other["what"]):
        return False
    return _apart(frozenset(content_of(one["who"])), frozenset(content_of(other["who"])))


def _other_tool(old: Claim, new: Claim) -> bool:
    """Another name used for the same."""
    one, other = USE_FOR.search(old.text), USE_FOR.search(new.text)
    if not one or not other or not content_of(one["why"]) or content_of(one["why"]) != content_of(other["why"]):
        return False
    return _apart(value_of(one["what"]).names, value_of(other["what"]).names)


def _other_number(old: Claim, new: Claim) -> bool:
    """The same words around one other number or day, which does not say which thing is meant."""
    one, other = units_of(" ".join(old.words)), units_of(" ".join(new.words))
    one = [word for word in one if word.lower() not in ("a", "an", "the")]
    other = [word for word in other if word.lower() not in ("a", "an", "the")]
    if len(one) != len(other) or len(one) < 3:
        return False
    places = [
        at for at, (left, right) in enumerate(zip(one, other, strict=True)) if stem_of_word(left) != stem_of_word(right)
    ]
    if len(places) != 1 or places[0] < 2:
        return False
    at = places[0]
    sorts = {sort_of(one[at], stem_of_word(one[at])), sort_of(other[at], stem_of_word(other[at]))}
    if len(sorts) != 1 or not sorts <= {"number", "day"} or stem_of_word(one[at - 1]) in LABELS:
        return False
    predicate = [place for place, word in enumerate(one) if word.lower() in ("is", "are")]
    return not predicate or at > predicate[0]


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Is there something on both sides, and nothing in common?"""
    return bool(one) and bool(other) and not one & other
