"""What waits for vectors never slows a search: the answer comes first, and vectors are made after it."""

from __future__ import annotations

import time

import pytest

from tests.command import Co
from tests.folder import Vault


def test_a_command_answers_before_it_makes_the_vectors_that_notes_wait_for(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        vault.write(f"memories/oak-{number}.md", f"Oak {number} has lived for centuries.")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    co("index", "sync")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "static")

    signals = co("search", "oaks", "--json").json["hits"][0]["signals"]

    assert "meaning" not in signals
    end = time.monotonic() + 100
    while "meaning" not in signals:
        assert time.monotonic() < end
        signals = co("search", "oaks", "--json").json["hits"][0]["signals"]


def test_a_changed_note_is_found_by_meaning_at_once(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    co("index", "sync")
    vault.write("memories/tea.md", "The kettle whistles.")

    assert co("search", "the kettle", "--json").json["hits"][0]["signals"]["meaning"] > 0
