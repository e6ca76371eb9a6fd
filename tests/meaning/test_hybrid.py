"""Words and meaning together: each hit says how much of both it has, and neither can make the other's find vanish."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

QUESTION = "how do we calm an angry customer"


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/apology.md", "An upset client is soothed by an apology and by listening to complaints.")
    vault.write("memories/backup.md", "The database backup runs at night.")
    vault.write("memories/pier.md", "The pier of the harbour lies calm.")
    vault.write("memories/invoice.md", "Invoices are due in thirty days.")
    return vault


def refs(kb: KnowledgeBase, query: str, limit: int = 10) -> list[str]:
    return [hit.ref for hit in kb.search(query, limit=limit).hits]


def test_a_note_without_any_word_of_the_question_is_found_by_its_meaning(open_kb: Open, notes: Vault) -> None:
    kb = open_kb()
    kb.sync()

    found = kb.search(QUESTION)

    assert (found.backend, found.state, found.degraded) == ("hybrid", "found", [])
    assert "memory:apology" in [hit.ref for hit in found.hits[:2]]
    assert [hit.ref for hit in kb.search(QUESTION, backend="fts5").hits] == ["memory:pier"]


def test_an_exact_word_is_found_among_a_hundred_that_mean_the_same(open_kb: Open, vault: Vault) -> None:
    for number in range(100):
        vault.write(f"memories/{number}.md", f"The customer of order {number} was angry and got a refund.")
    vault.write("memories/code.md", "Nothing of the kind: error QX7731 is about the printer in the cellar.")
    kb = open_kb()
    kb.sync()

    assert refs(kb, "angry customer refund QX7731", limit=3)[0] == "memory:code"
    assert refs(kb, "QX7731", limit=1) == ["memory:code"]


def test_a_query_that_quotes_or_excludes_finds_only_what_has_the_words(open_kb: Open, notes: Vault) -> None:
    kb = open_kb()
    kb.sync()

    assert {query: refs(kb, query) for query in ('"lies calm"', "calm -pier", "-calm pier")} == {
        '"lies calm"': ["memory:pier"],
        "calm -pier": [],
        "-calm pier": [],
    }


def test_a_note_without_a_known_word_has_no_vector_and_is_found_by_its_words(
    open_kb: Open, notes: Vault, inside: Inside
) -> None:
    notes.write("memories/odd.md", "---\ntitle: 東京\n---\n東京都は日本の首都です。\n")
    kb = open_kb()
    kb.sync()

    assert refs(kb, "首都")[:1] == ["memory:odd"]
    assert "memories/odd.md" not in inside.vectors()
    assert len(inside.vectors()) == 4
    assert (kb.status().unembedded, inside.waiting) == (0, 0)
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_without_a_provider_search_goes_by_words_even_where_vectors_are(
    open_kb: Open, notes: Vault, inside: Inside
) -> None:
    open_kb().sync()
    kb = open_kb("none")
    notes.write("memories/new.md", "A new note about the harbour.")
    kb.sync()

    found = kb.search("calm")

    assert ([hit.ref for hit in found.hits], found.degraded) == (["memory:pier"], [])
    assert "meaning" not in found.hits[0].signals
    assert (kb.status().space, kb.status().unembedded) == (None, 0)
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []
    assert len(inside.vectors()) == 4

    open_kb().sync()

    assert len(inside.vectors()) == 5


def test_numbers_that_are_no_vector_never_reach_the_index(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, model: str, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.embedding.remote.PAUSES", (0.0,))
    kb = open_kb("ollama", model, ollama.url)
    for fault in ("nan", "zeros", "wrong dimensions", "one vector too few", "truncated"):
        ollama.faults = [fault] * 20
        kb.sync()

        assert inside.spaces() == {"static:co-static-256": 4, f"ollama:{model}": 0}
        assert inside.value("select count(*) from embedding_cache where space_id = 2") == 0
        assert kb.status().unembedded == 4
        assert kb.search(QUESTION).degraded == []

    ollama.faults = []
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 0, f"ollama:{model}": 4}
    assert kb.status().unembedded == 0


def test_every_hit_carries_both_signals(open_kb: Open, notes: Vault) -> None:
    kb = open_kb()
    kb.sync()

    hits = kb.search(QUESTION).hits

    assert {"memory:apology", "memory:pier"} <= {hit.ref for hit in hits}
    for hit in hits:
        assert set(hit.signals) >= {"words", "meaning"}
        assert all(0 <= value <= 1 for value in hit.signals.values())
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    by_ref = {hit.ref: hit.signals for hit in hits}
    assert by_ref["memory:pier"]["words"] > 0
    assert by_ref["memory:apology"]["words"] == 0
    assert by_ref["memory:apology"]["meaning"] > by_ref["memory:pier"]["meaning"]
    for hit in hits:
        assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-3)  # rounded to four places


def test_an_exact_word_is_never_dropped_whatever_the_weights(open_kb: Open, notes: Vault) -> None:
    open_kb().sync()

    for meaning in (0.0, 0.2, 0.8, 1.0):
        assert "memory:pier" in refs(open_kb(knowledge_hybrid_vector_weight=meaning), "calm angry customers")
