"""The formula: 0.7 · cosine + 0.3 · trust · bm25 / best bm25, and reciprocal rank fusion."""

from __future__ import annotations

import pytest

from co_cli.index.engine import Neighbour, WordMatch
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.profiles import DEFAULT, PROFILES
from co_cli.retrieval.score import Scored, best_first, hybrid, rank_fusion, trust


def candidates(
    bm25: dict[int, float], cosines: dict[int, float], having: dict[int, set[str]] | None = None
) -> Candidates:
    """Each passage is a note of its own; the question has the words rare and common."""
    return Candidates(
        matches=[WordMatch(passage, passage, score) for passage, score in bm25.items()],
        near=[Neighbour(passage, passage, cosine) for passage, cosine in cosines.items()],
        notes={passage: passage for passage in (*bm25, *cosines)},
        cosines=cosines,
        idf={"rare": 3.0, "common": 1.0},
        having={passage: {"rare", "common"} for passage in bm25} if having is None else having,
    )


def by_passage(scored: list[Scored]) -> dict[int, dict[str, float]]:
    return {one.passage: dict(one.signals) for one in scored}


def test_meaning_is_the_raw_cosine_and_words_are_relative_to_the_best_match() -> None:
    found = by_passage(hybrid(candidates({1: 8.0, 2: 2.0}, {2: 0.5, 3: -0.2}), DEFAULT.weights))

    assert found[1] == pytest.approx({"meaning": 0.0, "words": 0.3})
    assert found[2] == pytest.approx({"meaning": 0.35, "words": 0.075})
    assert found[3] == {"meaning": 0.0, "words": 0.0}, "a negative cosine counts as 0"


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ({1: {"rare", "common"}}, 1.0),
        ({1: {"rare"}, 2: {"common"}}, (3 / 4) ** 2),
        ({1: {"common"}}, (1 / 4) ** 2),
        ({1: set[str]()}, 0.0),
        ({}, 0.0),
    ],
)
def test_trust_is_the_square_of_the_best_coverage(having: dict[int, set[str]], expected: float) -> None:
    assert trust(candidates({1: 1.0}, {1: 0.5}, having)) == pytest.approx(expected)


@pytest.mark.parametrize(("together", "expected"), [(1, 0.01), (2, 1 / 3), (3, 2 / 3), (4, 1.0), (9, 1.0)])
def test_several_words_together_are_trusted_however_little_of_the_question_they_are(
    together: int, expected: float
) -> None:
    idf = {f"word{number}": 1.0 for number in range(1, 10)} | {"unheard": 9_000.0}
    found = Candidates(idf=idf | {"half": 1.0}, having={1: set(list(idf)[:together])})

    assert trust(found) == pytest.approx(expected, abs=0.01)


def test_one_chance_word_does_not_outweigh_meaning() -> None:
    found = hybrid(candidates({1: 8.0}, {1: 0.1, 2: 0.25}, {1: {"common"}}), DEFAULT.weights)

    assert best_first(found)[0].passage == 2


def test_without_vectors_words_decide_alone_and_are_not_mistrusted() -> None:
    found = by_passage(hybrid(candidates({1: 8.0, 2: 2.0}, {}, {1: {"common"}}), {"words": 1.0}))

    assert found == {1: {"words": 1.0}, 2: {"words": 0.25}}


def test_rank_fusion_counts_places_and_not_scores() -> None:
    found = by_passage(rank_fusion(candidates({1: 8.0, 2: 7.9}, {2: 0.9, 3: 0.1}), PROFILES["rrf"].weights))

    assert found[1] == pytest.approx({"meaning": 0.0, "words": 0.5})
    assert found[2] == pytest.approx({"meaning": 0.5, "words": 0.5 * 61 / 62})
    assert found[3] == pytest.approx({"meaning": 0.5 * 61 / 62, "words": 0.0})


def test_equal_scores_keep_one_order() -> None:
    same = [Scored(passage, passage, {"words": 0.5}) for passage in (3, 1, 2)]

    assert [one.passage for one in best_first(same)] == [1, 2, 3]


def test_a_score_is_the_sum_of_its_signals() -> None:
    assert Scored(1, 1, {"words": 0.25}).plus("name", 1.0).score == 1.25
