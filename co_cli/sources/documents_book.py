"""An EPUB book into Markdown: its chapters in reading order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_html import body_text
from co_cli.sources.documents_zip import Package, child, local, members, properties_of, value
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.extraction_plain import RENDERED

KEYS = {
    "creator": "author",
    "date": "created",
    "language": "language",
    "description": "description",
    "publisher": "publisher",
}


def read_book(_: str, data: bytes) -> Document:
    package = Package(data)
    container = package.xml("META-INF/container.xml")
    files = [] if container is None else [element for element in container.iter() if local(element) == "rootfile"]
    path = next((posixpath.normpath(value(file, "full-path") or "") for file in files), "")
    root = package.xml(path) if path else None
    if root is None:
        raise NotTextError("broken: no book in it; is it an EPUB file?")
    said = child(root, "metadata")
    title, metadata = properties_of(members(said), KEYS)
    blocks = [text for text in _chapters(package, _spine(root, path)) if text]
    if not any(re.search(r"\w", text) for text in blocks):
        raise NotTextError("no text in the book: it has only pictures, or it is protected")
    return Document(title, "\n\n".join(text.strip("\n") for text in blocks) + "\n", metadata)


def _spine(root: Any, path: str) -> list[str]:
    """The names of the parts that are read one after the other."""
    manifest, spine = child(root, "manifest"), child(root, "spine")
    listed = {
        value(item, "id"): value(item, "href") or ""
        for item in members(manifest)
        if "nav" not in (value(item, "properties") or "").split()
    }
    ids = dict.fromkeys(value(item, "idref") for item in members(spine))  # no part twice
    folder = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(folder, unquote(listed[name]))) for name in ids if listed.get(name)]


def _chapters(package: Package, names: list[str]) -> Iterator[str]:
    """Carefully as long as the whole book is no larger than a large page."""
    left = 2 * RENDERED
    for name in names:
        data = package.read(name)
        if data and b"\0" not in data[:1_024]:
            text, elements = body_text(decode_page(data), left)
            left -= elements
            yield text
