"""Some of the passages that a search may find, spread over all of them: what they have in common, the others have too.

Numbers of passages are tried evenly between the first and the last candidate, so that a small vault beside a large one
in the same search.db is met as well. Which ones are taken depends on nothing but what is there.
"""

from __future__ import annotations

from co_cli.index.connection import fetch
from co_cli.index.filters import Reach, conditions
from co_cli.index.vectors import StoredSpace, ids_text, vectors_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from apsw import Connection

    from co_cli.values import Filters

TRIED, TAKEN = 512, 64
"""Numbers that are looked up at least, where there are as many, and vectors that are read: more tell the same."""

# the order of this join matters: it is a few lookups, and not a run through all passages
WITHIN = """
select passages.id
from json_each(:ids) as wanted cross join passages on passages.id = wanted.value
cross join docs on docs.id = passages.doc_id where {filters}
"""


def spread_vectors(
    connection: Connection, space: StoredSpace, reach: Reach, filters: Filters, candidates: Sequence[int]
) -> list[Sequence[float]]:
    """The vectors of up to 64 passages within reach, between the first and the last of these candidates."""
    if not candidates:
        return []
    first, last = min(candidates), max(candidates)
    tried = range(first, last + 1, max(1, (last - first) // TRIED))
    where, values = conditions(filters, reach)
    rows = fetch(connection, WITHIN.format(filters=where), {**values, "ids": ids_text(tried)})
    there = [passage for (passage,) in rows]
    taken = there[:: -(-len(there) // TAKEN) or 1]
    return list(vectors_at(connection, space, taken).values())
