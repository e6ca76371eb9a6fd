"""An Excel workbook into Markdown: a heading and a table for each sheet, values as a person sees them.

A formula is its last result. Dates, which Excel keeps as numbers, are dates. Sheets are read row by row, so that one
with a million of them costs no more memory than is kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import table
from co_cli.sources.documents_zip import ELEMENTS, Package, child, local, lxml_etree, members, number, value

MOST_ROWS = 20_000
"""Of one sheet: what is beyond is data, not text."""
MOST_COLUMNS = 200
MOST_CELLS = 400_000
"""Of all sheets together."""
DATE_FORMATS = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
DATE_LETTERS = re.compile(r"[ymdhs]", re.I)
NOT_LETTERS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
PLACE = re.compile(r"([A-Z]{1,3})\d+")


def read_sheets(_: str, data: bytes) -> Document:
    package = Package(data)
    main = package.main_part("xl/workbook.xml")
    root = package.xml(main)
    listed = None if root is None else child(root, "sheets")
    if listed is None:
        raise NotTextError("broken: no workbook in it; open it and save it again")
    related = package.related(main)
    parts = dict(related.values())
    properties = child(root, "workbookPr")
    cells = _Cells(
        _shared(package.xml(parts.get("sharedStrings", "xl/sharedStrings.xml"))),
        _date_styles(package.xml(parts.get("styles", "xl/styles.xml"))),
        properties is not None and value(properties, "date1904") in ("1", "true"),
    )
    blocks: list[str] = []
    cut: list[str] = []
    left = MOST_CELLS
    for sheet in listed:
        relation = next((str(text) for key, text in sheet.attrib.items() if str(key).endswith("}id")), "")
        content = package.read(related.get(relation, ("", ""))[1])
        called = " ".join(str(value(sheet, "name") or "").split())
        rows = [] if content is None or left <= 0 else list(_rows(content, cells, left))
        left -= sum(map(len, rows))
        if len(rows) > MOST_ROWS or left <= 0:
            cut.append(f"{called} ({len(rows[:MOST_ROWS]):,} rows)")
        blocks += [block for block in (f"## Sheet {called}", table(rows[:MOST_ROWS])) if block]
    title, metadata = package.properties()
    problem = f"only the beginning is read of: {', '.join(cut)}" if cut else None
    return Document(title, "\n\n".join(blocks) + "\n", {**metadata, "sheets": len(listed)}, problem)


class _Cells:
    """The values of cells, for which a workbook keeps texts and formats in places of their own."""

    def __init__(self, shared: list[str], dates: list[bool], since_1904: bool) -> None:
        self._shared, self._dates = shared, dates
        self._start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)

    def text(self, cell: Any) -> str:
        kind = value(cell, "t")
        if kind == "inlineStr":
            return "".join(inner.text or "" for inner in cell.iter() if local(inner) == "t")
        found = child(cell, "v")
        said = "" if found is None else (found.text or "").strip()
        if kind == "s":
            place = number(said, len(self._shared)) if len(said) < 7 else len(self._shared)
            return self._shared[place] if place < len(self._shared) else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(said, "")
        if kind not in (None, "n") or not said:
            return said
        style = number(value(cell, "s"))
        return self._number(said, style < len(self._dates) and self._dates[style])

    def _number(self, said: str, is_date: bool) -> str:
        try:
            amount = float(said)
            if not is_date:
                return said if said.lstrip("-").isdigit() else f"{amount:.12g}"
            moment = (self._start + timedelta(days=amount) + timedelta(milliseconds=500)).replace(microsecond=0)
        except (ValueError, OverflowError):
            return said
        if amount < 1:
            return moment.strftime("%H:%M:%S")
        return moment.date().isoformat() if amount == int(amount) else moment.isoformat(" ")


def _rows(content: bytes, cells: _Cells, left: int) -> Iterator[list[str]]:
    """One more than are wanted, so that it is known whether something was left out."""
    count = 0
    try:
        for _, row in lxml_etree.iterparse(BytesIO(content), tag="{*}row", **ELEMENTS):
            found = _row(row, cells)
            if any(found):
                yield found
                count += 1
                left -= len(found)
                if count > MOST_ROWS or left <= 0:
                    return
            row.clear()
            while row.getprevious() is not None:
                del row.getparent()[0]
    except lxml_etree.LxmlError:
        raise NotTextError("broken: one of its sheets is no XML; open it and save it again") from None


def _row(row: Any, cells: _Cells) -> list[str]:
    found: list[str] = []
    for cell in row:
        if local(cell) != "c" or len(found) >= MOST_COLUMNS:
            continue
        place = _column(value(cell, "r"))
        found += [""] * (min(place, MOST_COLUMNS - 1) - len(found))
        found.append(cells.text(cell))
    return found


def _column(place: str | None) -> int:
    """`C7` is in column 2, counted from 0; -1 where the file does not say."""
    found = PLACE.fullmatch(place or "")
    column = 0
    for letter in found[1] if found else "":
        column = column * 26 + ord(letter) - 64
    return column - 1


def _shared(root: Any) -> list[str]:
    found: list[str] = []
    for entry in members(root):
        parts = [inner for inner in entry.iter() if local(inner) == "t" and local(inner.getparent()) != "rPh"]
        found.append("".join(part.text or "" for part in parts))
    return found


def _date_styles(root: Any) -> list[bool]:
    """For each style of a cell: does it show a number as a moment?"""
    if root is None:
        return []
    formats, styles = child(root, "numFmts"), child(root, "cellXfs")
    own = {
        number(value(entry, "numFmtId")): bool(
            DATE_LETTERS.search(NOT_LETTERS.sub("", value(entry, "formatCode") or ""))
        )
        for entry in members(formats)
    }
    used = [number(value(style, "numFmtId")) for style in members(styles)]
    return [own.get(entry, entry in DATE_FORMATS) for entry in used]
