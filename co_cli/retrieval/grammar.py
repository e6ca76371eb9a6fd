"""The grammar of queries: what was typed into terms, as a small tree. Pure, and every text has a tree.

    "a phrase"                 must be there as it is
    -x                         must not: a word of two letters or more, or any other term
    a OR b, (a b)              one of them; parentheses group, if there is anything but words in them
    tag:x #x path:x file:x     narrow; the value may be quoted, or a group
    lang:x                     narrows to a language, by its code
    [property] [property:x]    a field of the frontmatter
    [property:>4]              compared with a number or a day: also <, >= and <=
    /regex/                    a regular expression
    line:x section:x block:x   one line, section or paragraph that has all of it: `line:(a b)`
    task:x task-todo:x task-done:x
    content:x                  in the text itself, not in its title, path, tags or frontmatter
    match-case:x ignore-case:x with or without upper and lower case

Everything else is a word, and so is a broken operator, which a remark names. In a text that was pasted, all but the
oldest operators (quotes, exclusions, `tag:`, `path:`, `file:`, `lang:`) are words.

Each character is read once for each group that it is in: `_pairs` finds all parentheses beforehand, and those that are
only punctuation keep the terms that were read in them.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from co_cli.ground.values import SOURCES
from co_cli.notes.language import read_language
from co_cli.notes.markdown import is_colour

LONGEST_TYPED = 500
"""Characters of a query that somebody typed. What is longer, or has several lines, was pasted."""
LONGEST_REGEX = 200
LARGEST_REGEX = 100_000
"""Its characters times all of its counts: a compiled one repeats in memory what it repeats, 500 bytes each time."""
LONGEST_SHOWN = 20
DEEPEST = 20
"""Groups in groups."""
Kind = Literal[
    "word", "phrase", "regex",  # a word whatever its ending; words exactly as they are
    "tag", "path", "file", "lang",
    "property", "key", "compared",  # a field of the frontmatter with a value, with any, or more or less than one
    "line", "section", "block", "content",  # of which one has what is in it
    "task", "task-todo", "task-done",  # the same; any task if there is nothing
    "match-case", "ignore-case",
    "not", "and", "or",
]  # fmt: skip
TEXTS = ("word", "phrase", "regex")
FIELDS: tuple[Kind, ...] = ("tag", "path", "file", "lang")
NARROWING = (*FIELDS, "property", "key")
SCOPES: tuple[Kind, ...] = (
    "line", "section", "block", "content", "task", "task-todo", "task-done", "match-case", "ignore-case"
)  # fmt: skip
KINDS: dict[str, Kind] = {kind: kind for kind in (*FIELDS, *SCOPES)}
"""Operators that are written before a colon."""


class Node(NamedTuple):
    """A term, or several. One class for all kinds: each would cost a cold search a millisecond."""

    kind: Kind
    text: str = ""
    """What must be there; the value of a tag, path, file name or property."""
    name: str = ""
    """Of a property."""
    nodes: tuple[Node, ...] = ()
    """What is in a scope or a negation, and the members of `and` and `or`."""

    def __str__(self) -> str:
        """A term as it is typed."""
        match self.kind:
            case "not":
                return f"-{self.nodes[0]}"
            case "property" | "compared":
                return f"[{self.name}:{self.text}]"
            case "key":
                return f"[{self.name}]"
            case "tag" | "path" | "file" | "lang":
                return f"{self.kind}:{self.text}"
            case _:
                return self.text


class Parsed(NamedTuple):
    """What was typed, term by term. All of them are meant."""

    terms: tuple[Node, ...] = ()
    remarks: tuple[str, ...] = ()
    """Operators of other programs, which are words here."""
    broken: str | None = None
    """What is wrong with the first operator that was read as words."""


# patterns are compiled when they are first used
TERM = r"""(?ix)
    (?P<no_field>-?)(?P<field>tag|path|file|lang):(?!//)(?:"(?P<quoted>[^"]*)"|"?(?P<value>[^\s"]+))
    | (?P<no_tag>-?)\#(?P<tag>[^\s"#,;:()]*[^\W\d_][^\s"#,;:()]*)
    | (?P<no_phrase>-?)"(?P<phrase>[^"]*)"
    | -"?(?P<refused>[^\W\d_]{2}\S*)
    | \S+
