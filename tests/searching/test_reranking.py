"""Rerankers, the same order cold and warm, and context that is searched but never shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.folder import Vault

QUESTIONS = ["which doctor did Mara see in 2023", "how do oaks grow old"]


class Lengths:
    """A model that likes long texts, and keeps what it read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.read += texts
        return [float(len(text)) for text in texts]


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/doctor.md", "Mara saw the physician in Lisbon in 2023. He was kind.")
    vault.write("memories/other-year.md", "Mara saw the physician in Lisbon in 2021. He was away.")
    vault.write("memories/apology.md", "Say sorry first, then offer the customer a refund.")
    vault.write("memories/boat.md", "The boat of Mara lies in the harbour.")
    vault.write("memories/boats.md", "Boats are painted in spring.")
    vault.write(
        "articles/oaks.md", "# Oaks\n\nOaks live for centuries.\n\n## Growth\n\nThey grow slowly. Then they grow old."
    )
    return vault


@pytest.fixture
def stripes(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    """Thirty notes about one thing, each longer than the one before, and one that is called so."""
    for number in range(30):
        vault.write(f"memories/s{number:02}.md", f"Zebra stripes, seen {'again and ' * number}once.")
    vault.write("memories/zebra-stripes.md", "A crossing.")
    kb.sync()
    return kb


def test_a_reranker_reads_the_first_notes_and_its_signal_is_part_of_the_score(stripes: KnowledgeBase) -> None:
    reader = Lengths()

    found = stripes.search("seen zebra stripes", limit=30, reranker=reader)

    assert len(reader.read) == 20
    assert reader.read[0].startswith("S"), "with its title"
    assert found.hits[0].signals["reader"] == 0.5
    assert all(sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-9) for hit in found.hits)
    assert len(found.hits) == 30, "what was not read comes after"
    assert found.meta["weights"]["reader"] == 0.5


def test_a_name_comes_first_whatever_the_reranker_says(stripes: KnowledgeBase) -> None:
    assert stripes.search("zebra stripes", reranker=Lengths()).hits[0].ref == "memory:zebra-stripes"


def test_a_limit_only_truncates_with_a_reranker_too(stripes: KnowledgeBase, vault: Vault) -> None:
    for number in range(120):
        vault.write(f"memories/z{number}.md", f"One zebra, number {number}.")
    stripes.sync()

    few, many = (stripes.search("seen zebra stripes", limit=limit, reranker=Lengths()).hits for limit in (10, 140))

    assert many[:10] == few
    assert len(many) == 140


@pytest.mark.medium
def test_a_fresh_process_and_one_that_stays_rank_alike(co: Co, notes: Vault, kb: KnowledgeBase) -> None:
    kb.sync()
    for _ in range(5):
        kb.search("warm")  # now the vectors are in memory and numpy scans them

    for question in QUESTIONS:
        warm = kb.search(question)
        cold = co.process("search", question, "--json", "--no-sync").json
        assert [(hit["ref"], hit["score"]) for hit in cold["hits"]] == [
            (hit.ref, pytest.approx(hit.score, abs=2e-4)) for hit in warm.hits
        ]


def test_context_finds_a_note_and_is_never_shown(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write(
        "memories/turn.md",
        "---\ntitle: Caroline\ncontext: 'Melanie: what did you think of the pottery workshop?'\n---\nI loved it!",
    )
    vault.write("memories/other.md", "---\ntitle: Caroline\n---\nI was late!")
    kb.sync()

    hit = kb.search("Caroline pottery workshop").hits[0]

    assert hit.ref == "memory:turn"
    assert "pottery" not in hit.snippet
    assert [found.ref for found in kb.search("pottery", backend="fts5").hits] == ["memory:turn"]
