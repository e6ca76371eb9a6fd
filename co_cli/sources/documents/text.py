"""Plain text, code and data with their own lines, Jupyter notebooks as Markdown, and the encodings of text.

Text that is not UTF-8 is read in the encoding that fits best. Minified, packed and encoded text is refused.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from co_cli.notes.language import guess_language
from co_cli.notes.note import BINARY_PROBE, UTF_16, NotTextError, decode
from co_cli.sources.documents import Document, ending_of
from co_cli.sources.documents.markup import fenced, plain
from co_cli.sources.documents.outline import outline

MINIFIED = frozenset("js mjs cjs jsx ts tsx css scss less xml xsl rss atom php py rb lua sql graphql".split())
"""Where long lines mean generated code. Elsewhere (a transcript, a row of a table) they are paragraphs."""
JSON = ("json", "geojson", "jsonld", "webmanifest")

CONTROL_BYTES = bytes(range(8)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x0b\x7f"
"""Rare in text. Tab, line ends, form feed, backspace and escape are not among them."""
CONTROL_SHARE = 0.005
NOT_IN_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LONG_LINE = 1_000
RUN = re.compile(r"[!-~]{300,}")
"""Longer than any word or URL."""
SMALL = 2_000
"""Characters. Shorter text is always read."""
LONGEST_OUTPUT = 2_000
"""Characters that a notebook's cell printed: enough for a table of results, not for a training log."""

BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARED = re.compile(
    rb"\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w:.-]{1,40})|.*?<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})",
    re.I | re.S,
)
BROWSERS = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"},
}
"""What browsers read under these names."""
GUESSED = "cp1252 cp1250 cp1251 koi8_r cp1253 cp1254 cp1255 cp1256 cp1257 cp874 cp932 euc_jp gb18030 big5 cp949"
NEIGHBOURS = {"cp1257": "et lt lv".split(), "cp1254": ["tr"], "cp1250": "cs hr hu pl ro sk sl".split()}
"""Languages of the Latin code pages that are easily taken for cp1252: nearly all bytes are letters in each."""
KNOWN = re.compile(r"utf-8|utf-16(-le|-be)?|cp\d+|iso8859-\d+|koi8-[ru]|mac-\w+|gb18030|big5hkscs|euc_jp|iso2022_jp")
"""Other codecs are not used for pages, and not all of them are harmless."""


def read_text(data: bytes, name: str) -> Iterator[Document]:
    text, problem = _read_characters(data)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    ending = ending_of(name)
    if ending in JSON:
        text = _spread(text)
    _refuse_generated(text, ending)
    yield Document(None, text, {}, problem, outline(name, text))


def read_notebook(data: bytes) -> Iterator[Document]:
    """Its text, its code in fences, and what the code printed."""
    text, problem = _read_characters(data)
    try:
        notebook: Any = json.loads(text)
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a notebook ({error})") from None
    if not isinstance(notebook, dict) or "cells" not in notebook:
        raise NotTextError("broken: JSON, but not of a notebook")
    title, info, kernel = (_get(notebook, "metadata", key) for key in ("title", "language_info", "kernelspec"))
    language = _text(_get(info, "name")) or _text(_get(kernel, "language"))
    blocks = [block for cell in _list(_get(notebook, "cells")) for block in _blocks(cell, language) if block.strip()]
    yield Document(
        _text(title) or None, "".join(f"{block}\n\n" for block in blocks)[:-1], {"language": language}, problem
    )


def read_canvas(data: bytes) -> Iterator[Document]:
    """The cards of an Obsidian canvas from top to bottom: texts, files, addresses and groups; then labels of lines."""
    text, problem = _read_characters(data)
    try:
        canvas: Any = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise NotTextError(f"broken: not the JSON of a canvas ({error})") from None
    if not isinstance(canvas, dict):
        raise NotTextError("broken: JSON, but not of a canvas")
    cards = sorted(_list(_get(canvas, "nodes")), key=lambda card: (_number(card, "y"), _number(card, "x")))
    blocks = [_card(card) for card in cards] + [
        plain(_text(_get(edge, "label"))) for edge in _list(_get(canvas, "edges"))
    ]
    yield Document(None, "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n", {}, problem)


