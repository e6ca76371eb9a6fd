"""Why a note is where it is in an answer, or is not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings
from tests.embedding.loopback import OllamaServer
from tests.vault import Vault


@pytest.fixture
def animals(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    vault.write("memories/otter.md", "---\ntitle: Otters\ntags: [river]\n---\nOtters hold hands while they sleep.\n")
    vault.write("memories/heron.md", "---\ntitle: Herons\n---\nHerons sleep standing on one leg in the river.\n")
    vault.write("memories/tax.md", "---\ntitle: Tax\n---\nThe tax return is due in March.\n")
    for number in range(12):
        vault.write(f"memories/bird{number}.md", f"Bird number {number} sleeps in the reeds, sleep after sleep.\n")
    kb.sync()
    return kb


def test_a_note_in_the_answer_is_followed_to_its_rank(animals: KnowledgeBase) -> None:
    found = animals.why("otters hands", "memory:otter")
    hits = animals.search("otters hands").hits

    assert found.rank == [hit.ref for hit in hits].index("memory:otter") + 1 == 1
    assert found.fell is None
    assert found.lifts == []
    assert [step.name for step in found.steps] == ["words", "meaning", "fuse", "rerank"]
    assert all(step.rank for step in found.steps)
    assert found.steps[0].told == 'has "otters", "hands"'


@pytest.mark.parametrize("query", ["otters hands", "where do birds sleep", "tax"])
def test_the_parts_add_up_to_the_score_of_the_hit(animals: KnowledgeBase, query: str) -> None:
    for hit in animals.search(query).hits:
        found = animals.why(query, hit.ref)

        assert found.score == hit.score
        assert sum(found.signals.values()) == pytest.approx(hit.score, abs=1e-3)


def test_a_note_that_nothing_proposed_says_which_words_it_lacks(animals: KnowledgeBase) -> None:
    found = animals.why("otters", "memory:tax", backend="fts5")

    assert (found.rank, found.fell) == (None, "candidates")
    assert found.steps[0].told == 'lacks "otters"'
    assert any("ask with words that it has" in lift and "tax" in lift for lift in found.lifts)
    assert any('"otters"' in lift and "alias" in lift for lift in found.lifts)


def test_asking_as_the_lift_says_finds_the_note(animals: KnowledgeBase) -> None:
    lift = animals.why("otters", "memory:tax", backend="fts5").lifts[0]
    words = lift.removeprefix("ask with words that it has: ").replace('"', "").replace(",", "")

    assert animals.why(words, "memory:tax", backend="fts5").rank == 1


def test_a_note_beyond_the_limit_says_which_limit_shows_it(animals: KnowledgeBase) -> None:
    found = animals.why("sleep", "memory:heron", limit=2)
    assert (found.rank, found.fell) == (None, "limit")

    needed = int(found.lifts[0].split()[1])
    assert found.lifts[0] == f"--limit {needed} shows it"
    assert animals.why("sleep", "memory:heron", limit=needed).rank == needed


def test_a_filter_that_leaves_it_out_is_named(animals: KnowledgeBase) -> None:
    found = animals.why("sleep", "memory:heron", tags=["river"])

    assert (found.rank, found.fell) == (None, "filters")
    assert found.steps[0].told == "the filters leave it out"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("sleep -river", 'has "river", which the query excludes'),
        ('"two legs" sleep', 'has "sleep" and lacks "two legs"'),
        ('"hold hands" sleep', 'has "sleep" and lacks "hold hands"; 1 note matches better'),
    ],
)
def test_phrases_and_exclusions_are_named(animals: KnowledgeBase, query: str, told: str) -> None:
    found = animals.why(query, "memory:heron")

    assert found.rank is None
    assert found.steps[0].told == told


def test_a_note_that_is_not_indexed_says_so(vault: Vault, kb: KnowledgeBase) -> None:
    kb.sync()
    vault.write("memories/new.md", "Brand new.")

    assert kb.why("brand", "memory:new").fell == "index"


def test_what_cannot_be_explained_is_refused(animals: KnowledgeBase) -> None:
    with pytest.raises(UnknownRefError):
        animals.why("x", "memory:nope")
    with pytest.raises(InvalidInputError, match="grep finds what has the words"):
        animals.why("x", "memory:tax", backend="grep")
    with pytest.raises(InvalidInputError, match="limit"):
        animals.why("x", "memory:tax", limit=0)


def test_a_server_that_fails_after_the_search_costs_the_cosine_and_not_the_answer(vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "---\ncreated: 2024-05-03\n---\nElms live shorter.")
    server = OllamaServer()
    flags = {
        "vault": vault.root,
        "data_dir": data_dir,
        "knowledge_embedding_provider": "ollama",
        "knowledge_embedding_host": server.url,
    }
    with KnowledgeBase.open(settings=load_settings(flags)) as kb:
        kb.sync()
        whole = kb.why("how old trees get before June 2024", "memory:oak")
        server.faults = [None, *["503"] * 5]  # it is asked without the date first: that is what the search is about
        why = kb.why("how old trees get before June 2024", "memory:oak")
    server.close()

    assert whole.fell == why.fell == "filters"
    assert "cosine" in next(step.told for step in whole.steps if step.name == "meaning")
    assert "could not be embedded" in next(step.told for step in why.steps if step.name == "meaning")
