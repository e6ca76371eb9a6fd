"""`co bench` and `co eval`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.command import Co
from tests.vault import Vault


def test_bench_sync_prints_ratios_and_leaves_the_vault_alone(co: Co, vault: Vault) -> None:
    shown = co("bench", "sync", "--notes", "30")
    rows = co("bench", "sync", "--notes", "30", "--json").json

    assert shown.code == 0
    assert " x" in shown.out
    assert rows["bench"] == "sync"
    assert any(row["ratio"] for row in rows["rows"])
    assert vault.files() == []


def test_bench_embed_compares_the_first_sync_with_a_plain_loop(co: Co, vault: Vault) -> None:
    rows = co("bench", "embed", "--notes", "20", "--json").json["rows"]

    plain, ours, sync = rows
    assert plain["ratio"] == 1.0
    assert (sync["goal"], sync["name"]) == (2.5, "first sync, words and vectors")
    assert all(row["value"] > 0 and row["ratio"] > 0 for row in (ours, sync))
    assert vault.files() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the CPU time of a child process")
def test_bench_cold_compares_a_search_with_a_bare_python_start(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.benchmarks.cold.REPEATS", 2)

    rows = {row["name"]: row for row in co("bench", "cold", "--notes", "20", "--json").json["rows"]}

    hybrid = rows["co search, hybrid, less the walk"]
    assert hybrid["goal"] == 3.5
    assert hybrid["ratio"] > 1
    assert rows["python -c pass (CPU)"]["ratio"] == 1.0
    assert vault.files() == []


def test_eval_asks_the_questions_of_the_sample_vault(co: Co, vault: Vault, data_dir: Path) -> None:
    rows = co("eval", "--json").json

    assert {row["kind"] for row in rows} == {"all", "words", "paraphrase"}
    assert {(row["set"], row["backend"]) for row in rows} == {("sample vault", "hybrid")}
    assert all(0 < row["recall5"] <= 1 for row in rows)
    assert vault.files() == []
    assert not data_dir.exists()


def test_eval_scores_a_folder_in_beirs_layout(co: Co, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"id": "a", "title": "Oak", "text": "Oaks live for centuries."}\n'
        '{"id": "b", "text": "Elms stand in the park."}\n'
    )
    (folder / "queries.jsonl").write_text(
        '{"id": "1", "text": "how old do oaks get"}\n{"id": "2", "text": "unscored"}\n'
    )
    (folder / "qrels.tsv").write_text("1\ta\t1\n")

    [row] = co("eval", str(folder), "--json").json

    assert (row["set"], row["kind"], row["questions"], row["mrr10"]) == ("tiny", "all", 1, 1.0)


def test_eval_scores_your_own_questions(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Elms stand in the park.")
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "centuries", "answers": ["memory:oak"], "kind": "words"}\n')

    row = co("eval", "--questions", str(questions), "--backend", "fts5", "--json").json[0]
    shown = co("eval", "--questions", str(questions), "--backend", "fts5")

    assert (row["backend"], row["questions"]) == ("fts5", 1)
    assert shown.code == 0
    assert "1.000" in shown.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench"],
        ["bench", "moon"],
        ["bench", "sync", "--notes", "0"],
        ["eval", "nowhere"],
        ["eval", "--questions", "nowhere.jsonl"],
        ["eval", "--questions", "broken.jsonl"],
        ["eval", "--questions", "empty.jsonl"],
    ],
)
def test_wrong_usage_is_one_line(co: Co, home: Path, arguments: list[str]) -> None:
    (home / "broken.jsonl").write_text("not json\n")
    (home / "empty.jsonl").write_text("")

    ran = co(*arguments)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
