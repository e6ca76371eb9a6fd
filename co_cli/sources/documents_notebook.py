"""A Jupyter notebook into Markdown: its texts as they are, its code in fences, and what the code printed."""

from __future__ import annotations

import json
from typing import Any, cast

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import fenced, plain
from co_cli.sources.documents_text import read_characters

LONGEST_OUTPUT = 2_000
"""Characters: a table of results is worth finding, a log of an hour's training is not."""
Cell = dict[str, Any]


def read_notebook(_: str, data: bytes) -> Document:
    text, problem = read_characters(data)
    try:
        notebook: object = json.loads(text)
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a notebook ({error})") from None
    if not isinstance(notebook, dict):
        raise NotTextError("broken: JSON, but not of a notebook")
    whole = cast("Cell", notebook)
    sheets = _cells(whole.get("worksheets"))  # until 2014
    cells = _cells(whole.get("cells")) + [cell for sheet in sheets for cell in _cells(sheet.get("cells"))]
    metadata = _table(whole.get("metadata"))
    language = _table(metadata.get("language_info")).get("name") or _table(metadata.get("kernelspec")).get("language")
    named = language if isinstance(language, str) else ""
    blocks = [block for cell in cells for block in _blocks(cell, named) if block.strip()]
    title = metadata.get("title")
    facts: dict[str, object] = {"language": named} if named else {}
    return Document(
        title if isinstance(title, str) else None, "\n\n".join(blocks) + "\n" if blocks else "", facts, problem
    )


def _blocks(cell: Cell, language: str) -> list[str]:
    source = _joined(cell.get("source", cell.get("input"))).strip("\n")
    match cell.get("cell_type"):
        case "code":
            printed = [_output(output) for output in _cells(cell.get("outputs"))]
            shown = [fenced(source, language)] if source.strip() else []
            return shown + [fenced(text, "output") for text in printed if text.strip()]
        case "heading":
            level = cell.get("level")
            return ["#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + " " + " ".join(source.split())]
        case "raw":
            return [plain(source)]
        case _:
            return [source]


def _output(output: Cell) -> str:
    """As text, where it has a form that is text."""
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename')}: {output.get('evalue')}"
    text = _joined(output.get("text")) or _joined(_table(output.get("data")).get("text/plain"))
    return text if len(text) <= LONGEST_OUTPUT else text[:LONGEST_OUTPUT].rstrip() + " …"


def _cells(value: object) -> list[Cell]:
    members = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Cell", member) for member in members if isinstance(member, dict)]


def _table(value: object) -> Cell:
    return cast("Cell", value) if isinstance(value, dict) else {}


def _joined(value: object) -> str:
    """Notebooks keep a text as one string or as a list of its lines."""
    if isinstance(value, list):
        return "".join(part for part in cast("list[object]", value) if isinstance(part, str))
    return value if isinstance(value, str) else ""