def _card(card: Any) -> str:
    if file := _text(_get(card, "file")):
        return f"[[{file}]]"
    return _text(_get(card, "text")) or plain(_text(_get(card, "label")) or _text(_get(card, "url")))


def _number(card: Any, key: str) -> float:
    value = _get(card, key)
    return value if isinstance(value, int | float) else 0.0


def _blocks(cell: Any, language: str) -> list[str]:
    source, kind = _text(_get(cell, "source")).strip("\n"), _get(cell, "cell_type")
    if kind != "code":
        return [plain(source) if kind == "raw" else source]
    printed = [_output(output) for output in _list(_get(cell, "outputs"))]
    shown = [fenced(source, language)] if source.strip() else []
    return shown + [fenced(text, "output") for text in printed if text.strip()]


def _output(output: Any) -> str:
    if _get(output, "output_type") == "error":
        return f"{_get(output, 'ename')}: {_get(output, 'evalue')}"
    text = _text(_get(output, "text")) or _text(_get(output, "data", "text/plain"))
    return text if len(text) <= LONGEST_OUTPUT else text[:LONGEST_OUTPUT].rstrip() + " …"


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Notebooks keep a text as one string or as a list of lines."""
    return "".join(line for line in _list(value) or [value] if isinstance(line, str))


def _read_characters(data: bytes) -> tuple[str, str | None]:
    """The text in these bytes, and what had to be guessed. Raises NotTextError if they are no text."""
    if data.startswith(OLD_OFFICE):
        raise NotTextError("an old Office file, or one with a password: save it as .docx, .xlsx or .pptx without one")
    if data.startswith(b"{\\rtf"):
        raise NotTextError("RTF is not supported: save it as .docx or .txt")
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
    line = problem.partition(":")[0]
    return decode_page(data, markup=False), f"{line}: not UTF-8, read as what it looks like; save it as UTF-8"


def _is_binary(data: bytes) -> bool:
    probe = data[: 8 * BINARY_PROBE]
    found = len(probe) - len(probe.translate(None, CONTROL_BYTES))
    return found > max(1, len(probe) * CONTROL_SHARE)


def _spread(text: str) -> str:
    """Give each value of JSON on one line its own line, so that passages can be found and shown."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    except (ValueError, RecursionError):
        return text


def _refuse_generated(text: str, ending: str) -> None:
    if len(text) < SMALL:
        return
    if sum(len(run) for run in RUN.findall(text)) > len(text) / 2:
        raise NotTextError("encoded or packed: there are no words in it")
    if ending in MINIFIED and sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE) > len(text) / 2:
        raise NotTextError(f"generated code: most of it is in lines of more than {LONG_LINE:,} characters")


def decode_page(body: bytes, declared: str = "", markup: bool = True) -> str:
    """By byte order mark, what the server declares, what the page declares, or a guess, as browsers do it.

    A wrong declaration of UTF-8 is not believed. `markup` allows the page itself to declare its encoding.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    own = DECLARED.match(body[:4_096]) if markup else None
    names = [_encoding(declared), _encoding((own[1] or own[2]).decode("latin-1") if own else "")]
    for encoding in filter(None, [*names, "utf-8"]):
        try:
            return body.decode(encoding)
        except UnicodeDecodeError:
            continue
    from charset_normalizer import from_bytes  # rarely needed

    matches = from_bytes(body[:50_000], cp_isolation=[*GUESSED.split()])
    found = (best := matches.best()) and _encoding(best.encoding)
    if found in NEIGHBOURS:
        read = {page: guess_language(body.decode(page, "replace")) for page in NEIGHBOURS}
        usual = "cp1252" if any("cp1252" in match.could_be_from_charset for match in matches) else found
        found = next((page for page, languages in NEIGHBOURS.items() if read[page] in languages), usual)
    return body.decode(found or names[0] or names[1] or "cp1252", "replace")


def _encoding(name: str) -> str | None:
    """Python's name for it, if it is one that pages are written in."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return None
    found = BROWSERS.get(found, found)
    return found if KNOWN.fullmatch(found) else None
