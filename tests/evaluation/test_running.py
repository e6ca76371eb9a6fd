"""Sets become vaults on disk and are asked there."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import IndexUnavailableError
from co_cli.evaluation.baselines import Desk
from co_cli.evaluation.methods import Answer, Method, default_methods, method
from co_cli.evaluation.questions import Question
from co_cli.evaluation.running import run_set, run_vault
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings
from tests.evaluation.tiny_set import trees, write_set
from tests.vault import Vault

COLOURS = ("blue", "green", "grey", "red")


def test_every_method_is_asked_every_question_of_one_vault(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    runs = run_set(
        str(trees(tmp_path / "trees")),
        str(tmp_path / "work"),
        load_settings(),
        default_methods(),
        asking=lambda done, total: asked.append((done, total)),
    )

    assert [run.method for run in runs] == [method.name for method in default_methods()]
    assert [[answered.question.id for answered in run.answered] for run in runs] == [["1", "2"]] * len(runs)
    assert asked == [(1, 2), (2, 2)]
    assert runs[0].answered[0].ranking[0][0] == "oak"
    assert runs[0].scores()["age"].mrr10 == 1.0
    assert list((tmp_path / "work").glob("*/search.db")) == [tmp_path / "work" / "vault-0-data" / "search.db"]


def test_groups_never_see_each_other(tmp_path: Path) -> None:
    documents = [
        {"id": "a1", "text": "Ada likes oaks.", "group": "a"},
        {"id": "b1", "text": "Bo likes oaks.", "group": "b"},
    ]
    questions = [
        {"id": "qb", "text": "who likes oaks", "group": "b"},
        {"id": "qa", "text": "who likes oaks", "group": "a"},
    ]
    folder = write_set(tmp_path / "set", documents, questions, [("qa", "a1", 1), ("qb", "b1", 1)])

    for run in run_set(str(folder), str(tmp_path / "work"), load_settings(), default_methods()):
        found = {answered.question.id: [name for name, _ in answered.ranking] for answered in run.answered}
        assert all(names in ([], [own]) for names, own in ((found["qa"], "a1"), (found["qb"], "b1"))), run.method
        assert list(found) == ["qb", "qa"]


def test_what_came_later_is_not_there_yet(tmp_path: Path) -> None:
    """Neither as an answer, nor in how rare a word is."""
    documents = [{"id": f"d{seq}", "text": f"The pool is {colour}.", "seq": seq} for seq, colour in enumerate(COLOURS)]
    questions = [
        {"id": "late", "text": "which colour is the pool"},
        {"id": "early", "text": "which colour is the pool", "before": 2},
        {"id": "never", "text": "which colour is the pool", "before": 0},
    ]
    folder = write_set(tmp_path / "set", documents, questions, [(name, "d1", 1) for name in ("early", "late", "never")])
    notes: list[int] = []

    def count(desk: Desk, text: str) -> Answer:
        notes.append(desk.index.counts().notes)
        return Answer([], 0.001)

    for run in run_set(str(folder), str(tmp_path / "work"), load_settings(), default_methods()):
        found = {answered.question.id: {name for name, _ in answered.ranking} for answered in run.answered}
        assert found["never"] == set(), run.method
        assert found["early"] <= {"d0", "d1"}, run.method
    for _ in range(2):  # whoever asks again begins again
        run_set(str(folder), str(tmp_path / "again"), load_settings(), [Method("count", count)])
    assert notes == [0, 0, 2, 2, 4, 4] * 2  # each vault is asked once beforehand


def test_a_long_text_becomes_an_article(tmp_path: Path) -> None:
    documents = [{"id": "long", "text": "Oaks live for centuries.\n\n" * 200}, {"id": "short", "text": "Elms."}]
    folder = write_set(tmp_path / "set", documents, [{"id": "q", "text": "oaks"}], [("q", "long", 1)])

    [run] = run_set(str(folder), str(tmp_path / "work"), load_settings(), [method("co")])

    assert run.answered[0].ranking[0][0] == "long"
    assert list((tmp_path / "work" / "vault-0" / "articles").iterdir())


def test_a_sample_is_drawn_by_lot_and_is_the_same_every_time(tmp_path: Path) -> None:
    questions: list[dict[str, object]] = [{"id": f"q{number}", "text": f"oak {number}"} for number in range(40)]
    documents: list[dict[str, object]] = [{"id": "oak", "text": "Oaks live for centuries."}]
    folder = write_set(tmp_path / "set", documents, questions, [(f"q{number}", "oak", 1) for number in range(40)])
    every = [str(row["id"]) for row in questions]

    def asked(sample: int | None) -> list[str]:
        [run] = run_set(str(folder), str(tmp_path / "work"), load_settings(), [method("fts5-any")], sample=sample)
        return [answered.question.id for answered in run.answered]

    few, more = asked(5), asked(10)

    assert few == asked(5)
    assert len(few) == 5
    assert few != every[:5]
    assert set(few) < set(more)  # a larger sample has the questions of a smaller one
    assert few == [name for name in every if name in few]
    assert asked(100) == asked(None) == every


def test_with_words_alone_methods_that_need_vectors_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    runs = run_set(str(trees(tmp_path / "trees")), str(tmp_path / "work"), load_settings(), default_methods())

    assert [run.method for run in runs] == ["co", "grep", "fts5-all", "fts5-any"]


def test_a_vault_without_its_vectors_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "ollama")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_HOST", "http://127.0.0.1:9")

    with pytest.raises(IndexUnavailableError, match=r"3 passages .* got no vector"):
        run_set(str(trees(tmp_path / "trees")), str(tmp_path / "work"), load_settings(), default_methods())


def test_of_your_own_vault_one_right_note_is_enough_and_nothing_is_written(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Elms stand in the park.")
    kb.sync()
    before = {path: vault.path(path).stat().st_mtime_ns for path in vault.files()}
    question = Question("1", "centuries", {"memory:oak": 1, "memory:elm": 1}, "age")

    [run] = run_vault("your vault", kb, [question], [method("co:fts5")])

    assert run.scores()["all"].recall5 == 1.0
    assert {path: vault.path(path).stat().st_mtime_ns for path in vault.files()} == before


def test_an_answer_with_something_missing_is_told(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks.")  # and no sync

    [run] = run_vault("your vault", kb, [Question("1", "oaks", {"memory:oak": 1})], [method("co:fts5")])

    assert run.degraded() == "1 of 1 answers: this vault was never synced: run `co sync`"
