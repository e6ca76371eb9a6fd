"""The text that a picture shows, with rapidocr: its models are in the package, and nothing is downloaded.

Runs in a worker process of its own, which may use more memory and time than one that reads documents. A page takes
seconds, so only `co index sync` and the process in the background read pictures.
"""

from __future__ import annotations

import logging
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
LONGEST_SIDE = 2_000
"""Pixels. Larger pictures are made smaller: letters of ten pixels are still read."""
OPTIONS = {
    "Global.log_level": "critical",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,  # it is a guest in the background
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


def read_picture(data: bytes) -> Iterator[Document]:
    pillow: Any = import_module("PIL.Image")  # part of an extra
    pillow.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        picture = pillow.open(BytesIO(data))
        if picture.width * picture.height > MOST_PIXELS:
            raise NotTextError(f"larger than {MOST_PIXELS // 1_000_000} megapixels: make it smaller")
        picture.load()
        picture = import_module("PIL.ImageOps").exif_transpose(picture)
    except (OSError, ValueError, SyntaxError):  # SyntaxError: what Pillow says of a broken PNG
        raise NotTextError(f"{BROKEN_PICTURE}: open it and save it again") from None
    text = text_of(picture)
    if not text:
        raise NotTextError(NO_TEXT_SHOWN)
    yield Document(None, text)


def text_of(picture: Any) -> str:
    """The lines of a picture of Pillow, from top to bottom."""
    numpy: Any = import_module("numpy")
    picture = picture.convert("RGB")
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    found: Any = _ocr()(numpy.asarray(picture)[:, :, ::-1])
    return plain("\n".join(found.txts or ())).strip()


@cache
def _ocr() -> Any:
    logging.disable(logging.CRITICAL)
    return import_module("rapidocr").RapidOCR(params=OPTIONS)
