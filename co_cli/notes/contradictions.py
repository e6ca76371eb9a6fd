"""Whether two short texts give one thing different values: "The user lives in Lisbon." and "I live in Porto now.".

The first sentence is read as subject, verb, and the words after the verb and after each preposition. Most memories add
to each other, so only a few forms count: a number, a date or a name in the same place of the same sentence, where one
value is true at a time. What is in the past, negated or a list is no contradiction. Knows English only.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from co_cli.notes.subjects import (
    ARTICLES,
    HELPERS,
    IDENTIFIER,
    PREPOSITIONS,
    QUALIFIERS,
    VERBS,
    first_sentence,
    is_verb,
    stem_of,
)

LONGEST = 400
"""Characters of a memory that is about one thing."""
MOST_WORDS = 3
"""Of a value."""
SAME_WORD = {
    **dict.fromkeys(("i", "user"), "user"),
    **dict.fromkeys(("my", "user's"), "user's"),
    **dict.fromkeys(("we", "team"), "we"),
    **dict.fromkeys(("our", "team's"), "our"),
}
"""How users and agents speak of the same people."""
CHANGES = frozenset("now currently instead nowadays".split())
"""They say that it was different before."""
UNSAID = CHANGES | frozenset("current new latest just still already usually actually".split())
UNCLEAR = frozenset(
    """
    not no never nor or and also too another next he she it they this that these those there was were had did would
    could might may if when
    """.split()
)
"""With one of these words, both texts may be true."""
BECOMING = {"changed": ("is", ""), "switched": ("use", ""), "migrated": ("use", ""), "moved": ("live", "in")}
"""Verbs that say with `to` what is true since then: the verb and the preposition for that."""
MANY = frozenset(
    """
    has like love hate want need know speak own eat drink play read write visit meet see buy sell include contain
    support learn study teach wear travel fly go come take give get make find allow accept send receive cover
    """.split()
)
"""What one can do with several things at a time."""
SEVERAL = frozenset(
    """
    friend colleague brother sister son daughter child cousin uncle aunt neighbour neighbor cat dog pet hobby interest
    customer client member
    """.split()
)
ONE = frozenset("favourite favorite preferred default main primary official native".split())
"""A subject with one of these words has one value at a time, whatever the value is; with one of SEVERAL, it has not."""
ONLY = {
    "live": ("in", "at"),
    "work": ("at", "for"),
    "is": ("in", "at"),
    "called": ("",),
    "named": ("",),
    "written": ("in",),
    "based": ("in",),
    "assigned": ("to",),
}
"""A name after this verb and preposition is the only one."""
ADJUNCTS = frozenset(("with", "since", "as", "because", "until"))
"""What follows them may differ, unless it is all that follows."""
TIMES = frozenset(
    """
    january february march april may june july august september october november december noon midnight am pm
    first second third fourth fifth
    """.split()
)
"""They count as numbers. Days of the week do not: something may happen on several of them."""
NUMBERS = {
    word: str(number)
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
PRESENT = (("s", ""), ("es", ""), ("ies", "y"))
"""Endings of verbs for one person or thing, and those of the verb itself."""


class Statement(NamedTuple):
    """A sentence that says something of something."""

    subject: tuple[str, ...]
    verb: str
    parts: dict[str, list[str]]
    """The words after the verb, and those after each preposition, without articles."""
    changed: bool
    """Whether it says that it was different before."""

    @property
    def about(self) -> tuple[str, ...]:
        return (self.verb, *self.subject)


def contradicts(old: str, new: str) -> bool:
    """Whether the new text gives what the old one is about another value."""
    first, second = read_statement(old), read_statement(new)
    return first is not None and second is not None and has_other_value(first, second)


def has_other_value(first: Statement, second: Statement) -> bool:
    """Whether the second statement gives what the first one is about another value."""
    if first.about != second.about:
        return False
    different = [key for key in first.parts | second.parts if _stems(first, key) != _stems(second, key)]
    decisive = [key for key in different if key not in ADJUNCTS or key == next(iter(first.parts), None)]
    return len(decisive) == 1 and _is_other_value(first, second, decisive[0])


def read_statement(text: str) -> Statement | None:
    """The first sentence of a text; None if it is not understood."""
    said = [word.replace("\u2019", "'") for word in first_sentence(text)] if len(text) <= LONGEST else []
    lower = [word.casefold() if not place else word for place, word in enumerate(said)]
    if any(word in UNCLEAR or word.endswith("n't") for word in lower):
        return None
    words = [SAME_WORD.get(word.casefold(), word) for word in said if word.casefold() not in UNSAID]
    changed = len(words) < len(said) and not CHANGES.isdisjoint(lower)
    by = next((place for place in range(len(words)) if words[place : place + 3] == ["is", "used", "by"]), None)
    if by:  # "Port 8080 is used by the API"
        words = [*words[by + 3 :], "uses", *words[:by]]
    place = next((place for place in range(1, len(words)) if is_verb(words, place)), 0)
    if words[place : place + 1] == [":"]:
        named = [*words[:place], *(word.casefold() for word in words[place + 1 : place + 2]), *words[place + 2 :]]
        words = named if named[place:] and is_verb(named, place) else words  # "Mara: Lives in Porto"
    subject = tuple(stem for word in words[:place] if word.casefold() not in ARTICLES and (stem := _stem(word)))
    rest = words[place:]
    if rest[:1] in (["has"], ["have"]) and rest[1:2] and rest[1] in BECOMING:
        rest = rest[1:]
    verb, preposition = _verb(rest)
    if not subject or not verb:
        return None
    becoming = rest[0] in BECOMING
    rest = rest[2 if becoming or verb in rest[1:2] else 1 :]
    if ":" in rest:  # a list, or a quotation
        return None
    parts: dict[str, list[str]] = {}
    for word in rest:
        if word in PREPOSITIONS or word in QUALIFIERS:
            preposition = word
        elif word.casefold() not in ARTICLES:
            parts.setdefault(preposition, []).append(word)
    return Statement(subject, verb, parts, changed or becoming)


def _verb(words: list[str]) -> tuple[str, str]:
    """The verb that a sentence goes on with, in one form, and the preposition that it stands for.

    Empty if what it says is over.
    """
    first, second = ([word.casefold() for word in words[:2]] + ["", ""])[:2]
    if first in BECOMING:
        return BECOMING[first] if second == "to" else ("", "")
    if first in ("is", "are"):
        return (second if second in ONLY or second.endswith("ed") else "is"), ""
    if first in (":", "=") or first in HELPERS or first in VERBS:
        return "has" if first == "have" else first, ""
    forms = (first.removesuffix(end) + base for end, base in PRESENT if first.endswith(end))
    return next((base for base in forms if base in VERBS), ""), ""


def _is_other_value(first: Statement, second: Statement, key: str) -> bool:
    """Whether what follows the verb or a preposition is another value, where only one can be true."""
    old, new = first.parts.get(key, []), second.parts.get(key, [])
    start = len([*takewhile(lambda pair: _stem(pair[0]) == _stem(pair[1]), zip(old, new, strict=False))])
    old, new = old[start:], new[start:]
    end = len([*takewhile(lambda pair: _stem(pair[0]) == _stem(pair[1]), zip(old[::-1], new[::-1], strict=False))])
    old, new = old[: len(old) - end], new[: len(new) - end]
    form, framed = _form(old), start + end > 0
    if form != _form(new) or not 0 < len(old) <= MOST_WORDS or not 0 < len(new) <= MOST_WORDS:
        return False
    if first.verb in MANY:
        return form == "number" and framed and len(first.parts) == 1
    if form == "number":
        return True
    if not SEVERAL.isdisjoint(first.subject):
        return False
    if key in ONLY.get(first.verb, ()) and form == "name":
        return True
    if first.verb == "is" and not key:
        return not ONE.isdisjoint(first.subject) or (form == "name" and len(first.subject) > 1)
    if form == "name":
        return second.changed or (first.verb == "use" and not key and "for" in first.parts)
    return first.verb == "prefer" and framed


def _form(words: list[str]) -> str:
    if all(_stem(word)[0].isdigit() or word.casefold() in TIMES for word in words):
        return "number"
    return "name" if all(map(IDENTIFIER.search, words)) else "word"


def _stems(statement: Statement, key: str) -> list[str]:
    return [_stem(word) for word in statement.parts.get(key, ())]


def _stem(word: str) -> str:
    word = NUMBERS.get(word.casefold(), word)
    return stem_of(word) or word.casefold()
