"""Decode the bytes of a page: byte order mark, what the server declares, what the page declares, then a guess.

As browsers do it, except that a wrong UTF-8 declaration is not believed.
"""

from __future__ import annotations

import codecs
import re

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
KNOWN = re.compile(r"utf-8|utf-16(-le|-be)?|cp\d+|iso8859-\d+|koi8-[ru]|mac-\w+|gb18030|big5hkscs|euc_jp|iso2022_jp")
"""Other codecs are not used for pages, and not all of them are harmless."""


def decode_page(body: bytes, declared: str = "", markup: bool = True) -> str:
    """`declared` comes from the server; `markup` allows the page itself to declare its encoding."""
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

    best = from_bytes(body[:50_000], cp_isolation=[*GUESSED.split()]).best()
    return body.decode((best and _encoding(best.encoding)) or names[0] or names[1] or "cp1252", "replace")


def _encoding(name: str) -> str | None:
    """Python's name for it, if it is one that pages are written in."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return None
    found = BROWSERS.get(found, found)
    return found if KNOWN.fullmatch(found) else None
