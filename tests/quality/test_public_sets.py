"""Public question sets that nobody here wrote: meaning must not cost what words alone find.

The sets are not part of the repository; where their folder is missing these tests are skipped.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from co_cli.evaluation.methods import method
from co_cli.evaluation.running import run_set
from co_cli.settings import load_settings

SETS = Path(__file__).parents[2].parent / "shared" / "evals"
QUESTIONS = {"anthropic_docs": 100, "xquad_en": 100}

pytestmark = pytest.mark.skipif(not SETS.is_dir(), reason=f"the public question sets are not in {SETS}")


def sampled(name: str, folder: Path) -> Path:
    """The whole corpus, and questions spread evenly over the set."""
    folder.mkdir()
    for file in ("corpus.jsonl", "qrels.tsv", "meta.json"):
        shutil.copy(SETS / name / file, folder / file)
    lines = (SETS / name / "queries.jsonl").read_text("utf-8").splitlines(keepends=True)
    step = max(1, len(lines) // QUESTIONS[name])
    (folder / "queries.jsonl").write_text("".join(lines[::step][: QUESTIONS[name]]), "utf-8")
    return folder


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_hybrid_search_is_no_worse_than_words_alone(name: str, tmp_path: Path) -> None:
    if not (SETS / name / "corpus.jsonl").exists():
        pytest.skip(f"{name} is not in {SETS}")
    folder = sampled(name, tmp_path / name)
    methods = [method(method_name) for method_name in ("co", "co:fts5", "fts5-any")]

    ours, fts5, any_term = (
        run.scores()["all"] for run in run_set(str(folder), str(tmp_path / "work"), load_settings(), methods)
    )

    print(f"{name}: {ours}, words {fts5}, any term {any_term}")
    assert ours.questions >= 80
    assert ours.ndcg10 >= fts5.ndcg10, f"ours {ours}\nwords {fts5}"
    assert ours.ndcg10 >= any_term.ndcg10, f"ours {ours}\nany term {any_term}"
