"""An element of a page into Markdown in one walk: headings, items and paragraphs, without links, emphasis and columns.

For what is too large to be rendered carefully, which takes a second for 5,000 elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

lxml_etree: Any = import_module("lxml.etree")  # compiled, and without types

RENDERED = 20_000
"""Elements: what has more is read this way."""
DEEPEST = 15
"""Lists and quotes inside of each other: each of them indents every line that it holds."""
BLOCKS = frozenset(
    "p div section article main aside header footer ul ol dl dd dt table tr pre blockquote hr form figure".split()
)
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def plainly(element: Any, escaped: Callable[[str], str]) -> str:
    """`escaped` makes a piece of text one that starts nothing and means nothing."""

    def flat(text: str | None) -> str:
        return escaped(re.sub(r"\s+", " ", text)) if text else ""

    parts: list[str] = []
    for event, inner in lxml_etree.iterwalk(element, events=("start", "end")):
        name = str(inner.tag)
        if event == "start":
            parts.append("\n\n" if name in BLOCKS or name in HEADINGS else "\n" if name in ("li", "br") else "")
            parts.append(HEADINGS.get(name) or ("- " if name == "li" else " | " if name in ("td", "th") else ""))
            parts.append(flat(inner.text))
        else:
            parts.append("\n\n" if name in BLOCKS or name in HEADINGS else "")
            parts.append("" if inner is element else flat(inner.tail))
    lines = [" ".join(line.split()).removeprefix("| ") for line in "".join(parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def count_elements(element: Any) -> int:
    return sum(1 for _ in element.iter())


def nested_too_deep(element: Any) -> bool:
    depth = 0
    for event, _ in lxml_etree.iterwalk(element, events=("start", "end"), tag=("ul", "ol", "blockquote")):
        depth += 1 if event == "start" else -1
        if depth > DEEPEST:
            return True
    return False
