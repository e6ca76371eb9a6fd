"""A model guesses tags and categories. A wrong guess must not hide what is known, nor pass for right."""

from __future__ import annotations

import pytest

from co_cli.tools import Toolbox
from tests.vault import Vault

BLUE = "---\ntitle: Blue first\ntags: [deploy]\ncategory: decision\n---\nBlue takes traffic first.\n"


@pytest.mark.parametrize(
    ("guess", "told"),
    [
        ({"tags": ["deployment"]}, "None with tags=deployment (no note has the tag deployment; there is deploy): "),
        ({"category": "fact"}, "None with category=fact: "),
        ({"tags": ["deploy"], "category": "fact"}, "None with tags=deploy and category=fact: "),
    ],
)
def test_a_filter_that_leaves_nothing_is_dropped_and_the_answer_says_so(
    vault: Vault, toolbox: Toolbox, guess: dict[str, object], told: str
) -> None:
    vault.write("memories/blue.md", BLUE)

    for name in ("recall_memory", "search_knowledge"):
        result = toolbox.call(name, {"query": "which pool takes traffic", **guess})
        assert result.text.startswith("found: 1 of 1 note searched")
        assert told in result.text.splitlines()[0]
        assert [hit["ref"] for hit in result.data["hits"]] == ["memory:blue"]
        assert result.data["without"] == list(guess)


def test_a_filter_that_leaves_something_stays(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", BLUE)
    vault.write("memories/green.md", "Green takes traffic second.")

    result = toolbox.call("recall_memory", {"query": "which pool takes traffic", "tags": ["deploy"]})

    assert [hit["ref"] for hit in result.data["hits"]] == ["memory:blue"]
    assert result.data["without"] == []


def test_absent_with_a_filter_is_absent_without_it_too(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", BLUE)

    result = toolbox.call("recall_memory", {"query": '"quarterly revenue"', "category": "fact"})

    assert result.data["state"] == "absent"
    assert result.text.startswith("absent: nothing here clearly says that, neither with category=fact nor without. All")


def test_articles_are_not_offered_for_memories_when_a_filter_is_dropped(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("articles/blue.md", BLUE)

    assert toolbox.call("recall_memory", {"query": "traffic", "tags": ["ops"]}).data["hits"] == []


def test_a_list_by_a_tag_that_nobody_uses_names_those_there_are(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", BLUE)

    assert toolbox.call("list_memories", {"tags": ["deployment"]}).text == (
        "0 memories have the tag deployment; there is deploy."
    )
    assert toolbox.call("list_memories", {"tags": ["zebra"]}).text == "0 memories have the tag zebra; there is deploy."


def test_a_short_note_in_a_scan_is_whole_and_needs_no_second_call(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", BLUE)

    result = toolbox.call("search_knowledge", {"query": "which pool takes traffic"})

    assert result.data["hits"][0]["whole"] is True
    assert "read_note opens" not in result.text
