"""The baselines that search is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.baselines import BASELINES, RRF_K, Desk
from tests.folder import Vault


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("trees")
    vault = Vault(folder / "vault")
    vault.write("memories/oak.md", "---\ntitle: Oak\n---\nOaks live for centuries beside the river.")
    vault.write("memories/elm.md", "---\ntitle: Elm\n---\nElms stand in the park.")
    vault.write("articles/sea.md", "# Harbour\n\nBoats rest near the river.\n\n# Ice\n\nThe river freezes.\n")
    with KnowledgeBase.open(vault.root, folder / "data") as kb:
        kb.sync()
        yield Desk(kb.vault)


def refs(desk: Desk, name: str, text: str) -> list[str]:
    return [ref for ref, _ in BASELINES[name](desk, text)]


def test_each_baseline_ranks_by_its_own_rule(trees: Desk) -> None:
    assert BASELINES["grep"](trees, "oaks river") == [("memory:oak", 1.0), ("article:sea", 0.5)]
    assert refs(trees, "fts5-all", "oaks of the river") == ["memory:oak"]
    assert refs(trees, "fts5-any", "oaks of the river") == ["memory:oak", "article:sea"]
    assert refs(trees, "fts5-all", "oaks in the park") == []
    ranking = BASELINES["vectors"](trees, "old trees")
    assert {ref for ref, _ in ranking} == {"memory:oak", "memory:elm", "article:sea"}
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    assert refs(trees, "spec", "oaks in the park at night") == refs(trees, "vectors", "oaks in the park at night")


def test_rrf_adds_one_over_sixty_plus_the_place(trees: Desk) -> None:
    words, near = refs(trees, "fts5-any", "oaks of the river"), refs(trees, "vectors", "oaks of the river")
    expected = {ref: sum(1 / (RRF_K + 1 + order.index(ref)) for order in (words, near) if ref in order) for ref in near}

    assert dict(BASELINES["rrf"](trees, "oaks of the river")) == pytest.approx(expected)


def test_any_text_can_be_asked_without_operators_and_a_note_is_ranked_once(trees: Desk) -> None:
    assert refs(trees, "fts5-any", '"river oaks" -park') == refs(trees, "fts5-any", "river oaks park")
    for text in ("", "the", '"', "?!", "-", "東京", "\ud800", "a" * 30_000, "river"):
        for name in BASELINES:
            found = refs(trees, name, text)
            assert len(found) == len(set(found)) <= 3
