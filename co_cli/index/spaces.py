"""Which space answers in a vault, which one is being built, and whether any passage waits for a vector.

What a cold search needs to know about spaces, and nothing that would make it slow to start.
"""

from __future__ import annotations

import apsw

from co_cli.index.vectors import StoredSpace, open_space
from co_cli.record import Record

STATE = "select space_id, building_id from vaults where id = :vault"
ANY_WAITING = "select 1 from waiting where vault_id = :vault limit 1"
WAITING_BY_SPACE = "select space_id, count(*) from waiting where vault_id = :vault group by space_id"


class SpaceState(Record):
    """Which space answers in this vault, and which one is being built."""

    active: StoredSpace | None = None
    building: StoredSpace | None = None


def space_state(connection: apsw.Connection, vault_id: int) -> SpaceState:
    row = connection.execute(STATE, {"vault": vault_id}).fetchone()
    if row is None:
        return SpaceState()
    return SpaceState(*(None if found is None else open_space(connection, int(str(found))) for found in row))


def any_waiting(connection: apsw.Connection, vault_id: int) -> bool:
    return connection.execute(ANY_WAITING, {"vault": vault_id}).get is not None


def waiting_by_space(connection: apsw.Connection, vault_id: int) -> dict[int, int]:
    rows = connection.execute(WAITING_BY_SPACE, {"vault": vault_id})
    return {int(str(space)): int(str(count)) for space, count in rows}
