"""What a note is called: its title, aliases, file name and ref, typed as somebody would type them.

Case, accents, punctuation, `-` and `_` do not count.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from co_cli.ground.values import to_utf8
from co_cli.notes.refs import stem_of, without_lines

if TYPE_CHECKING:
    from co_cli.notes.note import Note

LONGEST_NAME = 300
MOST_NAMED = 20
"""Notes that a name may mean: one that more of them share identifies none."""
BLANKED = {place: " " for place in range(128) if not chr(place).isalnum() and chr(place) not in "+#"}
"""C, C++ and C# are three names."""
NUMBER = re.compile(r"([^\W\d_]{1,10}) ?0*([1-9]\d{0,4})")
"""Letters and a number, such as ADR-012."""
MOST_DIGITS = 5
ACCENTS = range(0x300, 0x370)


def fold_name(text: str) -> str:
    """What two spellings of one name share; empty if nothing in it can be typed as a name, or if it is too long."""
    if len(text) > 2 * LONGEST_NAME:
        return ""
    text = without_lines(to_utf8(text))
    if text.isascii():
        spaced = text.lower().translate(BLANKED)
    else:
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        plain = unicodedata.normalize("NFC", "".join(letter for letter in plain if ord(letter) not in ACCENTS))
        spaced = "".join(
            letter if letter.isalnum() or letter in "+#" or unicodedata.category(letter)[0] == "M" else " "
            for letter in plain
        )
    folded = " ".join(word for part in spaced.split() if (word := part.lstrip("+#")))
    return folded if len(folded) <= LONGEST_NAME else ""


def numbers_of(name: str) -> list[str]:
    """How notes may write a folded name that is a number: `adr 12`, `adr12`, `adr 012` and so on."""
    found = NUMBER.fullmatch(name)
    if found is None:
        return []
    letters, digits = found.groups()
    padded = [digits.zfill(width) for width in range(len(digits), MOST_DIGITS + 1)]
    return [f"{letters}{gap}{number}" for number in padded for gap in (" ", "")]


def names_of(note: Note) -> dict[str, str]:
    """What a note can be asked for by, folded, and which of its names that is."""
    called = [("title", note.title), *(("alias", alias) for alias in note.aliases)]
    called += [("slug", stem_of(note.path)), ("path", note.ref.partition(":")[2]), ("ref", note.ref)]
    found: dict[str, str] = {}
    for kind, text in called:
        name = fold_name(text)
        if name:
            found.setdefault(name, kind)
    return found
