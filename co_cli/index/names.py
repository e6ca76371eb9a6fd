"""Find a note by what it is called: its title, an alias, its slug or its ref, typed as somebody would type them.

Case, accents, punctuation, `-` and `_` do not count. One lookup by key, however many notes there are.
"""

from __future__ import annotations

import apsw

from co_cli.index.connection import fetch
from co_cli.index.filters import Reach, conditions
from co_cli.record import Record
from co_cli.values import Filters

LONGEST_NAME = 300
MOST_CALLED = 20
"""A name that more notes have, such as `Meeting`, tells none of them apart: then words and meaning rank them."""
BLANKED = {place: " " for place in range(128) if not chr(place).isalnum() and chr(place) not in "+#"}
"""C, C++ and C# are three names."""
ACCENTS = range(0x300, 0x370)
PRIME = 6_521_908_910_282_632_117
"""Any large one: two names of a million share a number once in ten million vaults."""

IS_NAME = "select 1 from names where vault_id in ({vaults}) and name = :name limit 1"
FIND_CALLED = """
select names.doc_id, (select min(passages.id) from passages where passages.doc_id = names.doc_id) as first, names.kind
from names cross join docs on docs.id = names.doc_id
where names.vault_id in ({vaults}) and names.name = :name and first is not null
    and {filters}
limit :limit
"""


class Called(Record):
    """A note that is called what was asked for, by its first passage."""

    passage_id: int
    doc_id: int
    kind: str
    """`title`, `alias`, `slug` or `ref`."""


def fold_name(text: str) -> str:
    """What two spellings of one name share; empty if nothing in it can be typed as a name."""
    name, hash_mark, lines = text.rpartition("#L")
    if hash_mark and lines.replace("-", "").replace("L", "").isdecimal():
        text = name  # a ref with its lines
    if text.isascii():
        spaced = text.lower().translate(BLANKED)
        if "+" not in spaced and "#" not in spaced:
            return " ".join(spaced.split())
    else:
        import unicodedata  # a query of plain letters does without

        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        plain = unicodedata.normalize("NFC", "".join(letter for letter in plain if ord(letter) not in ACCENTS))
        spaced = "".join(
            letter if letter.isalnum() or letter in "+#" or unicodedata.category(letter)[0] == "M" else " "
            for letter in plain
        )
    return " ".join(word for part in spaced.split() if (word := part.lstrip("+#")))


def name_number(name: str) -> int:
    """What stands for a folded name in search.db: the same on every machine, in every version of Python."""
    return int.from_bytes(name.encode("utf-8", "replace"), "big") % PRIME


def find_called(connection: apsw.Connection, reach: Reach, query: str, filters: Filters) -> list[Called]:
    """The notes that are called this."""
    name = fold_name(query) if len(query) <= 2 * LONGEST_NAME else ""
    if not name or len(name) > LONGEST_NAME:
        return []
    number = name_number(name)
    if not fetch(connection, IS_NAME.format(vaults=reach.ids), {"name": number}):
        return []  # as nearly always: the other statement takes twice as long to prepare
    where, values = conditions(filters, reach)
    bound = {**values, "name": number, "limit": MOST_CALLED + 1}
    rows = fetch(connection, FIND_CALLED.format(vaults=reach.ids, filters=where), bound)
    return [Called(passage, doc, kind) for doc, passage, kind in rows] if len(rows) <= MOST_CALLED else []
