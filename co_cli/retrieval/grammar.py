"""The grammar of queries: what was typed into terms, as a small tree. Pure, and every text has a tree.

    "a phrase"                 must be there as it is
    -x                         must not: a word of two letters or more, or any other term
    a OR b, (a b)              one of them; parentheses group, if there is an operator in them
    tag:x #x path:x file:x     narrow; the value may be quoted, or a group
    lang:x                     narrows to a language, by its code
    [property] [property:x]    a field of the frontmatter
    /regex/                    a regular expression
    line:x section:x           one line, or one section, that has all of it: `line:(a b)`
    task:x task-todo:x task-done:x

Everything else is a word. A broken operator is a problem where somebody meant one: at the start of the query, beside
other operators, or with no words beside it. Elsewhere it is text, and so are all but the oldest operators (quotes,
exclusions, `tag:`, `path:`, `file:`, `lang:`) in a text that was pasted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from co_cli.notes.language import read_language, unknown_language
from co_cli.notes.markdown import is_colour
from co_cli.values import SOURCES

LONGEST_TYPED = 500
"""Characters of a query that somebody typed. What is longer, or has several lines, was pasted."""
LONGEST_REGEX = 200
DEEPEST = 20
"""Groups in groups."""
Kind = Literal[
    "word", "phrase", "regex",  # a word whatever its ending; words exactly as they are
    "tag", "path", "file", "lang",
    "property", "key",  # a field of the frontmatter with a value, or with any
    "line", "section", "task", "task-todo", "task-done",  # of which one has what is in it; any task if there is nothing
    "not", "and", "or",
]  # fmt: skip
TEXTS = ("word", "phrase", "regex")
NARROWING = ("tag", "path", "file", "lang", "property", "key")
SCOPES = ("line", "section", "task", "task-todo", "task-done")


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
            case "property":
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
    problem: str | None = None
    """What is wrong with an operator, and the fix."""


# patterns are compiled when they are first used
TERM = r"""(?ix)
    (?P<no_field>-?)(?P<field>tag|path|file|lang):(?!//)(?:"(?P<quoted>[^"]*)"|"?(?P<value>[^\s"]+))
    | (?P<no_tag>-?)\#(?P<tag>[^\s"#,;:()]*[^\W\d_][^\s"#,;:()]*)
    | (?P<no_phrase>-?)"(?P<phrase>[^"]*)"
    | -"?(?P<refused>[^\W\d_]{2}\S*)
    | \S+
"""
SCOPED = r"(?i)-?(?P<name>line|section|task(?:-todo|-done)?):(?=\S)(?!(?<=line:)\d)"
GROUPED = r"(?i)-?(?P<name>tag|path|file|lang):(?=\()"
EMPTY = r"(?i)-?(?P<name>tag|path|file|lang|line|section|task(?:-todo|-done)?):(?!\S)"
PROPERTY = r"""(?x)
    -?\[(?P<key>"[^"\[\]]+"|[^\W\d_][^\[\]:"\n]*?)\s*
    (?::\s*(?P<value>\[\[[^\[\]\n]*\]\]|[^\[\]\n]*?)\s*)?\](?=[\s.,;!?)]|$)
