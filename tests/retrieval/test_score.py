"""The formula of meaning and words; words alone; rank fusion; profiles; and a reranker on top."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from itertools import permutations
from math import exp
from typing import Any

import pytest

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.weights import check_weights
from co_cli.index.stored import Match
from co_cli.retrieval import rerank as reranking
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.profiles import DEFAULT, PROFILES, profile_named
from co_cli.retrieval.rerank import rerank
from co_cli.retrieval.score import Scored, best_first, hybrid, rank_fusion, trust


def candidates(
    bm25: dict[int, float], cosines: dict[int, float], having: dict[int, set[str]] | None = None
) -> Candidates:
    """Each passage is a note of its own; the question has the words rare and common."""
    return Candidates(
        matches=[Match(passage, passage, score) for passage, score in bm25.items()],
        near=[Match(passage, passage, cosine) for passage, cosine in cosines.items()],
        notes={passage: passage for passage in (*bm25, *cosines)},
        cosines=cosines,
        idf={"rare": 3.0, "common": 1.0},
        having={passage: {"rare", "common"} for passage in bm25} if having is None else having,
        passages=100,
    )


def by_passage(scored: list[Scored]) -> dict[int, dict[str, float]]:
    return {one.passage: dict(one.signals) for one in scored}


def test_meaning_is_the_raw_cosine_and_words_are_relative_to_the_best_match() -> None:
    found = by_passage(hybrid(candidates({1: 8.0, 2: 2.0}, {2: 0.5, 3: -0.2}), DEFAULT.weights))

    assert found[1] == pytest.approx({"meaning": 0.7, "words": 0.3}), "without a vector, words count for both"
    assert found[2] == pytest.approx({"meaning": 0.35, "words": 0.3 * (1 + 0.25) / 2})
    assert found[3] == {"meaning": 0.0, "words": 0.0}, "a negative cosine counts as 0"


def test_words_are_trusted_by_how_much_of_the_question_they_cover_and_how_far_from_chance_they_stand_together() -> None:
    cases: list[tuple[dict[int, set[str]], float]] = [
        ({1: {"rare", "common"}}, 1.0),
        ({1: {"rare"}, 2: {"common"}}, (3 / 4) ** 2),
        ({1: {"common"}}, (1 / 4) ** 2),
        ({1: set()}, 0.0),
        ({}, 0.0),
    ]
    assert [trust(candidates({1: 1.0}, {1: 0.5}, having)) for having, _ in cases] == pytest.approx(
        [expected for _, expected in cases]
    )
    idf = {f"word{number}": 3.0 for number in range(1, 10)} | {"unheard": 9_000.0}
    passages = round(exp(6.0))  # of which one would have two such words by chance
    together = {1: 0.0, 2: 0.0, 3: 1 / 2, 4: 1.0, 9: 1.0}
    assert {
        count: trust(Candidates(idf=idf, having={1: set(list(idf)[:count])}, passages=passages)) for count in together
    } == pytest.approx(together, abs=0.01)


def test_one_chance_word_does_not_outweigh_meaning() -> None:
    found = hybrid(candidates({1: 8.0}, {1: 0.1, 2: 0.25}, {1: {"common"}}), DEFAULT.weights)

    assert best_first(found)[0].passage == 2


def test_words_count_by_how_much_of_the_question_the_passage_has() -> None:
    few = hybrid(candidates({1: 2.0, 2: 8.0}, {1: 0.5}, {1: {"rare", "common"}, 2: {"common"}}), DEFAULT.weights)
    matches = [Match(1, 1, 8.0), Match(2, 2, 8.0)]
    having = {1: set("abcd"), 2: {"a"}}
    many = hybrid(
        Candidates(matches, notes={1: 1, 2: 2}, cosines={1: 0.5}, idf=dict.fromkeys("abcd", 1.0), having=having),
        DEFAULT.weights,
    )

    assert {n: parts["words"] for n, parts in by_passage(few).items()} == pytest.approx({1: 0.3 * 1.25 / 2, 2: 0.15})
    assert {n: parts["words"] for n, parts in by_passage(many).items()} == pytest.approx({1: 0.3, 2: 0.15})


def test_without_vectors_a_passage_with_more_of_a_few_words_comes_first() -> None:
    having = {1: {"common"}, 2: {"common", "rare"}, 3: {"rare"}}
    found = by_passage(hybrid(candidates({1: 8.0, 2: 2.0, 3: 4.0}, {}, having), {"words": 1.0}))

    assert found == {1: {"words": 0.5}, 2: {"words": 0.625}, 3: {"words": 0.25}}


def test_without_vectors_only_all_of_many_words_come_first() -> None:
    idf = dict.fromkeys("abcd", 1.0)
    having = {1: set("ab"), 2: set("abc"), 3: set("abcd")}
    matches = [Match(passage, passage, score) for passage, score in ((1, 8.0), (2, 4.0), (3, 2.0))]
    found = hybrid(Candidates(matches, notes={1: 1, 2: 2, 3: 3}, idf=idf, having=having), {"words": 1.0})

    assert [scored.passage for scored in best_first(found)] == [3, 1, 2]


def test_rank_fusion_counts_places_and_not_scores() -> None:
    found = by_passage(rank_fusion(candidates({1: 8.0, 2: 7.9}, {2: 0.9, 3: 0.1}), PROFILES["rrf"].weights))

    assert found[1] == pytest.approx({"meaning": 0.0, "words": 0.5})
    assert found[2] == pytest.approx({"meaning": 0.5, "words": 0.5 * 61 / 62})
    assert found[3] == pytest.approx({"meaning": 0.5 * 61 / 62, "words": 0.0})


def test_weights_and_profiles_that_do_not_exist_are_refused_with_those_that_do() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"vector": 0.5}, "a weight must be for one of meaning, words"),
        ({"name": 0.5}, "a weight must be for one of meaning, words"),
        ({"words": 1.5}, "from 0 to 1, not 1.5"),
        ({"words": -0.1}, "from 0 to 1"),
        ({"words": float("nan")}, "from 0 to 1"),
        ({"words": True}, "from 0 to 1"),
        ({"words": "much"}, "from 0 to 1, not 'much'"),
        ({"words": 0, "meaning": 0, "recency": 1}, "give one of them more"),
    ]
    for weights, problem in cases:
        with pytest.raises(InvalidInputError, match=problem):
            check_weights(weights)
    with pytest.raises(InvalidInputError, match="default, agent, seven, rrf, fresh"):
        profile_named("spec")


RANKED = [Scored(number, number, {"words": 0.9 - number / 10}) for number in range(4)]
TEXTS = ["nought", "one", "two"]


def reranked(answer: Any, weight: float = 1.0) -> tuple[list[Scored], str | None]:
    def reranker(query: str, texts: Sequence[str]) -> Any:
        assert (query, list(texts)) == ("question", TEXTS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    reading = rerank(reranker, "question", RANKED, TEXTS, weight)
    return reading.ranked, reading.problem


def test_scores_of_a_reranker_on_any_scale_are_spread_from_0_to_1_and_weighed() -> None:
    found, problem = reranked([-40.0, 10.0, -15.0], weight=0.5)

    assert problem is None
    assert [one.passage for one in found] == [1, 2, 0, 3]
    assert {one.passage: one.signals.get("reader") for one in found} == pytest.approx(
        {1: 0.5 / 1.5, 2: 0.25 / 1.5, 0: None, 3: None}
    )
    assert found[0].score == pytest.approx((0.8 + 0.5) / 1.5)
    assert [found.passage for found in reranked([2.0, 2.0, 2.0])[0]] == [0, 1, 2, 3], "it sees no difference"


def test_a_reranker_that_fails_is_reported_and_the_order_stays() -> None:
    cases: list[tuple[Any, str]] = [
        (RuntimeError("the model\n is gone"), r"failed \(the model is gone\)"),
        ([1.0, 2.0], "2 scores for 3 texts"),
        ([1.0, 2.0, float("nan")], "not a number"),
        (None, "failed"),
        (["a", "b", "c"], "failed"),
    ]
    for answer, said in cases:
        found, problem = reranked(answer)
        assert found == RANKED, said
        assert re.search(f"{said}.*results are in the order without it$", problem or ""), problem


def test_a_reranker_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranking, "SECONDS", 0.05)
    forever = threading.Event()

    def wait(query: str, texts: Sequence[str]) -> Sequence[float]:
        forever.wait()
        return []

    reading = rerank(wait, "question", RANKED, TEXTS, 1.0)
    forever.set()

    assert reading.ranked == RANKED
    assert reading.problem == "the reranker did not answer within 0.05 s: results are in the order without it"


def test_the_share_of_words_does_not_depend_on_their_order() -> None:
    """Which differs between processes, as they come from a set."""
    asked = Candidates(idf={"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.7})

    assert len({asked.share(terms) for terms in permutations("abc")}) == 1
