"""A Jupyter notebook into Markdown: its text, its code in fences, and what the code printed."""

from __future__ import annotations

import json
from typing import Any, cast

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.markup import fenced, plain
from co_cli.sources.documents.text import read_characters

LONGEST_OUTPUT = 2_000
"""Characters: enough for a table of results, not for a training log."""


def read_notebook(data: bytes) -> Document:
    text, problem = read_characters(data)
    try:
        loaded: object = json.loads(text)
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a notebook ({error})") from None
    notebook = _dict(loaded)
    if "cells" not in notebook:
        raise NotTextError("broken: JSON, but not of a notebook")
    metadata = _dict(notebook.get("metadata"))
    language = _dict(metadata.get("language_info")).get("name") or _dict(metadata.get("kernelspec")).get("language")
    named = language if isinstance(language, str) else ""
    cells = _dicts(notebook.get("cells"))
    blocks = [block for cell in cells for block in _blocks(cell, named) if block.strip()]
    title = metadata.get("title")
    return Document(
        title if isinstance(title, str) else None,
        "\n\n".join(blocks) + "\n" if blocks else "",
        {"language": named},
        problem,
    )


def _blocks(cell: dict[str, Any], language: str) -> list[str]:
    source = _text(cell.get("source")).strip("\n")
    if cell.get("cell_type") != "code":
        return [plain(source) if cell.get("cell_type") == "raw" else source]
    printed = [_output(output) for output in _dicts(cell.get("outputs"))]
    shown = [fenced(source, language)] if source.strip() else []
    return shown + [fenced(text, "output") for text in printed if text.strip()]


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    text = _text(output.get("text")) or _text(_dict(output.get("data")).get("text/plain"))
    return text if len(text) <= LONGEST_OUTPUT else text[:LONGEST_OUTPUT].rstrip() + " …"


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [_dict(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _text(value: object) -> str:
    """Notebooks keep a text as one string or as a list of lines."""
    lines = cast("list[object]", value) if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))
