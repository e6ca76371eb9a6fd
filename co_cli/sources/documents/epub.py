"""An EPUB book into Markdown: its chapters in the order of reading, each as the web page that it is.

Runs in the worker process. Only the chapters are unpacked, within limits, and no entity is expanded.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from co_cli.ground.errors import PageRefusedError
from co_cli.notes.encoding import NotTextError, decode_page
from co_cli.sources.documents import Document
from co_cli.sources.documents.formats import BY_ENDING
from co_cli.sources.documents.markup import own_title
from co_cli.sources.documents.zip_parts import ZipParts
from co_cli.sources.web.extract import ALL_TEXT, extract_here

etree: Any = import_module("lxml.etree")  # compiled, without types

NAME = BY_ENDING["epub"].name
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""How fonts are hidden. Every other encryption is DRM."""
EMPTY = re.compile(r"<(?!(?:br|hr|img|col|wbr|meta|link|base|input)\b)([A-Za-z][\w:-]*+)([^<>]*)/>")
"""`<title/>`, which is no end of the title in HTML."""


def read_book(data: bytes) -> Iterator[Document]:
    parts = ZipParts(data, NAME)
    if ENCRYPTION in parts.names:
        methods = _elements(_xml(parts, ENCRYPTION), "EncryptionMethod")
        if any(method.get("Algorithm") not in FONTS for method in methods):
            raise NotTextError("protected by DRM: only the app of its shop can read it")
    root = next((found.get("full-path") or "" for found in _elements(_xml(parts, CONTAINER), "rootfile")), "")
    package = _xml(parts, root)
    said = {
        key: [" ".join(found.text.split()) for found in _elements(package, key) if found.text]
        for key in ("title", "creator", "language")
    }
    metadata: dict[str, object] = {"author": ", ".join(said["creator"]), "language": "".join(said["language"][:1])}
    yield Document(own_title("".join(said["title"][:1])), "", metadata)

    chapters = _chapters(package, posixpath.dirname(root))
    missing, has_text = 0, False
    for name in chapters:
        if name not in parts.names:
            missing += 1
            continue
        try:
            text = extract_here(EMPTY.sub(r"<\1\2></\1>", decode_page(parts.read(name))), least_share=ALL_TEXT).text
        except PageRefusedError:  # a picture
            continue
        has_text = True
        yield Document(text=text)
    if not has_text:
        raise NotTextError("no text in it, only pictures")
    if missing:
        yield Document(problem=f"{missing} of {len(chapters)} chapters {'is' if missing == 1 else 'are'} missing")


def _chapters(package: Any, folder: str) -> list[str]:
    """The names of the pages in the order of the spine, without the table of contents."""
    items = {item.get("id"): item for item in _elements(package, "item")}
    read = [items[found.get("idref")] for found in _elements(package, "itemref") if found.get("idref") in items]
    places = [item.get("href") or "" for item in read if "nav" not in (item.get("properties") or "").split()]
    return [*dict.fromkeys(posixpath.normpath(posixpath.join(folder, unquote(place))) for place in places)]


def _xml(parts: ZipParts, name: str) -> Any:
    if name not in parts.names:
        raise NotTextError(f"broken: not {NAME}; {name or 'its package'} is missing")
    try:
        return etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        raise NotTextError(f"broken: not {NAME}; {name} is not XML") from None


def _elements(tree: Any, name: str) -> list[Any]:
    return [*tree.iter(f"{{*}}{name}")]
