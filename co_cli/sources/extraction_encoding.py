"""The bytes of a page into text: byte order mark, the server's word, the page's own word, then a guess.

As browsers do it, with one difference: whoever says UTF-8 and is wrong is not believed.
"""

from __future__ import annotations

import codecs
import re

BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.I)
XML = re.compile(rb"\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]{1,40})", re.I)
LOOKED_THROUGH = 4_096
GUESSED_FROM = 50_000
MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
"""What browsers read under these names, for that is what pages were written with."""
GUESSED = (
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
KNOWN = re.compile(
    r"utf-8|utf-16(-le|-be)?|cp125\d|cp874|cp866|cp932|cp949|iso8859-\d+|koi8-[ru]|mac-(roman|cyrillic)|gb18030|"
    r"big5hkscs|euc_jp|iso2022_jp"
)


def decode_page(body: bytes, declared: str = "", markup: bool = True) -> str:
    """`declared` is the server's word; `markup` says whether the page itself may name its encoding."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    head = body[:LOOKED_THROUGH]
    own = (XML.match(head) or META.search(head)) if markup else None
    names = [declared, own[1].decode("ascii") if own else ""]
    for encoding in [*filter(None, map(_encoding, names)), "utf-8"]:
        try:
            return body.decode(encoding)
        except UnicodeDecodeError:
            continue
    return body.decode(_guess(body) or _encoding(names[0]) or _encoding(names[1]) or "cp1252", "replace")


def _encoding(name: str) -> str | None:
    """Python's name for it, if it is one that pages are written in: not each codec is harmless to feed."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return None
    found = MEANT.get(found, found)
    return found if KNOWN.fullmatch(found) else None


def _guess(body: bytes) -> str | None:
    from charset_normalizer import from_bytes  # rarely needed

    best = from_bytes(body[:GUESSED_FROM], cp_isolation=list(GUESSED)).best()
    return _encoding(best.encoding) if best else None
