"""Does feedback help? The experiment of evaluation/feedback.py on the sample vault, as rows."""

from __future__ import annotations

import os
import tempfile

from co_cli.benchmarks.measuring import BenchRow
from co_cli.benchmarks.sync import Bar
from co_cli.evaluation.feedback import experiment
from co_cli.evaluation.questions import read_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sample import sample_vault
from co_cli.settings import load_settings


def bench_feedback(bar: Bar | None = None) -> list[BenchRow]:
    """nDCG@10 of questions held back: by the weights at first, and as the judgements of the others changed them."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        flags = {"vault": sample_vault(), "data_dir": os.path.join(folder, "data")}
        settings = load_settings(flags, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync()
            questions = read_questions(os.path.join(kb.root, "questions.jsonl"))
            found = experiment(kb, questions, bar)
            if bar:
                bar.done()
    rows: list[BenchRow] = []
    for user in found:
        name = f"{user.user}, from meaning {user.default:g}"
        taught = ", ".join(f"{one.meaning:.2f} {'kept' if one.kept else 'refused'}" for one in user.lessons)
        rows.append(BenchRow(f"{name}: before", user.before, "nDCG@10"))
        rows.append(BenchRow(f"{name}: {taught}", user.after, "nDCG@10", user.after / user.before))
    return rows
