"""Whoever brings a reranker has the last word; one that fails, is late or talks nonsense changes only `degraded`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.reranker import rerank_with
from tests.vault import Vault

RANKED = [Scored(number, number, score, {"words": score}) for number, score in enumerate((0.9, 0.8, 0.3))]


def by_length(query: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def test_its_order_is_the_order_and_its_score_the_only_part() -> None:
    order, problem = rerank_with(by_length, "x", RANKED, ["a", "abc"])

    assert problem is None
    assert [one.passage_id for one in order] == [1, 0, 2]
    assert order[0].signals == {"reranker": 1.0}
    assert order[2].signals == {"words": 0.15}
    assert all(sum(one.signals.values()) == pytest.approx(one.score) for one in order)
    assert [one.score for one in order] == sorted((one.score for one in order), reverse=True)


def test_what_it_holds_for_equal_keeps_its_order() -> None:
    order, _ = rerank_with(by_length, "x", RANKED, ["ab", "cd", "ef"])

    assert [one.passage_id for one in order] == [0, 1, 2]


def failing(query: str, texts: Sequence[str]) -> list[float]:
    raise ConnectionError("no such\nserver")


def nonsense(answer: Any) -> Any:
    def reranker(query: str, texts: Sequence[str]) -> Any:
        return answer

    return reranker


@pytest.mark.parametrize(
    ("reranker", "told"),
    [
        (failing, "failed (no such server)"),
        (nonsense([1.0]), "answered with 1 scores for 3 texts"),
        (nonsense([1.0, float("nan"), 2.0]), "no number"),
        (nonsense(["best", "good", "bad"]), "something else than numbers"),
        (nonsense(None), "something else than numbers"),
    ],
)
def test_a_wrong_answer_leaves_the_order_there_was(reranker: Any, told: str) -> None:
    order, problem = rerank_with(reranker, "x", RANKED, ["a", "b", "c"])

    assert order == RANKED
    assert told in (problem or "")


def test_one_that_is_late_is_not_waited_for() -> None:
    never = threading.Event()
    order, problem = rerank_with(lambda query, texts: [float(never.wait())], "x", RANKED, ["a"], seconds=0.05)
    never.set()

    assert order == RANKED
    assert "did not answer within 0.05 s" in (problem or "")


def test_without_texts_nobody_is_asked() -> None:
    assert rerank_with(failing, "x", [], []) == ([], None)


@pytest.fixture
def oaks(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    for number in range(1, 4):
        vault.write(
            f"memories/oak{number}.md", f"---\ntitle: Tree {number}\n---\nOaks live long. {'Very. ' * number}\n"
        )
    kb.sync()
    return kb


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
def test_a_search_hands_it_the_texts_of_its_candidates(oaks: KnowledgeBase, backend: str) -> None:
    found = oaks.search("how long do oaks live", backend=backend, reranker=by_length, limit=2)

    assert [hit.ref for hit in found.hits] == ["memory:oak3", "memory:oak2"]
    assert set(found.hits[0].signals) == {"reranker"}
    assert found.degraded == []


def test_a_search_says_when_it_had_to_do_without(oaks: KnowledgeBase) -> None:
    plain, failed = oaks.search("oaks live"), oaks.search("oaks live", reranker=failing)

    assert failed.state == "found"
    assert failed.hits == plain.hits
    assert failed.degraded == ["the reranker failed (no such server): the order is the one without it"]


def test_it_is_off_unless_one_is_given_and_a_name_still_comes_first(oaks: KnowledgeBase) -> None:
    assert all("reranker" not in hit.signals for hit in oaks.search("oaks live").hits)

    first = oaks.search("tree 1", reranker=by_length).hits[0]
    assert first.ref == "memory:oak1"
    assert set(first.signals) == {"reranker", "exact"}
