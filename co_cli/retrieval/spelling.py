"""Words of a query that no note has into words that notes do have: misspelled words, numbers such as `TP557`, and parts
of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from co_cli.embedding.space import is_english_word
from co_cli.index.engine import ReadTransaction
from co_cli.index.stored import Scope
from co_cli.index.tokens import is_stop_word, spans, tokens
from co_cli.index.word_query import Term, WordQuery
from co_cli.retrieval.query import EDGES, MOST_NAMED

SHORTEST, SAME_START = 4, 2
"""Letters of a word that may be misspelled, and how many of its first letters are taken as right."""
LONG = 6
"""Letters from which a word may also be a misspelled name: short names differ by a letter."""
CLOSE_STEMS, CLOSE_WORDS = 0.7, 0.83
"""How alike stems and words must be, 0 to 1: one wrong letter in six, two in twelve."""
MOST_STEMS, MOST_PASSAGES = 5, 5
MOST_SUGGESTED, SUGGESTED = 3, 70
"""Words of the vault suggested for a query that found nothing, and how alike they must be, 0 to 100."""
SHORTEST_PART, MOST_CONTAINING, MOST_AROUND = 3, 100, 8
"""Letters of a part of a word, passages that are looked at for it, and words with it that are searched for."""
LONGEST = 300
"""Characters of a query that somebody typed. What is longer was pasted."""
WORD = re.compile(r"[\w-]+")
NUMBER = re.compile(r"\b([^\W\d_]{1,10})[ -]?(\d{1,9})\b")


def respell(snapshot: ReadTransaction, scope: Scope, text: str, unknown: frozenset[Term]) -> dict[str, str]:
    """For words of a text with these unknown terms, as typed: what notes have instead."""
    found: dict[str, str] = {}
    if len(text) > LONGEST:
        return found
    for number in NUMBER.finditer(text):  # TP557 and TP 557
        other = number.expand(r"\1 \2" if number[0].isalnum() else r"\1\2")
        if unknown & {*tokens(number[0])} and all(snapshot.term_counts(scope.origins, tokens(other))[1].values()):
            found[number[0]] = other
    for word in WORD.findall(text):  # a capital may begin a name, and another name is not what was meant
        terms = tokens(word)
        is_lone = len(terms) == 1 and terms[0] in unknown
        if is_lone and word.islower() and word.isalpha() and len(word) >= SHORTEST and not is_english_word(word):
            other = _closest(snapshot, scope, word, terms[0])
            if other and word not in other and (around := find_parts(snapshot, scope, word)):
                other = around[word][0] if len(unknown) < len(tokens(text)) else None  # alone, all such words are found
            found |= {word: other} if other else {}
    return found


def find_parts(snapshot: ReadTransaction, scope: Scope, text: str) -> dict[str, list[str]]:
    """For each word of a text, as typed: the words that it is a part of, in passages that have all of these parts."""
    typed = dict.fromkeys(word.strip(EDGES) for word in text.split() if not is_stop_word(word.strip(EDGES)))
    if len(text) > LONGEST or not typed or min(map(len, typed)) < SHORTEST_PART:
        return {}
    counts = {part: Counter[str]() for part in typed}
    for passage in snapshot.passages(snapshot.containing(scope, list(typed), MOST_CONTAINING)).values():
        searched = passage.searched_text
        words = spans(searched)
        for part, counted in counts.items():
            for place in re.finditer(re.escape(part), searched, re.IGNORECASE):
                touched = [word for word in words if word.start < place.end() and place.start() < word.end]
                counted.update([searched[touched[0].start : touched[-1].end].lower()] if touched else [])
    return {part: _spelled_once(counted) for part, counted in counts.items() if counted}


def _spelled_once(counted: Counter[str]) -> list[str]:
    """The most frequent words, each in its most frequent form."""
    forms: dict[tuple[Term, ...], str] = {}
    for word, _ in counted.most_common():
        forms.setdefault(tuple(tokens(word)), word)
    return list(forms.values())[:MOST_AROUND]


def part_text(part: str, words: Sequence[str]) -> str:
    """What to say of a part that was searched for."""
    named = ", ".join(f'"{word}"' for word in words[:MOST_NAMED])
    more = f" and {len(words) - MOST_NAMED} more words" if len(words) > MOST_NAMED else ""
    return f'no note has the word "{part}": searched for words with this part: {named}{more}'


def suggest(snapshot: ReadTransaction, scope: Scope, unknown: Sequence[Term]) -> tuple[str, ...]:
    """Words of these vaults that are spelled nearly like those of a query that no note has."""
    if not unknown:
        return ()
    from rapidfuzz import fuzz, process  # 40 ms, only for a query that found nothing

    vocabulary = sorted(snapshot.term_counts(scope.origins)[1])
    found: dict[str, None] = {}
    for term in unknown:
        close = process.extract(term, vocabulary, scorer=fuzz.ratio, limit=2, score_cutoff=SUGGESTED)
        found |= dict.fromkeys(word.lower() for stem, _, _ in close for word in _spellings(snapshot, scope, stem)[:1])
    return tuple(found)[:MOST_SUGGESTED]


def _closest(snapshot: ReadTransaction, scope: Scope, word: str, term: Term) -> str | None:
    from difflib import get_close_matches  # only for a word that no note has

    stems = snapshot.term_counts(scope.origins, start=term[:SAME_START])[1]
    # `acces` has a stem that is too short to compare
    close = dict.fromkeys(
        stem for text in (term, word) for stem in get_close_matches(text, sorted(stems), MOST_STEMS, CLOSE_STEMS)
    )
    found = [(stem, spelled) for stem in close for spelled in _spellings(snapshot, scope, stem)]
    kept = [(stem, spelled.lower()) for stem, spelled in found if len(word) >= LONG or spelled.islower()]
    words = {stem: spelled for stem, spelled in kept if spelled == f"{stem}s"}  # `tokn` where notes have only `tokens`
    words |= {spelled: spelled for _, spelled in kept}
    swapped = {word[:n] + word[n + 1] + word[n] + word[n + 2 :] for n in range(len(word) - 1)}
    meant = [candidate for candidate in words if candidate in swapped] or get_close_matches(word, words, 1, CLOSE_WORDS)
    return words[meant[0]] if meant else None


def _spellings(snapshot: ReadTransaction, scope: Scope, term: Term) -> list[str]:
    """How some passages spell the words of a token."""
    matches = snapshot.words(scope, WordQuery(terms=(term,)), MOST_PASSAGES)
    passages = snapshot.passages([match.passage for match in matches]).values()
    texts = ((passage.searched_text, passage.language) for passage in passages)
    spelled = (
        text[start:end] for text, language in texts for start, end, token in spans(text, language) if token == term
    )
    return list(dict.fromkeys(spelled))
