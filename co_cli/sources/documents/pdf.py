"""A PDF into Markdown with a heading for each page, with pypdfium2 (Chrome's PDF library).

Runs in the worker process: no PDF library is safe from every file. pypdfium2 read 540 pages a second of two manuals,
pypdf 36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import Any

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.markup import own_title, plain

MOST_PAGES = 5_000
LONGEST_PAGE = 500_000
MOMENT = re.compile(r"(?:D:)?(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:([+-]\d\d)'?(\d\d))?")


def read_pdf(data: bytes) -> Iterator[Document]:
    pdfium: Any = import_module("pypdfium2")  # 30 ms, and part of an extra
    if b"%PDF-" not in data[:1_024]:
        raise NotTextError("broken: not a PDF")
    try:
        pdf = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "assword" in str(error):
            raise NotTextError("protected by a password: save a copy without one") from None
        raise NotTextError("broken PDF: open it and save or print it again") from None
    said: dict[str, str] = pdf.get_metadata_dict(skip_empty=True)
    metadata: dict[str, object] = {key.lower(): said.get(key) for key in ("Author", "Subject", "Keywords")}
    metadata |= {"created": _moment(said.get("CreationDate", "")), "updated": _moment(said.get("ModDate", ""))}
    pages = len(pdf)
    yield Document(own_title(said.get("Title")), "", {**metadata, "pages": pages})

    count = f"{pages} page" + "s" * (pages != 1)
    read = scanned = broken = 0
    for number in range(min(pages, MOST_PAGES)):
        try:
            page = pdf[number]
            text = _text(page)
            picture = not text and any(page.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))
            page.close()
        except pdfium.PdfiumError:
            text, picture = "", False
            broken += 1
        read, scanned = read + bool(text), scanned + picture
        yield Document(None, f"## Page {number + 1}\n\n{text}" if text else "")
    pdf.close()

    if not read:
        raise NotTextError(f"no text on its {count} (scanned?): `ocrmypdf` adds the text that it shows")
    if scanned:
        yield Document(problem=f"{scanned} of {count} have no text (scanned?): `ocrmypdf` adds it")
    if broken:
        yield Document(problem=f"{broken} of {count} cannot be read")
    if pages > MOST_PAGES:
        yield Document(problem=f"only the first {MOST_PAGES:,} pages are read")


def _text(page: Any) -> str:
    """U+FFFE marks a word that is divided at the end of a line: without it, the word is whole again."""
    words = page.get_textpage()
    text: str = words.get_text_range(0, min(words.count_chars(), LONGEST_PAGE))
    words.close()
    return plain("\n".join(line.rstrip() for line in text.replace("\ufffe", "").splitlines())).strip("\n")


def _moment(text: str) -> str | None:
    """`D:20250208122313+01'00'` as ISO text; None for a date that does not exist."""
    if found := MOMENT.match(text.strip()):
        zone = f"{found[7]}:{found[8]}" if found[7] else ""
        with suppress(ValueError):
            return datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*found.groups()[:6]) + zone).isoformat()
    return None
