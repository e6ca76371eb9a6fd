"""The parts of a document that is a ZIP file of XML: Word, PowerPoint, Excel, OpenDocument, EPUB.

Read with lxml, which is here already, instead of a library for each format: text needs a few hundred lines in all, and
one place decides what may be unpacked. Parts are looked up by name and never written anywhere; what they unpack to is
bounded one by one and together; entities are not expanded, and no DTD is loaded.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from typing import Any

import lxml
import lxml.html

from co_cli.notes.note import NotTextError
from co_cli.sources.documents_endings import MB
from co_cli.sources.documents_markdown import own_title

lxml_etree: Any = vars(lxml)["etree"]  # compiled, and without types
lxml_html: Any = lxml.html

LARGEST_PART = 32 * MB
LARGEST_WHOLE = 96 * MB
OLD_OFFICE = b"\xd0\xcf\x11\xe0"
ELEMENTS = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
TITLE_KEYS = {"creator": "author", "created": "created", "modified": "updated", "language": "language"}
OPEN_KEYS = {"initial-creator": "author", "creator": "author", "creation-date": "created", "date": "updated"}


class Package:
    """One ZIP file in memory."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(OLD_OFFICE):
            raise NotTextError("protected by a password, or an old Office file: save it without one, in the new format")
        if not data:
            raise NotTextError("empty file")
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
            raise NotTextError("broken: it is no ZIP file, as it should be; open it and save it again") from None
        self.names = {entry.filename: entry for entry in self._file.infolist()}
        self._left = LARGEST_WHOLE

    def read(self, name: str) -> bytes | None:
        """A part's bytes; None if there is no such part."""
        entry = self.names.get(name)
        if entry is None:
            return None
        if entry.flag_bits & 0x1:
            raise NotTextError("protected by a password: save it without one")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotTextError(f"broken: its part {name} is packed in an unusual way; open it and save it again")
        most = min(LARGEST_PART, self._left)
        try:
            with self._file.open(entry) as part:
                data = part.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError):
            raise NotTextError(f"broken: its part {name} cannot be unpacked; open it and save it again") from None
        if len(data) > most:
            raise NotTextError(f"its text is larger than {most // MB} MB when unpacked")
        self._left -= len(data)
        return data

    def xml(self, name: str) -> Any:
        """A part's root element; None if there is no such part."""
        data = self.read(name)
        return None if data is None else parse_xml(data, name)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """What a part of an Office file points to: id to (the kind of relation, the other part's name)."""
        folder, base = posixpath.split(name)
        root = self.xml(posixpath.join(folder, "_rels", f"{base}.rels"))
        found: dict[str, tuple[str, str]] = {}
        for relation in members(root):
            target = str(relation.get("Target") or "")
            if relation.get("TargetMode") != "External":
                path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
                kind = str(relation.get("Type") or "").rpartition("/")[2]
                found[str(relation.get("Id"))] = (kind, posixpath.normpath(path))
        return found

    def main_part(self, usual: str) -> str:
        """The part that an Office file begins with."""
        targets = [path for kind, path in self.related("").values() if kind == "officeDocument"]
        return next((path for path in targets if path in self.names), usual)

    def properties(self) -> tuple[str | None, dict[str, object]]:
        """The title and the rest of what an Office file says about itself."""
        targets = [path for kind, path in self.related("").values() if kind == "core-properties"]
        root = self.xml(next(iter(targets), "docProps/core.xml"))
        return properties_of(members(root), TITLE_KEYS)


def properties_of(elements: list[Any], keys: dict[str, str]) -> tuple[str | None, dict[str, object]]:
    """From elements of Dublin Core and its kin, by their names."""
    title: str | None = None
    metadata: dict[str, object] = {}
    for element in elements:
        name, text = local(element), (element.text or "").strip()
        if name == "title":
            title = title or own_title(text)
        elif name in keys and text:
            metadata.setdefault(keys[name], text)
        elif name in ("subject", "keywords", "keyword") and text:
            metadata.setdefault("keywords" if name == "keyword" else name, text)
    return title, metadata


def parse_xml(data: bytes, name: str) -> Any:
    parser = lxml_etree.XMLParser(remove_comments=True, remove_pis=True, **ELEMENTS)
    try:
        return lxml_etree.fromstring(data, parser=parser)
    except (lxml_etree.LxmlError, ValueError) as error:
        reason = re.sub(r"\s+", " ", str(error))[:120]
        raise NotTextError(f"broken: its part {name} is no XML ({reason}); open it and save it again") from None


def local(element: Any) -> str:
    """An element's name without its namespace: of these there are two generations, which mean the same."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def members(element: Any) -> list[Any]:
    """An element's children; none of an element that is not there."""
    return [] if element is None else list(element)


def value(element: Any, name: str = "val") -> str | None:
    """An attribute by its name without its namespace."""
    for key, text in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(text)
    return None


def child(element: Any, *path: str) -> Any:
    """The first child of that name, and its first of the next name, …; None where there is none."""
    for name in path:
        element = next((inner for inner in element if local(inner) == name), None)
        if element is None:
            return None
    return element


def number(text: str | None, otherwise: int = 0) -> int:
    """A small number that a file says, for it may say anything."""
    return int(text) if text and re.fullmatch(r"\d{1,6}", text) else otherwise
