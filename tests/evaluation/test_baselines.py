"""The baselines that search is compared with."""

from __future__ import annotations

import pytest

from co_cli.evaluation.baselines import BASELINES, RRF_K, Desk, blend
from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault


@pytest.fixture
def trees(vault: Vault, kb: KnowledgeBase) -> Desk:
    vault.write("memories/oak.md", "---\ntitle: Oak\n---\nOaks live for centuries beside the river.")
    vault.write("memories/elm.md", "---\ntitle: Elm\n---\nElms stand in the park.")
    vault.write("memories/harbour.md", "---\ntitle: Harbour\n---\nBoats rest near the river.")
    kb.sync()
    return Desk(kb)


def refs(desk: Desk, name: str, text: str) -> list[str]:
    return [ref for ref, _ in BASELINES[name](desk, text)]


def test_grep_ranks_notes_by_the_share_of_the_words_they_contain(trees: Desk) -> None:
    assert BASELINES["grep"](trees, "oaks river") == [("memory:oak", 1.0), ("memory:harbour", 0.5)]


def test_all_terms_find_notes_with_all_of_them_and_any_term_the_others_too(trees: Desk) -> None:
    assert refs(trees, "fts5-all", "oaks of the river") == ["memory:oak"]
    assert refs(trees, "fts5-any", "oaks of the river") == ["memory:oak", "memory:harbour"]
    assert refs(trees, "fts5-all", "oaks in the park") == []


def test_quotes_and_minus_signs_are_not_operators(trees: Desk) -> None:
    assert refs(trees, "fts5-any", '"river oaks" -park') == refs(trees, "fts5-any", "river oaks park")


def test_vectors_rank_every_note_by_its_cosine(trees: Desk) -> None:
    ranking = BASELINES["vectors"](trees, "old trees")

    assert {ref for ref, _ in ranking} == {"memory:oak", "memory:elm", "memory:harbour"}
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)


def test_rrf_adds_one_over_sixty_plus_the_place(trees: Desk) -> None:
    words, near = refs(trees, "fts5-any", "oaks of the river"), refs(trees, "vectors", "oaks of the river")
    expected = {ref: sum(1 / (RRF_K + 1 + order.index(ref)) for order in (words, near) if ref in order) for ref in near}

    assert dict(BASELINES["rrf"](trees, "oaks of the river")) == pytest.approx(expected)


def test_spec_ranks_by_vectors_where_no_note_has_all_the_words(trees: Desk) -> None:
    question = "oaks in the park at night"

    assert refs(trees, "spec", question) == refs(trees, "vectors", question)


def test_a_blend_is_bm25_over_the_best_and_the_cosine_scaled_to_0_and_1() -> None:
    blended = blend({1: 8.0, 2: 4.0}, {1: 0.2, 2: 0.6, 3: 0.4}, share=0.7)

    assert blended == pytest.approx({1: 0.3, 2: 0.7 + 0.15, 3: 0.35})


def test_a_note_is_ranked_once_by_its_best_passage(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("articles/long.md", "# A\n\nRivers run.\n\n# B\n\nThe river freezes.\n\n# C\n\nA river.\n")
    vault.write("memories/oak.md", "Oaks beside the river.")
    kb.sync()

    for name in BASELINES:
        assert sorted(refs(Desk(kb), name, "river")) == ["article:long", "memory:oak"], name


@pytest.mark.parametrize("text", ["", "the", '"', "?!", "-", "東京", "\ud800", "a" * 30_000])
def test_any_text_can_be_asked(trees: Desk, text: str) -> None:
    for name in BASELINES:
        assert len(BASELINES[name](trees, text)) <= 3
