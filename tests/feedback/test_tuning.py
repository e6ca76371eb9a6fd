"""Learned weights: applied after the check, where a search finds them, below what a person says, and reversible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.feedback import experiment
from co_cli.evaluation.sets import Question
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.learned import FILE_NAME, learned_weights, write_learned
from co_cli.service.learning import Weights
from tests.command import Co
from tests.feedback.conftest import Tell
from tests.house.test_cold_start import imported
from tests.vault import Vault

LEARNED = Weights(0.8, 0.2)


@pytest.fixture
def learned(co: Co, trees: Vault, data_dir: Path) -> Weights:
    """Weights in use for a small vault, as if they had been learned."""
    co("index", "sync")
    with KnowledgeBase.open(trees.root, data_dir) as kb:
        assert kb.embedders.space is not None
        write_learned(str(data_dir), kb.root, kb.embedders.space.key, LEARNED)
    return LEARNED


def test_learned_weights_are_shown_first_and_applying_them_can_be_undone(co: Co, tell: Tell, data_dir: Path) -> None:
    tell()

    before = co("feedback", "tune", "--json").json
    assert (before["in_use"], before["learned"]) == ({"meaning": 0.7, "words": 0.3}, None)
    assert before["said"] == 40
    assert before["lesson"]["kept"], before["lesson"]
    assert 0.75 < before["lesson"]["meaning"] <= 0.85
    assert before["lesson"]["after"] > before["lesson"]["before"]
    assert "`co feedback tune --apply` puts them in use" in co("feedback", "tune", "--apply", "--dry-run").out
    assert not (data_dir / FILE_NAME).exists()

    assert "applied; `co feedback tune --reset` takes it back" in co("feedback", "tune", "--apply").out
    after = co("feedback", "tune", "--json").json
    assert after["in_use"] == after["learned"] != before["in_use"]
    assert after["learned"]["meaning"] == before["lesson"]["meaning"]
    assert not after["lesson"]["kept"]  # what is in use already is not learned again
    assert [tuning["what"] for tuning in after["history"]] == ["applied"]

    assert "would go back to meaning 0.70" in co("feedback", "tune", "--reset", "--dry-run").out
    assert co("feedback", "tune", "--json").json["in_use"] == after["in_use"]
    assert "reset: searches weigh as by default" in co("feedback", "tune", "--reset").out
    assert co("feedback", "tune", "--json").json["in_use"] == before["in_use"]
    assert co("feedback", "tune", "--json").json["said"] == 40
    assert co("feedback", "tune", "--apply").code == 0
    assert co("feedback", "tune", "--json").json["in_use"] == after["in_use"]

    assert co("feedback", "tune", "--clear", "--yes", "--json").json["cleared"] == 40
    assert co("feedback", "tune", "--json").json["learned"] is None


@pytest.mark.parametrize("learn", ["on", "ask", "off"])
def test_a_judgement_applies_learned_weights_only_if_the_learn_setting_is_on(
    co: Co, tell: Tell, data_dir: Path, monkeypatch: pytest.MonkeyPatch, learn: str
) -> None:
    monkeypatch.setenv("CO_LEARN", learn)
    tell(29)

    ran = co("feedback", "give", "elm", "good", "--query", "which trees fall ill")

    assert ran.code == 0
    assert ("Searches now weigh meaning 0." in ran.out) is (learn == "on")
    assert (data_dir / FILE_NAME).exists() is (learn == "on")
    assert ("`co feedback tune` shows what they teach" in ran.out) is (learn == "ask")


def test_weights_are_learned_after_thirty_judgements_and_not_again_after_a_reset(
    co: Co, tell: Tell, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_LEARN", "on")
    tell(28)
    assert "29 of 30 judgements" in co("feedback", "give", "elm", "good", "-q", "which trees fall ill").out
    assert not (data_dir / FILE_NAME).exists()
    assert co("feedback", "give", "elm", "good", "-q", "sick trees", "--json").json["applied"]

    co("feedback", "tune", "--reset")
    tell(20, start=50)

    assert not co("feedback", "give", "elm", "good", "-q", "beetles and trees", "--json").json["applied"]
    assert not (data_dir / FILE_NAME).exists()


def test_contradictory_judgements_change_nothing(
    co: Co, tell: Tell, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_LEARN", "on")
    tell(100, torn=True)

    assert not co("feedback", "give", "elm", "good", "-q", "which trees fall ill", "--json").json["applied"]
    ran = co("feedback", "tune", "--apply")
    assert ran.code == 1
    assert "nothing was changed" in ran.out
    assert not (data_dir / FILE_NAME).exists()
    assert [tuning["what"] for tuning in co("feedback", "tune", "--json").json["history"]] == ["refused"]


def test_deleting_search_db_loses_no_judgement_and_no_weight(co: Co, tell: Tell, data_dir: Path) -> None:
    tell()
    co("feedback", "tune", "--apply")
    before = co("feedback", "tune", "--json").json

    for file in data_dir.glob("search.db*"):
        file.unlink()

    after = co("feedback", "tune", "--json").json
    assert (after["said"], after["learned"]) == (40, before["learned"])
    assert "learned from feedback" in co("index", "status").out


def test_the_experiment_runs_on_a_few_questions(kb: KnowledgeBase, trees: Vault) -> None:
    kb.sync()
    asked = [
        Question(str(number), text, {ref: 1}, kind)
        for number, (text, ref, kind) in enumerate(
            [("how old do oaks get", "memory:oak", "a"), ("sick trees", "memory:elm", "b"), ("oaks", "memory:oak", "a")]
        )
    ]

    found = experiment(kb, asked)

    assert [user.user for user in found] == ["all", "a", "b"]
    assert all(0 < user.before <= 1 and user.after == user.before for user in found)
    assert all(lesson.why.endswith("that it takes") for user in found for lesson in user.lessons)


def weights_of(kb: KnowledgeBase, **ranking: object) -> float:
    """The share of meaning that a search was weighed with, out of the parts of one score."""
    options: dict[str, object] = {"profile": "default", **ranking}
    hit = next(hit for hit in kb.search("oaks", **options).hits if hit.ref == "memory:oak")  # type: ignore[arg-type]
    return hit.signals["meaning"] / hit.signals["words"]


def test_weights_given_by_a_person_win_over_learned_ones(
    learned: Weights, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = {"meaning": 0.7, "words": 0.3}
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        plain = weights_of(kb)
        assert plain == pytest.approx(weights_of(kb, weights=learned._asdict()), rel=0.01)
        assert plain > 1.3 * weights_of(kb, weights=default)
        assert weights_of(kb, profile="fresh") != pytest.approx(plain, rel=0.01)
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT", "0.7")
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_TEXT_WEIGHT", "0.3")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        assert weights_of(kb) == weights_of(kb, weights=default) < plain


def test_one_setting_turns_learning_off(co: Co, learned: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    assert co("index", "status", "--json").json["learned"] == learned._asdict()
    monkeypatch.setenv("CO_LEARN", "off")

    assert co("index", "status", "--json").json["learned"] is None
    assert "learned from feedback" not in co("search", "oaks", "--explain").out
    assert "off: learned weights are not used" in co("feedback", "tune").out


def test_explain_says_that_weights_were_learned(co: Co, learned: Weights) -> None:
    assert "meaning 0.80, words 0.20: learned from feedback" in co("search", "oaks", "--explain").out
    assert "learned" not in co("search", "oaks", "--explain", "--weights", "words=0.3,meaning=0.7").out
    assert "learned" not in co("search", "oaks", "--explain", "--profile", "fresh").out
    assert "learned" not in co("search", "oaks").out


def test_a_search_with_learned_weights_does_not_open_activity_db(co: Co, learned: Weights, data_dir: Path) -> None:
    for file in data_dir.glob("activity*"):
        file.unlink()

    ran = co.process("search", "oaks", "--no-sync", python=("-X", "importtime"))

    assert ran.code == 0
    assert "co_cli.service.learned" in imported(ran)
    assert not imported(ran) & {"co_cli.activity.database", "co_cli.activity.feedback", "co_cli.service.tuning"}
    assert not (data_dir / "activity.db").exists()


def test_a_search_without_feedback_imports_nothing_for_it(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for a very long time.")
    co("index", "sync")

    assert "co_cli.service.learned" not in imported(
        co.process("search", "oaks", "--no-sync", python=("-X", "importtime"))
    )


def test_after_deleting_activity_db_learned_weights_can_still_be_reset(
    co: Co, learned: Weights, data_dir: Path
) -> None:
    for file in data_dir.glob("activity*"):
        file.unlink()

    assert co("search", "oaks").code == 0
    assert co("feedback", "tune", "--json").json["learned"] == learned._asdict()
    assert co("feedback", "tune", "--reset").code == 0
    assert co("index", "status", "--json").json["learned"] is None


def test_each_vault_and_embedding_model_has_its_own_weights(data_dir: Path) -> None:
    places = [("/a", "s"), ("/a\tb\\n", "s"), ("/c\nd", "t")]
    for number, (root, space) in enumerate(places):
        write_learned(str(data_dir), root, space, Weights(0.6 + number / 10, 0.5))

    found = [learned_weights(str(data_dir), *place) for place in places]
    assert found == [{"meaning": meaning, "words": 0.5} for meaning in (0.6, 0.7, 0.8)]
    assert learned_weights(str(data_dir), "/a", "t") is None
    write_learned(str(data_dir), "/a", "", None)
    assert learned_weights(str(data_dir), "/a", "s") is None
    assert learned_weights(str(data_dir), "/c\nd", "t") == {"meaning": 0.8, "words": 0.5}


def test_weights_that_an_older_version_learned_for_another_default_are_ignored(data_dir: Path) -> None:
    write_learned(str(data_dir), "/a", "s", Weights(0.5, 0.5))  # from a default of 0.4

    assert learned_weights(str(data_dir), "/a", "s") is None


DAMAGES: list[Callable[[str], str]] = [
    lambda text: "",
    lambda text: "nonsense\n\n\t\t\t\n",
    lambda text: text.replace("0.8000", "nan"),
    lambda text: text.replace("0.8000", "7"),
    lambda text: text.replace("0.8000", "x"),
    lambda text: f"\udcff\udcfe{text}",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_weights_file_is_ignored(
    co: Co, learned: Weights, data_dir: Path, damage: Callable[[str], str]
) -> None:
    file = data_dir / FILE_NAME
    file.write_bytes(damage(file.read_text()).encode("utf-8", "surrogateescape"))

    assert co("search", "oaks").code == 0
    assert co("index", "status", "--json").json["learned"] is None


@pytest.mark.parametrize(
    "arguments", [("--apply", "--reset"), ("--yes",), ("--clear", "--dry-run"), ("--clear",)], ids=" ".join
)
def test_a_mistake_is_one_line(co: Co, learned: Weights, arguments: tuple[str, ...]) -> None:
    ran = co("feedback", "tune", *arguments)

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