"""
SCOPED = rf"(?i)-?(?P<name>{'|'.join(SCOPES)}):(?=\S)(?!(?<=line:)\d)"
GROUPED = rf"(?i)-?(?P<name>{'|'.join(FIELDS)}):(?=\()"
EMPTY = rf"(?i)-?(?:{'|'.join(KINDS)}):(?=\s*$|\s+[-#\[(\"/])"
PROPERTY = r"""(?x)
    -?\[(?P<key>"[^"\[\]]+"\s*|[^\W\d_][^\[\]:"\n]*)
    (?::(?P<value>[^\[\]\n]*|\s*\[\[[^\[\]\n]*\]\]\s*))?\](?=[\s.,;!?)]|$)
"""
REGEX = r"-?/(?P<pattern>[^\s/](?:\\.|[^/\\\n])*)/(?=[\s)]|$)"
UNCLOSED = rf"-?(?:(?:(?:{'|'.join(KINDS)}):)?\((?=[\w\"\[#/(-])|\[(?=[^\W\d_\[]))"
FOREIGN = r"-?(?P<name>[a-z][a-z-]{2,20}):(?=[^\W\d_]|[\"(])"
COMPARED = r"(?:[<>]=?)\s*(?:-?\d+(?:\.\d+)?|\d{4}-\d\d-\d\d)"
EITHER = r"OR(?=\s+\S)"
PAIRED = r'(?<![^\s(:-])"[^"]*"|[()]'
NOT_OPERATORS = frozenset((*KINDS, *SOURCES, "mailto"))
"""Refs begin like this, too, and addresses."""


def parse_terms(text: str) -> Parsed:
    """The terms of a query."""
    reading = _TermParser(text)
    terms = tuple(piece.node for piece in reading.terms(0, len(text)))
    return Parsed(terms, tuple(dict.fromkeys(reading.remarks)), reading.broken)


@functools.lru_cache(50)
def compile_regex(pattern: str, case: bool) -> Any:
    """A pattern with a timeout, which those of `re` do not have."""
    import regex  # 20 ms, only for a query that has one

    return regex.compile(pattern, regex.MULTILINE | (0 if case else regex.IGNORECASE))


def leaves(node: Node, positive: bool = True) -> Iterator[tuple[Node, bool]]:
    """The words, phrases and so on of a tree, and whether each is wanted."""
    if not node.nodes:
        yield node, positive
    for member in node.nodes:
        yield from leaves(member, positive != (node.kind == "not"))


class _Piece(NamedTuple):
    """A term, and where it is."""

    node: Node
    start: int
    end: int


class _TermParser:
    """One text that is being read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.typed = len(text) <= LONGEST_TYPED and "\n" not in text.strip()
        self.broken: str | None = None
        self.remarks: list[str] = []
        self._closing = _pairs(text) if self.typed and "(" in text else {}
        self._last_bracket = text.rfind("]")

    def terms(self, place: int, end: int, depth: int = 0) -> list[_Piece]:
        """The terms between two places: those on each side of `OR` belong together."""
        sides: list[list[_Piece]] = [[]]
        while place < end:
            if self.text[place].isspace():
                place += 1
            elif self.typed and sides[-1] and self._match(EITHER, place, end):
                sides.append([])
                place += 2
            else:
                pieces, place = self._term(place, end, depth)
                for piece in pieces:
                    _add(sides[-1], piece)
        sides = [side for side in sides if side]
        if len(sides) < 2:
            return sides[0] if sides else []
        return [_Piece(Node("or", nodes=tuple(map(_all, sides))), sides[0][0].start, end)]

    def _match(self, pattern: str, place: int, end: int) -> re.Match[str] | None:
        return re.compile(pattern).match(self.text, place, end)

    def _term(self, place: int, end: int, depth: int) -> tuple[list[_Piece], int]:
        """The next term, as no or several pieces, and where it ends."""
        first = place + (self.text[place] == "-")
        found: tuple[Node, int] | None = None
        if self.typed and depth <= DEEPEST and self.text.startswith("(", first, end):
            inside, stop = self._group(first, depth)
            if first == place and inside and all(piece.node.kind == "word" for piece in inside):
                return [_Piece(Node("word", "("), place, place + 1), *inside], stop - 1  # it is only punctuation
            found = (_all(inside), stop) if inside else None
        elif self.typed and depth <= DEEPEST:
            found = self._operator(place, end, depth)
        if found is None:
            if self.typed:
                self._look_for_mistakes(place, end)
            return self._old_term(place, end)
        node, stop = found
        if first > place:
            node = Node("not", nodes=(_exact(node),))
        return [_Piece(part, place, stop) for part in (node.nodes if node.kind == "and" else (node,))], stop

    def _operator(self, place: int, end: int, depth: int) -> tuple[Node, int] | None:
        """The operator that begins here, unless it is a group or one of the oldest, and where it ends."""
        first = place + (self.text[place] == "-")
        sign = self.text[first : first + 1]
        if sign == "/" and (match := self._match(REGEX, place, end)):
            return self._regex(match)
        if sign == "[" and (match := self._match(PROPERTY, place, end)):
            return self._property(match)
        if sign.isalpha() and (match := self._match(GROUPED, place, end)):
            inside, stop = self._group(match.end(), depth)
            return (self._of_field(_all(inside), match["name"].lower()), stop) if inside else None
        if sign.isalpha() and (match := self._match(SCOPED, place, end)):
            return self._scoped(match, end, depth)
        return None

    def _group(self, place: int, depth: int) -> tuple[list[_Piece], int]:
        """What is between a parenthesis and the one that closes it, and where that ends; nothing if none does."""
        close = self._closing.get(place, place)
        return self.terms(place + 1, close, depth + 1), close + 1

    def _regex(self, found: re.Match[str]) -> tuple[Node, int] | None:
        problem = _regex_problem(found["pattern"])
        if problem is None:
            return Node("regex", found["pattern"]), found.end()
        self._not_understood(f"/{found['pattern']}/", problem)
        return None

    def _property(self, found: re.Match[str]) -> tuple[Node, int] | None:
        key, value = found["key"].strip('" '), found["value"]
        if key in ("x", "X"):  # a task that is done
            return None
        if value is None:
            return Node("key", name=key), found.end()
        values = [text for part in re.split(r"\sOR\s", value) if (text := part.strip().strip('"'))]
        nodes = tuple(Node("compared" if text[0] in "<>" else "property", text, key) for text in values)
        if not nodes:
            self._not_understood(found[0], "has no value")
            return None
        if any(node.kind == "compared" and not re.fullmatch(COMPARED, node.text) for node in nodes):
            self._not_understood(found[0], "compares with no number and no date such as 2026-03-01")
            return None
        return nodes[0] if len(nodes) == 1 else Node("or", nodes=nodes), found.end()

    def _scoped(self, found: re.Match[str], end: int, depth: int) -> tuple[Node, int] | None:
        """`line:`, `section:`, `task:` and so on, and the one term after it."""
        kind, start = KINDS[found["name"].lower()], found.end()
        if self.text.startswith('""', start, end) and kind.startswith("task"):
            return Node(kind), start + 2
        if self.text.startswith("(", start, end):
            inside, stop = self._group(start, depth)
        else:
            if self.text.startswith('"', start, end) and self.text.find('"', start + 1, end) < 0:
                start += 1  # a quote that is never closed is ignored
            inside, stop = self._term(start, end, depth + 1) if start < end else ([], start)
        if not inside:
            return None
        node = _all(inside)
        return Node(kind, nodes=(_exact(node) if kind == "match-case" else node,)), stop

    def _look_for_mistakes(self, place: int, end: int) -> None:
        """Note what is written like an operator and is none."""
        if found := self._match(EMPTY, place, end):
            self._not_understood(found[0], "has no value")
        elif self._is_open(place, end):
            self._not_understood(
                self.text[place : min(end, place + LONGEST_SHOWN + 1)].split()[0], "has no closing bracket"
            )
        elif (found := self._match(FOREIGN, place, end)) and found["name"] not in NOT_OPERATORS:
            self.remarks.append(f"`{found['name']}:` is not supported: searched for the word")

    def _is_open(self, place: int, end: int) -> bool:
        """Whether the operator here has a bracket that nothing closes."""
        found = self._match(UNCLOSED, place, end)
        if not found:
            return False
        opened = found.end() - 1
        return opened not in self._closing if self.text[opened] == "(" else self._last_bracket < opened

    def _not_understood(self, operator: str, problem: str) -> None:
        shown = operator if len(operator) <= LONGEST_SHOWN else f"{operator[: LONGEST_SHOWN - 1]}…"
        self.broken = self.broken or f"`{shown}` {problem}: searched as words"

    def _old_term(self, place: int, end: int) -> tuple[list[_Piece], int]:
        """A phrase, an exclusion, a tag, a path, a file name, or a word."""
        found = self._match(TERM, place, end)
        assert found
        if found["field"]:
            node = self._of_field(Node("phrase", found["quoted"] or found["value"] or ""), found["field"].lower())
            node, refused = (node, found["no_field"]) if node.kind != "phrase" else (Node("word", found[0]), "")
        elif found["tag"] and not is_colour(found["tag"]):
            node, refused = Node("tag", _value(found["tag"])), found["no_tag"]
        elif found["phrase"] is not None:
            node, refused = Node("phrase", found["phrase"]), found["no_phrase"]
        elif found["refused"]:
            node, refused = Node("phrase", found["refused"].strip('"')), "-"
        else:
            node, refused = Node("word", (found["tag"] or found[0]).strip('"')), ""
        term = Node("not", nodes=(node,)) if refused else node
        return [_Piece(term, place, found.end())] if node.text.strip() else [], found.end()

    def _of_field(self, node: Node, name: str) -> Node:
        """`path:(a OR b)`: each word is a value."""
        if node.kind not in ("word", "phrase"):
            return node._replace(nodes=tuple(self._of_field(member, name) for member in node.nodes))
        text = _value(node.text)
        if name == "lang" and not read_language(text):
            self._not_understood(f"lang:{text}", "is not a language that co knows")
            return node
        return Node(KINDS[name], text)


