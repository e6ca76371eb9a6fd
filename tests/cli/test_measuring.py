"""`co bench` and `co eval`."""

from __future__ import annotations

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
