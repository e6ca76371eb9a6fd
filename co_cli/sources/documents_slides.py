"""A PowerPoint presentation into Markdown: a heading for each slide, its points, its tables, the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import plain, table
from co_cli.sources.documents_zip import Package, child, local, members, number, value

TITLES = ("title", "ctrTitle")
FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")


def read_slides(_: str, data: bytes) -> Document:
    package = Package(data)
    main = package.main_part("ppt/presentation.xml")
    root = package.xml(main)
    listed = None if root is None else child(root, "sldIdLst")
    if root is None:
        raise NotTextError("broken: no presentation in it; open it and save it again")
    related = package.related(main)
    names = [related.get(_relation(slide) or "", ("", ""))[1] for slide in members(listed)]
    blocks: list[str] = []
    for count, name in enumerate(names, start=1):
        slide = package.xml(name)
        if slide is not None:
            heading, points = _read(slide)
            blocks += [f"## Slide {count}" + (f": {heading}" if heading else ""), *points]
            blocks += [f"Notes: {note}" for note in _notes(package, name)]
    title, metadata = package.properties()
    return Document(title, "\n\n".join(blocks) + "\n" if blocks else "", {**metadata, "slides": len(names)})


def _relation(slide: Any) -> str | None:
    """`r:id`, which is not `id`."""
    return next((str(text) for key, text in slide.attrib.items() if str(key).endswith("}id")), None)


def _read(slide: Any) -> tuple[str, list[str]]:
    """The slide's title, and a block for each shape with text."""
    title = ""
    blocks: list[str] = []
    for shape in _shapes(slide):
        if local(shape) == "tbl":
            rows = [[_flat(cell) for cell in row if local(cell) == "tc"] for row in shape if local(row) == "tr"]
            blocks.append(table(rows))
        else:
            kind = _placeholder(shape)
            if kind in TITLES and not title:
                title = _flat(shape)
            elif kind not in FURNITURE:
                blocks.append(_points(shape, listed=kind is not None and kind != "subTitle"))
    return title, [block for block in blocks if block]


def _notes(package: Package, name: str) -> Iterator[str]:
    for kind, path in package.related(name).values():
        notes = package.xml(path) if kind == "notesSlide" else None
        if notes is not None:
            said = " ".join(_flat(shape) for shape in _shapes(notes) if _placeholder(shape) == "body").strip()
            if said:
                yield said


def _shapes(element: Any) -> Iterator[Any]:
    """Shapes with text and tables, in the order in which they lie on the slide."""
    for inner in element:
        name = local(inner)
        if name in ("sp", "tbl"):
            yield inner
        elif name != "Fallback":
            yield from _shapes(inner)


def _placeholder(shape: Any) -> str | None:
    """What the slide's layout calls the place of this shape; None for a text box."""
    found = child(shape, "nvSpPr", "nvPr", "ph")
    return None if found is None else value(found, "type") or "body"


def _points(shape: Any, listed: bool) -> str:
    body = child(shape, "txBody")
    lines: list[str] = []
    for paragraph in members(body):
        text = _text(paragraph).strip() if local(paragraph) == "p" else ""
        if text and listed:
            properties = child(paragraph, "pPr")
            depth = 0 if properties is None else number(value(properties, "lvl"))
            lines.append("  " * min(depth, 8) + "- " + text.replace("\n", " "))
        elif text:
            lines.append(plain(text))
    return "\n".join(lines)


def _flat(element: Any) -> str:
    return " ".join(" ".join(_text(inner) for inner in element.iter() if local(inner) == "p").split())


def _text(paragraph: Any) -> str:
    parts: list[str] = []
    for inner in paragraph.iter():
        if local(inner) == "t":
            parts.append(inner.text or "")
        elif local(inner) == "br":
            parts.append("\n")
    return "".join(parts)
