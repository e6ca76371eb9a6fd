"""Another model is a non-event: the old vectors answer until the new ones are complete, and never meet them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

APOLOGY = "An upset client is soothed by an apology and by listening to complaints."
QUESTION = "how do we calm an angry customer"


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/apology.md", APOLOGY)
    vault.write("memories/backup.md", "The database backup runs at night.")
    vault.write("memories/pier.md", "The pier of the harbour lies calm.")
    return vault


def test_another_provider_is_noticed_built_and_swapped_in(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    open_kb().sync()
    assert inside.spaces() == {"static:co-static-256": 3}

    kb = open_kb("ollama", host=ollama.url)
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 0, "ollama:embeddinggemma": 3}
    assert (kb.status().space, kb.status().building) == ("ollama:embeddinggemma:256:1", None)
    asked = len(ollama.asked)
    found = kb.search(QUESTION)
    assert (found.hits[0].ref, found.degraded) == ("memory:apology", [])
    assert ollama.asked[asked:] == [f"task: search result | query: {QUESTION}"]


def test_going_back_takes_the_vectors_from_the_cache(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    open_kb().sync()
    before = inside.vectors()
    open_kb("ollama", host=ollama.url).sync()
    misses = inside.misses

    kb = open_kb()
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 3, "ollama:embeddinggemma": 0}
    assert inside.vectors() == before
    assert inside.misses == misses
    assert kb.search(QUESTION).hits[0].ref == "memory:apology"


def test_while_a_space_is_built_the_old_one_answers_also_for_new_notes(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    open_kb().sync()
    notes.write("memories/new.md", "Invoices are due in thirty days.")
    ollama.faults = ["404"]
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 4, f"ollama:{model}": 0}
    assert kb.search("when must a bill be paid").hits[0].ref == "memory:new"

    notes.write("memories/later.md", "Holidays are announced a month ahead.")
    notes.delete("memories/new.md")
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 0, f"ollama:{model}": 4}


def test_words_answer_while_the_old_embedder_is_gone_and_the_new_one_is_not_complete(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    open_kb().sync()
    inside.rows("update spaces set model = 'co-static-256@00000000'")
    ollama.faults = ["404"]
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()

    found = kb.search("harbour")

    assert [hit.ref for hit in found.hits] == ["memory:pier"]
    assert "is gone: answered by words" in found.degraded[0]

    kb.sync()

    assert kb.search("harbour").degraded == []


def test_a_search_that_is_overtaken_by_a_swap_asks_again_in_the_new_space(
    open_kb: Open, notes: Vault, ollama: TurnedOllama
) -> None:
    kb = open_kb("ollama", host=ollama.url)
    kb.sync()

    ollama.meanwhile = lambda: open_kb().sync()
    found = kb.search(QUESTION)

    assert (found.hits[0].ref, found.degraded) == ("memory:apology", [])
    assert [hit.score for hit in found.hits] == [hit.score for hit in open_kb().search(QUESTION).hits]


def test_a_search_db_made_with_sqlite_vec_is_made_anew_without_it(open_kb: Open, notes: Vault, inside: Inside) -> None:
    open_kb().sync()
    misses = inside.misses
    kb = open_kb()
    kb.engine.database.extension = None  # as on a machine without the wheel

    kb.sync()

    assert kb.search(QUESTION).hits[0].ref == "memory:apology"
    assert inside.misses == misses
    assert inside.value("select sql not like 'create virtual%' from sqlite_master where name = 'docs_vec'")
    assert open_kb().search(QUESTION).hits[0].ref == "memory:apology"


def test_vaults_of_one_note_keep_search_db_small(open_kb: Open, tmp_path: Path, inside: Inside) -> None:
    for number in range(20):
        vault = Vault(tmp_path / f"vault-{number}")
        vault.write("memories/one.md", f"Customer {number} gets a refund within {number} days.")
        kb = open_kb(root=vault.root)
        kb.sync()
        kb.close()

    assert inside.spaces() == {"static:co-static-256": 20}
    pages, size = inside.value("pragma page_count"), inside.value("pragma page_size")
    assert pages * size < 6_000_000, f"{pages * size:,} bytes"
    found = open_kb(root=tmp_path / "vault-7").search("money back")
    assert [hit.title for hit in found.hits] == ["One"]
