"""`co eval`: how well does search answer questions whose answers are known?"""

from __future__ import annotations

import argparse
import os
import tempfile

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import ProgressBar, Screen
from co_cli.errors import InvalidInputError
from co_cli.evaluation.running import evaluate, evaluate_public
from co_cli.evaluation.scoring import Scores
from co_cli.evaluation.sets import read_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sample import sample_vault
from co_cli.settings import load_settings


def add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="*", metavar="SET", help="folders in BEIR's layout (default: the sample vault)")
    parser.add_argument("--questions", metavar="FILE", help="JSON lines of question and answers, for your own vault")
    parser.add_argument(
        "--backend", choices=("grep", "fts5", "hybrid"), action="append", help="which to compare (repeatable)"
    )
    parser.epilog = (
        "A line of --questions is\n"
        '  {"question": "who decides?", "answers": ["memory:slug"], "kind": "any label"}\n\n'
        "examples:\n  co eval\n  co eval --questions my-questions.jsonl --backend fts5 --backend hybrid\n"
        "  co eval sets/scifact sets/cosqa\n"
    )
    parser.set_defaults(run=evaluate_command)


def evaluate_command(options: argparse.Namespace) -> int:
    backends = options.backend or ["hybrid"]
    rows: list[tuple[str, str, str, Scores]] = []
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir})
    for folder in options.set:
        if not os.path.exists(os.path.join(folder, "corpus.jsonl")):
            raise InvalidInputError(f"{folder}: a set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv")
        for backend in backends:
            bar = ProgressBar(os.path.basename(folder))
            with tempfile.TemporaryDirectory(prefix="co-eval-") as work:
                scores = evaluate_public(folder, work, settings, backend, bar)
            bar.done()
            rows.append((os.path.basename(os.path.normpath(folder)), backend, "all", scores))
    if not options.set:
        with tempfile.TemporaryDirectory(prefix="co-eval-") as work:
            kb = open_knowledge_base(options) if options.questions else KnowledgeBase.open(sample_vault(), work)
            with kb:
                kb.sync(
                    ProgressBar("indexing")
                )  # to the end, however slow the provider: figures of half a space mislead
                questions = read_questions(options.questions or os.path.join(sample_vault(), "questions.jsonl"))
                for backend in backends:
                    bar = ProgressBar("asking")
                    for kind, scores in evaluate(kb, questions, backend, bar).items():
                        rows.append(("your vault" if options.questions else "sample vault", backend, kind, scores))
                    bar.done()
    if options.json:
        print_json(
            [
                {"set": name, "backend": backend, "kind": kind, **scores._asdict()}
                for name, backend, kind, scores in rows
            ]
        )
        return 0
    screen = Screen()
    screen.line(f"{'set':<18}{'backend':<9}{'kind':<12}{'nDCG@10':>8}{'R@5':>8}{'R@10':>8}{'MRR@10':>8}{'asked':>7}")
    for name, backend, kind, scores in rows:
        figures = "".join(f"{value:>8.3f}" for value in scores[:4])
        screen.line(f"{name:<18}{backend:<9}{kind:<12}{figures}{scores.questions:>7}")
    return 0
