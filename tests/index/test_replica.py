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


def test_a_note_that_is_saved_while_the_primary_is_asked_for_its_position_has_to_be_found_next() -> None:
    answers = iter((5, 9))

    def saved_meanwhile(_: str) -> int:
        written = next(answers)
        if written == 5:
            replica.expect()
        return written

    replica = Replica(saved_meanwhile, lambda _: 5)

    assert replica.keeps_up(), "it had what was written when the primary was asked"
    assert not replica.keeps_up()


def test_a_search_after_a_save_does_not_go_by_what_was_known_before_while_another_search_asks() -> None:
    meanwhile: list[bool] = []

    def searched_meanwhile(_: str) -> int:
        meanwhile.append(replica.keeps_up())
        return 9

    replica = Replica(searched_meanwhile, lambda _: 9)
    replica.keeps_up()
    replica.expect()

    assert replica.keeps_up()
    assert meanwhile == [False, False]
    assert replica.keeps_up(), "it was asked since"
