"""Word, Excel and PowerPoint files into Markdown, with python-docx, openpyxl and python-pptx.

Runs in the worker process, which limits time and memory. The libraries trust their input, so they read a copy of the
file that holds only XML parts of limited size without a DTD: no bombs, no entities, no pictures.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from io import BytesIO
from typing import Any

from co_cli.notes.encoding import UTF_16, NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.formats import BY_ENDING
from co_cli.sources.documents.markup import own_title, plain, table
from co_cli.sources.documents.zip_parts import ZipParts

etree: Any = import_module("lxml.etree")  # compiled, without types

OLD_OFFICE = b"\xd0\xcf\x11\xe0"
XML = (".xml", ".rels", ".vml")
VARIANT = re.compile(rb'"[^"]*\.(document|template|slideshow|presentation)(\.macroEnabled\w*)?\.main\+xml"')
"""The content types of templates, slide shows and files with macros, which python-docx and python-pptx refuse."""
MAIN = {
    "docx": b'"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"',
    "pptx": b'"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"',
}
TYPES = {
    "docx": re.compile(rb'"[^"]*\b(?:wordprocessingml|ms-word)\.[^"]*\.main\+xml"'),
    "xlsx": re.compile(rb'"[^"]*\b(?:spreadsheetml|ms-excel)\.[^"]*\.main\+xml"'),
    "pptx": re.compile(rb'"[^"]*\b(?:presentationml|ms-powerpoint)\.[^"]*\.main\+xml"'),
}
"""What a file is, by the content type of its main part."""
DECLARED = re.compile(r"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)")
PROPERTIES = {"creator": "author", "created": "created", "modified": "updated", "language": "language"}
TEMPLATE_DATES = (
    *("2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z", "2013-01-27T09:15:58Z"),  # python-docx, python-pptx
    *("2006-09-16T00:00:00Z", "1996-10-14T23:33:28Z", "2015-06-05T18:17:20Z", "2015-06-05T18:19:34Z"),  # Excel
    "2006-08-16T00:00:00Z",  # PowerPoint
)
"""Dates of the templates that programs make new files from; they say nothing about a document."""

MOST_ROWS = 20_000
"""Of one sheet. What follows is data rather than text."""
MOST_COLUMNS = 200
MOST_CELLS = 400_000
"""Of all sheets together."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
HIDDEN = "ancestor::w:moveFrom or ancestor::*[local-name()='Fallback']"
BLOCKS, ROWS, CELLS, TEXT = (
    etree.XPath(path, namespaces={"w": W[1:-1]})
    for path in (
        ".//*[self::w:p or self::w:tbl][not(ancestor::w:p or ancestor::w:tbl)]",
        "w:tr | w:sdt/w:sdtContent/w:tr",
        "w:tc | w:sdt/w:sdtContent/w:tc",
        f".//*[self::w:t or self::w:p or parent::w:r and (self::w:tab or self::w:br or self::w:cr)][not({HIDDEN})]",
    )
)
"""Reads content controls (w:sdt), tracked changes as if accepted, and each text box once."""


def read_word(data: bytes) -> Iterator[Document]:
    docx: Any = import_module("docx")  # these libraries take 70 to 230 ms to import
    file, title, metadata = _clean_copy(data, "docx")
    word = docx.Document(file)
    kinds = _style_kinds(word.styles)
    lines: list[str] = []
    for block in BLOCKS(word.element.body):
        kind, depth = _kind(block, kinds)
        if block.tag == f"{W}tbl":
            text = _word_table(block)
        elif kind == "title" or kind.startswith("heading"):
            text = _flat(block) and "#" * depth + " " + _flat(block)
            title = title or (_flat(block) if kind == "title" else None)
        elif kind == "list":
            text = _flat(block) and "  " * depth + "- " + _flat(block)
        else:
            text = plain(_text(block).strip())
        if text:
            lines += [text] if kind == "list" and lines and lines[-1].lstrip().startswith("- ") else ["", text]
    for relation in word.part.rels.values():
        if relation.reltype.endswith(("/footnotes", "/endnotes")):
            notes = [note for note in docx.oxml.parse_xml(relation.target_part.blob) if not note.get(f"{W}type")]
            lines += [line for note in notes for line in ("", plain(_flat(note)))]
    yield Document(title, "\n".join(lines).strip("\n"), metadata)


def _style_kinds(styles: Any) -> dict[str, str]:
    """Style ids to title, heading 2, list, …: by name, which is the same in every language, or by the style's base."""
    named = {style.styleId: ((style.name_val or "").lower(), style.basedOn_val) for style in styles.element.style_lst}
    kinds: dict[str, str] = {}
    for style in named:
        name, base = named[style]
        for _ in range(12):  # a broken file may go in a circle
            if found := re.match(r"title$|heading [1-9]$|list(?= bullet| number)", name):
                kinds[style] = found[0]
                break
            name, base = named.get(base, ("", None))
    return kinds


def _kind(block: Any, kinds: dict[str, str]) -> tuple[str, int]:
    """title, heading, list or nothing special, and its depth."""
    properties = getattr(block, "pPr", None)  # a table has none
    if properties is None:
        return "", 0
    kind, numbering = kinds.get(block.style, ""), properties.numPr
    if kind.startswith(("title", "heading")):
        return kind, min(int(kind[8:] or 1), 6)
    level = None if numbering is None else numbering.ilvl
    return kind if numbering is None else "list", 0 if level is None else min(max(level.val, 0), 8)


def _word_table(element: Any) -> str:
    rows = [[_flat(cell) for cell in CELLS(row)] for row in ROWS(element)]
    return plain(_text(element).strip()) if len(rows) == 1 and len(rows[0]) == 1 else table(rows)


