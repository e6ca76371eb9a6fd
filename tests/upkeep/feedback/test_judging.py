"""Ratings are given by a command or an agent's tool, or inferred from use."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.activity import judgements
from co_cli.activity.judgements import Judgement
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, UnknownRefError
from co_cli.tools.toolbox import Toolbox
from tests.activity.conftest import rows
from tests.command import Co
from tests.folder import Vault

JUDGED = "select ref, query, good, how from judgements order by id"


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for a very long time.")
    vault.write("memories/elm.md", "Elms fall ill when beetles come.")
    vault.write("articles/park.md", "# Park\n\nThe park has oaks and elms.\n\n## Age\n\nOld oaks stand by the lake.")


def judged(data_dir: Path, vault: Vault) -> list[tuple[str, str | None, int, str]]:
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        return rows(kb.activity, JUDGED)


def test_a_rating_is_about_a_question_by_default_the_last_search_that_found_the_note(co: Co) -> None:
    given = co("feedback", "give", "oak", "good", "--query", "how long do oaks live", "--json").json
    assert given == {"ref": "memory:oak", "query": "how long do oaks live", "good": True, "how": "said"}

    for query in ("oaks by the lake", "how old do oaks get", '"beetles come"'):
        co("search", query)

    assert co("feedback", "give", "memory:oak", "bad", "--json").json["query"] == "how old do oaks get"
    assert co("feedback", "give", "article:park", "good", "--json").json["query"] == "how old do oaks get"
    assert co("feedback", "give", "elm", "good", "--json").json["query"] == '"beetles come"'


@pytest.mark.parametrize("unnumbered", ["--json", "--paths", "-0"])
def test_a_number_and_its_question_belong_to_the_last_search_that_showed_numbers(co: Co, unnumbered: str) -> None:
    co("search", "how old do oaks get")
    co("search", "when do elms fall ill")
    co("search", "oaks and elms", unnumbered)

    given = co("feedback", "give", "1", "good", "--json").json
    assert (given["ref"], given["query"]) == ("memory:elm", "when do elms fall ill")
    given = co("feedback", "give", "1", "good", "--query", "ill trees", "--json").json
    assert (given["ref"], given["query"]) == ("memory:elm", "ill trees")
    assert co("feedback", "give", "memory:elm", "good", "--json").json["query"] == "oaks and elms"


def test_the_last_rating_of_a_note_and_a_question_counts(co: Co, vault: Vault, data_dir: Path) -> None:
    for verdict in ("good", "bad", "good", "bad"):
        co("feedback", "give", "oak", verdict, "--query", "OLD   oaks")
    co("feedback", "give", "oak", "good", "-q", "trees")

    assert [row[:3] for row in judged(data_dir, vault)] == [("memory:oak", "OLD   oaks", 0), ("memory:oak", "trees", 1)]


def test_a_mistake_is_one_line(co: Co) -> None:
    for arguments, says in (
        (("oak", "splendid"), "'splendid'"),
        (("oka", "good"), "no note 'oka'"),
    ):
        ran = co("feedback", "give", *arguments)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert says in ran.err


def test_an_agent_rates_a_note_and_mistakes_are_refused(kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb, names=["rate_memory"])

    given = toolbox.call("rate_memory", {"ref": "co://memory/oak", "verdict": "good", "query": "how old oaks get"})

    assert given.text == "rated good: memory:oak for 'how old oaks get'."
    assert given.data["good"] is True
    with pytest.raises(InvalidInputError, match="verdict"):
        toolbox.call("rate_memory", {"ref": "memory:oak", "verdict": "so-so"})
    with pytest.raises((UnknownRefError, InvalidInputError), match="no note"):
        toolbox.call("rate_memory", {"ref": "memory:nothing-like-it", "verdict": "bad"})


def test_opening_a_note_after_a_search_counts_as_weak_feedback(co: Co, vault: Vault, data_dir: Path) -> None:
    co("show", "elm")  # of no search
    co("search", "how old do oaks get")
    co("show", "oak")

    tuned = co("feedback", "tune", "--json").json

    assert judged(data_dir, vault) == [("memory:oak", "how old do oaks get", 1, "opened")]
    assert (tuned["said"], tuned["implied"], tuned["lesson"]["ratings"]) == (0, 1, 0.3)


def test_a_note_that_an_answer_cites_was_used(kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb)
    toolbox.call("search_knowledge", {"query": "how old do oaks get"})

    kb.activity.cited("Very old [memory:oak], also (article:park#L5-7). Not memory:no-such-note, nor memory:elm.")

    assert rows(kb.activity, JUDGED)[:2] == [
        ("memory:oak", "how old do oaks get", 1, "cited"),
        ("article:park", "how old do oaks get", 1, "cited"),
    ]
    assert rows(kb.activity, "select count(*) from documents where path like '%no-such%'") == [(0,)]


def test_a_log_without_texts_keeps_the_rating_and_not_the_question(
    co: Co, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_QUERY_LOG", "no-text")
    given = co("feedback", "give", "oak", "good", "--query", "how old do oaks get", "--json").json

    assert given["query"] is None
    assert judged(data_dir, vault) == [("memory:oak", None, 1, "said")]
    assert "without a question: none is known" in co("feedback", "give", "elm", "bad", "-q", "sick elms").out
    assert b"how old do oaks" not in (data_dir / "activity.db").read_bytes()


def test_a_vault_drops_its_own_ratings_that_are_oldest_by_time(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgements, "MOST", 2)
    given = [
        ("/elsewhere", "kept", 1.0),
        *((str(vault.root), query, at) for query, at in (("b", 4), ("a", 2), ("c", 3))),
    ]
    with KnowledgeBase.open(vault.root, data_dir) as kb, kb.activity.database.writing() as connection:
        for root, query, at in given:
            judgements.put(connection, root, (root, "memories/oak.md"), Judgement("memory:oak", query, True), at)

    assert [query for _, query, _, _ in judged(data_dir, vault)] == ["kept", "b", "c"]
