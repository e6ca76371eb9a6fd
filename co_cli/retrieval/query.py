"""What was typed into what is searched for: words, phrases, exclusions, and filters such as `tag:ops`.

Pure, and any text parses. Operators: `"a phrase"` must be there as it is, `-word` must not occur (two letters or more,
so that `ffmpeg -c copy` is plain text), `tag:x` or `#x`, `path:x` and `file:x` narrow the search. A quote that is not
closed is ignored.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from co_cli.hits import Filters
from co_cli.index.engine import Needle, WordQuery
from co_cli.index.tokens import RUN, is_stop_word, tokens
from co_cli.notes.markdown import is_colour
from co_cli.values import to_utf8

MOST_TERMS = 48
LONGEST_QUERY = 20_000
LONGEST_EMBEDDED = 4_000
"""Characters that are embedded; what follows hardly moves a vector."""
WORDS_BESIDE_QUOTES = 2
"""With this many words around a phrase, it is a question that quotes, not a search for the phrase."""
PART = re.compile(
    r"""
    (?<!\S)(?P<operator>tag|path|file):(?:"(?P<quoted_value>[^"]*)"|"?(?P<value>[^\s"]+))
    | (?<!\S)\#(?P<tag>[^\s"#,;:()]*[^\W\d_][^\s"#,;:()]*)
    | (?<!\S)(?P<minus>-?)"(?P<phrase>[^"]*)"
    | (?<!\S)-"?(?P<refused>[^\W\d_]{2}\S*)
    | (?P<loose>\S+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
EDGES = "".join(chr(place) for place in range(33, 128) if not chr(place).isalnum()) + "\u2018\u2019\u201c\u201d\u2026"
WENT_WRONG = re.compile(r"\bwhat went wrong (?=with|in|at|on|during|when)", re.IGNORECASE)
ASKS_WHY = re.compile(r"\s*why\b", re.IGNORECASE)
CAUSES = ("why", "because", "cause", "reason", "wrong")
"""Words that are likely in the answer to a question that begins with "why"."""
POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """One query, taken apart."""

    text: str
    """What is asked, without operators: this is embedded, and looked up as a name."""
    words: WordQuery
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()
    """The wanted words as they were typed, and the phrases and exclusions: for a search without an index."""
    quoted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether no phrase or exclusion says which passages may answer."""
        return not self.words.phrases and not self.words.excluded

    @property
    def quotes_in_passing(self) -> bool:
        """Whether it says more than what it quotes."""
        words = self.words
        return bool(words.phrases) and not words.excluded and len(words.terms) >= WORDS_BESIDE_QUOTES

    def narrow(self, filters: Filters) -> Filters:
        """The filters with what the query adds to them."""
        any_of = filters.any_tag and filters.tags  # one of those is enough: these would be one more of them
        tags = filters.tags if any_of else (*filters.tags, *self.tags)
        return filters._replace(tags=tags, paths=(*filters.paths, *self.paths), files=(*filters.files, *self.files))


def parse(text: str, prefix: bool = False) -> Query:
    """Take a query apart. With `prefix`, its last word may be the beginning of one."""
    text = WENT_WRONG.sub("why ", to_utf8(text)[:LONGEST_QUERY].replace("\0", " "))
    found: dict[str, list[str]] = {name: [] for name in ("tag", "path", "file", "loose", "shown", "quoted", "refused")}
    for part in PART.finditer(text):
        if part["operator"] or (part["tag"] and not is_colour(part["tag"])):
            value = part["quoted_value"] or part["value"] or part["tag"] or ""
            found[(part["operator"] or "tag").lower()].append(value.strip(" #").rstrip(".,;!?/"))
        elif part["refused"] or part["minus"]:
            found["refused"].append(part["refused"] or part["phrase"])
        else:
            loose = part["loose"] or part["tag"]
            kind, wanted = ("loose", loose.strip('"')) if loose else ("quoted", part["phrase"])
            found[kind].append(wanted)
            found["shown"].append(wanted)
    if found["refused"] and not any(found[name] for name in ("shown", "tag", "path", "file")):
        return parse(re.sub(r"(?<!\S)-", " ", text), prefix)  # nothing is wanted: it was not meant as an exclusion
    words = WordQuery(
        terms=_terms(found["loose"]),
        phrases=_needles(found["quoted"]),
        excluded=_needles(found["refused"]),
        prefixes=_prefixes(found["loose"], prefix and not text[-1:].isspace()),
        hints=tuple(token for word in CAUSES for token in tokens(word)) if ASKS_WHY.match(text) else (),
    )
    return Query(
        text=" ".join(found["shown"]),
        words=words,
        tags=_once(found["tag"]),
        paths=_once(found["path"]),
        files=_once(found["file"]),
        spelled=tuple(_wanted(found["loose"])),
        quoted=tuple(found["quoted"]),
        refused=tuple(found["refused"]),
    )


def _wanted(parts: list[str]) -> list[str]:
    """The words of what is wanted, without stop words unless there is nothing else."""
    bare = [POSSESSIVE.sub("", part.strip(EDGES)) for part in parts]
    return [word for word in bare if word and not is_stop_word(word) and _needle(word)] or list(filter(None, bare))


def _terms(parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(token for word in _wanted(parts) for token in _needle(word)))[:MOST_TERMS]


def _needles(texts: list[str]) -> tuple[Needle, ...]:
    return tuple(dict.fromkeys(needle for text in texts if (needle := _phrase(text))))[:MOST_TERMS]


def _once(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _needle(text: str) -> Needle:
    """The tokens of a text that is looked for: of a run without spaces, every pair of letters."""
    return tuple(token for token in tokens(text) if not _is_lone(token))


def _phrase(text: str) -> Needle:
    """The same of a phrase: only its end may be the middle of a longer run."""
    found = tokens(text)
    return tuple(found[:-1] if found and _is_lone(found[-1]) else found)


def _is_lone(token: str) -> bool:
    """Whether this is the last letter of a run, which stands alone in the index so that it can be found by itself."""
    return len(token) == 1 and RUN.fullmatch(token) is not None


def _prefixes(parts: list[str], last: bool) -> tuple[str, ...]:
    """Beginnings: single letters of scripts without spaces, and with `last` the word that is being typed."""
    found = [run for part in parts for run in RUN.findall(unicodedata.normalize("NFKC", part)) if len(run) == 1]
    word = parts[-1].strip(EDGES) if parts and last else ""
    if word:
        found += [word.lower().rpartition("-")[2], *tokens(word)[-1:]]
    return tuple(dict.fromkeys(one for one in found if one and one.isalnum()))
