"""A reranker adds one signal to what it read; whatever goes wrong in it leaves the order as it was."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from co_cli.retrieval import rerank as module
from co_cli.retrieval.rerank import Reranker, rerank
from co_cli.retrieval.score import Scored

RANKED = [Scored(number, number, {"words": 0.9 - number / 10}) for number in range(4)]
TEXTS = ["nought", "one", "two"]


def ranked_by(reranker: Any, weight: float = 1.0) -> tuple[list[Scored], str | None]:
    return rerank(reranker, "question", RANKED, TEXTS, weight)


def answering(*scores: float) -> Reranker:
    def answer(query: str, texts: Sequence[str]) -> Sequence[float]:
        assert (query, list(texts)) == ("question", TEXTS)
        return scores

    return answer


def test_scores_on_any_scale_are_spread_from_0_to_1_and_weighed() -> None:
    found, problem = ranked_by(answering(-40.0, 10.0, -15.0), weight=0.5)

    assert problem is None
    assert [one.passage for one in found] == [1, 2, 0, 3]
    assert {one.passage: one.signals.get("reader") for one in found} == {1: 0.5, 2: 0.25, 0: None, 3: None}
    assert found[0].score == pytest.approx(0.8 + 0.5)


def test_a_reranker_that_sees_no_difference_changes_nothing() -> None:
    assert ranked_by(answering(2.0, 2.0, 2.0))[0] == RANKED


def answering_nonsense(answer: object) -> Any:
    def give(query: str, texts: Sequence[str]) -> object:
        return answer

    return give


def broken(query: str, texts: Sequence[str]) -> Sequence[float]:
    raise RuntimeError("the model\n is gone")


@pytest.mark.parametrize(
    ("reranker", "said"),
    [
        (broken, r"failed \(the model is gone\)"),
        (answering(1.0, 2.0), "2 scores for 3 texts"),
        (answering(1.0, 2.0, float("nan")), "no number"),
        (answering_nonsense(None), "failed"),
        (answering_nonsense(["a", "b", "c"]), "failed"),
    ],
)
def test_what_goes_wrong_is_said_and_the_order_stays(reranker: Any, said: str) -> None:
    found, problem = ranked_by(reranker)

    assert found == RANKED
    assert problem is not None
    assert re.search(said, problem), problem
    assert problem.endswith("results are in the order without it")


def test_one_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.05)
    forever = threading.Event()

    def wait(query: str, texts: Sequence[str]) -> Sequence[float]:
        forever.wait()
        return []

    found, problem = ranked_by(wait)
    forever.set()

    assert found == RANKED
    assert problem == "the reranker did not answer within 0.05 s: results are in the order without it"
