"""`co eval`: measure how well search answers questions whose answers are known, next to plain baselines."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from co_cli.cli.opening import at_least_1, print_json, settings_of
from co_cli.cli.terminal import ProgressBar, printable
from co_cli.evaluation.baselines import BASELINES, WITH_VECTORS
from co_cli.evaluation.running import Evaluation, Marks, mean_marks, method, temporary
from co_cli.evaluation.sets import ABSENT, QUESTIONS, add_others, read_set, read_vault
from co_cli.ground.paths import sample_vault
from co_cli.ground.settings import load_settings
from co_cli.vault.vault import Vault, open_vault


def add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="*", metavar="SET", help="folders in BEIR's layout (default: your questions)")
    parser.add_argument("--method", action="append", metavar="NAME", help="only this method (repeatable)")
    parser.add_argument("--absent", action="store_true", help="measure how well missing answers are recognized")
    parser.add_argument("--sample", type=at_least_1, metavar="N", help="maximum number of questions for each set")
    parser.add_argument("--among", metavar="DIR", help="put the notes of this folder around those that answer")
    parser.add_argument("--corpus", metavar="DIR", help="folder of corpus.jsonl, for a SET that has none")


def run_eval(options: argparse.Namespace) -> int:
    """
    Without a SET, co asks the questions in questions.jsonl of your vault, or of the
    sample vault if yours has none. A line names the notes that answer a question;
    "kind" is any label, and "absent" means that nothing in the vault answers it:
      {"question": "who decides?", "answers": ["memory:slug"], "kind": "people"}
      {"question": "who is king?", "answers": [], "kind": "absent"}
    A SET is a folder in BEIR's layout: corpus.jsonl, queries.jsonl and qrels.tsv.
    Its documents become notes in a temporary vault. Your vault is only read.
    With --among, it asks in a copy that also has the notes of DIR, because search
    finds almost everything in a small vault, but not in a large one.
    Methods: co (as `co search`), co:BACKEND (the same without the reader),
    grep, fts5-all, fts5-any, vectors, spec, rrf, simple

    examples:
      co eval
      co eval sets/scifact sets/cosqa --method co --method simple --sample 200
      co eval sets/locomo_obs --absent
      co eval --among ~/notes/archive --method co --method vectors
    """
    settings = settings_of(options)
    vectors = settings.knowledge_embedding_provider != "none"
    names = options.method or ["co", *(name for name in BASELINES if vectors or name not in WITH_VECTORS)]
    methods = {name: method(name) for name in names}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="co-eval-", ignore_cleanup_errors=True) as work:
        for folder in options.set or [""]:
            with nullcontext() if folder else _own_vault(options, work) as vault:
                found = read_vault(vault.root) if vault else read_set(folder, options.corpus)
                asked = [question for question in found.questions if options.absent or question.kind != ABSENT]
                count = min(options.sample or len(asked), len(asked))
                found = found._replace(questions=[asked[place * len(asked) // count] for place in range(count)])
                evaluation = Evaluation(settings, work, bar := ProgressBar(found.name), options.among)
                runs = [] if options.absent else evaluation.ask(found, methods, vault)
                new = [row for run in runs for row in run.rows()] or [evaluation.abstain(found, vault)]
                bar.done()
            if not options.json:
                kinds = dict.fromkeys(row.get("kind") for row in new[: None if len(options.set) < 2 else 1])
                _show([row for kind in kinds for row in new if row.get("kind") == kind], heads=not rows)
            rows += new
    if options.json:
        print_json(rows)
    elif len(options.set) > 1 and not options.absent:
        _show([_mean(name, [row for row in rows if row["method"] == name and row["kind"] == "all"]) for name in names])
    return 0


def _own_vault(options: argparse.Namespace, work: str) -> AbstractContextManager[Vault]:
    """Yours, or the sample vault if yours has no questions.

    A copy among other notes, and of the sample vault, because PostgreSQL tells vaults apart by folder.
    """
    own = open_vault(settings_of(options))
    asks = os.path.exists(os.path.join(own.root, QUESTIONS))
    if asks and not options.among:
        return closing(own)
    own.close()
    copied = shutil.copytree(own.root if asks else sample_vault(), os.path.join(work, "knowledge"))
    if options.among:
        add_others(copied, options.among)
    return temporary(open_vault(load_settings({"vault": copied, "data_dir": work})))


def _mean(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    means = mean_marks([Marks(*(row[field] for field in Marks._fields)) for row in rows])
    questions = sum(row["questions"] for row in rows)
    return {"set": f"mean of {len(rows)} sets", "method": name, "questions": questions, **means._asdict()}


def _show(rows: list[dict[str, Any]], heads: bool = False) -> None:
    for number, row in enumerate(rows):
        figures = {name: row[name] for name in row if name not in ("set", "kind", "marks")}
        widths = {name: max(9 if name == "method" else 7, len(name)) for name in figures}  # 9: `co:hybrid`
        if heads and number == 0:
            print(f"{'set':<18}" + "".join(f" {name:>{widths[name]}}" for name in figures))
        label = printable(row["set"] if row.get("kind", "all") == "all" else f"  {row['kind']}")
        print(f"{label[:17]:<18}" + "".join(f" {value:>{widths[name]}}" for name, value in figures.items()))
