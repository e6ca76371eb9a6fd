"""A model that knows English only gives no vector to other text, which is found by its words as well as English is."""

from __future__ import annotations

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.embedding.meaning.conftest import Open
from tests.embedding.meaning.inside import Inside
from tests.folder import Vault

NOTES = {
    "en": "The boiler of the Egger house is repaired on Thursday, and the technician has the key.",
    "de": "Der Kessel im Haus Egger wird am Donnerstag repariert, und der Techniker hat den Schlüssel.",
    "fr": "La chaudière de la maison Egger est réparée jeudi, et le technicien a la clé.",
}
OTHERS = {
    "en": "The cat sleeps on the sofa, and the dog is in the garden.",
    "de": "Die Katze schläft auf dem Sofa, und der Hund ist im Garten.",
    "fr": "Le chat dort sur le canapé, et le chien est dans le jardin.",
}


@pytest.fixture
def three(vault: Vault) -> Vault:
    for language in NOTES:
        vault.write(f"memories/{language}.md", NOTES[language])
        vault.write(f"memories/other-{language}.md", OTHERS[language])
    return vault


def first(kb: KnowledgeBase, query: str) -> str:
    return kb.search(query).hits[0].ref


def test_only_english_text_has_a_static_vector_and_nothing_waits_for_one(
    open_kb: Open, three: Vault, inside: Inside, co: Co
) -> None:
    kb = open_kb()
    kb.sync()

    assert {*inside.vectors()} == {"memories/en.md", "memories/other-en.md"}
    assert (kb.status().unembedded, inside.waiting, inside.misses) == (0, 0, 2)
    assert [finding.text for finding in kb.doctor() if finding.level == "error"] == []
    assert co("index", "verify").code == 0
    kb.sync()
    assert inside.misses == 2


def test_the_frontmatter_decides_about_the_vector(open_kb: Open, vault: Vault, inside: Inside) -> None:
    vault.write("memories/said.md", f"---\nlanguage: en\n---\n{NOTES['de']}")
    vault.write("memories/names.md", "---\nlanguage: de\n---\nKaspar Egger, Senta")
    open_kb().sync()

    assert {*inside.vectors()} == {"memories/said.md"}


def test_the_right_note_is_first_in_every_language(open_kb: Open, three: Vault) -> None:
    kb = open_kb()
    kb.sync()
    asked = {
        "when is the boiler repaired?": "memory:en",
        "wann wird der Kessel repariert?": "memory:de",
        "quand est-ce que la chaudière est réparée?": "memory:fr",
        "Kessel Schlüssel": "memory:de",  # too short to tell its language
        "technicien clé": "memory:fr",
        "heating engineer visit": "memory:en",
    }

    assert {query: first(kb, query) for query in asked} == asked


def test_a_question_that_is_not_english_is_answered_by_words(open_kb: Open, three: Vault) -> None:
    kb = open_kb()
    kb.sync()

    found = kb.search("wann wird der Kessel repariert?")

    assert (found.backend, found.degraded) == ("fts5", [])
    assert kb.search("when is the boiler repaired?").backend == "hybrid"


def test_a_question_too_short_to_tell_is_in_the_language_of_the_note_that_has_its_words(
    open_kb: Open, three: Vault
) -> None:
    kb = open_kb()
    kb.sync()

    asked = ["Kessel Schlüssel", "technicien clé", "Egger boiler", "heating engineer visit", "Xyzzy Frobnitz"]

    assert [kb.search(query).backend for query in asked] == ["fts5", "fts5", "hybrid", "hybrid", "hybrid"]


@pytest.mark.slow
@pytest.mark.medium
def test_notes_in_other_languages_have_vectors_of_a_model_that_knows_them(
    open_kb: Open, three: Vault, inside: Inside
) -> None:
    open_kb("languages").sync()

    assert inside.spaces()["languages:use-multilingual-3"] == 6
