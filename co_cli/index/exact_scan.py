"""The nearest passages by a cosine with every vector, where vectors are stored as floats: those of other embedders."""

from __future__ import annotations

from typing import Any

import apsw

from co_cli.embedding.space import Vector
from co_cli.index.vectors import WITHIN_FILTERS, Neighbour, StoredSpace

# vec0 chooses among those within the distance: a quarter of its time, if that leaves few
NEAREST = """
select rowid, 1.0 - distance from {table}
where embedding match :query and k = :limit and part = :part and distance <= :furthest
"""
OPPOSITE = 2.0
"""The distance of opposite vectors."""
ROUNDING = 1e-6


def scan_exactly(
    connection: apsw.Connection,
    space: StoredSpace,
    parts: list[str],
    query: Vector,
    limit: int,
    where: str,
    values: dict[str, Any],
    at_least: float,
) -> list[Neighbour]:
    """The nearest of these parts, best first. `where` narrows, if it is not empty, with these values."""
    statement = NEAREST.format(table=space.table) + (WITHIN_FILTERS.format(filters=where) if where else "")
    bound = {**(values if where else {}), "query": query, "limit": limit}
    guess = at_least if where else max(at_least, space.space.noise)
    found = _scan(connection, statement, bound, parts, guess)
    if len(found) < limit and guess > at_least:  # in a small vault, or for an odd question
        found = _scan(connection, statement, bound, parts, at_least)
    return found


def _scan(
    connection: apsw.Connection, statement: str, bound: dict[str, Any], parts: list[str], at_least: float
) -> list[Neighbour]:
    """The nearest of all parts that are as near as `at_least`: those within a bound are chosen sooner."""
    limit = bound["limit"]
    found: list[Neighbour] = []
    for part in parts:
        furthest = min(1.0 - at_least, OPPOSITE) + ROUNDING
        rows = connection.execute(statement, {**bound, "part": part, "furthest": furthest})
        found += [Neighbour(*row) for row in rows]  # type: ignore[arg-type]
        found = sorted(found, key=lambda neighbour: (-neighbour.cosine, neighbour.passage_id))[:limit]
        if len(found) == limit:  # what the next part has must be as near as these
            at_least = max(at_least, found[-1].cosine)
    return found
