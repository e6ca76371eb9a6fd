"""Reranking through the whole product: the same order cold and warm, context that is searched and never shown."""

from __future__ import annotations

import pytest

from co_cli.index.lexicon import split_words
from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.vault import Vault

QUESTIONS = ["which doctor did Mara see in 2023", "how do oaks grow old", "calm an angry guest", "Mara's boat"]


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


def test_a_number_that_agrees_comes_before_one_that_does_not(kb: KnowledgeBase, notes: Vault) -> None:
    kb.sync()

    refs = [hit.ref for hit in kb.search("which doctor did Mara see in 2023").hits]

    assert refs.index("memory:doctor") < refs.index("memory:other-year")


def test_parts_of_every_hit_add_up_to_its_score(kb: KnowledgeBase, notes: Vault) -> None:
    kb.sync()

    for question in QUESTIONS:
        for hit in kb.search(question).hits:
            assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=5e-4)  # each is rounded to four places


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
    assert hit.signals["context"] > 0
    assert [found.ref for found in kb.search("pottery", backend="fts5").hits] == ["memory:turn"]


def test_without_an_embedder_words_still_answer(co: Co, notes: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    ran = co("search", "physician", "--json")

    assert {hit["ref"] for hit in ran.json["hits"]} == {"memory:doctor", "memory:other-year"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mara's boat. It sank!", ["mara", "s", "boat", ".", "it", "sank", "."]),
        ("caf\u00e9 \u2014 \u201cna\u00efve\u201d", ["caf\u00e9", "na\u00efve"]),
        ("one\ntwo", ["one", ".", "two"]),
        ("", []),
    ],
)
def test_a_text_is_split_into_words_and_ends_of_sentences(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("note", "counts"),
    [
        ("---\ntitle: Heron sank\n---\nHeron sank in a storm near the harbour.", False),
        ("---\ntitle: Heron sank\n---\n**Heron** sank in a storm near the harbour.", False),
        ("---\ntitle: The end of Heron\n---\nHeron sank in a storm near the harbour.", True),
        ("# Heron sank\n\nIt was a storm near the harbour.", True),
        ("Heron sank\n==========\n\nIt was a storm near the harbour.", True),
    ],
)
def test_a_title_counts_where_it_is_more_than_how_the_text_begins(
    kb: KnowledgeBase, vault: Vault, note: str, counts: bool
) -> None:
    vault.write("memories/heron.md", note)
    vault.write("memories/invoice.md", "The invoice for the boat is paid, and the bank has the receipt.")
    kb.sync()

    hit = kb.search("how did Heron sink in the storm").hits[0]
    assert hit.ref == "memory:heron"
    assert ("title" in hit.signals) == counts


def test_the_answer_stands_before_the_note_that_asks(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/asked.md", "Mara, what name has the new boat in the harbour?")
    vault.write("memories/told.md", "Mara gave the new boat the name Heron, after a bird.")
    vault.write("memories/invoice.md", "The invoice for the boat is paid, and the bank has the receipt.")
    kb.sync()

    refs = [hit.ref for hit in kb.search("What did Mara name the new boat?").hits]
    assert refs.index("memory:told") < refs.index("memory:asked")
    assert kb.search("Mara name new boat").hits[0].ref == "memory:asked"  # who looks for words finds words
    told = kb.why("What did Mara name the new boat?", "memory:asked").steps
    assert any("asks 1.00" in step.told for step in told)


def test_a_section_that_ends_in_a_question_is_no_note_that_asks(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("articles/boats.md", "# Boats\n\n## Names\n\nHeron is the name. Why Heron?\n\n## Paint\n\nBlue. Why?")
    kb.sync()

    told = kb.why("what is the name of the boat", "article:boats").steps
    assert not any("asks" in step.told for step in told)
