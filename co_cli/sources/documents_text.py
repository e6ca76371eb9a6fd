"""Plain text, code and data, line for line as the file has them.

UTF-8 where it is UTF-8, else whatever its bytes look most like: a letter from 1998 in Latin-1 is readable, not garbage.
Text that a program wrote for a program (minified, packed, encoded) is refused: it would only be found by accident.
"""

from __future__ import annotations

import re

from co_cli.notes.note import BINARY_PROBE, UTF_16, NotTextError, decode
from co_cli.sources.documents import Document
from co_cli.sources.documents_endings import JSON, MINIFIED, ending_of
from co_cli.sources.documents_outline import outline

CONTROL_BYTES = bytes(range(8)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x0b\x7f"
"""Which no text has more than a few of; all but tab, line ends, form feed, backspace and escape."""
CONTROL_SHARE = 0.005
NOT_IN_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LONG_LINE = 1_000
RUN = re.compile(r"[!-~]{300,}")
"""No word of a language that puts spaces between words, and no address either."""
SMALL = 2_000
"""Characters: what is shorter than this is read, whatever it looks like."""


def read_text(name: str, data: bytes) -> Document:
    text, problem = read_characters(data)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    ending = ending_of(name)
    if ending in JSON:
        text = _spread(text)
    _refuse_generated(text, ending)
    return Document(None, text, {}, problem, outline(name, text))


def read_characters(data: bytes) -> tuple[str, str | None]:
    """The text in these bytes and what had to be guessed. Raises NotTextError for bytes that are none."""
    if data.startswith(OLD_OFFICE):
        raise NotTextError("an old Office file, or one with a password: save it as .docx, .xlsx or .pptx without one")
    if data.startswith((b"PK\x03\x04", b"%PDF-", b"\x1f\x8b", b"\x89PNG", b"\x7fELF")):
        raise NotTextError("not a text file, whatever its name says")
    text, problem = decode(data)
    if data.startswith(UTF_16):
        if len(NOT_IN_TEXT.findall(text)) > max(1, len(text) * CONTROL_SHARE):
            raise NotTextError("not a text file")
        return text, problem
    if _is_binary(data):
        raise NotTextError("not a text file")
    if problem is None or len(MULTIBYTE.findall(data)) > text.count("\ufffd"):
        return text, problem  # UTF-8, or UTF-8 with some damage
    from co_cli.sources.extraction_encoding import decode_page  # rarely needed

    line = problem.partition(":")[0]
    return decode_page(data, markup=False), f"{line}: not UTF-8, read as what it looks like; save it as UTF-8"


def _is_binary(data: bytes) -> bool:
    probe = data[: 8 * BINARY_PROBE]
    found = len(probe) - len(probe.translate(None, CONTROL_BYTES))
    return found > max(1, len(probe) * CONTROL_SHARE)


def _spread(text: str) -> str:
    """JSON on one line, with a line for each value: a passage of it can be found and shown."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return text
    import json

    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    except (ValueError, RecursionError):
        return text


def _refuse_generated(text: str, ending: str) -> None:
    if len(text) < SMALL:
        return
    if sum(len(run) for run in RUN.findall(text)) > len(text) / 2:
        raise NotTextError("encoded or packed, not written: there are no words in it")
    if ending in MINIFIED and sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE) > len(text) / 2:
        raise NotTextError(f"generated, not written: most of it stands in lines of more than {LONG_LINE:,} characters")
