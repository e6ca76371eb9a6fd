"""Tools that write, and their receipts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.vault import Vault


def test_a_save_is_read_back_and_found_again_before_it_says_so(vault: Vault, toolbox: Toolbox) -> None:
    result = toolbox.call(
        "save_memory",
        {"content": "Blue takes traffic first.", "tags": "deploy", "category": "decision", "importance": "0.8"},
    )

    assert result.text.startswith("created memory:blue-takes-traffic-first (Blue takes traffic first): read back")
    assert result.data["read_back"]
    assert result.data["found_again"]
    text = vault.read("memories/blue-takes-traffic-first.md")
    assert "provenance: agent" in text
    assert "importance: 0.8" in text
    assert "deploy" in text


def test_a_save_that_nobody_can_find_is_not_called_found(vault: Vault, kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb)
    toolbox.call("list_memories")
    kb.database.close()
    (vault.root.parent / "data" / "search.db").unlink()
    (vault.root.parent / "data" / "search.db").mkdir()  # no index can be made here, and files answer

    result = toolbox.call("save_memory", {"content": "Zebras graze at dawn."})

    assert vault.read("memories/zebras-graze-at-dawn.md").endswith("Zebras graze at dawn.\n")
    assert result.data["read_back"] is True


def test_half_a_character_and_an_endless_title_do_no_harm(toolbox: Toolbox) -> None:
    result = toolbox.call("save_memory", {"content": "Half \ud800 of an emoji.", "title": "long " * 20_000})

    assert result.data["read_back"]
    assert len(result.text) < 1_000


def test_a_near_duplicate_says_which_note_it_joined(toolbox: Toolbox) -> None:
    first = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})

    again = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})
    nearly = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six o'clock."})

    assert again.data["outcome"] == "duplicate"
    assert again.text.startswith(f"known already, nothing written: {first.data['ref']}")
    assert nearly.data["ref"] == first.data["ref"]
    assert nearly.data["outcome"] == "updated"
    assert first.data["ref"] in nearly.data["detail"]


def test_an_article_is_saved_with_where_it_comes_from(vault: Vault, toolbox: Toolbox) -> None:
    result = toolbox.call(
        "save_article", {"content": "# Zebras\n\nThey graze.", "title": "On zebras", "url": "https://example.org/z"}
    )

    assert result.data["ref"] == "article:on-zebras"
    assert "source_url: https://example.org/z" in vault.read("articles/on-zebras.md")
    assert result.data["found_again"]


def test_an_update_changes_what_it_names_and_nothing_else(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", "---\ntitle: Blue   # mine\nodd: kept\ntags: [a]\n---\nOld text.\n")

    result = toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text.", "importance": 0.9})

    text = vault.read("memories/blue.md")
    assert result.data["outcome"] == "updated"
    assert "title: Blue   # mine\nodd: kept\ntags: [a]\n" in text
    assert "importance: 0.9" in text
    assert text.endswith("---\nNew text.\n")


def test_an_update_that_changes_nothing_asks_what_to_change(toolbox: Toolbox) -> None:
    ref = toolbox.call("save_memory", {"content": "Blue first."}).data["ref"]

    with pytest.raises(InvalidInputError, match=f"say what changes of {ref}"):
        toolbox.call("update_memory", {"ref": ref})


def test_forgetting_is_soft(vault: Vault, kb: KnowledgeBase, toolbox: Toolbox) -> None:
    ref = toolbox.call("save_memory", {"content": "Blue first."}).data["ref"]

    result = toolbox.call("forget_memory", {"ref": ref})

    assert f"co restore {ref}" in result.text
    assert vault.notes() == []
    assert toolbox.call("recall_memory", {"query": "blue"}).data["hits"] == []
    assert kb.restore(ref).ref == ref


def test_parallel_calls_lose_nothing(vault: Vault, toolbox: Toolbox) -> None:
    facts = [f"Harbour {name} has a tide gauge from {year}." for year, name in enumerate(NAMES, 1960)]

    with ThreadPoolExecutor(8) as pool:
        saves = [pool.submit(toolbox.call, "save_memory", {"content": fact}) for fact in facts]
        recalls = [pool.submit(toolbox.call, "recall_memory", {"query": "tide gauge"}) for _ in facts]
        saved = [future.result().data for future in saves]
        for future in recalls:
            future.result()

    assert len({one["ref"] for one in saved}) == len(facts) == len(vault.notes())
    assert all(one["read_back"] and one["found_again"] for one in saved)


NAMES = "Skarvik Ballyreen Portmore Kerrow Gullhaven Aldra Brisk Corran Dunmore Eastwick Finn Garve Holm Inver".split()
