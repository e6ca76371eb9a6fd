"""The words of all passages, each with its stem and its code in the embedded model: what a rerank compares words by.

Filled as passages get their vectors. A word that no note has any more stays until the next rebuild; it costs some 150
bytes and is never looked at. The codes are those of the embedded model, whichever space answers by meaning: they need
no server.
"""

from __future__ import annotations

from math import log

import apsw

from co_cli.index.connection import fetch
from co_cli.index.match import is_stop_word
from co_cli.index.words import rarity
from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Word = tuple[str, int]
    """A word's stem, and its code; 0 for a word that the embedded model cannot read."""

CATEGORIES = "L* N* Co Mn Mc"
LONGEST_WORD = 60
LONGEST_READ = 8_000
"""Characters of a passage that are looked at word by word."""
ASCII_MARKS = [place for place in range(128) if not chr(place).isalnum()]
OTHER_MARKS = (*range(0x80, 0xC0), 0xD7, 0xF7, *range(0x2000, 0x2070), *range(0x3000, 0x3004))
MARKS = {
    **dict.fromkeys((*ASCII_MARKS, *OTHER_MARKS), " "),
    **{ord(mark): "\n" for mark in ".!?\n\u2026\u3002"},
}
"""A blank for what is no part of a word, a new line for what ends a sentence, for `str.translate`: a cold search does
not import re. One letter for one letter: that is ten times as fast."""
CODED_AT_ONCE = 2_048
"""A note may have a quarter of a million words, and a word takes ten kilobytes while it is coded."""
REMEMBERED_WORDS = 200_000

UNKNOWN = "select value from json_each(:words) where value not in (select word from lexicon)"
LEARN = "insert into lexicon (word, stem, code) values (:word, :stem, :code) on conflict do nothing"
TEXTS = """
select passages.id, passages.title, passages.heading, passages.body, passages.context, passages.aliases, docs.passages,
    docs.source
from json_each(:ids) as wanted
cross join passages on passages.id = wanted.value cross join docs on docs.id = passages.doc_id
"""
OPEN_WORDS = """
select lexicon.word, lexicon.stem, lexicon.code
from json_each(:words) as wanted cross join lexicon where lexicon.word = wanted.value
"""


class WordFacts(Record):
    """What is known of a word of a question: its stem, how rare it is, and its code."""

    stem: str
    weight: float
    code: int


class PassageWords(Record):
    """A passage as words: `.` stands where a sentence ends."""

    title: list[str]
    """Of the headings, too."""
    body: list[str]
    context: list[str]
    asks: bool = False
    """It is a whole note, and ends in a question."""
    own_title: bool = True
    """Its title, or a heading, says something of its own, and not only how the text begins."""


def split_words(text: str) -> list[str]:
    """Lower-case words, and `.` wherever a sentence or a line ends."""
    return text.lower().translate(MARKS).replace("\n", " . ").split()


def new_words(connection: apsw.Connection, texts: Iterable[str], known: set[str]) -> list[dict[str, Any]]:
    """The words of these texts that were never seen before, as LEARN takes them. It takes long, and only reads.

    `known` are words that search.db is known to have, or to want none of; those of these texts are added.
    """
    found: set[str] = set()
    for text in texts:
        found.update(split_words(text))
    found -= known
    known |= found
    seen = [word for word in found if _tells(word)]
    if not seen:
        return []
    unknown = [str(word) for (word,) in fetch(connection, UNKNOWN, {"words": words_text(sorted(seen))})]
    stems = stems_of(connection, unknown)
    codes = codes_of_words(unknown)
    return [{"word": word, "stem": stems[word], "code": codes[word]} for word in unknown if word in stems]


def open_words(connection: apsw.Connection, words: Iterable[str]) -> dict[str, Word]:
    """Those of these words that passages have. What a word is like does not change: it is read once."""
    found: dict[str, Word] = {}
    wanted: list[str] = []
    for word in words:
        if word in _remembered:
            found[word] = _remembered[word]
        else:
            wanted.append(word)
    if not wanted:
        return found
    rows: Any = fetch(connection, OPEN_WORDS, {"words": words_text(wanted)})
    read: dict[str, Word] = {word: (stem, int.from_bytes(code, "big")) for word, stem, code in rows}
    if len(_remembered) + len(read) > REMEMBERED_WORDS:
        _remembered.clear()  # rather than grow without end
    _remembered.update(read)
    found.update(read)
    return found


