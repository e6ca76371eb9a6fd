"""Whether two short texts are about the same subject, so that one may replace the other.

What stands before the verb names the subject: "Bo prefers metric" is not about Ana, and "Room 12 is free" not about
room 13. What stands after it may change: "The door code is 1111" and "The door code is 2222" are about one thing.
Knows the verbs of English; in other languages the first two words stand for the subject.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from co_cli.ground.values import to_utf8

TOKEN = re.compile(
    r"\"[^\"\n]+\"|\u201c[^\u201d\n]+\u201d|`[^`\n]+`|[\w$@+#-]+(?:[.:/\u2019'][\w+#-]+)*|[=:]|[.!?](?=\s|$)"
)
"""Quoted words, words and identifiers, what parts a key from its value, and the end of a sentence."""
LONGEST_TITLE = 80
SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2})[.!?\u3002](?=\s|$|[^\x00-\x7f])")
ABBREVIATIONS = frozenset("mr mrs ms dr prof st sr jr vs inc ltd".split())
"""Words whose full stop does not end a sentence."""
MARKERS = re.compile(r"(?:[#>*)\s]|\.(?!\d)|[-+]\s+|\d{1,3}[.)]\s+)*")
"""What Markdown puts before the first word of a line. A number that belongs to the sentence stays."""
ABBREVIATION = re.compile(r"\b(Dr|Mrs?|Ms|Prof|St)\.")
LONGEST = 1_000
"""Characters in which a text says what it is about."""
QUOTES = '"`\u201c\u201d'
IDENTIFIER = re.compile(r"\d|[\"`\u201c_/]|[a-z][A-Z]|\w\.\w|['\u2019]s$|^[A-Z]")
ARTICLES = frozenset(("a", "an", "the"))
SPEAKERS = frozenset("i we you they he she user".split())
PASSING = SPEAKERS | frozenset(
    "my our your their his her user's current new old latest now so always never not".split()
)
"""Words by which two subjects do not differ."""
HELPERS = frozenset(
    """
    is are was were be isn't aren't has have had does do did will would can could should must may might shall cannot
    can't won't don't doesn't
    """.split()
)
ROLES = frozenset("is was leads led manages owns chairs heads maintains".split())
"""With `the`, they say who has a role, and the role is the subject."""
VERBS = frozenset(
    """
    use prefer like love hate want need live work run start end begin finish open close keep hold store take give
    get go come leave arrive meet move pay cost drink eat read write speak know call name play drive ride study learn
    teach manage lead maintain review approve assign handle support require return raise accept reject default contain
    include belong depend connect listen serve host reach expire cover allow forbid send receive expect avoid wear
    sleep travel fly visit stay join report sell buy sign sit stand make say see find think believe feel grow weigh
    measure retry deploy ship publish build install set show sort save sync fetch parse convert throw break fail pass
    mean remain become train hang ask answer check wait follow point hide turn change own chair
    """.split()
)
PAST = frozenset(
    "took went ran bought met left got became paid began spoke wrote made said kept held sent sold".split()
)
INFLECTIONS = (("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("d", ""), ("ied", "y"))
ENDS_SENTENCE = (".", "!", "?")
QUALIFIERS = frozenset(("for", "of"))
"""After a verb, they name what the rest is about: "port 6379 for Redis"."""

PREPOSITIONS = frozenset("with in on at by from to as since until after before".split())


class Claim(NamedTuple):
    """The first sentence of a text: the words before the verb, and those from it on."""

    subject: list[str]
    rest: list[str]


def same_subject(old: str, new: str) -> bool:
    """Whether a text may replace the other: no name, number or quoted word of their subjects differs."""
    first, second = _claim(old), _claim(new)
    if not _differ(first.subject, second.subject):
        return not _differ(_qualified(first.rest), _qualified(second.rest))
    # "Ines is the contact for payroll" or "Ines owns the deploy key": the subject follows
    return _is_role(first.rest) and _is_role(second.rest) and not _differ(first.rest, second.rest)


def subject_of(text: str) -> str:
    """The words before the verb of the first sentence, without those that say only who speaks."""
    return " ".join(word for word in _claim(text).subject if word.casefold() not in PASSING)


def begins_with_verb(text: str) -> bool:
    """Whether a text does not name its subject: "Likes tea." under the title "Mara"."""
    return not _claim(text).subject


def first_sentence(text: str) -> list[str]:
    """Its words, with `:` and `=`."""
    words = TOKEN.findall(ABBREVIATION.sub(r"\1", text.lstrip("#*->_ \t\n")[:LONGEST]))
    return [*takewhile(lambda word: word not in ENDS_SENTENCE, words)]


def _claim(text: str) -> Claim:
    words = first_sentence(text)
    if words and words[0].casefold() in SPEAKERS:
        return Claim(words[:1], words[1:])
    places = [place for place in range(len(words)) if is_verb(words, place)]
    if places[1:] and not places[0] and words[0].casefold() not in VERBS:
        del places[0]  # "Deploys to staging need ..."
    place = places[0] if places else 2 + sum(map(_is_article, words[:2]))
    return Claim(words[:place], words[place:])


def is_verb(words: list[str], place: int) -> bool:
    word, before = words[place].casefold(), words[place - 1].casefold() if place else ""
    if word in ("=", ":"):
        return True
    if words[place].isupper() or (place and (before in ARTICLES or IDENTIFIER.search(words[place]))):
        return False
    if word in VERBS:  # after a plural, or at the beginning of an order
        return not place or before in PASSING or any(name.endswith("s") for name in words[:place])
    inflected = (word.removesuffix(end) + base for end, base in INFLECTIONS if word.endswith(end))
    return word in HELPERS or word in PAST or not VERBS.isdisjoint(inflected)


def _qualified(words: list[str]) -> list[str]:
    """The words that say for what or of what a claim is. A date is no such thing: "planned for 12 May"."""
    starts = [place + 1 for place, word in enumerate(words) if word.casefold() in QUALIFIERS]
    found = [*takewhile(lambda word: word not in PREPOSITIONS, words[starts[-1] :] if starts else ())]
    return [] if found and found[0][0].isdigit() else found


def _is_role(words: list[str]) -> bool:
    return len(words) > 2 and words[0].casefold() in ROLES and words[1].casefold() == "the"


def _differ(old: list[str], new: list[str]) -> bool:
    """Whether a word of one takes the place of a word of the other, or each has names that the other lacks."""
    first, second = ([stem_of(word) for word in words if not _is_article(word)] for words in (old, new))
    for change, left, right, start, end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if change != "replace":
            continue
        gone, come = filter(None, first[left:right]), [*filter(None, second[start:end])]
        pairs = [_variants(word, another) for word in gone for another in come]
        if pairs and not any(pairs):
            return True
    left, right = ({stem_of(word) for word in words[1:] if IDENTIFIER.search(word)} for words in (old, new))
    return bool(left - set(second) and right - set(first))


def _is_article(word: str) -> bool:
    return word in ARTICLES or word in ("The", "An")  # a capital A may be a name: "suite A"


def _variants(old: str, new: str) -> bool:
    """Forms of one word: "deploys" and "deployments"."""
    short, long = sorted((old, new), key=len)
    return len(short) > 3 and short.isalpha() and long.startswith(short)


def stem_of(word: str) -> str:
    """A word as it is compared; empty if subjects do not differ by it."""
    if word.casefold() in PASSING:
        return ""
    word = word.strip(QUOTES).casefold().replace("\u2019", "'").removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and word.isalpha() and not word.endswith("ss") else word


def with_subject(title: str, text: str) -> str:
    """A memory's text, after its title if the text does not say what it is about: "Mara: Likes tea."."""
    unnamed = text.strip() and begins_with_verb(text) and title != title_from(text)
    return f"{title}: {text}" if unnamed else text


def title_from(content: str) -> str:
    """The first sentence, or as much of it as a title can hold."""
    first = next((line for line in content.splitlines() if re.search(r"\w", line)), content.splitlines()[0])
    # an underscore within a word is part of it: get_width is no emphasis
    first = one_line(re.sub(r"[*`]|(?<![^\W_])_+|_+(?![^\W_])", "", MARKERS.sub("", first, count=1)) or first)
    ends = (end.start() for end in SENTENCE_END.finditer(first[:1_000]))
    end = next((end for end in ends if first[:end].split()[-1].lower() not in ABBREVIATIONS), None)
    title = first.rstrip(".") if end is None else first[:end]
    if len(title) <= LONGEST_TITLE:
        return title
    return title[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(",;: ")


def one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", to_utf8(text)).split())
