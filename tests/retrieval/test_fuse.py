"""Words and meaning of every candidate become one score; each thing that tempers them can be turned off."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.words import WordMatch
from co_cli.retrieval.fuse import BY_CHANCE, CROWD, Weights, fuse, score_words

RANKS = st.lists(st.tuples(st.floats(-50, 0), st.booleans()), max_size=30)


USUAL = Weights(meaning=0.4, words=0.6)
FOUND = [WordMatch(1, 10, -8.0, False), WordMatch(2, 20, -4.0, False)]
COSINES = {1: 0.2, 2: 0.6, 3: 0.4}
DOCS = {1: 10, 2: 20, 3: 30}


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


def test_a_score_is_the_weighted_mean_of_words_and_meaning() -> None:
    scored = fuse(FOUND, 1.0, COSINES, DOCS, USUAL)

    assert [(one.passage_id, pytest.approx(one.score)) for one in scored] == [(2, 0.7), (1, 0.6), (3, 0.2)]
    assert all(sum(one.signals.values()) == pytest.approx(one.score) for one in scored)


def test_either_of_them_can_be_turned_off() -> None:
    by_words = fuse(FOUND, 1.0, COSINES, DOCS, Weights(meaning=0.0, words=1.0))
    by_meaning = fuse(FOUND, 1.0, COSINES, DOCS, Weights(meaning=1.0, words=0.0))

    assert [one.passage_id for one in by_words] == [1, 2, 3]
    assert [one.passage_id for one in by_meaning] == [2, 3, 1]


def test_words_count_as_far_as_they_are_trusted() -> None:
    trusted, doubted = fuse(FOUND, 1.0, COSINES, DOCS, USUAL), fuse(FOUND, 0.25, COSINES, DOCS, USUAL)

    assert next(one.words for one in trusted if one.passage_id == 1) == 1.0
    assert next(one.words for one in doubted if one.passage_id == 1) == 0.25**1.5


def test_what_is_mere_noise_is_left_out_unless_it_has_a_word_or_nobody_asks() -> None:
    assert [one.passage_id for one in fuse(FOUND, 1.0, COSINES, DOCS, USUAL, noise=0.5)] == [2, 1]
    assert len(fuse(FOUND, 1.0, COSINES, DOCS, USUAL)) == 3


def test_a_note_of_many_passages_gives_a_little_up_unless_sizes_are_left_out() -> None:
    large = fuse(FOUND, 1.0, COSINES, DOCS, USUAL, sizes={20: 10})

    assert next(one.meaning for one in large if one.passage_id == 2) == pytest.approx(1 - CROWD * log(10))
    assert fuse(FOUND, 1.0, COSINES, DOCS, USUAL, sizes={})[0].meaning == 1.0


def test_where_words_tell_a_note_of_many_passages_gives_nothing_up() -> None:
    by_chance, partly, told = (
        fuse(FOUND, 1.0, COSINES, DOCS, USUAL, sizes={20: 10}, telling=far)[0].meaning for far in (0.0, 0.5, 1.0)
    )

    assert by_chance < partly < told == 1.0


def test_a_candidate_without_a_vector_scores_by_its_words() -> None:
    found = fuse(FOUND, 1.0, {}, {1: 10}, USUAL)

    assert found[0].signals == {"words": 0.6, "meaning": 0.0}
    assert fuse([], 1.0, {}, {}, USUAL) == []


def test_where_words_do_not_tell_they_count_for_half() -> None:
    told, untold = (fuse(FOUND, 1.0, COSINES, DOCS, USUAL, blind=blind) for blind in (0.0, 1.0))

    words = [{one.passage_id: one.words for one in scored} for scored in (told, untold)]
    assert words[1] == {passage: share * BY_CHANCE for passage, share in words[0].items()}


def test_whoever_knows_better_says_what_meaning_is_worth_and_noise_is_left_out_by_the_cosine() -> None:
    scored = fuse(FOUND, 1.0, COSINES, DOCS, USUAL, noise=0.5, meanings=dict.fromkeys(COSINES, 0.25))

    assert {one.passage_id: one.meaning for one in scored} == {1: 0.25, 2: 0.25}
