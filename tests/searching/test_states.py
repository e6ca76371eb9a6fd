"""An answer says whether everything was searched: found, absent, or inconclusive with what was missing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, VectorSpace
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.hits import worth_showing
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.retrieval.results import ABSENT
from co_cli.tools import Toolbox
from tests.folder import Vault


def test_absent_means_that_everything_was_searched(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()

    for query in ("zebra", "", "   ", "🦓", '"live oaks"', "oaks -long"):
        for backend in ("fts5", "grep"):
            found = kb.search(query, backend=backend)
            assert (found.state, found.hits, found.degraded) == ("absent", [], []), (query, backend)


def test_a_vault_that_was_never_synced_is_inconclusive(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    found = kb.search("oaks")

    assert found.state == "inconclusive"
    assert "co index sync" in found.degraded[0]


def test_a_vault_with_a_note_too_large_to_be_searched_is_inconclusive(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/forest.md", "Oaks live long. " * 150_000)
    kb.sync()

    found = kb.search("oaks")

    assert (found.state, found.searched.notes) == ("inconclusive", 0)
    assert "memories/forest.md" in found.degraded[0]


def test_without_a_usable_search_db_the_files_answer_and_say_so(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EXCLUDE", "diary*")
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/diary.md", "Oaks bore me.")
    vault.write("memories/blob.md", b"\0\0")
    data_dir.write_text("a file where the folder should be")

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        found, missing = kb.search("oaks"), kb.search("zebra")

    assert (found.state, found.backend) == ("found", "grep")
    assert [hit.ref for hit in found.hits] == ["memory:oak"]
    assert "search.db" in found.degraded[0]
    assert missing.state == "inconclusive"


def test_notes_are_written_read_and_forgotten_without_a_usable_search_db(vault: Vault, data_dir: Path) -> None:
    data_dir.write_text("a file where the folder should be")

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        saved = kb.remember("Blue goes first.")
        assert kb.note(saved.ref).body.strip() == "Blue goes first."
        assert [hit.ref for hit in kb.search("blue").hits] == [saved.ref]
        kb.update(saved.ref, "Green goes first.")
        kb.forget(saved.ref)
        assert vault.notes() == []
        kb.restore(saved.ref)

    data_dir.unlink()
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        assert [hit.ref for hit in kb.search("green", backend="fts5").hits] == [saved.ref]


def test_the_data_folder_may_vanish_between_two_searches(kb: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()

    shutil.rmtree(data_dir)
    of_files = kb.search("oaks", backend="fts5")
    kb.sync()

    assert (of_files.state, of_files.backend) == ("found", "grep")
    assert of_files.degraded
    assert kb.search("oaks", backend="fts5").degraded == []


def test_an_absent_answer_has_the_nearest_hits_all_labelled_as_weak(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(50):
        vault.write(f"memories/elm{number}.md", f"Elm number {number} stands in row {number} and falls ill easily.")
    kb.sync()

    found = kb.search("what does a quarterly tax accountant cost")

    assert found.state == "absent"
    assert found.hits
    assert all(hit.weak for hit in found.hits)
    assert len(worth_showing(found)) == 3


def test_a_nonsense_word_is_absent_for_people_and_agents(kb: KnowledgeBase, vault: Vault) -> None:
    for name, text in (("kia", "The Kia was sold to Zoe."), ("zak", "Zak plays jazz."), ("quiz", "Quiz night.")):
        vault.write(f"memories/{name}.md", text)
    kb.sync()

    found = kb.search("xzwkyq")
    told = Toolbox(kb).call("search_knowledge", {"query": "xzwkyq"}).text

    assert found.confidence is not None
    assert found.confidence >= ABSENT  # a question with more words is given the benefit of the doubt
    assert found.state == "absent"
    assert told.startswith("absent: no clear match")


ASKED_IN_FEW_WORDS = {"when do i have to go to T\u00dcV": "memory:golf", "path:People design": "article:People/Marcus"}


@pytest.mark.parametrize("question", ASKED_IN_FEW_WORDS)
def test_a_note_with_all_content_words_of_a_question_is_never_absent(
    kb: KnowledgeBase, vault: Vault, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.delenv("CO_KNOWLEDGE_READER")
    for number in range(60):
        vault.write(f"memories/elm{number}.md", f"Elm number {number} stands in row {number} and falls ill easily.")
    vault.write("memories/golf.md", "Der T\u00dcV f\u00fcr den Golf ist im M\u00e4rz, und die Reifen sind noch gut.")
    vault.write("articles/People/Anna.md", "Allergic to nuts, sails at weekends, and calls before ten.")
    vault.write(
        "articles/People/Marcus.md",
        "Han jobbar med design och har tv\u00e5 d\u00f6ttrar som inte \u00e4ter n\u00f6tter.",
    )
    kb.sync()

    found = kb.search(question)
    told = Toolbox(kb).call("search_knowledge", {"query": question})

    assert (found.state, found.hits[0].weak) == ("found", False)
    assert found.hits[0].ref.partition("#")[0] == ASKED_IN_FEW_WORDS[question]
    assert told.data["state"] == "found"


def test_every_hit_with_the_words_of_the_question_is_a_strong_match(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(30):
        vault.write(
            f"memories/d{number}.md", f"Note {number}: the deploy went well in week {number}, after long talks."
        )
    vault.write("memories/soup.md", "Soup is on Thursdays.")
    kb.sync()

    hits = kb.search("deploy", limit=40).hits

    assert [hit.ref for hit in hits if hit.weak] == [hit.ref for hit in hits if hit.ref == "memory:soup"]
    assert len(hits) >= 30


def test_a_note_that_has_the_word_is_never_hidden_however_unsure(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries. Invoice.")
    for number in range(20):
        vault.write(f"memories/elm{number}.md", f"Elm number {number} fell ill.")
    kb.sync()

    found = kb.search("quarterly invoice reconciliation spreadsheet accounting deadline")

    assert "memory:oak" in [hit.ref for hit in worth_showing(found)]


def test_where_no_word_of_a_question_is_found_words_do_not_make_the_answer_surer(
    kb: KnowledgeBase, vault: Vault
) -> None:
    """Also for a search by meaning alone, where no word is looked for."""
    for number in range(60):
        vault.write(f"memories/{number}.md", f"Parcel {number} waits in cellar {number * 7 % 13} for its owner.")
    kb.sync()

    found = [kb.search("a dog sleeps indoors", words=words) for words in (True, False)]

    assert [one.state for one in found] == ["absent", "absent"]
    assert all(one.confidence is not None and one.confidence < ABSENT for one in found)
    assert kb.search("where do packages wait", words=False).state == "found"


class Faulty(Embedders):
    """Whose author made a mistake."""

    def of(self, space: VectorSpace) -> Embedder | None:
        raise ZeroDivisionError("a mistake")


def test_a_programming_error_is_raised_and_not_hidden_by_a_fallback(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    index = KnowledgeIndex(kb.engine, kb.index.origin, embedders=Faulty("static"), setup=kb.index.setup)
    kb.vault = replace(kb.vault, index=index)

    with pytest.raises(ZeroDivisionError):
        kb.search("oaks")
    assert kb.search("oaks", backend="grep").hits, "the files could have answered"
    assert kb.engine.database.set_aside is None