def facts_of(connection: apsw.Connection, words: Sequence[str]) -> dict[str, WordFacts]:
    """What is known of these words, whether passages have them or not."""
    parts = {word: [part for part in split_words(word) if part != "."] for word in words}
    plain = {word: max(found, key=len) for word, found in parts.items() if found}  # of `Mara's`, `mara`
    known = open_words(connection, plain.values())
    new = [word for word in dict.fromkeys(plain.values()) if word not in known]
    if new:
        stems, codes = stems_of(connection, new), codes_of_words(new)
        made = {word: (stems[word], int.from_bytes(codes[word], "big")) for word in new if word in stems}
        _remembered.update(made)
        known |= made
    return {
        word: WordFacts(known[name][0], log(1 + rarity(connection, word)), known[name][1])
        for word, name in plain.items()
        if name in known
    }


def words_of_passages(connection: apsw.Connection, ids: str) -> tuple[dict[int, PassageWords], dict[str, Word]]:
    """These passages as words, and what is known of each word in them. `ids` is a list as json_each reads it."""
    passages: dict[int, PassageWords] = {}
    seen: set[str] = set()
    rows: Any = fetch(connection, TEXTS, {"ids": ids})
    for passage, title, heading, body, context, aliases, passages_of_note, source in rows:
        text = f"{body[:LONGEST_READ]}\n{aliases}"
        asks = passages_of_note == 1 and body.endswith(("?", "?\n"))
        called, said = split_words(f"{title}\n{heading}"), split_words(text)
        # the name of a skill is a handle: what it is for stands in its description
        own_title = source != "skill" and (_is_heading(body) or not _begins(said, called))
        found = PassageWords(called, said, split_words(context), asks, own_title)
        passages[passage] = found
        seen.update(found.title, found.body, found.context)
    return passages, open_words(connection, [word for word in seen if _tells(word)])


def _begins(said: list[str], called: list[str]) -> bool:
    """Is a title just the first words of the text, as it is where nobody gave one?"""
    if said[:1] != called[:1]:
        return False
    words = [word for word in called if word != "."]
    return [word for word in said[: 2 * len(called)] if word != "."][: len(words)] == words


def _is_heading(body: str) -> bool:
    """Does a text begin with a heading, which is where its title is from?"""
    return body.startswith("#") or body.partition("\n")[2].startswith("==")


def stems_of(connection: apsw.Connection, words: Sequence[str]) -> dict[str, str]:
    """As docs_fts has them; of a word that it takes apart, the parts joined."""
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2", "categories", CATEGORIES])
    raw = "\n".join(words).encode("utf-8", "replace")
    starts: list[int] = []
    place = 0
    for word in words:
        starts.append(place)
        place += len(word.encode("utf-8", "replace")) + 1
    found: Any = tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None)
    stems: dict[str, str] = {}
    number = 0
    for start, _, *tokens in found:
        while number + 1 < len(starts) and starts[number + 1] <= start:
            number += 1
        word = words[number]
        stems[word] = f"{stems[word]} {tokens[0]}" if word in stems else tokens[0]
    return stems


def codes_of_words(words: Sequence[str]) -> dict[str, bytes]:
    """The code of each word in the embedded model; empty for one that it cannot read."""
    from co_cli.embedding.static import shared_embedder
    from co_cli.embedding.word_codes import codes_of

    codes = dict.fromkeys(words, b"")
    for start in range(0, len(words), CODED_AT_ONCE):
        some = words[start : start + CODED_AT_ONCE]
        vectors = shared_embedder().embed(some, "document")
        known = [(word, vector) for word, vector in zip(some, vectors, strict=True) if vector is not None]
        codes.update(zip([word for word, _ in known], codes_of([vector for _, vector in known]), strict=True))
    return codes


def words_text(words: Iterable[str]) -> str:
    """As json_each reads it: none of these words holds a quote or a backslash."""
    joined = '","'.join(words)
    return f'["{joined}"]' if joined else "[]"


def _tells(word: str) -> bool:
    return word != "." and len(word) <= LONGEST_WORD and not is_stop_word(word)


_remembered: dict[str, Word] = {}
