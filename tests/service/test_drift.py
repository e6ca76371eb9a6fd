"""Rows missing from search.db: `co doctor` finds them, and `--fix` brings them back from the files."""

from __future__ import annotations

import logging

import pytest

from co_cli.index.sqlite.engine import SqliteWriter
from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.vault import Vault

NO_WORDS = "delete from docs_fts where rowid = (select min(id) from passages)"
NO_VECTOR = "delete from docs_vec where rowid = (select min(id) from passages)"


@pytest.fixture
def trees(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/ash.md", "Ashes are tough.")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("articles/park.md", "# Park\n\nThe park has elms.\n\n## Pond\n\nIt is deep.")
    kb.sync()
    return kb


@pytest.mark.parametrize("damage", [NO_WORDS, NO_VECTOR])
def test_the_doctor_finds_a_missing_row_and_mends_it(co: Co, trees: KnowledgeBase, damage: str) -> None:
    with trees.engine.writing() as writer:
        assert isinstance(writer, SqliteWriter)
        writer.connection.execute(damage)

    assert co("doctor").code == 3
    assert co("doctor", "--fix").code == 0
    assert co("doctor").code == 0
    for query, ref in (("ashes", "memory:ash"), ("centuries", "memory:oak"), ("pond", "article:park")):
        hit = trees.search(query).hits[0]
        assert hit.ref.startswith(ref)
        assert hit.signals["meaning"] > 0
        assert hit.signals["words"] > 0


def test_notes_without_a_vector_of_their_own_are_no_drift(
    kb: KnowledgeBase, vault: Vault, co: Co, caplog: pytest.LogCaptureFixture
) -> None:
    vault.write("memories/party.md", "---\ntitle: 🎉\n---\n🎉🎉🎉 zzzqqq\n")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    kb.sync()

    with caplog.at_level(logging.WARNING, "co_cli"):
        assert kb.search("zzzqqq").degraded == []
    assert caplog.records == []
    assert co("doctor").code == 0
