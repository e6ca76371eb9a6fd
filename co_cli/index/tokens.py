"""Text into the tokens that are indexed and searched for. One function for every engine.

Words are lower-cased, stripped of accents and stemmed (Porter), by SQLite's own tokenizer. Scripts written without
spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) become overlapping pairs of letters: `東京都` is
`東京 京都 都`, so that any part of it can be found.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache
from typing import Any, NamedTuple

import apsw

SPACELESS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Korean
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Chinese
)
# combining marks count as letters, or Hindi and Thai words would break apart
TOKENIZER = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"]
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


class Span(NamedTuple):
    """A token and the characters of the text that it stands for."""

    start: int
    end: int
    token: str


@cache
def spaceless_run() -> re.Pattern[str]:
    """Letters of scripts without spaces. Compiled when a text first has more than ASCII: it takes 3 ms."""
    return re.compile(f"[{SPACELESS}]+")


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order."""
    if text.isascii():
        return _stems(text)
    return [span.token for span in spans(text)]


def spans(text: str) -> list[Span]:
    """The tokens of a text with their places."""
    if text.isascii():
        return _spans(text, 0)
    found: list[Span] = []
    at = 0
    for run in spaceless_run().finditer(text):
        found += _spans(text[at : run.start()], at)
        found += _pairs(run[0], run.start())
        at = run.end()
    return found + _spans(text[at:], at)


def is_stop_word(word: str) -> bool:
    return word.lower().replace("\u2019", "'") in STOP_WORDS


def fold(text: str) -> str:
    """What filters compare: case and Unicode normalisation do not count."""
    text = text.encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _pairs(run: str, at: int) -> list[Span]:
    letters = unicodedata.normalize("NFKC", run)  # half-width and full-width forms agree
    if len(letters) != len(run):
        return [Span(at, at + len(run), letters[place : place + 2]) for place in range(len(letters))]
    return [Span(at + place, at + min(place + 2, len(run)), letters[place : place + 2]) for place in range(len(run))]


def _stems(text: str) -> list[str]:
    found: Any = _tokenizer()(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return list(found)


def _spans(text: str, at: int) -> list[Span]:
    raw = text.encode("utf-8", "replace")
    found: Any = _tokenizer()(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None)
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


_local = threading.local()


def _tokenizer() -> apsw.FTS5Tokenizer:
    """One tokenizer for each thread: SQLite's connections belong to one."""
    if not hasattr(_local, "tokenizer"):
        _local.connection = apsw.Connection(":memory:")
        _local.tokenizer = _local.connection.fts5_tokenizer("porter", TOKENIZER)
    return _local.tokenizer
