"""`co eval`."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.evaluation.baselines import BASELINES
from tests.command import Co
from tests.evaluation.tiny_set import trees
from tests.folder import Vault


def test_without_a_set_it_asks_the_questions_of_your_vault_which_is_only_read(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Elms stand in the park.")
    vault.write("questions.jsonl", '{"question": "centuries", "answers": ["memory:oak"], "kind": "words"}\n')
    before = {path: vault.read(path) for path in vault.files()}

    rows = co("eval", "--json").json

    assert [row["method"] for row in rows if row["kind"] == "all"] == ["co", *BASELINES]
    assert {row["set"] for row in rows} == {vault.root.name}
    assert all(row["questions"] == 1 and row["ms"] > 0 for row in rows)
    assert {path: vault.read(path) for path in vault.files()} == before


@pytest.mark.parametrize("asked", ["your vault", "a set"])
def test_among_other_notes_an_answer_is_harder_to_find(co: Co, vault: Vault, tmp_path: Path, asked: str) -> None:
    """Notes of a folder come into a copy, without those that the vault has already."""
    vault.write("memories/oak.md", "The oak stands in the park.")
    vault.write("questions.jsonl", '{"question": "oak in the park", "answers": ["memory:oak"]}\n')
    others = Vault(tmp_path / "others")
    others.write("same.md", "---\ntitle: Another head\n---\nThe oak stands in the park.")
    for number in range(12):
        others.write(f"{number}.md", f"Oak {number} in the park: the oak of the park, oak and park.")
    others.write("old.md", "How old do oaks get? Nobody knows how old oaks get.")
    before = vault.files()
    sets = [str(trees(tmp_path / "trees"))] if asked == "a set" else []

    alone, among = (
        co("eval", *sets, "--json", "--method", "co", *flags).json[0] for flags in ((), ("--among", str(others.root)))
    )

    assert alone["questions"] == among["questions"]
    assert alone["ndcg10"] == 1 > among["ndcg10"]
    assert vault.files() == before


@pytest.mark.medium
def test_a_vault_without_questions_is_replaced_by_the_sample_vault(co: Co, vault: Vault, data_dir: Path) -> None:
    rows = co("eval", "--json", "--method", "co", "--sample", "12").json

    assert {"all", "words", "paraphrase"} >= {row["kind"] for row in rows}
    assert (rows[0]["questions"], len(rows[0]["marks"])) == (12, 12)
    assert vault.files() == []
    assert list(data_dir.glob("search.db*")) == []


def test_a_table_has_a_row_for_each_kind_and_method(co: Co, tmp_path: Path) -> None:
    shown = co("eval", str(trees(tmp_path / "trees"))).out.splitlines()

    assert max(map(len, shown)) <= 80
    assert shown[0].split() == ["set", "method", "questions", "ndcg10", "recall5", "recall10", "mrr10", "ms"]
    assert len(shown) == 1 + 3 * (1 + len(BASELINES))
    assert any(line.startswith("  place ") for line in shown)


def test_several_sets_end_with_their_mean(co: Co, tmp_path: Path) -> None:
    first, second = trees(tmp_path / "trees"), trees(tmp_path / "woods")

    shown = co("eval", str(first), str(second), "--method", "co", "--method", "fts5-any").out.splitlines()

    assert [line.split()[0] for line in shown[1::2]] == ["trees", "woods", "mean"]
    assert shown[-1].startswith("mean of 2 sets")


def test_a_set_without_a_corpus_can_use_another_one(co: Co, tmp_path: Path) -> None:
    corpus, more = trees(tmp_path / "trees"), trees(tmp_path / "trees_tune")
    (more / "corpus.jsonl").unlink()

    [row, *_] = co("eval", str(more), "--corpus", str(corpus), "--method", "co", "--json").json

    assert co("eval", str(more)).code == 2
    assert (row["set"], row["questions"]) == ("trees_tune", 2)


def test_absent_compares_answerable_with_unanswerable_questions(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "The tide gauge at Skarvik reads forty centimetres high.")
    vault.write(
        "questions.jsonl",
        '{"question": "how high does the Skarvik tide gauge read", "answers": ["memory:oak"]}\n'
        '{"question": "which flour does grandma bake with", "answers": [], "kind": "absent"}\n',
    )

    [row] = co("eval", "--absent", "--json").json

    assert (row["answerable"], row["unanswerable"], row["auroc"]) == (1, 1, 1.0)
    assert {"absent_wrongly", "absent_rightly"} < set(row)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "name a folder that has corpus.jsonl, queries.jsonl and qrels.tsv"),
        (["--method", "magic"], "there is no method 'magic'; there are co, co:grep"),
        (["--sample", "0"], "--sample must be at least 1"),
        (["trees", "--absent"], "has no unanswerable questions"),
        (["--among", "nowhere"], "nowhere has no Markdown file with another text: name a folder of notes"),
    ],
)
def test_a_mistake_is_one_line(co: Co, home: Path, arguments: list[str], message: str) -> None:
    trees(home / "trees")

    ran = co("eval", *arguments)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err
