"""A row missing from the words or from the vectors: the search that trips over it mends it, and answers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from co_cli.index.words import indexed_passages
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import mending
from tests.command import Co
from tests.meaning.inside import Inside
from tests.vault import Vault

NO_WORDS = "delete from docs_fts where rowid = (select min(id) from passages)"
NO_VECTOR = "delete from docs_vec where rowid = (select min(id) from passages)"


@pytest.fixture(autouse=True)
def rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was mended a moment ago."""
    monkeypatch.setattr(mending, "_tried", {})


@pytest.fixture
def inside(data_dir: Path) -> Inside:
    return Inside(data_dir)


@pytest.fixture
def trees(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/ash.md", "Ashes are tough.")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("articles/park.md", "# Park\n\nThe park has elms.\n\n## Pond\n\nIt is deep.")
    kb.sync()
    return kb


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
def test_a_search_that_lacks_words_makes_them_again_and_answers(
    trees: KnowledgeBase, inside: Inside, caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    inside.rows(NO_WORDS)
    gone = inside.value("select title from passages order by id limit 1").lower()

    with caplog.at_level(logging.WARNING, "co_cli"):
        found = trees.search(gone, backend=backend)

    assert found.hits[0].title.lower() == gone
    assert (found.state, found.degraded) == ("found", [])
    assert [finding for finding in trees.doctor() if finding.level != "ok"] == []
    assert len([record for record in caplog.records if "made again" in record.getMessage()]) == 1


def test_a_search_that_misses_a_vector_makes_it_again(trees: KnowledgeBase, inside: Inside) -> None:
    before = inside.rows("select rowid, part, embedding from docs_vec order by rowid")
    inside.rows(NO_VECTOR)
    gone = inside.value("select title from passages order by id limit 1").lower()

    found = trees.search(gone)

    assert found.hits[0].signals["meaning"] > 0
    assert inside.rows("select rowid, part, embedding from docs_vec order by rowid") == before
    assert found.degraded == []


def test_a_passage_that_is_gone_too_is_brought_back_from_the_files(trees: KnowledgeBase, inside: Inside) -> None:
    inside.rows("delete from docs_fts where rowid = (select max(id) from passages)")
    inside.rows("delete from passages where id = (select max(id) from passages)")
    titles = {"ashes", "oaks", "elms", "deep pond"}

    found = {asked: trees.search(asked, backend="fts5").hits for asked in titles}

    assert all(found.values())
    assert [finding for finding in trees.doctor() if finding.level == "error"] == []


def test_the_doctor_finds_it_before_any_search_does(co: Co, trees: KnowledgeBase, inside: Inside) -> None:
    for damage in (NO_WORDS, NO_VECTOR):
        inside.rows(damage)
        assert co("doctor").code == 3
        assert co("doctor", "--fix").code == 0
        assert co("doctor").code == 0


def test_what_cannot_be_mended_now_is_said_with_the_answer(trees: KnowledgeBase, inside: Inside) -> None:
    trees.search("oaks")
    for _ in range(2):  # once it is mended; right afterwards it is not tried again
        inside.rows(NO_WORDS)
        found = trees.search("oaks", backend="fts5")

    assert found.degraded == ["some passages lack their words: `co doctor --fix` mends it"]


def test_notes_without_a_vector_of_their_own_are_no_drift(
    kb: KnowledgeBase, vault: Vault, caplog: pytest.LogCaptureFixture
) -> None:
    vault.write("memories/party.md", "---\ntitle: 🎉\n---\n🎉🎉🎉 zzzqqq\n")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    kb.sync()

    with caplog.at_level(logging.WARNING, "co_cli"):
        assert kb.search("zzzqqq").degraded == []
    assert caplog.records == []


def test_the_word_index_tells_how_many_passages_it_has(kb: KnowledgeBase, vault: Vault) -> None:
    for count in (0, 1, 200):
        for number in range(count):
            vault.write(f"memories/{number}.md", f"Note number {number}.")
        kb.sync()
        with kb.database.reading() as connection:
            assert indexed_passages(connection) == count
