"""A PDF into Markdown with a heading for each page, with pypdfium2 (Chrome's PDF library).

Runs in the worker process: no PDF library is safe from every file. pypdfium2 read 540 pages a second of two manuals,
pypdf 36.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import Any

from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.formats import INSTALL_OCR, NO_TEXT_SHOWN, SCANNED_MARK, can_read_pictures
from co_cli.sources.documents.markup import own_title, plain

MOST_PAGES = 5_000
HELP = "`co index sync` reads scanned pages" if can_read_pictures() else f"{INSTALL_OCR} reads scanned pages"
LONGEST_PAGE = 500_000
SAMPLE = 500
"""Characters of a page that are checked."""
GARBLED_SHARE = 0.3
UNDECODED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd]")
SCANNED = f"have no text {SCANNED_MARK}: {HELP}"
SHOWN = "show no text, not in their pictures either"
DOTS = 170
"""An inch, of a page that is read from what it shows."""
GARBLED = "have text that cannot be decoded: `ocrmypdf --force-ocr` reads it from the picture"
BROKEN = "cannot be read"
CUT = f"are read up to {LONGEST_PAGE:,} characters"
MOMENT = re.compile(r"(?:D:)?(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:([+-]\d\d)'?(\d\d))?")


def read_pdf(data: bytes, pictures: bool = False) -> Iterator[Document]:
    """With `pictures`, pages without text are read from what they show."""
    pdfium: Any = import_module("pypdfium2")  # 30 ms, and part of an extra
    if data.startswith(b"PK\x03\x04"):
        raise NotTextError("an Office or ZIP file, not a PDF: rename it to .docx, .xlsx, .pptx or .zip")
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
    found = Counter[str]()
    for number in range(min(pages, MOST_PAGES)):
        try:
            page = pdf[number]
            text, problem = _text(page, pdfium.raw)
            if not text and not problem and any(page.get_objects([pdfium.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)):
                text, problem = _shown(page) if pictures else ("", SCANNED)
            page.close()
        except pdfium.PdfiumError:
            text, problem = "", BROKEN
        found[problem] += 1
        found["read"] += bool(text)
        yield Document(None, f"## Page {number + 1}\n\n{text}" if text else "")
    pdf.close()

    if not found["read"] and not found[GARBLED]:
        why = NO_TEXT_SHOWN if pictures else f"no text on its {count} {SCANNED_MARK}: {HELP}"
        raise NotTextError(why)
    known = (SCANNED, SHOWN, GARBLED, BROKEN, CUT)
    problems = [f"{found[problem]} of {count} {problem}" for problem in known if found[problem]]
    if not found["read"]:
        raise NotTextError("; ".join(problems))
    yield Document(problem="; ".join(problems) or None)
    if pages > MOST_PAGES:
        yield Document(problem=f"only the first {MOST_PAGES:,} pages are read")


def _shown(page: Any) -> tuple[str, str]:
    """The text that a page shows, and what is wrong with it."""
    from co_cli.sources.documents.pictures import text_of  # Pillow

    text = text_of(page.render(scale=DOTS / 72).to_pil())
    return text, "" if text else SHOWN


def _text(page: Any, raw: Any) -> tuple[str, str]:
    """The text of a page and what is wrong with it.

    U+FFFE marks a word that is divided at the end of a line: without it, the word is whole again.
    """
    words = page.get_textpage()
    length: int = words.count_chars()
    places = range(0, length, 1 + length // SAMPLE)
    unknown = sum(raw.FPDFText_HasUnicodeMapError(words, place) == 1 for place in places)
    text: str = words.get_text_range(0, min(length, LONGEST_PAGE)).replace("\ufffe", "")
    words.close()
    if max(unknown / max(1, len(places)), len(UNDECODED.findall(text)) / max(1, len(text))) > GARBLED_SHARE:
        return "", GARBLED
    lines = plain("\n".join(line.rstrip() for line in text.splitlines())).strip("\n")
    return lines, CUT if length > LONGEST_PAGE else ""


def _moment(text: str) -> str | None:
    """`D:20250208122313+01'00'` as ISO text; None for a date that does not exist."""
    if found := MOMENT.match(text.strip()):
        zone = f"{found[7]}:{found[8]}" if found[7] else ""
        with suppress(ValueError):
            return datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*found.groups()[:6]) + zone).isoformat()
    return None
