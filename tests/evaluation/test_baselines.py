"""What search is compared with: each baseline is what its name says, over the vault as it is indexed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from co_cli.evaluation.baselines import BASELINES, RRF_K, Desk, blend, plain_query
from co_cli.evaluation.methods import Method, default_methods, method
from co_cli.evaluation.questions import read_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.sample import sample_vault
from tests.vault import Vault


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with KnowledgeBase.open(sample_vault(), tmp_path_factory.mktemp("data")) as kb:
        kb.sync()
        yield Desk(kb)


@pytest.fixture(scope="module")
def questions() -> list[str]:
    return [question.text for question in read_questions(os.path.join(sample_vault(), "questions.jsonl"))][:60]


@pytest.fixture
def trees(vault: Vault, kb: KnowledgeBase) -> Desk:
    vault.write("memories/oak.md", "---\ntitle: Oak\n---\nOaks live for centuries beside the river.")
    vault.write("memories/elm.md", "---\ntitle: Elm\n---\nElms stand in the park.")
    vault.write("memories/harbour.md", "---\ntitle: Harbour\n---\nBoats rest near the river.")
    kb.sync()
    return Desk(kb)


def refs(desk: Desk, name: str, text: str) -> list[str]:
    return [ref for ref, _ in BASELINES[name](desk, text, 10)]


def test_grep_is_the_grep_of_the_product(sample: Desk, questions: list[str]) -> None:
    for question in questions[:20]:
        product = [hit.score for hit in sample.kb.search(question, backend="grep").hits]
        ours = [round(score, 4) for _, score in BASELINES["grep"](sample, question, 10)]
        assert ours == product, question


def test_all_terms_find_what_has_them_all_and_any_term_the_rest_too(trees: Desk) -> None:
    assert refs(trees, "fts5-all", "oaks of the river") == ["memory:oak"]
    assert refs(trees, "fts5-any", "oaks of the river") == ["memory:oak", "memory:harbour"]
    assert refs(trees, "fts5-all", "oaks in the park") == []


def test_quotes_and_minus_signs_are_no_operators(trees: Desk) -> None:
    assert refs(trees, "fts5-any", '"river oaks" -park') == refs(trees, "fts5-any", "river oaks park")
    assert plain_query('"river oaks" -park').words == ("river", "oaks", "park")


def test_vectors_rank_every_note_by_its_cosine(trees: Desk) -> None:
    ranking = BASELINES["vectors"](trees, "old trees", 10)

    assert {ref for ref, _ in ranking} == {"memory:oak", "memory:elm", "memory:harbour"}
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)


def test_rrf_adds_one_over_sixty_and_the_place(trees: Desk) -> None:
    words, near = refs(trees, "fts5-any", "oaks of the river"), refs(trees, "vectors", "oaks of the river")
    expected = {ref: sum(1 / (RRF_K + 1 + order.index(ref)) for order in (words, near) if ref in order) for ref in near}

    assert dict(BASELINES["rrf"](trees, "oaks of the river", 10)) == pytest.approx(expected)


def test_the_formula_as_specified_is_vectors_where_no_note_has_all_the_words(trees: Desk) -> None:
    question = "oaks in the park at night"

    assert refs(trees, "fts5-all", question) == []
    assert refs(trees, "spec", question) == refs(trees, "vectors", question)


def test_a_blend_is_bm25_over_the_best_and_the_cosine_between_the_least_and_the_most() -> None:
    blended = blend({1: 8.0, 2: 4.0}, {1: 0.2, 2: 0.6, 3: 0.4}, share=0.7)

    assert blended == pytest.approx({1: 0.3, 2: 0.7 + 0.15, 3: 0.35})


def test_a_note_is_ranked_once_by_its_best_passage(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("articles/long.md", "# A\n\nRivers run.\n\n# B\n\nThe river freezes.\n\n# C\n\nA river.\n")
    vault.write("memories/oak.md", "Oaks beside the river.")
    kb.sync()

    for name in BASELINES:
        found = refs(Desk(kb), name, "river")
        assert sorted(found) == ["article:long", "memory:oak"], name


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("text", ["", "the", '"', "?!", "-", "東京", "\ud800", "a" * 30_000])
def test_any_text_can_be_asked(trees: Desk, name: str, text: str) -> None:
    assert len(BASELINES[name](trees, text, 10)) <= 3


@pytest.mark.parametrize("chosen", default_methods(), ids=lambda chosen: chosen.name)
def test_every_method_answers_with_refs_best_first_and_the_time_it_took(trees: Desk, chosen: Method) -> None:
    answer = chosen.answer(trees, "oaks beside the river")

    assert answer.ranking[0][0] == "memory:oak"
    assert [score for _, score in answer.ranking] == sorted((score for _, score in answer.ranking), reverse=True)
    assert answer.seconds > 0
    assert answer.degraded == ""


def test_whoever_uses_a_vector_that_is_there_owes_the_time_it_took(trees: Desk) -> None:
    trees.begin()
    trees.vector("oaks")
    trees.cosines("oaks", [])
    assert trees.owed == 0.0

    trees.begin()
    trees.vector("oaks")
    assert trees.owed > 0.0


def test_the_product_is_asked_as_anybody_asks_it(sample: Desk, questions: list[str]) -> None:
    found = sample.kb.search(questions[0], limit=10)

    assert method("co").answer(sample, questions[0]).ranking == [
        (without_lines(hit.ref), hit.score) for hit in found.hits
    ]
    assert method("co:fts5").answer(sample, questions[0]).ranking == [
        (without_lines(hit.ref), hit.score) for hit in sample.kb.search(questions[0], backend="fts5").hits
    ]
