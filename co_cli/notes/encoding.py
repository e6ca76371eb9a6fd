"""The encodings of text: UTF-8, what a page declares, or a guess."""

from __future__ import annotations

import codecs
import re

from co_cli.notes.language import guess_language

BINARY_PROBE = 8_192
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
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


class NotTextError(ValueError):
    """The file is not text."""


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file and what is wrong with its encoding. Raises NotTextError for a binary file.

    Text that is not UTF-8 is read in the encoding that fits best, unless it is UTF-8 with some damage.
    """
    if data.startswith(UTF_16):
        return data.decode("utf-16", "replace"), "line 1: UTF-16; save it as UTF-8"
    if b"\0" in data[:BINARY_PROBE]:
        raise NotTextError("not a text file")
    try:
        text, problem = data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text, problem = data.decode("utf-8", "replace"), f"line {line}: not valid UTF-8; save it as UTF-8"
        if not data.startswith(codecs.BOM_UTF8) and len(MULTIBYTE.findall(data)) <= text.count("\ufffd"):
            text = decode_page(data, markup=False)
            problem = f"line {line}: not UTF-8, read as what it looks like; save it as UTF-8"
    return text.replace("\0", "\ufffd"), problem


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
