"""Mixes of signals: parts add up to the score in every profile, and each signal moves what it is about."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.activity import Activity
from co_cli.errors import InvalidInputError
from co_cli.index.words import WordMatch
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Scored, Weights
from co_cli.retrieval.mix import by_rank, mixed
from co_cli.retrieval.profiles import PROFILES, Mix
from co_cli.retrieval.signals import NAMES
from tests.command import Co
from tests.vault import Vault

SHARE = st.floats(0, 1)


@given(
    scores=st.lists(SHARE, max_size=10),
    ranking=SHARE,
    weights=st.dictionaries(st.sampled_from(NAMES), SHARE, max_size=5),
    values=st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.integers(0, 9), SHARE, max_size=10)),
)
def test_parts_add_up_and_nobody_is_lost(
    scores: list[float], ranking: float, weights: dict[str, float], values: dict[str, dict[int, float]]
) -> None:
    ranked = [Scored(number, number, score, {"words": score}) for number, score in enumerate(scores)]

    after = mixed(ranked, Mix(ranking, tuple(weights.items())), values)

    assert sorted(one.passage_id for one in after) == list(range(len(scores)))
    for one in after:
        assert sum(one.signals.values()) == pytest.approx(one.score)
        assert 0 <= one.score <= 1 + 1e-9


def test_fusion_by_rank_looks_at_places_alone() -> None:
    matches = [WordMatch(7, 1, -9.0, True), WordMatch(8, 2, -8.9, True)]

    ranked = by_rank(matches, [8, 9], {7: 1, 8: 2, 9: 3}, Weights(0.5, 0.5))

    assert [one.passage_id for one in ranked] == [8, 7, 9]
    assert ranked[0].score == pytest.approx(0.5 * 61 / 62 + 0.5)
    assert ranked[1].signals == {"words": 0.5, "meaning": 0.0}


@pytest.fixture
def pumps(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    """Six notes that answer alike, and say different things of themselves."""
    year = time.gmtime().tm_year
    for name, head in {
        "plain": "created: 2001-01-01",
        "new": f"created: {year - 1}-12-30",
        "kept": "created: 2001-01-01\ndecay_protected: true",
        "grave": "created: 2001-01-01\nseverity: critical\nimportance: 1.0",
        "tagged": "created: 2001-01-01\ntags: [boiler]",
        "heating": "created: 2001-01-01\ndomain: heating",
    }.items():
        vault.write(f"memories/{name}.md", f"---\n{head}\n---\nThe pump in the cellar hums.\n")
    kb.sync()
    return kb


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("backend", ["hybrid", "fts5"])
def test_parts_add_up_to_the_score_in_every_profile(pumps: KnowledgeBase, profile: str, backend: str) -> None:
    hits = pumps.search("why does the pump in my cellar hum", profile=profile, backend=backend).hits

    assert len(hits) == 6 or profile in ("exact", "spec") or backend == "fts5"
    for hit in hits:
        assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=0.001)
        assert 0 <= hit.score <= 1


@pytest.mark.parametrize(
    ("signal", "query", "first"),
    [
        ("recency", "pump in the cellar", {"new", "kept"}),
        ("importance", "pump in the cellar", {"grave"}),
        ("severity", "pump in the cellar", {"grave"}),
        ("tags", "boiler pump in the cellar", {"tagged"}),
        ("domain", "heating pump in the cellar", {"heating"}),
    ],
)
def test_each_signal_lifts_the_note_that_has_it(pumps: KnowledgeBase, signal: str, query: str, first: set[str]) -> None:
    hits = pumps.search(query, weights={signal: 0.5}).hits

    assert {hit.ref.removeprefix("memory:") for hit in hits[: len(first)]} == first
    assert all(signal in hit.signals for hit in hits)


def test_the_half_life_is_a_setting(pumps: KnowledgeBase) -> None:
    def recency(days: float) -> float:
        pumps.settings = pumps.settings._replace(half_life_days=days)
        hits = pumps.search("pump", weights={"recency": 0.5}).hits
        return next(hit.signals["recency"] for hit in hits if hit.ref == "memory:new")

    assert recency(30_000) == pytest.approx(0.5, abs=0.02)
    assert recency(1) == pytest.approx(0.05, abs=0.02)


def test_what_is_used_is_read_from_activity_and_nothing_is_missed_without_it(pumps: KnowledgeBase) -> None:
    before = pumps.search("pump", weights={"use": 0.5})
    assert all(hit.signals["use"] == 0 for hit in before.hits)
    with Activity.of(pumps.settings, pumps.root) as activity:
        for _ in range(3):
            activity.opened(pumps.store.absolute("memories/plain.md"))
        activity.flush()

    hits = pumps.search("pump", weights={"use": 0.5}).hits

    assert hits[0].ref == "memory:plain"
    assert hits[0].signals["use"] > 0.2


def test_a_plain_question_pays_nothing_for_what_is_off(co: Co, pumps: KnowledgeBase) -> None:
    ran = co.process("search", "why does the pump hum", python=("-X", "importtime"))

    assert "memory:plain" in ran.out
    assert "co_cli.service.searching" in ran.err
    for module in ("service.weighing", "retrieval.dates", "retrieval.signals", "retrieval.links", "index.note_facts"):
        assert f"co_cli.{module}" not in ran.err


def test_who_asks_about_their_own_affairs_does_not_pay_for_dates(co: Co, pumps: KnowledgeBase) -> None:
    ran = co.process("search", "does my pump hum now", python=("-X", "importtime"))

    assert "recency" in co("search", "does my pump hum now", "--explain").out
    assert "co_cli.service.weighing" in ran.err
    assert "co_cli.retrieval.dates" not in ran.err


def test_weights_on_the_command_line(co: Co, pumps: KnowledgeBase) -> None:
    ran = co("search", "pump", "--weights", "words=0.5,importance=0.5", "--explain")

    assert ran.code == 0
    assert "how important it says it is" in ran.out
    first = co("search", "pump", "--weights", "words=0.5,importance=0.5", "--json").json["hits"][0]
    assert first["ref"] == "memory:grave"
    assert first["signals"]["importance"] == 0.5
    wrong = co("search", "pump", "--weights", "luck=1")
    assert wrong.code == 2
    assert "recency" in wrong.err
    why = co("why", "pump", "memory:grave", "--profile", "agent")
    assert why.code == 0
    assert "importance" in why.out


def test_a_weight_of_nothing_is_refused(pumps: KnowledgeBase) -> None:
    with pytest.raises(InvalidInputError, match="rank nothing"):
        pumps.search("pump", weights={"recency": 0.0})
