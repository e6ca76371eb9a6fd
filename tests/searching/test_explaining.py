"""Why a note is where it is in an answer, or is not in it."""

from __future__ import annotations

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, UnknownRefError
from co_cli.retrieval.explain import Explanation
from tests.folder import Vault


@pytest.fixture
def animals(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    vault.write("memories/otter.md", "---\ntitle: Otters\ntags: [river]\n---\nOtters hold hands while they sleep.\n")
    vault.write("memories/heron.md", "---\ntitle: Herons\n---\nHerons sleep standing on one leg in the river.\n")
    vault.write("memories/tax.md", "---\ntitle: Tax\n---\nThe tax return is due in March.\n")
    for number in range(12):
        vault.write(f"memories/bird{number}.md", f"Bird number {number} sleeps in the reeds, sleep after sleep.\n")
    kb.sync()
    return kb


def texts(found: Explanation) -> dict[str, str]:
    return {step.name: step.text for step in found.steps}


def test_a_note_in_the_answer_is_followed_to_its_rank(animals: KnowledgeBase) -> None:
    found = animals.why("otters hands", "memory:otter")
    hits = animals.search("otters hands").hits

    assert found.rank == [hit.ref for hit in hits].index("memory:otter") + 1 == 1
    assert (found.lost_in, found.hints) == (None, [])
    assert [(step.name, step.rank) for step in found.steps] == [("words", 1), ("meaning", 1), ("score", 1)]
    assert texts(found)["words"] == 'has "otters", "hands"'
    assert texts(found)["meaning"].startswith("cosine 0.")
    assert texts(found)["score"] == f"meaning {found.signals['meaning']:.3f} + words 0.300 = {found.score:.3f}"


def test_the_parts_add_up_to_the_score_of_the_hit(animals: KnowledgeBase) -> None:
    for hit in animals.search("where do birds sleep").hits:
        found = animals.why("where do birds sleep", hit.ref)

        assert found.score == hit.score
        assert sum(found.signals.values()) == pytest.approx(hit.score, abs=1e-3)


def test_signals_are_a_step_where_they_change_the_order(animals: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/old.md", "---\ncreated: 2010-01-01\n---\nOld birds sleep, sleep and sleep.\n")
    vault.write("memories/fresh.md", "---\nimportance: 1\n---\nBirds rarely sleep in the loud city at night.\n")
    animals.sync()

    found = animals.why("birds sleep", "memory:fresh", limit=20, profile="agent")

    assert found.rank is not None
    assert "importance 0.100" in texts(found)["signals"]
    assert found.signals["importance"] == 0.1


def test_a_phrase_or_an_exclusion_keeps_a_note_out_although_it_has_the_other_words(animals: KnowledgeBase) -> None:
    for query in ("sleep -river", '"two legs" sleep', '"hold hands" sleep'):
        found = animals.why(query, "memory:heron")

        assert (found.rank, found.lost_in, texts(found)["words"]) == (None, "filters", 'has "sleep"'), query


def test_a_listing_says_that_nothing_was_ranked(animals: KnowledgeBase) -> None:
    listed = animals.why("tag:river", "memory:otter")
    birds = [animals.why("file:bird", f"memory:bird{number}", limit=1).lost_in for number in range(12)]

    assert texts(listed) == {"listing": "the query only narrows: what passes is listed, newest first"}
    assert (listed.rank, set(birds), birds.count(None)) == (1, {None, "limit"}, 1)


def test_what_cannot_be_explained_is_refused(animals: KnowledgeBase) -> None:
    with pytest.raises(UnknownRefError):
        animals.why("x", "memory:nope")
    with pytest.raises(InvalidInputError, match="grep does not rank"):
        animals.why("x", "memory:tax", backend="grep")
    with pytest.raises(InvalidInputError, match="limit"):
        animals.why("x", "memory:tax", limit=0)
