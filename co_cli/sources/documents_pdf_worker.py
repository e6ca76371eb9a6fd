"""Draws the text out of PDF files, in a process of its own: a file that hangs or crashes the reader ends this one only.

Speaks over standard input and output: eight bytes of length and a file come in; a line of JSON about the file, one for
each page, and one that says it was the last go out. Imports nothing of co_cli, so that it starts at once.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import Any, BinaryIO

LONGEST_PAGE = 500_000
MEMORY = 4_000_000_000
"""Bytes of address space, where the system lets a process bound itself."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while head := requests.read(8):
        data = requests.read(struct.unpack(">Q", head)[0])
        for answer in read(data):
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def read(data: bytes) -> Any:
    import pypdfium2 as pdfium

    library: Any = pdfium
    try:
        document = library.PdfDocument(data)
    except library.PdfiumError as error:
        yield {"error": "password" if "assword" in str(error) else "broken"}
        return
    try:
        yield {"pages": len(document), "said": document.get_metadata_dict(skip_empty=True)}
        for place in range(len(document)):
            yield _page(library, document, place)
        yield {"end": True}
    finally:
        document.close()


def _page(library: Any, document: Any, place: int) -> dict[str, object]:
    """Its text; without any, whether there is a picture on it."""
    try:
        page = document[place]
    except library.PdfiumError:
        return {"text": "", "broken": True}
    try:
        words = page.get_textpage()
        try:
            text: str = words.get_text_range(0, min(words.count_chars(), LONGEST_PAGE))
        finally:
            words.close()
        if text.strip():
            return {"text": text}
        kinds = (library.raw.FPDF_PAGEOBJ_IMAGE,)
        return {"text": "", "picture": any(True for _ in page.get_objects(filter=kinds, max_depth=3))}
    except library.PdfiumError:
        return {"text": "", "broken": True}
    finally:
        page.close()


def bound() -> None:
    """No file is written and memory has an end, where the system knows such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(limit, (most, most))
        except (ValueError, OSError):  # macOS knows some of them by name only
            continue


if __name__ == "__main__":
    bound()
    serve(sys.stdin.buffer, sys.stdout.buffer)
