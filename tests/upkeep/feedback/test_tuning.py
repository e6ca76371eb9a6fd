"""Learned weights: applied after the check, where a search finds them, below what a person says, and reversible."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.activity.judgements import LEARNED, change_learned
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.folder import Vault
from tests.upkeep.feedback.conftest import Judge

WEIGHTS = {"meaning": 0.8, "words": 0.2}
DEFAULT = {"meaning": 0.7, "words": 0.3}


@pytest.fixture
def learned(co: Co, vault: Vault, data_dir: Path) -> dict[str, float]:
    """Weights in use, as if they had been learned."""
    vault.write("memories/oak.md", "Oaks live for a very long time.")
    vault.write("memories/elm.md", "Elms fall ill when beetles come.")
    co("index", "sync")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        row = {"ranking": kb.vault.ranking.key, "meaning": 0.8}
        change_learned(str(data_dir), lambda known: known.update({kb.root: row}))
    return WEIGHTS


@pytest.mark.slow
@pytest.mark.medium
def test_learned_weights_are_shown_first_and_applying_them_can_be_undone(
    co: Co, judge_answers: Judge, data_dir: Path
) -> None:
    judge_answers()

    before = co("feedback", "tune", "--json").json
    assert (before["in_use"], before["learned"], before["said"]) == (DEFAULT, None, 40)
    assert before["lesson"]["kept"], before["lesson"]
    assert 0.75 <= before["lesson"]["meaning"] <= 0.85
    assert before["lesson"]["after"] > before["lesson"]["before"]
    assert "`co feedback tune --apply` uses the suggested weights" in co("feedback", "tune").out
    assert not (data_dir / LEARNED).exists()

    assert "applied; `co feedback tune --reset` undoes it" in co("feedback", "tune", "--apply").out
    for file in data_dir.glob("search.db*"):
        file.unlink()  # which loses no judgement and no weight
    after = co("feedback", "tune", "--json").json
    assert after["in_use"] == after["learned"] != before["in_use"]
    assert after["learned"]["meaning"] == before["lesson"]["meaning"]
    assert (after["said"], after["lesson"]["kept"]) == (40, False)  # what is in use is not learned again

    assert co("index", "status", "--json").json["learned"] == after["learned"]
    assert "in use     meaning 0.70, words 0.30 (default)" in co("feedback", "tune", "--reset").out
    assert co("index", "status", "--json").json["learned"] is None
    assert co("feedback", "tune", "--apply").code == 0
    assert co("index", "status", "--json").json["learned"] == after["learned"]

    assert co("feedback", "tune", "--clear", "--yes", "--json").json["cleared"] == 40
    assert co("feedback", "tune", "--json").json["learned"] is None


@pytest.mark.medium
def test_weights_are_learned_automatically_only_if_the_setting_is_on(
    co: Co, judge_answers: Judge, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_answers(29)
    assert "29 of the 30 ratings" in co("feedback", "tune").out

    for learn in ("off", "ask", "on"):
        monkeypatch.setenv("CO_LEARN", learn)
        co("feedback", "give", "weather", "good", "-q", "rain")

        assert (data_dir / LEARNED).exists() is (learn == "on")
    assert co("index", "status", "--json").json["learned"]
    co("feedback", "tune", "--reset")
    judge_answers(40)
    co("feedback", "give", "boots", "good", "-q", "shoe")
    assert co("index", "status", "--json").json["learned"] is None


def share(kb: KnowledgeBase, **options: object) -> float:
    """How much meaning counts against words, out of the parts of one score."""
    hit = next(hit for hit in kb.search("oaks", **options).hits if hit.ref == "memory:oak")  # type: ignore[arg-type]
    return hit.signals["meaning"] / hit.signals["words"]


def test_weights_given_by_a_person_win_over_learned_ones(
    learned: dict[str, float], vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        plain = share(kb)
        assert plain == pytest.approx(share(kb, weights=learned), rel=0.01)
        assert plain > 1.3 * share(kb, weights=DEFAULT)
        assert share(kb, profile="fresh") != pytest.approx(plain, rel=0.01)
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT", "0.7")
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_TEXT_WEIGHT", "0.3")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        assert share(kb) == share(kb, weights=DEFAULT) < plain


def test_weights_of_other_vectors_or_another_formula_and_damaged_ones_are_ignored(
    co: Co, learned: dict[str, float], data_dir: Path
) -> None:
    file = data_dir / LEARNED
    text = file.read_text()
    assert co("index", "status", "--json").json["learned"] == learned
    for damaged in (
        "",
        "nonsense",
        "[]",
        "{}",
        text.replace("formula", "older formula"),
        text.replace("static", "encoder"),
        text.replace("0.8", "NaN"),
        text.replace("0.8", "7"),
        text.replace("0.8", '"x"'),
        "\udcff" + text,
    ):
        file.write_bytes(damaged.encode("utf-8", "surrogateescape"))
        assert co("search", "oaks").code == 0
        assert co("index", "status", "--json").json["learned"] is None, damaged
    assert co("feedback", "tune", "--reset").code == 0
