"""Scores by words lie between 0 and 1, keep the order of the matches, and give each note one hit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.words import WordMatch
from co_cli.retrieval.diversify import one_a_note
from co_cli.retrieval.fuse import score_words

RANKS = st.lists(st.tuples(st.floats(-50, 0), st.booleans()), max_size=30)


def matches_of(ranks: list[tuple[float, bool]]) -> list[WordMatch]:
    """As they arrive: all-terms first, each part best first."""
    ordered = sorted(ranks, key=lambda pair: (not pair[1], pair[0]))
    return [WordMatch(number, number // 3, rank, every) for number, (rank, every) in enumerate(ordered)]


def test_the_best_match_scores_one_and_the_others_their_share() -> None:
    scored = score_words([WordMatch(1, 1, -8.0, True), WordMatch(2, 2, -2.0, True)])

    assert [candidate.score for candidate in scored] == [1.0, 0.25]
    assert scored[1].signals == {"words": 0.25}


def test_a_note_with_some_of_the_words_never_outranks_one_with_all() -> None:
    scored = score_words([WordMatch(1, 1, -2.0, True), WordMatch(2, 2, -9.0, False)])

    assert scored[0].score >= scored[1].score


@given(ranks=RANKS)
def test_scores_keep_the_order_of_the_matches(ranks: list[tuple[float, bool]]) -> None:
    scored = score_words(matches_of(ranks))

    scores = [candidate.score for candidate in scored]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@given(ranks=RANKS, limit=st.integers(1, 8))
def test_each_note_has_one_hit_and_it_is_its_best(ranks: list[tuple[float, bool]], limit: int) -> None:
    scored = score_words(matches_of(ranks))

    chosen = one_a_note(scored, limit)

    docs = [candidate.doc_id for candidate in chosen]
    assert len(docs) == len(set(docs)) == min(limit, len({candidate.doc_id for candidate in scored}))
    for candidate in chosen:
        assert candidate == next(other for other in scored if other.doc_id == candidate.doc_id)
