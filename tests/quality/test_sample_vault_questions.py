"""The sample vault's own questions, asked through KnowledgeBase with the embedded model."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from co_cli.evaluation.running import evaluate
from co_cli.evaluation.scoring import Scores
from co_cli.evaluation.sets import Question, read_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sample import sample_vault

RECALL_AT_5_ALL = 0.81
RECALL_AT_5_PARAPHRASE = 0.63
BETTER_THAN_WORDS = 0.4
"""By how much meaning must lift recall@5 of the paraphrases, which share no content word with their answers."""


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_questions(os.path.join(sample_vault(), "questions.jsonl"))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(sample_vault(), tmp_path_factory.mktemp("data")) as kb:
        kb.sync()
        yield kb


@pytest.fixture(scope="module")
def hybrid(sample: KnowledgeBase, questions: list[Question]) -> dict[str, Scores]:
    return evaluate(sample, questions, "hybrid")


def figures(scores: dict[str, Scores]) -> str:
    return "\n" + "\n".join(f"{kind}: {score}" for kind, score in scores.items())


def test_the_answers_are_among_the_first_five(hybrid: dict[str, Scores]) -> None:
    assert hybrid["all"].recall5 >= RECALL_AT_5_ALL, figures(hybrid)


def test_the_answers_of_paraphrases_are_among_the_first_five(hybrid: dict[str, Scores]) -> None:
    assert hybrid["paraphrase"].recall5 >= RECALL_AT_5_PARAPHRASE, figures(hybrid)


def test_meaning_costs_questions_by_words_nothing_and_answers_what_words_cannot(
    sample: KnowledgeBase, questions: list[Question], hybrid: dict[str, Scores]
) -> None:
    words = evaluate(sample, questions, "fts5")

    both = f"hybrid{figures(hybrid)}\nwords alone{figures(words)}"
    assert hybrid["words"].recall5 >= words["words"].recall5 - 0.01, both
    assert hybrid["paraphrase"].recall5 >= words["paraphrase"].recall5 + BETTER_THAN_WORDS, both
