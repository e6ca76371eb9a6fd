"""A title into a file name that is readable, portable and inside the vault, whatever the title."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 60
LONGEST_BYTES = 150
RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|clock\$|conin\$|conout\$)$")


def slugify(title: str) -> str:
    """Lower-case words joined by hyphens: accents go, other scripts stay, everything else separates."""
    letters: list[str] = []
    for letter in unicodedata.normalize("NFKD", title[: LONGEST * 8]):
        # an accent on a Latin letter goes; the marks of Thai, Hindi or kana belong to the word
        if unicodedata.combining(letter) and letters and letters[-1].isascii():
            continue
        letters.append(letter)
    words = _words_only("".join(letters)).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word
        if slug and (len(longer) > LONGEST or len(longer.encode()) > LONGEST_BYTES):
            break
        slug = longer
    slug = _cut(slug)
    if not slug:
        return "note"
    return f"{slug}-note" if RESERVED.match(slug) else slug


def _words_only(text: str) -> str:
    """Case-folded, recomposed, blanks for the rest; apostrophes vanish so that `don't` stays one word."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    text = re.sub(r"(?<=\w)['\u2019](?=\w)", "", text)
    kept: list[str] = []
    for letter in text:
        kind = unicodedata.category(letter)[0]
        # a mark belongs to the letter before it; that of an emoji alone would be a name that nobody sees
        alone = kind == "M" and (not kept or kept[-1] == " ")
        kept.append(letter if kind in "LNM" and not alone else " ")
    return "".join(kept)


def _cut(slug: str) -> str:
    slug = slug[:LONGEST]
    while len(slug.encode("utf-8", "ignore")) > LONGEST_BYTES:
        slug = slug[:-1]
    return slug.encode("utf-8", "ignore").decode().strip("-")
