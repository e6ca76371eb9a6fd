"""The closer look on families of sets that it has never seen, through `co eval --held-out`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from co_cli.evaluation.held_out import COLUMNS, HeldOut
from co_cli.evaluation.learned_shares import SIGNALS
from co_cli.evaluation.methods import Method, method
from co_cli.evaluation.running import Run, run_set
from co_cli.retrieval.rerank import DEFAULT
from co_cli.settings import load_settings
from tests.command import Co
from tests.evaluation.tiny_set import trees, write_set

NOUNS = ("oak", "harbour", "violin", "bakery", "glacier", "lantern", "orchard", "railway")


def by_title(folder: Path) -> Path:
    """What a note is called is all that tells which one answers."""
    documents: list[dict[str, object]] = [
        {"id": f"t-{noun}", "title": f"The {noun} ledger", "text": f"On shelf {number}, next to the window."}
        for number, noun in enumerate(NOUNS)
    ]
    return write_set(folder, documents, questions(), [(noun, f"t-{noun}", 1) for noun in NOUNS])


def misled_by_titles(folder: Path) -> Path:
    """What is called so does not answer: the answer stands in another note's sentence."""
    documents: list[dict[str, object]] = []
    for number, noun in enumerate(NOUNS):
        documents.append({"id": f"t-{noun}", "title": f"The {noun} ledger", "text": f"On shelf {number}, by the door."})
        said = f"It was on day {number}. Mara keeps the {noun} ledger. Then it rained."
        documents.append({"id": f"b-{noun}", "title": f"Day {number}", "text": said})
    return write_set(folder, documents, questions(), [(noun, f"b-{noun}", 1) for noun in NOUNS])


def questions() -> list[dict[str, object]]:
    return [{"id": noun, "text": f"who keeps the {noun} ledger"} for noun in NOUNS]


@pytest.fixture
def sets(tmp_path: Path) -> list[str]:
    return [str(by_title(tmp_path / "titles")), str(misled_by_titles(tmp_path / "days"))]


def test_what_the_other_families_teach_may_mislead(co: Co, sets: list[str]) -> None:
    found = co("eval", *sets, "--held-out", "--json").json

    titles, days = found["sets"]
    assert (titles["set"], titles["family"], days["set"], days["family"]) == ("titles", "titles", "days", "days")
    assert list(days["columns"]) == list(COLUMNS)
    assert days["columns"]["in sample"]["ndcg10"] == 1.0
    assert days["columns"]["held out"]["ndcg10"] < 0.7  # who knows titles alone puts the wrong note first
    learned = found["shares"]["held out"]
    assert learned["titles"]["title"] == 0.0 < learned["days"]["title"]
    assert {*learned["days"]} == {*SIGNALS}
    assert sum(learned["days"].values()) == pytest.approx(1.0)
    [worse] = [
        one
        for one in found["differences"]
        if (one["a"], one["b"], one["measure"]) == ("in sample", "held out", "ndcg10")
    ]
    assert worse["verdict"] == "worse"
    assert worse["difference"] == pytest.approx(
        found["mean"]["held out"]["ndcg10"] - found["mean"]["in sample"]["ndcg10"], abs=1e-4
    )


def test_the_tables_fit_into_eighty_columns_and_say_what_the_columns_are(co: Co, sets: list[str]) -> None:
    ran = co("eval", *sets, "--held-out", "--sample", "3")

    assert (ran.code, ran.err) == (0, "")
    shown = ran.out.splitlines()
    assert shown[1].split() == ["set", *["simple", "co", "in", "held"] * 2]
    assert [line.split()[0] for line in shown[2:5]] == ["titles", "days", "mean"]
    assert "days (3)" in ran.out
    assert "mean of 2 families" in ran.out
    assert "shares without" in ran.out
    assert max(map(len, shown[:-1])) <= 80
    assert "learned on the other families alone" in shown[-1]


