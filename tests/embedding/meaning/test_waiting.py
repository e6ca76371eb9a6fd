"""What waits for vectors never slows a search: the answer comes first, and vectors are made after it."""

from __future__ import annotations

import time

import pytest

from tests.command import Co
from tests.embedding.meaning.conftest import Open
from tests.folder import Vault


def test_a_search_has_static_vectors_at_once_and_the_encoders_after_its_answer(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        vault.write(f"memories/oak-{number}.md", f"Oak {number} has lived for centuries.")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    co("index", "sync")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")

    assert "meaning" in co("search", "oaks", "--json").json["hits"][0]["signals"]

    end = time.monotonic() + 100
    while not co("index", "status", "--json").json["space"].startswith("encoder"):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_changed_note_is_found_by_meaning_at_once(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    co("index", "sync")
    vault.write("memories/tea.md", "The kettle whistles.")

    assert co("search", "the kettle", "--json").json["hits"][0]["signals"]["meaning"] > 0


def test_a_long_article_is_saved_before_the_encoder_makes_its_vectors(open_kb: Open) -> None:
    kb = open_kb("encoder").local
    kb.remember("Oaks live for centuries.")
    kb.embed()  # from now on the encoder is loaded
    kb.remember("Elms live as long.")
    assert kb.waiting().passages == 0

    saved = kb.remember(
        "".join(f"## Pier {n}\n\nFerry {n} leaves at noon.\n\n" * 20 for n in range(60)), source="article"
    )

    assert kb.waiting().passages >= 60, "searches would wait behind them"
    assert kb.search("ferry at noon").hits[0].ref.startswith(saved.ref)