"""
REGEX = r"-?/(?P<pattern>[^\s/](?:\\.|[^/\\\n])*)/(?=[\s)]|$)"
UNCLOSED = r"-?(?:(?:(?:tag|path|file|lang|line|section|task(?:-todo|-done)?):)?\((?=[\w\"\[#/(-])|\[(?=[^\W\d_\[]))"
FOREIGN = r"-?(?P<name>[a-z][a-z-]{2,20}):(?=[^\W\d_]|[\"(])"
NAMES = ("tag", "path", "file", "lang", "line", "section", "task")
NOT_OPERATORS = frozenset((*NAMES, *SOURCES, "mailto"))
"""Refs begin like this, too, and addresses."""
COMPARISONS = ("<", ">")


def parse_terms(text: str) -> Parsed:
    """The terms of a query."""
    reading = _TermReader(text)
    terms = reading.terms(0, len(text))
    empty = {broken.text for broken in reading.broken}
    loose = [term.text for term in terms if term.kind == "word" and term.text not in empty]
    words = any(any(map(str.isalnum, text)) for text in loose)
    operators = any(map(_is_operator, terms))
    languages = [leaf.text for term in terms for leaf, _ in leaves(term) if leaf.kind == "lang"]
    if unknown := [language for language in languages if not read_language(language)]:
        return Parsed(terms, problem=unknown_language(unknown[0]))
    start = len(text) - len(text.lstrip())
    for broken in reading.broken:
        meant = not words or (not broken.text and (operators or broken.place == start))
        if meant:
            return Parsed(terms, problem=broken.problem)
    return Parsed(terms, tuple(dict.fromkeys(reading.remarks)))


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


class _Broken(NamedTuple):
    """What looks like an operator and is none."""

    place: int
    problem: str
    text: str = ""
    """All of it, if it lacks nothing but a value, as in `task: call Mara`."""


class _TermReader:
    """One text that is being read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.typed = len(text) <= LONGEST_TYPED and "\n" not in text.strip()
        self.broken: list[_Broken] = []
        self.remarks: list[str] = []

    def terms(self, place: int, end: int, depth: int = 0) -> tuple[Node, ...]:
        """The terms between two places: those on each side of `OR` belong together."""
        sides: list[list[Node]] = [[]]
        while (place := self._skip_blanks(place, end)) < end:
            if self._is_or(place, end) and sides[-1]:
                sides.append([])
                place += 2
            else:
                nodes, place = self._term(place, end, depth)
                sides[-1] += nodes
        sides = [side for side in sides if side]
        return (Node("or", nodes=tuple(map(_all, sides))),) if len(sides) > 1 else tuple(sides[0] if sides else ())

    def _skip_blanks(self, place: int, end: int) -> int:
        while place < end and self.text[place].isspace():
            place += 1
        return place

    def _is_or(self, place: int, end: int) -> bool:
        """Whether `OR` stands here as a word, and something follows."""
        after = self.text[place + 2 : end]
        return self.typed and self.text.startswith("OR", place, end) and after[:1].isspace() and bool(after.strip())

    def _match(self, pattern: str, place: int, end: int) -> re.Match[str] | None:
        return re.compile(pattern).match(self.text, place, end)

    def _term(self, place: int, end: int, depth: int) -> tuple[list[Node], int]:
        """The next term, as no or several nodes, and where it ends."""
        found = self._operator(place, end, depth) if self.typed and depth <= DEEPEST else None
        if found is None:
            return self._old_term(place, end)
        node, stop = found
        if self.text[place] == "-":
            return [Node("not", nodes=(_exact(node),))], stop
        return (list(node.nodes) if node.kind == "and" else [node]), stop

    def _operator(self, place: int, end: int, depth: int) -> tuple[Node, int] | None:
        """The operator that begins here, unless it is one of the oldest, and where it ends."""
        first = place + (self.text[place] == "-")
        sign = self.text[first : first + 1]
        found: tuple[Node, int] | None = None
        if sign == "(":
            found = self._group(first, end, depth, meant=first > place)
        elif sign == "/" and (match := self._match(REGEX, place, end)):
            found = self._regex(match)
        elif sign == "[" and (match := self._match(PROPERTY, place, end)):
            found = self._property(match)
        elif sign.isalpha() and (match := self._match(GROUPED, place, end)):
            group = self._group(match.end(), end, depth, meant=True)
            found = (_of_field(group[0], match["name"].lower()), group[1]) if group else None
        elif sign.isalpha() and (match := self._match(SCOPED, place, end)):
            found = self._scoped(match, end, depth)
        if found is None:
            self._look_for_mistakes(place, end)
        return found

    def _group(self, place: int, end: int, depth: int, meant: bool = False) -> tuple[Node, int] | None:
        """What is in parentheses; None if they are only punctuation."""
        close = _closing(self.text, place, end)
        inside = self.terms(place + 1, close, depth + 1) if close is not None else ()
        if close is None or not inside or not (meant or any(map(_is_operator, inside))):
            return None
        return _all(inside), close + 1

    def _regex(self, found: re.Match[str]) -> tuple[Node, int] | None:
        problem = _regex_problem(found["pattern"])
        if problem is None:
            return Node("regex", found["pattern"]), found.end()
        self.broken.append(_Broken(found.start(), problem))
        return None

    def _property(self, found: re.Match[str]) -> tuple[Node, int] | None:
        key, value = found["key"].strip('" '), found["value"]
        if key in ("x", "X"):  # a task that is done
            return None
        if value is None:
            return Node("key", name=key), found.end()
        values = [part.strip().strip('"') for part in re.split(r"\sOR\s", value)]
        if not any(values):
            problem = f"[{key}:] has no value: [{key}:x] is a note's value, [{key}] any value"
            self.broken.append(_Broken(found.start(), problem, found[0]))
            return None
        if value.startswith(COMPARISONS):
            self.remarks.append(f"`[{key}:{value[:1]}]` is not supported: searched for the words")
            return None
        nodes = tuple(Node("property", part, key) for part in values if part)
        return nodes[0] if len(nodes) == 1 else Node("or", nodes=nodes), found.end()

    def _scoped(self, found: re.Match[str], end: int, depth: int) -> tuple[Node, int] | None:
        """`line:`, `section:` or `task:` and the one term after it."""
        kind, start = _scope(found["name"].lower()), found.end()
        if self.text.startswith('""', start, end) and kind not in ("line", "section"):
            return Node(kind), start + 2
        if self.text.startswith("(", start, end):
            group = self._group(start, end, depth, meant=True)
            return (Node(kind, nodes=(group[0],)), group[1]) if group else None
        if self.text.startswith('"', start, end) and '"' not in self.text[start + 1 : end]:
            start += 1  # a quote that is never closed is ignored
        nodes, stop = self._term(start, end, depth + 1) if start < end else ([], start)
        return (Node(kind, nodes=(_all(nodes),)), stop) if nodes else None

    def _look_for_mistakes(self, place: int, end: int) -> None:
        """Note what is written like an operator and is none."""
        if found := self._match(EMPTY, place, end):
            name = found["name"].lower()
            problem = f"`{name}:` has no value: say {name}:word, or {name}:(two words)"
            self.broken.append(_Broken(place, problem, found[0]))
        elif (opened := self._opened(place, end)) is not None:
            sign = ")" if self.text[opened] == "(" else "]"
            shown = self.text[place : place + 20]
            self.broken.append(_Broken(place, f"`{shown}` has no closing `{sign}`: add it, or quote the text"))
        elif (found := self._match(FOREIGN, place, end)) and found["name"] not in NOT_OPERATORS:
            self.remarks.append(f"`{found['name']}:` is not supported: searched for the word")

    def _opened(self, place: int, end: int) -> int | None:
        """Where a bracket of the operator here is that nothing closes."""
        found = self._match(UNCLOSED, place, end)
        if not found:
            return None
        opened = found.end() - 1
        is_round = self.text[opened] == "("
        closed = _closing(self.text, opened, end) is not None if is_round else "]" in self.text[opened:end]
        return None if closed else opened

    def _old_term(self, place: int, end: int) -> tuple[list[Node], int]:
        """A phrase, an exclusion, a tag, a path, a file name, or a word."""
        found = self._match(TERM, place, end)
        assert found
        if found["field"]:
            value = _value(found["quoted"] or found["value"] or "")
            node, refused = Node(_field(found["field"].lower()), value), found["no_field"]
        elif found["tag"] and not is_colour(found["tag"]):
            node, refused = Node("tag", _value(found["tag"])), found["no_tag"]
        elif found["phrase"] is not None:
            node, refused = Node("phrase", found["phrase"]), found["no_phrase"]
        elif found["refused"]:
            node, refused = Node("phrase", found["refused"].strip('"')), "-"
        else:
            node, refused = Node("word", (found["tag"] or found[0]).strip('"')), ""
        nodes = [Node("not", nodes=(node,)) if refused else node] if node.text.strip() else []
        return nodes, found.end()