def _text(element: Any) -> str:
    signs = {f"{W}t": "", f"{W}tab": "\t"}
    return "".join(found.text or "" if found.tag == f"{W}t" else signs.get(found.tag, "\n") for found in TEXT(element))


def _flat(element: Any) -> str:
    return " ".join(_text(element).split())


def read_sheets(data: bytes) -> Iterator[Document]:
    openpyxl: Any = import_module("openpyxl")
    file, title, metadata = _clean_copy(data, "xlsx")
    sheets = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False).worksheets
    yield Document(title, "", {**metadata, "sheets": len(sheets)})
    left = MOST_CELLS
    for sheet in sheets:
        sheet.reset_dimensions()  # many programs write wrong ones
        rows: list[list[str]] = []
        cut: dict[str, None] = {}
        for count, row in enumerate(sheet.iter_rows(values_only=True)):
            if count >= MOST_ROWS or left <= 0:
                cut[f"{count:,} rows"] = None
                break
            rows.append([_value(cell) for cell in row[:MOST_COLUMNS]])
            left -= len(rows[-1])
            if any(map(_value, row[MOST_COLUMNS:])):
                cut[f"{MOST_COLUMNS} columns"] = None
        name = " ".join(str(sheet.title).split())
        problem = f"only the first {' and '.join(cut)} of {name} are read" if cut else None
        yield Document(None, f"## Sheet {name}\n\n{table(rows)}", {}, problem)


def _value(value: object) -> str:
    """As a person sees it in the sheet."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, datetime):
        return str(value.replace(microsecond=0)).removesuffix(" 00:00:00")
    return "" if value is None else str(value)


def read_slides(data: bytes) -> Iterator[Document]:
    pptx: Any = import_module("pptx")
    file, title, metadata = _clean_copy(data, "pptx")
    slides = pptx.Presentation(file).slides
    yield Document(title, "", {**metadata, "slides": len(slides)})
    for number, slide in enumerate(slides, 1):
        heading = slide.shapes.title
        named = "" if heading is None else " ".join(heading.text_frame.text.split())
        blocks = [f"## Slide {number}" + (f": {named}" if named else "")]
        blocks += [block for shape in slide.shapes if shape != heading for block in _shape(shape) if block]
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            blocks.append(f"Notes: {' '.join(notes.text.split())}")
        yield Document(None, "\n\n".join(blocks))


def _shape(shape: Any) -> Iterator[str]:
    place = str(shape.placeholder_format.type) if shape.is_placeholder else ""
    if hasattr(shape, "shapes"):  # a group
        for inner in shape.shapes:
            yield from _shape(inner)
    elif shape.has_table:
        yield table([[cell.text for cell in row.cells] for row in shape.table.rows])
    elif shape.has_text_frame and not place.startswith(("DATE", "FOOTER", "SLIDE_NUMBER", "HEADER")):
        paragraphs = [
            (paragraph.level, paragraph.text.replace("\v", "\n").strip()) for paragraph in shape.text_frame.paragraphs
        ]
        listed = place and not place.startswith("SUBTITLE")
        yield "\n".join(
            "  " * level + "- " + " ".join(text.split()) if listed else plain(text)
            for level, text in paragraphs
            if text
        )


def _clean_copy(data: bytes, ending: str) -> tuple[BytesIO, str | None, dict[str, object]]:
    """The file without what could harm its parser, its title, and what else it says about itself."""
    if data.startswith(OLD_OFFICE):
        raise NotTextError("protected by a password, or an old Office file: save it without one, in the new format")
    copy = BytesIO()
    about: Any = ()
    parts = ZipParts(data, BY_ENDING[ending].name)
    with zipfile.ZipFile(copy, "w") as clean:
        for name in parts.names:
            part = _without_dtd(parts.read(name)) if name.endswith(XML) else b""
            if name == "[Content_Types].xml":
                _require_type(part, ending)
                part = VARIANT.sub(MAIN[ending], part) if ending in MAIN else part
            if name == "docProps/core.xml":
                about = etree.fromstring(part, etree.XMLParser(resolve_entities=False))
            clean.writestr(name, part)
    said = {
        etree.QName(element).localname: (element.text or "").strip()
        for element in about
        if isinstance(element.tag, str)
    }
    known = {name: said[name] for name in PROPERTIES if said.get(name) and said[name] not in TEMPLATE_DATES}
    metadata: dict[str, object] = {PROPERTIES[name]: value for name, value in known.items()}
    copy.seek(0)
    return copy, own_title(said.get("title")), metadata


def _require_type(content_types: bytes, ending: str) -> None:
    if TYPES[ending].search(content_types):
        return
    for other, main_part in TYPES.items():
        if main_part.search(content_types):
            raise NotTextError(f"{BY_ENDING[other].name}, not {BY_ENDING[ending].name}: rename it to .{other}")


def _without_dtd(part: bytes) -> bytes:
    if "<!DOCTYPE" in _decoded(part):
        raise NotTextError("broken: its XML contains a DTD; open it and save it again")
    return part


def _decoded(part: bytes) -> str:
    """As an XML parser reads it. Other encodings than Office writes could hide a DTD from us, but not from a parser."""
    try:
        text = part.decode("utf-16" if part.startswith(UTF_16) else "utf-8")
        declared = DECLARED.match(text.removeprefix("\ufeff"))
        if "\0" not in text and (not declared or declared[1].upper() in ("UTF-8", "UTF-16", "US-ASCII")):
            return text
    except UnicodeDecodeError:
        pass
    raise NotTextError("broken: its XML is neither UTF-8 nor UTF-16; open it and save it again")
