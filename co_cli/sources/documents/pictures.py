"""The text that a picture shows, with rapidocr: its models are in the package, and nothing is downloaded.

Runs in a worker process of its own, which may use more memory and time than one that reads documents. A page takes
seconds, so only `co index sync` and the process in the background read pictures.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.formats import BROKEN_PICTURE, NO_TEXT_SHOWN
from co_cli.sources.documents.markup import plain

MOST_PIXELS = 80_000_000
TOO_LARGE = f"larger than {MOST_PIXELS // 1_000_000} megapixels: make it smaller"
BROKEN = f"{BROKEN_PICTURE}: open it and save it again"
MOST_PAGES = 500
DAMAGE = (OSError, ValueError, SyntaxError, LookupError, TypeError, struct.error)
"""What Pillow raises for a broken file; a SyntaxError for a PNG."""
LONGEST_SIDE = 2_000
"""Pixels. Larger pictures are made smaller: letters of ten pixels are still read."""
OPTIONS = {
    "Global.log_level": "critical",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,  # it is a guest in the background
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


def read_picture(data: bytes) -> Iterator[Document]:
    """The text of a picture, or of each page of a TIFF."""
    problems = Counter[str]()
    pages = read = 0
    for page, has_pages in _pages(data):
        pages += 1
        text = "" if isinstance(page, str) else text_of(page)
        problems[page if isinstance(page, str) else ""] += 1
        read += bool(text)
        yield Document(None, f"## Page {pages}\n\n{text}" if text and has_pages else text)
    wrong = [problem for problem in problems if problem]
    if not read:
        raise NotTextError(wrong[0] if wrong else NO_TEXT_SHOWN)
    yield Document(problem="; ".join(f"{problems[problem]} of {pages} pages: {problem}" for problem in wrong) or None)
    if pages == MOST_PAGES:
        yield Document(problem=f"at most {MOST_PAGES} pages are read")


def _pages(data: bytes) -> Iterator[tuple[Any, bool]]:
    """Each page as a picture of Pillow, or what is wrong with it; and whether there are several."""
    pillow: Any = import_module("PIL.Image")  # part of an extra
    pillow.MAX_IMAGE_PIXELS = MOST_PIXELS
    picture, has_pages = None, False
    for number in range(MOST_PAGES):
        page: Any = BROKEN
        try:
            if picture is None:
                picture = pillow.open(BytesIO(data))
                has_pages = picture.format == "TIFF" and picture.is_animated
            picture.seek(number)
            if picture.width * picture.height > MOST_PIXELS:
                page = TOO_LARGE
            else:
                picture.load()
                page = import_module("PIL.ImageOps").exif_transpose(picture)
        except EOFError:
            if number:  # it was the last page
                return
        except pillow.DecompressionBombError:
            page = TOO_LARGE
        except DAMAGE:
            pass  # it is reported as broken
        yield page, has_pages
        if not has_pages:
            return


def text_of(picture: Any) -> str:
    """The lines of a picture of Pillow, from top to bottom."""
    numpy: Any = import_module("numpy")
    page = picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    for background in ("white", "black") if picture.mode == "RGBA" else ():
        page = import_module("PIL.Image").new("RGB", picture.size, background)
        page.paste(picture, mask=picture)
        if page.convert("L").getextrema()[0] < 128:
            break  # else the letters are light, and would not be seen on white
    found: Any = _ocr()(numpy.asarray(page)[:, :, ::-1])
    return plain("\n".join(found.txts or ())).strip()


@cache
def _ocr() -> Any:
    logging.disable(logging.CRITICAL)
    return import_module("rapidocr").RapidOCR(params=OPTIONS)