def _all(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Node("and", nodes=tuple(nodes))


def _is_operator(node: Node) -> bool:
    return node.kind not in ("word", "phrase")


def _closing(text: str, place: int, end: int) -> int | None:
    """The parenthesis that closes the one at a place. Those between quotes do not count."""
    depth = 0
    while place < end:
        if text[place] == '"':
            place = max(place, text.find('"', place + 1, end))
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
        place += 1
    return None


def _exact(node: Node) -> Node:
    """Only the very words are excluded, not others with the same stem."""
    return Node("phrase", node.text) if node.kind == "word" else node._replace(nodes=tuple(map(_exact, node.nodes)))


def _of_field(node: Node, name: str) -> Node:
    """`path:(a OR b)`: each word is a value."""
    if node.kind in ("word", "phrase"):
        return Node(_field(name), _value(node.text))
    return node._replace(nodes=tuple(_of_field(member, name) for member in node.nodes))


def _field(name: str) -> Kind:
    return next(kind for kind in NARROWING if kind == name)


def _scope(name: str) -> Kind:
    return next(kind for kind in SCOPES if kind == name)


def _value(text: str) -> str:
    return text.strip(" #").rstrip(".,;!?/")


def _regex_problem(pattern: str) -> str | None:
    if len(pattern) > LONGEST_REGEX:
        return f"a regular expression may have {LONGEST_REGEX} characters, and this one has {len(pattern):,}"
    import regex  # 20 ms, only for a query that has one

    try:
        compile_regex(pattern, False)
    except regex.error as error:
        return f"/{pattern}/ is no regular expression: {error}"
    return None