def _add(pieces: list[_Piece], piece: _Piece) -> None:
    """Add a piece; two words without a blank between them, such as `(` and `see`, are one."""
    last = pieces[-1] if pieces else piece
    if last.end == piece.start and last.node.kind == piece.node.kind == "word":
        pieces[-1] = _Piece(Node("word", last.node.text + piece.node.text), last.start, piece.end)
    else:
        pieces.append(piece)


def _all(pieces: Sequence[_Piece]) -> Node:
    return pieces[0].node if len(pieces) == 1 else Node("and", nodes=tuple(piece.node for piece in pieces))


def _pairs(text: str) -> dict[int, int]:
    """Where the parenthesis is that closes each one. Those between quotes do not count."""
    opened, pairs = list[int](), dict[int, int]()
    for found in re.finditer(PAIRED, text):
        if found[0] == "(":
            opened.append(found.start())
        elif found[0] == ")" and opened:
            pairs[opened.pop()] = found.start()
    return pairs


def _exact(node: Node) -> Node:
    """Only the very words are excluded, not others with the same stem."""
    return Node("phrase", node.text) if node.kind == "word" else node._replace(nodes=tuple(map(_exact, node.nodes)))


def _value(text: str) -> str:
    return text.strip(" #").rstrip(".,;!?/")


def _regex_problem(pattern: str) -> str | None:
    if len(pattern) > LONGEST_REGEX:
        return f"has more than {LONGEST_REGEX} characters"
    counts = [
        int(count)
        for braces in re.findall(r"{[^{}]*}", re.sub(r"\s", "", pattern))
        for count in re.findall(r"\d+", braces)
    ]
    if math.prod(filter(None, counts)) * len(pattern) > LARGEST_REGEX:
        return "repeats too much"
    try:
        compile_regex(pattern, False)
    except Exception as error:  # its own error, and others for flags that exclude each other
        return f"is not a valid regular expression ({error})"
    return None
