"""What a tool of an MCP server answered into the page that would be kept of it, and the little of it a model may see.

Text and Markdown stay, HTML goes through the same extraction as a fetched page, and of JSON the field with the main
text is taken. Pictures and other binary data are no text. Pure: nothing is fetched and nothing is kept here.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from co_cli.errors import PageRefusedError
from co_cli.sources.extraction import CONTROL, LONGEST_TITLE, MARKUP, Page, read_page
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.fetching import Fetched, Validators
from co_cli.sources.fetching_url import read_url
from co_cli.tools.fencing import fence_note

if TYPE_CHECKING:
    from mcp_types import CallToolResult

HEAD, TAIL = 800, 200
"""Characters of a document's beginning and end that a model sees: enough to tell a document from a login page."""
LONGEST_ERROR = 600
TEXT_FIELDS = frozenset("content text body markdown md html value plaintext plain_text plain source".split())
"""What interfaces call the main text; such a field wins over a longer one of another name."""
PREFERRED = 4
TITLE_FIELDS = ("title", "name", "subject", "headline")
FILE = re.compile(r"\.\w{1,5}$")
"""A file's name is no title."""
FRAGMENT = re.compile(r"\s*<(article|blockquote|body|div|h[1-6]|main|ol|p|section|table|ul)\b[^>]*>", re.I)
"""How HTML begins that is a part of a page: wikis keep it this way."""
TEXTUAL = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|xhtml\+xml|markdown)\b")


class Content(NamedTuple):
    """A document that a tool brought, whole."""

    page: Page
    kind: str
    """text, HTML or JSON: what it was before it became a page."""


class NoContentError(Exception):
    """There is no document in an answer; says why, to a model."""


class _Piece(NamedTuple):
    text: str
    media_type: str = ""


def content_of(result: CallToolResult, url: str, most_bytes: int) -> Content:
    """The document in an answer. Raises NoContentError."""
    text, media_type = _text_of(result)
    size = len(text.encode("utf-8", "replace"))
    if size > most_bytes:
        raise NoContentError(f"{size:,} bytes were too many to keep; the limit is {most_bytes:,} (web_max_bytes)")
    kind, title = "text", ""
    value = _json_of(text, media_type)
    if value is not None:
        kind, title, text, media_type = "JSON", *_main_text(value), ""
    markup = not media_type and (MARKUP.match(text) or FRAGMENT.match(text))
    if markup or media_type in ("text/html", "application/xhtml+xml"):
        kind, media_type = ("HTML" if kind == "text" else kind), "text/html"
    elif media_type:
        media_type = "text/plain"  # Markdown, code, other XML: as it is
    try:
        fetched = Fetched(read_url(url), media_type, "utf-8", text.encode("utf-8", "replace"), Validators())
        page = read_page(fetched)
    except PageRefusedError as error:
        raise NoContentError(str(error)) from None
    return Content(page._replace(title=title or page.title), kind)


def preview(number: int, content: Content, tool: str) -> str:
    """What a model sees of a document: its size, its title, its beginning and its end, as data."""
    text, left_out = content.page.text, len(content.page.text) - HEAD - TAIL
    if left_out > 0:
        text = f"{text[:HEAD]}\n[… {left_out:,} characters are not shown …]\n{text[-TAIL:]}"
    size = f"{len(content.page.text):,} characters"
    return fence_note(f"content {number}", content.page.title, "web", text, type=content.kind, size=size, tool=tool)


def error_text(result: CallToolResult) -> str:
    """What a tool said that failed, shortened."""
    texts = [str(getattr(block, "text", "")) for block in result.content]
    said = " ".join(" ".join(texts).split()) or "it says no more than that"
    return said if len(said) <= LONGEST_ERROR else f"{said[:LONGEST_ERROR].rstrip()} …"


def _text_of(result: CallToolResult) -> _Piece:
    """The documents that were handed over, else what was said, else the answer's structure."""
    documents: list[_Piece] = []
    said: list[_Piece] = []
    others: list[str] = []
    for block in result.content:
        match block.type:
            case "text":
                said.append(_Piece(block.text))
            case "resource":
                found = _document(block.resource)
                if isinstance(found, _Piece):
                    documents.append(found)
                else:
                    others.append(found)
            case "resource_link":
                others.append(f"a link to {block.uri}, which is not followed")
            case _:
                others.append(f"{block.type} ({block.mime_type})")
    pieces = [piece for piece in documents or said if piece.text.strip()]
    if pieces:
        same = {piece.media_type for piece in pieces}
        return _Piece("\n\n".join(piece.text for piece in pieces), same.pop() if len(same) == 1 else "text/plain")
    if result.structured_content is not None:
        return _Piece(json.dumps(result.structured_content, ensure_ascii=False), "application/json")
    raise NoContentError(f"there is no text in it, only {', '.join(others)}" if others else "it is empty")


def _document(resource: Any) -> _Piece | str:
    media_type = (resource.mime_type or "").split(";")[0].strip().lower()
    if hasattr(resource, "text"):
        return _Piece(resource.text, media_type)
    try:
        data = base64.b64decode(resource.blob, validate=True) if TEXTUAL.match(media_type) else None
    except binascii.Error:
        data = None
    return f"binary data ({media_type or 'of no type'})" if data is None else _Piece(decode_page(data), media_type)


def _json_of(text: str, media_type: str) -> Any:
    """The object or list that the text is, else None. What says that it is something else is left alone."""
    named = media_type.endswith("json")
    if (media_type and not named) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _main_text(value: Any) -> tuple[str, str]:
    """The title and the main text: all texts of one field, in order, of which there is most."""
    fields: dict[tuple[str, ...], list[str]] = {}
    for path, text in _texts(value):
        fields.setdefault(path, []).append(text)

    def weight(path: tuple[str, ...]) -> int:
        if path and path[-1].lower() in TEXT_FIELDS:
            return PREFERRED * sum(map(len, fields[path]))
        return sum(len(text) for text in fields[path] if " " in text.strip())  # addresses and keys are no text

    best = max(fields, key=weight, default=None)
    if best is None:
        raise NoContentError("it is JSON without any text in it")
    named = [path for name in TITLE_FIELDS for path in sorted(fields, key=len) if path[-1:] == (name,)]
    titles = [fields[path][0] for path in named if path != best and len(fields[path]) == 1]
    title = next((title for title in titles if not FILE.search(title)), "")
    return " ".join(CONTROL.sub(" ", title).split())[:LONGEST_TITLE], "\n\n".join(fields[best])


def _texts(value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text with the names that lead to it, in order; places in a list have no name."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, str) and one.strip():
            yield path, one
        elif isinstance(one, dict):
            table = _decoded(cast("dict[str, Any]", one))
            waiting += [((*path, name), inner) for name, inner in reversed(table.items())]
        elif isinstance(one, list):
            waiting += [(path, inner) for inner in reversed(cast("list[Any]", one))]


def _decoded(table: dict[str, Any]) -> dict[str, Any]:
    """Files of a code host come as `{"encoding": "base64", "content": ...}`."""
    content = table.get("content")
    if table.get("encoding") != "base64" or not isinstance(content, str):
        return table
    try:
        data = base64.b64decode("".join(content.split()), validate=True)
        return {**table, "content": data.decode("utf-8")}
    except (binascii.Error, UnicodeDecodeError):
        raise NoContentError("there is no text in it, only binary data in base64") from None
