"""OpenDocument (LibreOffice's texts, presentations and tables) into Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_endings import ending_of
from co_cli.sources.documents_markdown import joined, plain, table
from co_cli.sources.documents_zip import (
    OPEN_KEYS,
    Package,
    child,
    local,
    members,
    number,
    parse_xml,
    properties_of,
    value,
)

NOT_SHOWN = frozenset(
    "tracked-changes annotation annotation-end forms sequence-decls variable-decls user-field-decls settings".split()
)
MOST_ROWS = 20_000
MOST_REPEATED = 20
"""A cell that is repeated a thousand times says the same thing a thousand times."""


def read_open_document(name: str, data: bytes) -> Document:
    if ending_of(name) == "fodt":
        root = meta = parse_xml(data, name.rpartition("/")[2])
    else:
        package = Package(data)
        if b"encryption-data" in (package.read("META-INF/manifest.xml") or b""):
            raise NotTextError("protected by a password: save it without one")
        root, meta = package.xml("content.xml"), package.xml("meta.xml")
    body = None if root is None else child(root, "body")
    if body is None or not len(body):
        raise NotTextError("broken: no document in it; open it and save it again")
    said = None if meta is None else child(meta, "meta")
    title, metadata = properties_of(members(said), OPEN_KEYS)
    kind = local(body[0])
    blocks = list(joined(_sheets(body[0]) if kind == "spreadsheet" else _pieces(body[0])))
    counted = {"presentation": ("slides", "page"), "spreadsheet": ("sheets", "table")}.get(kind)
    if counted:
        metadata[counted[0]] = sum(1 for inner in body[0] if local(inner) == counted[1])
    return Document(title, "\n\n".join(blocks) + "\n" if blocks else "", metadata)


def _pieces(element: Any, depth: int = -1) -> Iterator[tuple[str, str]]:
    slide = 0
    for inner in element:
        name = local(inner)
        if name == "h":
            level = min(max(number(value(inner, "outline-level"), 1), 1), 6)
            text = " ".join(_text(inner).split())
            yield from [("heading", "#" * level + f" {text}")] if text else []
        elif name == "p":
            text = _text(inner).strip()
            if text and depth >= 0:
                yield "item", "  " * min(depth, 8) + "- " + text.replace("\n", " ")
            elif text:
                yield "text", plain(text)
            yield from _boxes(inner)
        elif name == "list":
            yield from _pieces(inner, depth + 1)
        elif name == "table":
            text = table(_rows(inner))
            yield from [("table", text)] if text else []
        elif name == "page":
            slide += 1
            yield "heading", f"## Slide {slide}"
            yield from _pieces(inner)
        elif name == "notes":
            notes = " ".join(" ".join(text for _, text in _pieces(inner)).split())
            yield from [("text", f"Notes: {notes}")] if notes else []
        elif name not in NOT_SHOWN:
            yield from _pieces(inner, depth)


def _boxes(paragraph: Any) -> Iterator[tuple[str, str]]:
    """What stands in frames that hang on a paragraph."""
    for inner in paragraph:
        if local(inner) == "text-box":
            yield from _pieces(inner)
        elif local(inner) not in NOT_SHOWN:
            yield from _boxes(inner)


def _sheets(element: Any) -> Iterator[tuple[str, str]]:
    for inner in element:
        if local(inner) == "table":
            yield "heading", f"## Sheet {' '.join((value(inner, 'name') or '').split())}"
            text = table(_rows(inner))
            yield from [("table", text)] if text else []


def _rows(element: Any) -> list[list[str]]:
    found: list[list[str]] = []
    for row in element.iter("{*}table-row"):
        cells: list[str] = []
        for cell in row:
            if local(cell) in ("table-cell", "covered-table-cell"):
                text = " ".join(" ".join(_text(inner) for inner in cell if local(inner) not in NOT_SHOWN).split())
                cells += [text] * min(number(value(cell, "number-columns-repeated"), 1), MOST_REPEATED)
        found.append(cells)
        if len(found) >= MOST_ROWS:
            break
    return found


def _text(element: Any) -> str:
    """Of a paragraph, without what hangs on it; a footnote follows its place in brackets."""
    parts = [element.text or ""]
    for inner in element:
        name = local(inner)
        if name == "s":
            parts.append(" " * min(number(value(inner, "c"), 1), 100))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name == "note":
            body = child(inner, "note-body")
            said = "" if body is None else " ".join(_text(body).split())
            parts.append(f" ({said})" if said else "")
        elif name not in NOT_SHOWN and name != "text-box":
            parts.append(_text(inner))
        parts.append(inner.tail or "")
    return "".join(parts)
