"""What a text claims, sentence by sentence: of what, in which relation, and what. By patterns, without a model. Pure.

`The door code was changed to 2222` is a claim about the door code, as `The door code is 1111` is. English only: of
other languages the words are kept, and no relation is seen in them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MOST_SENTENCES = 40
LONGEST_SENTENCE = 240

SENTENCE_END = re.compile(r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bvs)[.!?\u3002]+(?:\s+|$)|[;\n]+")
WORD = re.compile(r"[^\W_]+(?:['\u2019.,:/@_+-]+[^\W_]+)*")
MARKS = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|[*`]|(?<!\w)_|_(?!\w)|^[#>\s-]+")
CONTRAST = re.compile(r",\s*(?:and\s+)?not\s+[^,]*$", re.I)
ASIDE_CLAUSE = re.compile(r",?\s+(?:but|although|though|despite|while|unless|if|when)\s.*", re.I)
ASIDE = re.compile(
    r"\s+(?:since|because|as of|so that|which|who|effective|starting)\b.*|\s*[(\u2013\u2014].*|,\s.*", re.I
)
"""Where what is said of the subject ends, and something about it begins."""
CHANGED = (
    r"(?:changed|moved|raised|lowered|increased|reduced|cut|set|switched|updated|bumped|pushed|postponed|migrated|"
    r"upgraded|extended|shortened|went up|went down|rose|fell|dropped|grew)"
)
RELATIONS = {
    "called": r"(?:is|are)(?: now)? (?:called|named)|(?:was|were|is|got|has been) renamed(?: to| as)?",
    "live": r"lives?(?: now)? in|resides? in|(?:is|are)(?: now)? based in|relocated to",
    "live be": r"(?:has |have )?moved(?: back)? to",
    "work": r"works?(?: now)? (?:at|for)|joined|(?:is|are)(?: now)? employed (?:at|by)",
    "runs on": r"runs? on",
    "be changed": rf"(?:(?:was|were|is|are|has been|have been|got) )?(?:now )?{CHANGED} to",
    "be": r"(?:is|are|will be|must be|should be|becomes?|became|equals?)(?: now)?|=",
    "was": r"was|were|has been|have been",
}
"""Where two begin at the same word, the earlier one here is the longer."""
PREDICATE = re.compile(
    "(?<= )(?:"
    + "|".join(f"(?P<{name.replace(' ', '_')}>{one})" for name, one in RELATIONS.items())
    + ")(?= |$)|(?P<colon>:(?= ))",
    re.I,
)
COLON = re.compile(r":(?=\s)")

NEGATION = re.compile(
    r"\b(?:not|never|no longer|cannot|don't|doesn't|isn't|aren't|can't|won't|mustn't|avoid|stop)\b", re.I
)
STILL = re.compile(r"\b(?:any ?more|any longer)\b", re.I)
SOMETIMES = frozenset(
    "today tomorrow yesterday tonight week weekend month year morning afternoon evening temporarily usually sometimes "
    "often mostly last next".split()
)
"""Words that tell of a while, not of how things are: what holds this week does not contradict the next."""
FUNCTIONAL = frozenset(
    "favourite favorite colour color password passphrase code default preferred owner lead maintainer name nickname "
    "language database editor framework status address e-mail email bank version licence license timezone currency "
    "branch host provider schedule deadline diet size gender nationality religion profession job title role".split()
)
"""Nouns of which a thing has one: what is said of them in plain words can be compared, too."""
LABELS = frozenset(
    "ticket room version invoice sprint chapter issue phase step level floor apartment question task case order part "
    "unit lesson week season episode volume pr no milestone bug server node team group release line gate track".split()
)
"""A number behind one of these says which, not how many."""
NUMBER_WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred".split(),
        "1 2 3 4 5 6 7 8 9 10 11 12 20 30 40 50 100".split(),
        strict=True,
    )
)
TITLES = frozenset("dr mr mrs ms prof".split())
DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
MONTHS = frozenset("january february march april may june july august september october november december".split())
SMALL = frozenset(
    "a an the this that these those of in on at to for from by with and or as is are was were be been will must should "
    "has have had it its his her their there do does did now also still already just only new current latest old "
    "actual own please remember note every each per than then about i my me mine user we our us so too all".split()
)
"""Words that do not tell one subject from another."""
ARTICLES = frozenset(("a", "an", "one", "not"))
SOFT = frozenset("so very really quite too always often currently actively still".split())
NO_SUBJECT = frozenset("a an one some it this that these those he she they there here you what when if".split())
PREPOSITIONS = frozenset("in on at to for from by with of until every under over between".split())
IRREGULAR = frozenset(
    "met went ran saw bought ate spoke sent got made paid gave took wrote won lost sold told said found left came flew "
    "drove slept built broke held kept read was were had".split()
)


class Value(NamedTuple):
    """What is said of a subject, by sort."""

    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    plain: frozenset[str]


class Claim(NamedTuple):
    """A sentence, and if it says what something is: of what, in which relation, and what."""

    words: tuple[str, ...]
    content: frozenset[str]
    negated: bool
    event: bool
    sometimes: frozenset[str]
    subject: frozenset[str]
    relation: frozenset[str]
    preposition: str
    value: Value
    text: str
    denied: frozenset[str] = frozenset()
    """What it says is not so, beside what is: `tea, not coffee`."""


def claims_of(text: str, title: str = "") -> list[Claim]:
    """The claims of a note. A title makes one of a text that is no sentence: `Door code`, and below it `1111`."""
    sentences = sentences_of(text)
    alone = len(sentences) == 1
    # what stands before a colon in a longer note belongs to something that is said elsewhere in it
    told = [one for one in sentences if len(one) <= LONGEST_SENTENCE and (alone or not COLON.search(one))]
    found = [_claim(sentence) for sentence in told]
    if alone and len(found) == 1 and not found[0].relation and title and len(found[0].words) <= 4:
        # but a title that was made of the text says nothing more
        more = WORD.findall(title.casefold()) != WORD.findall(sentences[0].casefold())
        return [_claim(f"{title}: {sentences[0]}")] if more else found
    return found


def sentences_of(text: str) -> list[str]:
    """Those that state something: a question does not."""
    found: list[str] = []
    start = 0
    for end in SENTENCE_END.finditer(text):
        sentence, start = text[start : end.start()].strip(), end.end()
        if sentence and "?" not in end[0]:
            found.append(sentence)
    last = text[start:].strip()
    return [*found, last][:MOST_SENTENCES] if last else found[:MOST_SENTENCES]


def _claim(sentence: str) -> Claim:
    text = " ".join(MARKS.sub(lambda found: found[1] or "", sentence).split())
    contrast = CONTRAST.search(text)
    text = ASIDE_CLAUSE.sub("", CONTRAST.sub("", text))
    bare = STILL.sub("", NEGATION.sub("", text))
    words = tuple(WORD.findall(bare))
    relation, subject, said = _parted(text)
    preposition = ""
    if said:
        said = ASIDE.sub("", said)
        first = said.split(" ", 1)[0].lower()
        preposition = first if first in PREPOSITIONS else ""
    known = frozenset(relation.split()) if subject else frozenset[str]()
    return Claim(
        words,
        frozenset(content_of(bare)),
        len(NEGATION.findall(text)) % 2 == 1,
        known == frozenset(("was",)) or (not known and _happened(words)),
        frozenset(word for word in map(str.lower, words) if word in SOMETIMES),
        frozenset(content_of(subject)) or _speaker(subject) if not _any_of_them(subject) else frozenset(),
        known,
        preposition,
        value_of(said),
        text,
        frozenset(content_of(NEGATION.sub("", contrast[0]))) if contrast else frozenset(),
    )


def _parted(text: str) -> tuple[str, str, str]:
    """Relation, subject and what is said of it, by the first predicate of the sentence."""
    match = PREDICATE.search(text)
    if not match:
        return "", "", ""
    colon = match.lastgroup == "colon"
    relation = "be" if colon else (match.lastgroup or "").replace("_", " ")
    said = text[match.end() :].strip()
    subject = text[: match.start()].strip()
    first = said.split(" ", 1)[0].lower()
    if relation == "be" and (first in ARTICLES or first in SOFT) and not _functional(subject):
        return "", "", ""  # `a friend of Anna`: there may be others
    if first.endswith("ing") or (colon and _label_last(subject)):
        return "", "", ""  # what somebody is doing, and the next step of a list
    return relation, subject, said


def _label_last(subject: str) -> bool:
    words = WORD.findall(subject)
    return bool(words) and stem_of_word(words[-1]) in LABELS


def _any_of_them(subject: str) -> bool:
    return subject.split(" ", 1)[0].lower() in NO_SUBJECT


def _speaker(subject: str) -> frozenset[str]:
    """Who speaks, where nobody else is spoken of."""
    words = {word.lower() for word in WORD.findall(subject)}
    if words & {"i", "user", "my", "me"}:
        return frozenset(("i",))
    return frozenset(("we",)) if words & {"we", "our", "us"} else frozenset()


def _functional(subject: str) -> bool:
    return any(word.lower() in FUNCTIONAL for word in WORD.findall(subject))


def content_of(text: str) -> list[str]:
    return [stem_of_word(word) for word in units_of(text) if word.lower() not in SMALL]


def units_of(text: str) -> list[str]:
    """Words, a day of a month as one: `3 May`."""
    words: list[str] = []
    for word in WORD.findall(text):
        month = word.lower() in MONTHS and word[:1].isupper()
        if month and words and words[-1].isdigit():
            words[-1] = f"{words[-1]} {word.lower()}"
        elif words and word.isdigit() and words[-1].lower() in MONTHS and words[-1][:1].isupper():
            words[-1] = f"{word} {words[-1].lower()}"
        else:
            words.append(word)
    return words


@lru_cache(maxsize=50_000)
def stem_of_word(word: str) -> str:
    """Without its ending, so that `codes` is `code`; a number as digits."""
    word = word.casefold().replace("\u2019", "'")
    if word.endswith("'s") or word.endswith("s'"):
        word = word[:-2] if word.endswith("'s") else word[:-1]
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if not word.isalpha() and any(letter.isdigit() for letter in word):
        return re.sub(r"(?<=\d),(?=\d{3}\b)", "", word)
    if len(word) > 3 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith(("xes", "ches", "shes", "sses")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def sort_of(word: str, stem: str) -> str:
    if " " in word or word.lower().removesuffix("s") in DAYS or (word.lower() in MONTHS and word[:1].isupper()):
        return "day"
    if not stem.isalpha() and any(letter.isdigit() for letter in stem):
        return "number"
    named = word[:1].isupper() and not word.endswith(("'s", "\u2019s"))
    return "name" if named else "plain"


def value_of(said: str) -> Value:
    sorts: dict[str, set[str]] = {"number": set(), "day": set(), "name": set(), "plain": set()}
    for word in units_of(said):
        if word.lower() not in TITLES and (word.lower() not in SMALL or word[:1].isupper()):
            stem = stem_of_word(word)
            sorts[sort_of(word, stem)].add(stem)
    return Value(*(frozenset(sorts[name]) for name in ("number", "day", "name", "plain")))


def _happened(words: tuple[str, ...]) -> bool:
    """Is this told in the past? `is planned` is not."""
    for place, word in enumerate(words):
        lower = word.lower()
        before = words[place - 1].lower() if place else ""
        past = lower in IRREGULAR or (
            lower.endswith("ed") and len(lower) > 4 and lower not in ("need", "feed", "speed")
        )
        if past and before not in ("is", "are", "be", "get", "gets", "must", "will"):
            return True
    return False
