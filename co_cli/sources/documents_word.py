"""A Word document into Markdown: headings, lists, tables and notes as its author made them.

What was deleted under "track changes" is gone, what was inserted is there. Headers, footers and comments are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import joined, plain, table
from co_cli.sources.documents_zip import Package, child, local, members, number, value

NOT_SHOWN = frozenset(
    "del moveFrom instrText delText delInstrText Fallback pPr rPr sectPr tblPr tcPr trPr sdtPr".split()
)
TITLE = 0
"""The level of a paragraph in the style Title."""


def read_word(_: str, data: bytes) -> Document:
    package = Package(data)
    main = package.main_part("word/document.xml")
    root = package.xml(main)
    body = None if root is None else child(root, "body")
    if body is None:
        raise NotTextError("broken: no Word document in it; open it and save it again")
    parts = dict(package.related(main).values())
    styles = _Styles(package.xml(parts.get("styles", "word/styles.xml")))
    title, metadata = package.properties()
    text = _Text(styles)
    blocks = list(text.blocks(body))
    for kind, name in (("footnotes", "footnote"), ("endnotes", "endnote")):
        notes = package.xml(parts[kind]) if kind in parts else None
        for note in members(notes):
            said = " ".join(text.line(note).split())
            if local(note) == name and value(note, "type") is None and said:
                blocks.append(f"[^{_mark(name, note)}]: {said}")
    return Document(title or text.title, "\n\n".join(blocks) + "\n" if blocks else "", metadata)


class _Styles:
    """Which styles are headings or lists: by name, which is the same in every language, or by what they build on."""

    def __init__(self, root: Any) -> None:
        self._found = {value(style, "styleId"): style for style in members(root) if local(style) == "style"}
        self._kinds: dict[str | None, tuple[str, int]] = {}

    def kind(self, name: str | None) -> tuple[str, int]:
        """heading with its level, list, or nothing of the kind."""
        if name not in self._kinds:
            self._kinds[name] = self._kind(name)
        return self._kinds[name]

    def _kind(self, name: str | None) -> tuple[str, int]:
        for _ in range(12):  # styles build on styles, and a broken file goes in a circle
            style = self._found.get(name)
            if style is None:
                return "", 0
            called = str(value(child(style, "name")) if child(style, "name") is not None else "").lower()
            if called == "title":
                return "heading", TITLE
            if called.startswith("heading ") and called[8:].isdigit():
                return "heading", min(number(called[8:], 1), 6)
            outline = child(style, "pPr", "outlineLvl")
            if outline is not None and number(value(outline), 9) < 9:
                return "heading", min(number(value(outline)) + 1, 6)
            if called.startswith(("list bullet", "list number")):
                return "list", 0
            above = child(style, "basedOn")
            name = None if above is None else value(above)
        return "", 0


class _Text:
    def __init__(self, styles: _Styles) -> None:
        self._styles = styles
        self.title: str | None = None

    def blocks(self, element: Any) -> Iterator[str]:
        """Paragraphs, with a list as one block, and tables."""
        return joined(self._pieces(element))

    def _pieces(self, element: Any) -> Iterator[tuple[str, str]]:
        for inner in element:
            name = local(inner)
            if name == "p":
                yield from self._paragraph(inner)
            elif name == "tbl":
                yield from self._table(inner)
            elif name not in NOT_SHOWN:
                yield from self._pieces(inner)

    def _paragraph(self, element: Any) -> Iterator[tuple[str, str]]:
        text = self.line(element).strip()
        if not text:
            return
        kind, level, depth = self._kind(element)
        if kind == "heading":
            heading = " ".join(text.split())
            if level == TITLE:
                self.title = self.title or heading
            yield "heading", "#" * max(level, 1) + f" {heading}"
        elif kind == "list":
            yield "item", "  " * min(depth, 8) + "- " + text.replace("\n", " ")
        else:
            yield "text", plain(text)

    def _kind(self, paragraph: Any) -> tuple[str, int, int]:
        properties = child(paragraph, "pPr")
        if properties is None:
            return "", 0, 0
        style = child(properties, "pStyle")
        kind, level = self._styles.kind(None if style is None else value(style))
        outline = child(properties, "outlineLvl")
        if kind != "heading" and outline is not None and number(value(outline), 9) < 9:
            return "heading", min(number(value(outline)) + 1, 6), 0
        numbered = child(properties, "numPr")
        if kind != "heading" and numbered is not None:
            depth = child(numbered, "ilvl")
            return "list", 0, 0 if depth is None else number(value(depth))
        return kind, level, 0

    def _table(self, element: Any) -> Iterator[tuple[str, str]]:
        rows = [list(_inside(row, "tc")) for row in _inside(element, "tr")]
        if len(rows) == 1 and len(rows[0]) == 1:  # a frame around text
            yield from self._pieces(rows[0][0])
            return
        text = table([[" ".join(self.line(cell).split()) for cell in row] for row in rows])
        if text:
            yield "table", text

    def line(self, element: Any) -> str:
        """All text inside, with a line for each paragraph in it."""
        parts: list[str] = []
        self._gather(element, parts)
        return "".join(parts)

    def _gather(self, element: Any, parts: list[str]) -> None:
        for inner in element:
            name = local(inner)
            if name == "t":
                parts.append(inner.text or "")
            elif name in ("tab", "ptab"):
                parts.append("\t")
            elif name in ("br", "cr"):
                parts.append("\n")
            elif name == "noBreakHyphen":
                parts.append("-")
            elif name in ("footnoteReference", "endnoteReference"):
                parts.append(f"[^{_mark(name.removesuffix('Reference'), inner)}]")
            elif name not in NOT_SHOWN:
                self._gather(inner, parts)
                if name == "p":
                    parts.append("\n")
                elif name == "tc":
                    parts.append(" ")


def _inside(element: Any, wanted: str) -> Iterator[Any]:
    """Rows of a table or cells of a row, also where they are wrapped."""
    for inner in element:
        if local(inner) == wanted:
            yield inner
        elif local(inner) in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _inside(inner, wanted)


def _mark(kind: str, element: Any) -> str:
    """Of a note: endnotes have numbers of their own."""
    return ("e" if kind == "endnote" else "") + str(number(value(element, "id")))