def test_what_ships_is_what_the_product_answers(tmp_path: Path, sets: list[str]) -> None:
    found = HeldOut({"titles": "titles", "days": "days"})
    folders = dict(zip(found.families, sets, strict=True))

    def ask(name: str, methods: Sequence[Method]) -> list[Run]:
        return run_set(folders[name], str(tmp_path / "work" / name), load_settings(), methods)

    found.look(ask)
    found.learn()
    found.every = found.shares["titles"] = found.shares["days"] = DEFAULT
    found.ask_again(ask)

    rankings = {(run.set, run.method): [one.ranking for one in run.answered] for run in found.runs}
    plain = run_set(sets[1], str(tmp_path / "plain"), load_settings(), [method("co")])[0]
    assert rankings["days", "co"] == [one.ranking for one in plain.answered]
    assert rankings["days", "held out"] == rankings["days", "co"]
    assert rankings["titles", "held out"] == rankings["titles", "co"]


def test_who_stops_has_the_sets_that_are_finished(tmp_path: Path, sets: list[str]) -> None:
    found = HeldOut({"titles": "titles", "days": "days"})
    folders = dict(zip(found.families, sets, strict=True))

    def ask(name: str, methods: Sequence[Method]) -> list[Run]:
        if found.shares and name == "days":
            raise KeyboardInterrupt
        return run_set(folders[name], str(tmp_path / "work" / name), load_settings(), methods, sample=2)

    found.look(ask)
    found.learn()
    with pytest.raises(KeyboardInterrupt):
        found.ask_again(ask)

    assert list(found.finished()) == ["titles"]
    assert found.means()["held out"].ndcg10 == 1.0
    assert {one.comparison.questions for one in found.differences()} == {2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "two families at least"),
        (["trees"], "two families at least"),
        (["trees", "trees_again"], "two families at least"),
        (["trees", "woods", "--family", "trees,woods"], "two families at least"),
        (["trees", "woods", "--family", "trees,moon"], "there is no set 'moon'; there are trees, woods"),
        (["trees", "woods", "--method", "co"], "leave out --method"),
        (["trees", "woods", "--year"], "leave out --method"),
        (["trees", "woods", "--sample", "0"], "--sample is at least 1"),
        (["trees", "woods", "--absent", "--sample", "2"], "without --absent"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(co: Co, home: Path, arguments: list[str], said: str) -> None:
    for name in ("trees", "trees_again", "woods"):
        trees(home / name)

    ran = co("eval", *arguments, "--held-out")

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


def test_options_of_it_alone_mean_nothing(co: Co, home: Path) -> None:
    trees(home / "trees")

    assert "--family needs --held-out" in co("eval", "trees", "--family", "trees").err
    assert "--sample is for the questions of a SET" in co("eval", "--sample", "3").err


def test_settings_that_look_at_nothing_closely_teach_nothing(
    co: Co, sets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_PROFILE", "rrf")

    ran = co("eval", *sets, "--held-out", "--sample", "1")

    assert (ran.code, "nothing can be learned" in ran.err) == (2, True)


def test_without_vectors_there_is_no_closer_look(co: Co, sets: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    ran = co("eval", *sets, "--held-out")

    assert (ran.code, "needs vectors" in ran.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a single process")
def test_ctrl_c_leaves_nothing_behind(sets: list[str], tmp_path: Path) -> None:
    many: list[dict[str, object]] = [{"id": str(number), "text": "which oak"} for number in range(20_000)]
    documents: list[dict[str, object]] = [{"id": str(number), "text": f"Oak {number}."} for number in range(50)]
    large = write_set(tmp_path / "large", documents, many, [(str(number), "1", 1) for number in range(20_000)])
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "eval", sets[0], str(large), "--held-out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    while not list((tmp_path / "tmp").glob("*/large/vault-0/memories/49.md")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=180)

    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("co: stopped")
    assert "Traceback" not in err
    assert list((tmp_path / "tmp").iterdir()) == []
