"""`co eval`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from co_cli.evaluation.baselines import BASELINES
from tests.command import Co
from tests.evaluation.tiny_set import trees, write_set
from tests.vault import Vault

SETS = Path(__file__).parents[2].parent / "shared" / "evals"


@pytest.fixture
def questions(vault: Vault, tmp_path: Path) -> Path:
    """A vault of two notes, and a file with a question about it."""
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Elms stand in the park.")
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "centuries", "answers": ["memory:oak"], "kind": "words"}\n')
    return file


def test_the_sample_vault_is_asked_with_every_method_and_nothing_is_left_behind(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    rows = co("eval", "--json").json

    assert {row["kind"] for row in rows} == {"all", "words", "paraphrase"}
    assert {row["set"] for row in rows} == {"sample vault"}
    assert list(dict.fromkeys(row["method"] for row in rows)) == ["co", *BASELINES]
    ours = {row["kind"]: row for row in rows if row["method"] == "co"}
    assert all(0 < row["recall5"] <= 1 and row["median_ms"] > 0 for row in ours.values())
    assert ours["all"]["backend"] == "hybrid"
    assert len(ours["all"]["marks"]) == ours["all"]["questions"]
    assert vault.files() == []
    assert not data_dir.exists()


def test_a_table_fits_into_eighty_columns_and_has_a_row_for_each_method_and_kind(co: Co, tmp_path: Path) -> None:
    long_name = trees(tmp_path / "a_set_with_quite_a_long_name_indeed")

    shown = co("eval", str(long_name)).out.splitlines()

    assert max(map(len, shown)) <= 80
    assert shown[0].split() == ["set", "method", "nDCG@10", "R@5", "R@10", "MRR@10", "ms", "p95", "ms"]
    assert len(shown) == 1 + 3 * (1 + len(BASELINES))
    assert shown[1].startswith("a_set_with_quite_a_l… (2)")
    assert any(line.startswith("  place (1)") for line in shown)


def test_several_sets_end_with_their_mean(co: Co, tmp_path: Path) -> None:
    first, second = trees(tmp_path / "trees"), trees(tmp_path / "woods")

    shown = co("eval", str(first), str(second), "--method", "co", "--method", "fts5-any").out
    with_kinds = co("eval", str(first), str(second), "--method", "co", "--kinds").out

    assert [line.split()[0] for line in shown.splitlines()[1::2]] == ["trees", "woods", "mean"]
    assert "mean of 2 sets (4)" in shown
    assert "place (1)" not in shown
    assert with_kinds.count("place (1)") == 2


def test_kinds_that_a_set_leaves_out_can_be_asked_for(co: Co, tmp_path: Path) -> None:
    folder = str(trees(tmp_path / "trees"))

    assert "trap" not in co("eval", folder, "--method", "grep").out
    assert "trap (1)" in co("eval", folder, "--method", "grep", "--all-kinds").out


def test_a_set_of_questions_alone_is_asked_of_another_ones_corpus(co: Co, tmp_path: Path) -> None:
    corpus, more = trees(tmp_path / "trees"), trees(tmp_path / "trees_tune")
    (more / "corpus.jsonl").unlink()

    without = co("eval", str(more))
    [row, *_] = co("eval", str(more), "--corpus", str(corpus), "--method", "co", "--json").json

    assert (without.code, "--corpus DIR" in without.err) == (2, True)
    assert (row["set"], row["questions"]) == ("trees_tune", 2)


def test_your_own_questions_are_asked_of_your_vault_which_is_only_read(co: Co, vault: Vault, questions: Path) -> None:
    before = {path: vault.read(path) for path in vault.files()}

    row = co("eval", "--questions", str(questions), "--backend", "fts5", "--json").json[0]
    shown = co("eval", "--questions", str(questions), "--backend", "fts5", "--backend", "hybrid")

    assert (row["set"], row["method"], row["backend"], row["questions"]) == ("your vault", "co:fts5", "fts5", 1)
    assert shown.code == 0
    assert [line.split()[-7] for line in shown.out.splitlines()[1:3]] == ["co:fts5", "co:hybrid"]
    assert {path: vault.read(path) for path in vault.files()} == before


def test_a_ranking_is_written_for_other_scorers(co: Co, tmp_path: Path) -> None:
    run = tmp_path / "run.tsv"

    ran = co("eval", str(trees(tmp_path / "trees")), "--method", "fts5-any", "--run", str(run))

    assert ran.code == 0
    assert [line.split("\t")[:2] for line in run.read_text().splitlines()] == [["1", "oak"], ["2", "elm"]]


@pytest.mark.skipif(not SETS.is_dir(), reason=f"the public question sets and their score.py are not in {SETS}")
def test_another_scorer_gives_the_products_ranking_the_same_figures(co: Co, tmp_path: Path) -> None:
    name, run = "realmem_one", tmp_path / "run.tsv"  # it has groups, and questions that know only what was before them

    [ours, *_] = co("eval", str(SETS / name), "--method", "co", "--run", str(run), "--json").json
    theirs = subprocess.run(
        [sys.executable, SETS / "score.py", SETS / name, run, "--json"], capture_output=True, text=True, check=True
    )

    figures = [ours[measure] for measure in ("ndcg10", "recall5", "recall10", "mrr10", "questions")]
    assert figures == list(json.loads(theirs.stdout).values())


def test_two_methods_are_compared_with_an_interval(co: Co, tmp_path: Path) -> None:
    folder = str(trees(tmp_path / "trees"))

    shown = co("eval", folder, "--compare", "fts5-all", "co")
    [found, *_] = co("eval", folder, "--compare", "fts5-all", "co", "--json").json

    assert shown.code == 0
    assert "A is fts5-all, B is co." in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert (found["set"], found["measure"], found["questions"]) == ("trees", "ndcg10", 2)
    assert found["low"] <= found["difference"] <= found["high"]


def test_a_method_that_needs_vectors_cannot_be_compared_without(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    ran = co("eval", str(trees(tmp_path / "trees")), "--compare", "vectors", "co")
    table = co("eval", str(tmp_path / "trees"))
    alone = co("eval", str(tmp_path / "trees"), "--method", "vectors")

    assert (ran.code, "vectors needs vectors" in ran.err) == (2, True)
    assert table.out.splitlines()[-1] == "left out for want of vectors: vectors, spec, rrf, simple"
    assert (alone.code, alone.out.splitlines()[-1]) == (0, "left out for want of vectors: vectors")


def test_a_saved_run_is_compared_with_another_or_with_a_new_one(co: Co, tmp_path: Path) -> None:
    folder = str(trees(tmp_path / "trees"))
    saved = tmp_path / "before.json"
    saved.write_text(co("eval", folder, "--json").out)

    now = co("eval", folder, "--compare", str(saved), "co", "--json").json
    inside = co("eval", "--compare", f"{saved}:grep", f"{saved}:simple", "--json").json

    assert {found["difference"] for found in now} == {0.0}
    assert inside[0]["set"] == "trees"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "a set is a folder with corpus.jsonl"),
        (["--questions", "nowhere.jsonl"], "cannot be read"),
        (["--questions", "broken.jsonl"], "broken.jsonl:1: not JSON"),
        (["--questions", "empty.jsonl"], "there are no questions"),
        (["--questions", "unknown.jsonl"], "unknown.jsonl:1: this vault has no note memory:moon"),
        (["trees", "--questions", "unknown.jsonl"], "a SET brings its own questions"),
        (["--method", "magic"], "there is no method 'magic'; there are co, co:grep"),
        (["trees", "trees/../trees"], "the same name"),
        (["trees", "woods", "--run", "run.tsv"], "the ranking of one set"),
        (["trees", "--run", "no/such/run.tsv"], "there is no folder"),
        (["trees", "--method", "grep", "--run", "trees"], "cannot be written"),
        (["--corpus", "trees"], "--corpus is for a SET"),
        (["--compare", "co", "magic"], "there is no method 'magic'"),
        (["--compare", "co", "grep", "--method", "co"], "leave out --method"),
        (["--compare", "a.json", "b.json"], "a.json cannot be read"),
        (["trees", "--compare", "a.json", "b.json"], "nothing to ask"),
        (["--compare", "co"], "expected 2 arguments"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(co: Co, home: Path, arguments: list[str], said: str) -> None:
    trees(home / "trees")
    trees(home / "woods")
    (home / "broken.jsonl").write_text("not json\n")
    (home / "empty.jsonl").write_text("")
    (home / "unknown.jsonl").write_text('{"question": "who?", "answers": ["memory:moon"]}\n')

    ran = co("eval", *arguments)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a single process")
def test_ctrl_c_shows_the_sets_that_are_finished_and_leaves_nothing_behind(co: Co, tmp_path: Path) -> None:
    small = trees(tmp_path / "trees")
    documents: list[dict[str, object]] = [{"id": str(number), "text": f"Oak {number}."} for number in range(50)]
    many: list[dict[str, object]] = [{"id": str(number), "text": "which oak"} for number in range(20_000)]
    large = write_set(tmp_path / "large", documents, many, [(str(number), "1", 1) for number in range(20_000)])
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "eval", str(small), str(large)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    while not list((tmp_path / "tmp").glob("*/vault-0/memories/49.md")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)

    out, err = process.communicate(timeout=180)

    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("co: stopped")
    assert "Traceback" not in err
    assert "trees (2)" in out
    assert "large" not in out
    assert list((tmp_path / "tmp").iterdir()) == []
