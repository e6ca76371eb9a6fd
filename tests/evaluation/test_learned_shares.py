"""Shares of the closer look, learned from questions whose answers are known."""

from __future__ import annotations

import pytest

from co_cli.errors import InvalidInputError
from co_cli.evaluation.learned_shares import SIGNALS, Lessons, learn_shares, lessons, values_of
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.rerank import DEFAULT
from co_cli.service.searching import search_index
from co_cli.values import Filters
from tests.vault import Vault


def told(**signals: float) -> list[float]:
    """What each signal says of a passage; those that are not named say nothing."""
    return [signals.get(name, 0.0) for name in SIGNALS]


def taught_by(signal: str, questions: int = 20) -> Lessons:
    """The right note is the one of which this signal says most; meaning likes the wrong one."""
    looked_at = [("right", told(**{signal: 0.9, "meaning": 0.4})), ("wrong", told(**{signal: 0.1, "meaning": 0.5}))]
    return lessons([(looked_at, {"right": 1})] * questions)


def test_what_points_to_the_right_note_counts(vault: Vault) -> None:
    learned = learn_shares({"a": taught_by("title")}, {"a": "a"})

    assert sum(learned) == pytest.approx(1.0)
    assert learned.title > 0.9
    assert learned.meaning == 0.0  # never below nothing, though it misleads
    assert learned.context == 0.0  # nobody said anything about it


def test_a_family_counts_once_however_many_sets_and_questions_it_has() -> None:
    apart = [("right", told(order=0.9)), ("wrong", told(title=0.9))]
    against = [("right", told(title=0.9)), ("wrong", told(order=0.9))]
    few, many = lessons([(apart, {"right": 1})] * 5), lessons([(against, {"right": 1})] * 50)

    alone = learn_shares({"few": few, "many": many}, {"few": "f", "many": "m"})
    doubled = learn_shares({"few": few, "many": many, "too": many}, {"few": "f", "many": "m", "too": "m"})
    as_three = learn_shares({"few": few, "many": many, "too": many}, {"few": "f", "many": "m", "too": "t"})

    assert alone.order == pytest.approx(alone.title, abs=0.02)
    assert doubled.order == pytest.approx(doubled.title, abs=0.02)
    assert as_three.title > as_three.order + 0.1


def test_questions_whose_answer_was_not_looked_at_teach_nothing() -> None:
    missed = lessons([([("wrong", told(title=1.0))], {"right": 1}), ([], {"right": 1})])

    assert len(missed.values) == 0
    with pytest.raises(InvalidInputError, match="nothing can be learned"):
        learn_shares({"a": missed}, {"a": "a"})


@pytest.mark.parametrize("weights", [None, Weights(meaning=0.7, words=0.3)])
def test_what_is_learned_from_is_what_the_closer_look_adds_up(
    kb: KnowledgeBase, vault: Vault, weights: Weights | None
) -> None:
    vault.write("memories/oak.md", "---\ntitle: How old oaks get\n---\nOaks live for centuries. Who asks?")
    vault.write("memories/elm.md", "Mara said how old the elms are. Why do oaks get old?")
    vault.write("memories/ship.md", "Ships get old as well.")
    kb.sync()
    trace = search_index(kb.index, kb.embedders, "how old do oaks get?", Filters(), 10, weights).trace
    assert trace is not None
    assert trace.telling == 1.0  # else something may be added that no share is about

    values = values_of(trace, asked=True)

    shares = list(DEFAULT)
    balance = trace.weights
    total = sum(DEFAULT) - DEFAULT.words - DEFAULT.meaning
    total += DEFAULT.meaning * balance.meaning / 0.4 + DEFAULT.words * balance.words / 0.6
    added_up = {passage: sum(map(float.__mul__, said, shares)) / total for passage, said in values.items()}
    assert len(added_up) == 3
    assert added_up == pytest.approx({one.passage_id: one.score for one in trace.ranked})
