"""Pieces of Markdown that readers of documents write: lines that start nothing, tables, fences; titles and moments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

STARTS = re.compile(r"^([ \t]*)(#{1,6}(?=\s|$)|```|~~~|(?:={2,}|-{3,})(?=[ \t]*$))", re.M)
NO_TITLE = re.compile(
    r"untitled.*|microsoft word - .*|(?:microsoft )?powerpoint[ -]presentation|document ?\d*|title|book ?\d*|"
    r"[^ ]+\.(?:docx?|odt|dvi|tex|indd|qxd|pmd|pptx?|xlsx?|pdf|html?)|",
    re.I,
)
"""What programs write where the author wrote no title."""
PDF_MOMENT = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(Z|[+-]\d\d'?\d\d)?")


def plain(text: str) -> str:
    """Text of a document in which no line begins a heading or a code block: only the reader's own marks do."""
    return STARTS.sub(r"\1\\\2", text)


def fenced(code: str, language: str = "") -> str:
    """As a code block with a fence that does not stand in the code."""
    fence = "`" * (1 + max([2, *(len(run) for run in re.findall("`{3,}", code))]))
    return f"{fence}{re.sub(r'[^A-Za-z0-9+#-]', '', language)[:20].lower()}\n{code.strip(chr(10))}\n{fence}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table; the first one is its head. Cells that no row fills are left out at the right."""
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(last_filled(row) for row in cells)
    lines = ["| " + " | ".join((row + [""] * width)[:width]) + " |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def last_filled(row: Sequence[str]) -> int:
    """How many cells there are up to the last one that is not empty."""
    return next((place + 1 for place in range(len(row) - 1, -1, -1) if row[place]), 0)


def own_title(text: str | None) -> str | None:
    """What an author called it; None for what a program did."""
    line = " ".join((text or "").split())
    return None if NO_TITLE.fullmatch(line) else line


def pdf_moment(text: str) -> str | None:
    """`D:20250208122313+01'00'` as ISO text, as far as it goes; None for a moment that does not exist."""
    from datetime import datetime

    found = PDF_MOMENT.match(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    offset = (
        "" if not zone else "+00:00" if zone == "Z" else zone.replace("'", "")[:3] + ":" + zone.replace("'", "")[3:5]
    )
    if not hour:
        iso = f"{year}-{month or '01'}-{day or '01'}"
    else:
        iso = f"{year}-{month}-{day}T{hour}:{minute or '00'}:{second or '00'}{offset}"
    try:
        return datetime.fromisoformat(iso).isoformat().replace("+00:00", "Z") if hour else iso
    except ValueError:
        return None


def joined(pieces: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Pieces, each with its kind, as blocks: a list is one of them."""
    items: list[str] = []
    for kind, text in pieces:
        if kind == "item":
            items.append(text)
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield text
    if items:
        yield "\n".join(items)
