"""What Markdown says about itself: headings, links and inline tags. Code is not looked into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
CODE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|(`+)[^`].*?(?<!`)\2(?!`)", re.S | re.M)
WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
LINK = re.compile(r"\]\(\s*<?([^)\s>]{1,500}+)>?(?:\s+[\"'][^\n]*?)?\s*\)")
TAG = re.compile(r"#(?<![^\s(,;]#)([^\W\d_][\w/-]*|\d[\w/-]*[^\W\d][\w/-]*)")
NOT_A_NOTE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//", re.I)


class Heading(NamedTuple):
    """One heading: its level, its text, and its line in the body (from 0)."""

    level: int
    text: str
    line: int


def headings(lines: list[str]) -> Iterator[Heading]:
    """Every ATX heading outside fenced code."""
    fence = ""
    for number, line in enumerate(lines):
        start = line[:4].lstrip(" ")[:1]
        if start in ("`", "~"):
            mark = FENCE.match(line)
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
                fence = ""
        elif start == "#" and not fence:
            found = HEADING.match(line)
            if found:
                yield Heading(len(found[1]), found[2], number)


def links(body: str) -> tuple[str, ...]:
    """The targets of `[[wikilinks]]` and of Markdown links to other files, in order, once each."""
    if "](" not in body and "[[" not in body:
        return ()
    text = CODE.sub(" ", body)
    targets = [found[1].split("#")[0].strip() for found in WIKILINK.finditer(text)]
    for found in LINK.finditer(text):
        if not NOT_A_NOTE.match(found[1]):
            targets.append(_unquoted(found[1].split("#")[0]))
    return tuple(dict.fromkeys(target for target in targets if target))


def inline_tags(body: str) -> tuple[str, ...]:
    """The `#tags` of the text, without those in code, links and headings."""
    if "#" not in body:
        return ()
    text = LINK.sub("]", CODE.sub(" ", body)) if "`" in body or "~~~" in body or "](" in body else body
    return tuple(dict.fromkeys(found[1].rstrip("/-") for found in TAG.finditer(text)))


def _unquoted(target: str) -> str:
    if "%" not in target:
        return target
    from urllib.parse import unquote  # rare, and slow to import

    return unquote(target)
