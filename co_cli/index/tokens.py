"""Text into the tokens that are indexed and searched for. One function for every engine.

Words are lower-cased, stripped of accents and stemmed: English, and text of which nobody knows the language, by
SQLite's own tokenizer (Porter) and a list of irregular forms, other languages by their Snowball stemmers. Scripts
written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) become overlapping pairs of letters:
`東京都` is `東京 京都 都`, so that any part of it can be found.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import apsw

from co_cli.notes.language import common_words

SPACELESS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Korean
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Chinese
)
# combining marks count as letters, or Hindi and Thai words would break apart
CATEGORIES = ["categories", "L* N* Co Mn Mc"]
PORTER = ["porter", "unicode61", "remove_diacritics", "2", *CATEGORIES]
UNSTEMMED = ["unicode61", "remove_diacritics", "0", *CATEGORIES]
"""Stemmers need the accents."""
SNOWBALL = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "et": "estonian",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Languages with a stemmer of their own, by their codes."""
ACCENTS = range(0x300, 0x370)
MOST_CACHED = 200_000
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

IRREGULAR = """
    beat beaten, begin began begun, bend bent, bite bitten, blow blew blown, break broke broken, bring brought, build
    built, burn burnt, buy bought, catch caught, choose chose chosen, deal dealt, dig dug, draw drew drawn, drink drank,
    drive drove driven, eat ate eaten, fall fell fallen, fight fought, fly flew flown, forget forgot forgotten, forgive
    forgave forgiven, freeze froze frozen, grow grew grown, hang hung, hide hid hidden, learn learnt, lend lent, lose
    lost, meet met, pay paid, rebuild rebuilt, ride rode ridden, ring rang, rise risen, run ran, seek sought, sell sold,
    send sent, shake shook shaken, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sleep slept, speak
    spoke spoken, spend spent, stand stood, steal stole stolen, stick stuck, strike struck, swear swore sworn, swim swam
    swum, teach taught, tear tore torn, throw threw thrown, understand understood, wake woke woken, wear wore worn, win
    won, withdraw withdrew withdrawn, write wrote written,
    child children, foot feet, goose geese, half halves, knife knives, loaf loaves, man men, mouse mice, shelf shelves,
    thief thieves, tooth teeth, wife wives, wolf wolves, woman women
"""
"""English words and their forms, without forms that often mean something else (found, left, saw, rose, led), and
without verbs that say little (get, go, take)."""


class Span(NamedTuple):
    """A token and the characters of the text that it stands for."""

    start: int
    end: int
    token: str


@cache
def spaceless_run() -> re.Pattern[str]:
    """Letters of scripts without spaces. Compiled when a text first has more than ASCII: it takes 3 ms."""
    return re.compile(f"[{SPACELESS}]+")


def tokens(text: str, language: str = "") -> list[str]:
    """The tokens of a text in a language, in order."""
    if text.isascii() or (language in SNOWBALL and not spaceless_run().search(text)):
        words: Any = _tokenizer(language)(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        if language in SNOWBALL:
            return list(map(_stems(language).__getitem__, words))
        regular = _regular()
        return [regular.get(word, word) for word in cast("list[str]", words)]
    return [span.token for span in spans(text, language)]


def spans(text: str, language: str = "") -> list[Span]:
    """The tokens of a text with their places."""
    if text.isascii():
        return _spans(text, 0, language)
    found: list[Span] = []
    at = 0
    for run in spaceless_run().finditer(text):
        found += _spans(text[at : run.start()], at, language)
        found += _pairs(run[0], run.start())
        at = run.end()
    return found + _spans(text[at:], at, language)


def is_stop_word(word: str, language: str = "") -> bool:
    """Whether a word of a text in this language is one; those of English are in every text."""
    plain = word.lower().replace("\u2019", "'")
    return plain in STOP_WORDS or (language != "en" and plain in common_words(language))


def fold(text: str) -> str:
    """What filters compare: case and Unicode normalisation do not count."""
    text = text.encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _pairs(run: str, at: int) -> list[Span]:
    letters = unicodedata.normalize("NFKC", run)  # half-width and full-width forms agree
    if len(letters) != len(run):
        return [Span(at, at + len(run), letters[place : place + 2]) for place in range(len(letters))]
    return [Span(at + place, at + min(place + 2, len(run)), letters[place : place + 2]) for place in range(len(run))]


def _spans(text: str, at: int, language: str) -> list[Span]:
    raw = text.encode("utf-8", "replace")
    found: Any = _tokenizer(language)(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None)
    if language in SNOWBALL:
        stems = _stems(language)
        found = [(start, end, stems[word]) for start, end, word, *_ in found]
    else:
        regular = _regular()
        found = [(start, end, regular.get(word, word)) for start, end, word, *_ in found]
    if len(raw) == len(text):
        return [Span(at + start, at + end, token) for start, end, token, *_ in found]
    spans: list[Span] = []
    place = characters = 0  # bytes and characters read so far
    for start, end, token, *_ in found:
        characters += len(raw[place:start].decode("utf-8", "replace"))
        length = len(raw[start:end].decode("utf-8", "replace"))
        spans.append(Span(at + characters, at + characters + length, token))
        characters, place = characters + length, end
    return spans


class _Stems(dict[str, str]):
    """The stem of each word of one language, without accents: people leave them out."""

    def __init__(self, language: str) -> None:
        import Stemmer  # only where there is text that is not English

        super().__init__()
        stemmer: Any = cast("Any", Stemmer).Stemmer(SNOWBALL[language], 0)
        self._stem: Callable[[str], str] = stemmer.stemWord

    def __missing__(self, word: str) -> str:
        if len(self) >= MOST_CACHED:
            self.clear()
        stem = self._stem(word) or word
        if not stem.isascii():
            apart = unicodedata.normalize("NFD", stem)
            stem = unicodedata.normalize("NFC", "".join(sign for sign in apart if ord(sign) not in ACCENTS))
        self[word] = stem
        return stem


@cache
def _regular() -> dict[str, str]:
    """The stem of each irregular form, and that of its word."""
    found: dict[str, str] = {}
    for forms in IRREGULAR.split(","):
        stems: Any = _tokenizer("")(forms.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None)
        (_, _, stem, *_), *others = stems
        found |= {other: stem for _, _, other, *_ in others}
    return found


@cache
def _stems(language: str) -> _Stems:
    return _Stems(language)


_local = threading.local()


def _tokenizer(language: str) -> apsw.FTS5Tokenizer:
    """Two tokenizers for each thread: SQLite's connections belong to one."""
    if not hasattr(_local, "porter"):
        connection = _local.connection = apsw.Connection(":memory:")
        _local.porter = connection.fts5_tokenizer(PORTER[0], PORTER[1:])
        _local.unstemmed = connection.fts5_tokenizer(UNSTEMMED[0], UNSTEMMED[1:])
    return _local.unstemmed if language in SNOWBALL else _local.porter
