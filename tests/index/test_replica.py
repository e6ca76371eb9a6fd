"""Whether a read replica keeps up, without servers."""

from __future__ import annotations

from co_cli.index.postgres.replica import Replica


def test_a_note_that_is_saved_while_a_replica_is_asked_for_its_position_has_to_be_found_next() -> None:
    written = 5

    def saved_meanwhile(_: str) -> int:
        nonlocal written
        replica.expect()
        written = 9
        return 5

    replica = Replica(lambda _: written, saved_meanwhile)

    assert replica.keeps_up(), "it had what was written when it was asked"
    assert not replica.keeps_up()
