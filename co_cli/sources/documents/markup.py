"""Pieces of Markdown that the parsers of documents write: escaped text, tables, fences, titles."""

from __future__ import annotations

import re
from collections.abc import Sequence

STARTS = re.compile(r"^([ \t]*)(#{1,6}(?=\s|$)|```|~~~|(?:={2,}|-{3,})(?=[ \t]*$))", re.M)
NO_TITLE = re.compile(
    r"untitled.*|microsoft word - .*|(?:microsoft )?powerpoint[ -]presentation|word document|document ?\d*|title|"
    r"book ?\d*|[^ ]+\.(?:docx?|odt|dvi|tex|indd|qxd|pmd|pptx?|xlsx?|pdf|html?)|",
    re.I,
)
"""What programs write if the author gave no title."""


def plain(text: str) -> str:
    """Escape whatever would start a heading or a code block: only the parsers' own marks do."""
    return STARTS.sub(r"\1\\\2", text)


def fenced(code: str, language: str = "") -> str:
    """A code block with a fence that does not occur in the code."""
    fence = "`" * (1 + max([2, *(len(run) for run in re.findall("`{3,}", code))]))
    return f"{fence}{re.sub(r'[^A-Za-z0-9+#-]', '', language)[:20].lower()}\n{code.strip(chr(10))}\n{fence}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with the first row as its head, without empty rows and without empty columns at the right."""
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(place for row in cells for place, cell in enumerate(row, 1) if cell)
    lines = ["| " + " | ".join((row + [""] * width)[:width]) + " |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def own_title(text: str | None) -> str | None:
    """The title that an author wrote; None for one that a program filled in."""
    line = " ".join((text or "").split())
    return None if NO_TITLE.fullmatch(line) else line
