"""A score is the sum of its parts, and nothing that was proposed is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.retrieval.evidence import Evidence
from co_cli.retrieval.fuse import Scored, Weights
from co_cli.retrieval.question import Term
from co_cli.retrieval.rerank import ONLY_ASKS, how_telling, rerank

SHARE = st.floats(0, 1)
EVIDENCE = st.builds(Evidence, *[SHARE] * 7, st.floats(0, 40), st.sampled_from([0.0, 1.0]), SHARE, SHARE)
USUAL = Weights(0.4, 0.6)


def fused(words: float, meaning: float, number: int) -> Scored:
    return Scored(number, number, words + meaning, {}, words, meaning)


@given(
    rows=st.lists(st.tuples(SHARE, SHARE, st.none() | EVIDENCE), max_size=20),
    meaning=st.floats(0.01, 0.99),
    asked=st.booleans(),
    telling=SHARE,
)
def test_parts_add_up_to_the_score_and_the_score_lies_between_0_and_1(
    rows: list[tuple[float, float, Evidence | None]], meaning: float, asked: bool, telling: float
) -> None:
    candidates = [fused(words, near, number) for number, (words, near, _) in enumerate(rows)]
    evidence = {number: found for number, (_, _, found) in enumerate(rows) if found}

    ranked = rerank(candidates, evidence, Weights(meaning, 1 - meaning), telling, asked=asked, untold=1 - telling)

    assert sorted(candidate.passage_id for candidate in ranked) == list(range(len(rows)))
    for candidate in ranked:
        assert sum(candidate.signals.values()) == pytest.approx(candidate.score, abs=1e-9)
        assert -1e-9 <= candidate.score <= 1 + 1e-9
    scores = [candidate.score for candidate in ranked]
    assert scores == sorted(scores, reverse=True)


def test_evidence_lifts_a_candidate_and_is_named() -> None:
    ranked = rerank([fused(0.5, 0.5, 1), fused(0.5, 0.4, 2)], {1: Evidence(), 2: Evidence(sentence=1.0)}, USUAL)

    assert [candidate.passage_id for candidate in ranked] == [2, 1]
    assert set(ranked[0].signals) == {"words", "meaning", "sentence"}


def test_weights_move_words_and_meaning_against_each_other() -> None:
    candidates = [fused(1.0, 0.0, 1), fused(0.0, 1.0, 2)]

    by_words = rerank(candidates, {}, Weights(0.1, 0.9))
    by_meaning = rerank(candidates, {}, Weights(0.9, 0.1))

    assert [ranked[0].passage_id for ranked in (by_words, by_meaning)] == [1, 2]


def test_without_evidence_words_and_meaning_decide() -> None:
    candidates = [fused(0.9, 0.3, 1), fused(0.2, 0.3, 2), fused(0.0, 0.1, 3)]

    assert [candidate.passage_id for candidate in rerank(candidates, {}, USUAL)] == [1, 2, 3]


def test_evidence_by_words_counts_as_far_as_words_tell_something() -> None:
    candidates, evidence = [fused(0.0, 0.6, 1), fused(0.0, 0.5, 2)], {1: Evidence(), 2: Evidence(sentence=1.0)}

    assert [one.passage_id for one in rerank(candidates, evidence, USUAL, telling=1.0)] == [2, 1]
    assert [one.passage_id for one in rerank(candidates, evidence, USUAL, telling=0.0)] == [1, 2]


def test_words_that_are_akin_count_where_the_words_of_the_question_do_not_tell() -> None:
    candidates, evidence = [fused(0.0, 0.55, 1), fused(0.0, 0.5, 2)], {1: Evidence(), 2: Evidence(akin=0.2)}

    told, untold = (rerank(candidates, evidence, USUAL, telling=1 - far, untold=far) for far in (0.0, 1.0))

    assert [one.passage_id for one in told] == [1, 2]
    assert [one.passage_id for one in untold] == [2, 1]
    assert untold[0].signals["related"] > 0


def test_words_tell_when_they_cover_the_question_or_are_rare_enough_to_name_a_passage() -> None:
    short = [Term("boat", 3.0, 0, False), Term("storm", 3.0, 0, False)]
    long = [Term(f"word{number}", 4.0, 0, False) for number in range(16)]

    assert how_telling(1.0, short, 400) == 1
    assert how_telling(0.2, short, 400) == 0
    assert how_telling(0.2, long, 400) == 1
    assert how_telling(0.5, short, 400) > how_telling(0.4, short, 400) > 0
    assert how_telling(0.2, short, 0) == 0


def test_a_note_that_asks_gives_way_where_a_question_is_asked() -> None:
    candidates = [fused(0.9, 0.5, 1), fused(0.8, 0.5, 2)]
    evidence = {1: Evidence(sentence=0.9, asks=1.0), 2: Evidence(sentence=0.85)}

    looked_for, asked = (rerank(candidates, evidence, USUAL, asked=asked) for asked in (False, True))

    assert [one.passage_id for one in looked_for] == [1, 2]
    assert [one.passage_id for one in asked] == [2, 1]
    assert asked[1].score == pytest.approx(looked_for[0].score * (1 - ONLY_ASKS))
    assert sum(asked[1].signals.values()) == pytest.approx(asked[1].score)
