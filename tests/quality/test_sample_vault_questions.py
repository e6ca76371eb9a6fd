"""The sample vault's own questions, asked through KnowledgeBase with the embedded model."""

from __future__ import annotations

import os
from pathlib import Path

from co_cli.evaluation.running import evaluate
from co_cli.evaluation.scoring import Scores
from co_cli.evaluation.sets import read_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sample import sample_vault

RECALL_AT_5_ALL = 0.90
RECALL_AT_5_PARAPHRASE = 0.75


def figures(scores: dict[str, Scores]) -> str:
    return "\n".join(f"{kind}: {score}" for kind, score in scores.items())


def test_the_answers_are_among_the_first_five(tmp_path: Path) -> None:
    questions = read_questions(os.path.join(sample_vault(), "questions.jsonl"))
    with KnowledgeBase.open(sample_vault(), tmp_path / "data") as kb:
        kb.sync()
        scores = evaluate(kb, questions, "hybrid")

    assert len(questions) >= 40
    assert scores["all"].recall5 >= RECALL_AT_5_ALL, figures(scores)
    assert scores["paraphrase"].recall5 >= RECALL_AT_5_PARAPHRASE, figures(scores)


def test_words_alone_do_not_answer_a_paraphrase(tmp_path: Path) -> None:
    """Else the questions would be too easy to say anything about meaning."""
    questions = [q for q in read_questions(os.path.join(sample_vault(), "questions.jsonl")) if q.kind == "paraphrase"]
    with KnowledgeBase.open(sample_vault(), tmp_path / "data") as kb:
        kb.sync()
        hybrid, words = (evaluate(kb, questions, backend)["all"] for backend in ("hybrid", "fts5"))

    assert hybrid.recall5 >= words.recall5 + 0.3, f"hybrid {hybrid}, words {words}"
