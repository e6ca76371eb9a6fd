"""Whether a note's text meets the terms of a query that say exactly what must be there. Pure.

The same for notes from an index and from files. A note meets them as a whole; of a conversation, each turn does.
"""

from __future__ import annotations

import functools
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from co_cli.ground.deadline import QueryDeadline
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.values import members_of
from co_cli.index.tokens import fold, spaceless_run, tokens
from co_cli.notes.markdown import headings
from co_cli.retrieval.grammar import TEXTS, Node, compile_regex, leaves

REGEX_SECONDS = 0.25
"""What a regular expression may take for one text, if its query has as much left."""
TASK = r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<mark>.)\](?=\s|$)"
QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
ACCENTS = range(0x300, 0x370)
END = ".,;:!?"
LINES = ("line", "task", "task-todo", "task-done")
"""Terms that a single line meets."""
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
LONGEST_OVERLAP = 250
"""Characters that a passage may repeat of the one before."""


class TooSlowError(KnowledgeError):
    """A note could not be compared in time."""


def not_compared(compared: int, total: int | None = None) -> str:
    """What is said if some notes were not compared, and the fix."""
    of_all = "" if total is None else f" of {total:,}"
    few = f"only {compared:,}{of_all} notes were compared with the query, because it takes too long"
    return f"{few}: make it simpler, or narrow it with tag: or path:"


class PassageText(NamedTuple):
    """A passage, as it is stored."""

    id: int
    heading: str
    body: str
    first_line: int
    last_line: int


class NoteText(NamedTuple):
    """A note, or a turn of a conversation, as terms are compared with it."""

    about: Sequence[str]
    """Title, aliases, description, tags, path, and the values of its frontmatter."""
    passages: Sequence[PassageText]
    meets: Callable[[Node], bool]
    """Whether it has a tag, path, file name, property or language."""
    language: str = ""
    """In which words are compared whatever their endings."""


