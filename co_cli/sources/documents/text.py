"""Plain text, code and data with their own lines, and Jupyter notebooks as Markdown.

Minified, packed and encoded text is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from co_cli.notes.encoding import BINARY_PROBE, UTF_16, NotTextError, decode
from co_cli.sources.documents import Document
from co_cli.sources.documents.formats import ending_of
from co_cli.sources.documents.markup import fenced, plain
from co_cli.sources.documents.outline import outline

MINIFIED = frozenset("js mjs cjs jsx ts tsx css scss less xml xsl rss atom php py rb lua sql graphql".split())
"""Where long lines mean generated code. Elsewhere (a transcript, a row of a table) they are paragraphs."""
JSON = ("json", "geojson", "jsonld", "webmanifest")

CONTROL_BYTES = bytes(range(8)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x0b\x7f"
"""Rare in text. Tab, line ends, form feed, backspace and escape are not among them."""
CONTROL_SHARE = 0.005
NOT_IN_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LONG_LINE = 1_000
RUN = re.compile(r"[!-~]{300,}")
"""Longer than any word or URL."""
SMALL = 2_000
"""Characters. Shorter text is always read."""
LONGEST_OUTPUT = 2_000
"""Characters that a notebook's cell printed: enough for a table of results, not for a training log."""


def read_text(data: bytes, name: str) -> Iterator[Document]:
    text, problem = _read_characters(data)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    ending = ending_of(name)
    if ending in JSON:
        text = _spread(text)
    _refuse_generated(text, ending)
    yield Document(None, text, {}, problem, outline(name, text))


def read_notebook(data: bytes) -> Iterator[Document]:
    """Its text, its code in fences, and what the code printed."""
    text, problem = _read_characters(data)
    try:
        notebook: Any = json.loads(text)
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a notebook ({error})") from None
    if not isinstance(notebook, dict) or "cells" not in notebook:
        raise NotTextError("broken: JSON, but not of a notebook")
    title, info, kernel = (_get(notebook, "metadata", key) for key in ("title", "language_info", "kernelspec"))
    language = _text(_get(info, "name")) or _text(_get(kernel, "language"))
    blocks = [block for cell in _list(_get(notebook, "cells")) for block in _blocks(cell, language) if block.strip()]
    yield Document(
        _text(title) or None, "".join(f"{block}\n\n" for block in blocks)[:-1], {"language": language}, problem
    )


def read_canvas(data: bytes) -> Iterator[Document]:
    """The cards of an Obsidian canvas from top to bottom: texts, files, addresses and groups; then labels of lines."""
    text, problem = _read_characters(data)
    try:
        canvas: Any = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a canvas ({error})") from None
    if not isinstance(canvas, dict):
        raise NotTextError("broken: JSON, but not of a canvas")
    cards = sorted(_list(_get(canvas, "nodes")), key=lambda card: (_number(card, "y"), _number(card, "x")))
    blocks = [_card(card) for card in cards] + [
        plain(_text(_get(edge, "label"))) for edge in _list(_get(canvas, "edges"))
    ]
    yield Document(None, "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n", {}, problem)


def _card(card: Any) -> str:
    if file := _text(_get(card, "file")):
        return f"[[{file}]]"
    return _text(_get(card, "text")) or plain(_text(_get(card, "label")) or _text(_get(card, "url")))


def _number(card: Any, key: str) -> float:
    value = _get(card, key)
    return value if isinstance(value, int | float) else 0.0


def _blocks(cell: Any, language: str) -> list[str]:
    source, kind = _text(_get(cell, "source")).strip("\n"), _get(cell, "cell_type")
    if kind != "code":
        return [plain(source) if kind == "raw" else source]
    printed = [_output(output) for output in _list(_get(cell, "outputs"))]
    shown = [fenced(source, language)] if source.strip() else []
    return shown + [fenced(text, "output") for text in printed if text.strip()]


def _output(output: Any) -> str:
    if _get(output, "output_type") == "error":
        return f"{_get(output, 'ename')}: {_get(output, 'evalue')}"
    text = _text(_get(output, "text")) or _text(_get(output, "data", "text/plain"))
    return text if len(text) <= LONGEST_OUTPUT else text[:LONGEST_OUTPUT].rstrip() + " …"


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Notebooks keep a text as one string or as a list of lines."""
    return "".join(line for line in _list(value) or [value] if isinstance(line, str))


def _read_characters(data: bytes) -> tuple[str, str | None]:
    """The text in these bytes, and what had to be guessed. Raises NotTextError if they are not text."""
    if data.startswith(OLD_OFFICE):
        raise NotTextError("an old Office file, or one with a password: save it as .docx, .xlsx or .pptx without one")
    if data.startswith(b"{\\rtf"):
        raise NotTextError("RTF is not supported: save it as .docx or .txt")
    if data.startswith((b"PK\x03\x04", b"%PDF-", b"\x1f\x8b", b"\x89PNG", b"\x7fELF")):
        raise NotTextError("not a text file, whatever its name says")
    wide = data.startswith(UTF_16)
    if not wide and _is_binary(data):
        raise NotTextError("not a text file")
    text, problem = decode(data)
    if wide and len(NOT_IN_TEXT.findall(text)) > max(1, len(text) * CONTROL_SHARE):
        raise NotTextError("not a text file")
    return text, problem


def _is_binary(data: bytes) -> bool:
    probe = data[: 8 * BINARY_PROBE]
    found = len(probe) - len(probe.translate(None, CONTROL_BYTES))
    return found > max(1, len(probe) * CONTROL_SHARE)


def _spread(text: str) -> str:
    """Give each value of JSON on one line its own line, so that passages can be found and shown."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    except (ValueError, RecursionError):
        return text


def _refuse_generated(text: str, ending: str) -> None:
    if len(text) < SMALL:
        return
    if sum(len(run) for run in RUN.findall(text)) > len(text) / 2:
        raise NotTextError("encoded or packed: there are no words in it")
    if ending in MINIFIED and sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE) > len(text) / 2:
        raise NotTextError(f"generated code: most of it is in lines of more than {LONG_LINE:,} characters")
