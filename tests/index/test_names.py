"""A note is found by what it is called, however that is typed, by one lookup."""

from __future__ import annotations

import pytest

from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.names import LONGEST_NAME, MOST_CALLED, fold_name, name_number
from co_cli.values import Filters
from tests.vault import Vault


def kinds(index: KnowledgeIndex, query: str, filters: Filters | None = None) -> list[str]:
    return [one.kind for one in index.called(query, filters)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Blue Pool", "blue-pool"),
        ("Blue Pool", "  BLUE_pool!  "),
        ("Café au lait", "cafe au lait"),
        ("Cafe\u0301", "CAFÉ"),
        ("Straße", "strasse"),
        ("Who decides?", "who decides"),
        ("ｗｉｄｅ", "wide"),
        ("article:guides/deploy", "Article guides deploy"),
        ("article:guides/deploy#L10-24", "article:guides/deploy"),
        ("#deploy", "deploy"),
    ],
)
def test_two_spellings_of_a_name_are_one(one: str, other: str) -> None:
    assert fold_name(one) == fold_name(other) != ""


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("C#", "C"), ("हिन्दी", "हनद"), ("8 May", "8 June")])
def test_two_names_stay_two(one: str, other: str) -> None:
    assert fold_name(one) != fold_name(other)


@pytest.mark.parametrize("text", ["", "  ", "?!", "++", "\u2014"])
def test_what_has_no_letter_is_no_name(text: str) -> None:
    assert fold_name(text) == ""


def test_title_alias_slug_and_ref_each_name_the_note(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("articles/ops/blue-pool.md", "---\ntitle: Deploys\naliases: [Rollout plan, Go live]\n---\nBlue first.")
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    assert kinds(index, "deploys") == ["title"]
    assert kinds(index, "go-live") == ["alias"]
    assert kinds(index, "Blue pool") == kinds(index, "ops/blue_pool") == ["slug"]
    assert kinds(index, "article:ops/blue-pool#L5-5") == ["ref"]
    assert kinds(index, "blue first") == []


def test_filters_hold_for_names_too(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "---\ntags: [tree]\n---\nOaks live long.")
    index.sync()

    assert kinds(index, "oak", Filters(tags=("tree",)))
    assert not kinds(index, "oak", Filters(tags=("bird",)))
    assert not kinds(index, "oak", Filters(sources=("article",)))


def test_another_name_takes_the_place_of_the_old_one(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oak\naliases: [Quercus]\n---\nOaks live long.")
    index.sync()
    vault.write("memories/oak.md", "---\ntitle: Oak\naliases: [Old tree]\n---\nOaks live long.")
    index.sync()
    assert (kinds(index, "quercus"), kinds(index, "old tree")) == ([], ["alias"])

    vault.delete("memories/oak.md")
    index.sync()
    assert kinds(index, "old tree") == kinds(index, "oak") == []


def test_a_name_that_many_notes_have_names_none(vault: Vault, index: KnowledgeIndex) -> None:
    for number in range(MOST_CALLED):
        vault.write(f"memories/m{number}.md", f"---\ntitle: Meeting\n---\nWe met {number} times.")
    index.sync()
    assert len(index.called("meeting")) == MOST_CALLED

    vault.write("memories/last.md", "---\ntitle: Meeting\n---\nWe met once more.")
    index.sync()
    assert index.called("meeting") == []


def test_long_and_odd_queries_are_no_error(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", f"---\ntitle: {'oak ' * LONGEST_NAME}\n---\nOaks.")
    index.sync()

    assert index.called("oak " * LONGEST_NAME) == []
    assert index.called("x" * 100_000) == []
    assert index.called("\udcff \0") == []


def test_a_note_with_two_names_of_one_number_is_indexed_as_any_other(vault: Vault, index: KnowledgeIndex) -> None:
    one, other = "haaagaoaadaafcaj", "adcaacaeiacdaaaa"
    assert name_number(one) == name_number(other)
    vault.write("memories/odd.md", f"---\naliases: [{one}, {other}]\n---\nMade to collide.")
    vault.write("memories/oak.md", "Oaks live long.")

    assert sorted(index.sync().added) == ["memories/oak.md", "memories/odd.md"]

    assert kinds(index, one) == kinds(index, other) == ["alias"]