class Condition(NamedTuple):
    """What must be there, and how it is compared."""

    node: Node
    case: bool = False
    substrings: bool = False
    """Words may be parts of words, as where files are searched."""
    deadline: QueryDeadline | None = None
    """Of the query; None: there is none."""

    def matches(self, note: NoteText) -> bool:
        """Whether a note meets it. Raises TooSlowError."""
        return self._has(self.node, note, None)

    def passages(self, note: NoteText) -> list[int]:
        """The passages of a note that meets it in which something wanted is; all of them if it is elsewhere."""
        wanted = [leaf for leaf, positive in leaves(self.node) if positive and leaf.kind in TEXTS]
        own = [
            passage.id
            for passage in note.passages
            if any(
                self._in_text(leaf, text, note.language) for leaf in wanted for text in (passage.body, passage.heading)
            )
        ]
        return own or [passage.id for passage in note.passages]

    @property
    def quoted(self) -> str:
        """The wanted phrases."""
        return " ".join(leaf.text for leaf, positive in leaves(self.node) if positive and leaf.kind == "phrase")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in a text the wanted phrases and regular expressions are."""
        found: list[tuple[int, int]] = []
        folded = _folded(text, self.case)
        for leaf, positive in leaves(self.node):
            if positive and leaf.kind == "regex":
                with suppress(TooSlowError):
                    found += [match.span() for match in self._regex_matches(leaf.text, text)]
            elif positive and leaf.kind == "phrase" and len(folded) == len(text):  # else places differ
                found += list(_occurrences(leaf.text, folded, self.case))
        return [span for span in found if span[0] < span[1]]

    def lines(self, lines: Sequence[str]) -> set[int] | None:
        """The places of lines that a `line:` or a `task:` asks for; None if none must be there."""
        terms = [node for node in (self.node.nodes if self.node.kind == "and" else (self.node,)) if node.kind in LINES]
        found: set[int] = set()
        for place, line in enumerate(lines if terms else ()):
            alone = NoteText((), (PassageText(0, "", line, 1, 1),), _never)
            with suppress(TooSlowError):
                found |= {place} if any(self._has(term, alone, None) for term in terms) else set()
        return found if terms else None

    def _has(self, node: Node, note: NoteText, text: str | None) -> bool:
        """Whether a note has it: anywhere, or in one line or section of it."""
        match node.kind:
            case "and":
                return all(self._has(member, note, text) for member in node.nodes)
            case "or":
                return any(self._has(member, note, text) for member in node.nodes)
            case "not":
                return not self._has(node.nodes[0], note, text)
            case "word" | "phrase" | "regex":
                parts = _texts(note) if text is None else (text,)
                return any(self._in_text(node, part, note.language) for part in parts)
            case "tag" | "path" | "file" | "lang" | "property" | "key" | "compared":
                return note.meets(node)
            case "match-case" | "ignore-case":
                return self._replace(case=node.kind == "match-case")._has(node.nodes[0], note, text)
            case "line":
                parts = _lines(note)
            case "section":
                parts = _sections(note.passages)
            case "block":
                parts = re.split(r"\n\s*\n", "\n\n".join((*_headings(note), _joined(note.passages, "\n\n"))))
            case "content":
                parts = ("\n".join((*_headings(note), _joined(note.passages))),)
            case "task" | "task-todo" | "task-done":
                state = node.kind.partition("-")[2]
                parts = (re.sub(TASK, "", line, count=1) for line in _lines(note) if _is_task(line, state))
        return any(all(self._has(inner, note, part) for inner in node.nodes) for part in parts)

    def _in_text(self, leaf: Node, text: str, language: str) -> bool:
        if self.deadline and not self.deadline.left:
            raise TooSlowError("the time of the query is up")
        if leaf.kind == "regex":
            return next(self._regex_matches(leaf.text, text), None) is not None
        if leaf.kind == "phrase":
            return next(_occurrences(leaf.text, _folded(text, self.case), self.case), None) is not None
        if self.substrings:
            return _folded(leaf.text, False) in _folded(text, False)
        needle, had = tokens(leaf.text, language), tokens(text, language)
        return bool(needle) and any(had[place : place + len(needle)] == needle for place in range(len(had)))

    def _regex_matches(self, pattern: str, text: str) -> Iterator[re.Match[str]]:
        limit = min(REGEX_SECONDS, self.deadline.left) if self.deadline else REGEX_SECONDS
        try:
            yield from compile_regex(pattern, self.case).finditer(text, timeout=limit, concurrent=True)
        except (TimeoutError, MemoryError):
            raise TooSlowError(f"/{pattern}/ takes too long") from None


def _never(node: Node) -> bool:
    """A line by itself has no tag, path or property."""
    return False


def _texts(note: NoteText) -> Iterator[str]:
    yield from note.about
    yield _joined(note.passages)
    yield from (passage.heading for passage in note.passages if passage.heading)


def has_compared(metadata: Mapping[str, object], node: Node) -> bool:
    """Whether a value of the frontmatter is more or less than the number or day that a term asks for."""
    sign = node.text.rstrip("0123456789.- ")
    asked = _ordered(node.text[len(sign) :])
    values = [value for key, value in metadata.items() if fold(key) == fold(node.name)]
    had = [_ordered(member) for value in values for member in members_of(value)]
    return any(type(value) is type(asked) and SIGNS[sign](value, asked) for value in had)


def _ordered(value: object) -> float | str | None:
    """A number, or a day as text."""
    text = "" if isinstance(value, bool) else str(value).strip()
    if re.fullmatch(r"-?\d+(?:\.\d+)?", text):
        return float(text)
    return text[:10] if re.match(r"\d{4}-\d\d-\d\d", text) else None


def _headings(note: NoteText) -> Iterator[str]:
    for heading in dict.fromkeys(passage.heading for passage in note.passages if passage.heading):
        yield from heading.split(" > ")


def _lines(note: NoteText) -> Iterator[str]:
    yield from _headings(note)
    yield from _joined(note.passages).split("\n")


def _is_task(line: str, state: str) -> bool:
    task = re.match(TASK, line)
    return task is not None and (not state or (task["mark"] == " ") == (state == "todo"))


def _joined(passages: Sequence[PassageText], between: str = "\n") -> str:
    """The text of passages, without what the next one repeats. Two parts of one line are one line again."""
    if len(passages) == 1:
        return passages[0].body
    text = ""
    last_line = -1
    for passage in passages:
        body = passage.body
        if last_line >= passage.first_line:
            body = body[_overlap(text, body) :].lstrip()
            text += f"{'' if not text or _is_spaceless(body[:1]) else ' '}{body}"
        else:
            text += f"{between}{body}" if text else body
        last_line = passage.last_line
    return text


def _overlap(text: str, following: str) -> int:
    """How many characters at the start of a text repeat the end of the one before."""
    tail = text[-LONGEST_OVERLAP:]
    start = following[:20]
    place = tail.find(start) if start else -1
    while place >= 0:
        if following.startswith(tail[place:]):
            return len(tail) - place
        place = tail.find(start, place + 1)
    return 0


def _sections(passages: Sequence[PassageText]) -> Iterator[str]:
    """The text below each heading, with the heading."""
    for heading, members in groupby(passages, key=lambda passage: passage.heading):
        lines = _joined(list(members)).split("\n")
        starts = [found.line for found in headings(lines)]  # a memory is one passage, headings and all
        edges = [0, *(line for line in starts if line), len(lines)]
        for number, (first, end) in enumerate(pairwise(edges)):
            yield "\n".join((*((heading,) if heading and not number else ()), *lines[first:end]))


def _occurrences(phrase: str, text: str, case: bool) -> Iterator[tuple[int, int]]:
    """Where a folded text has a phrase, as whole words."""
    pattern, place = _phrase_pattern(phrase, case), 0
    while pattern is not None and (found := pattern.search(text, place)):
        if _is_edge(text, found.start()) and _is_edge(text, found.end()):
            yield found.span()
        place = found.start() + 1


@functools.lru_cache(200)
def _phrase_pattern(phrase: str, case: bool) -> re.Pattern[str] | None:
    """Its words as they are. What is between them in a text, such as the end of a line or markup, does not matter."""
    words = _folded(phrase, case).split()
    if words and any(map(str.isalnum, words[-1])):
        words[-1] = words[-1].rstrip(END)
    return re.compile(r"[\W_]+".join(map(re.escape, words))) if words else None


def _is_edge(text: str, place: int) -> bool:
    """Whether no word continues over this place. Scripts without spaces have no such edges."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    return not (_is_letter(before) and _is_letter(after)) or _is_spaceless(before) or _is_spaceless(after)


def _is_spaceless(sign: str) -> bool:
    return not sign.isascii() and spaceless_run().match(sign) is not None


def _is_letter(sign: str) -> bool:
    return sign.isalnum() or unicodedata.category(sign)[0] == "M"


def _folded(text: str, case: bool) -> str:
    """A text as it is compared: case and accents count only where they are asked for."""
    if text.isascii():
        return text if case else text.lower()
    text = unicodedata.normalize("NFC", text.translate(QUOTES))
    if case:
        return text
    plain = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(sign for sign in plain if ord(sign) not in ACCENTS))
