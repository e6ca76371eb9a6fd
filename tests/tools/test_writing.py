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
    kb.engine.close()
    (vault.root.parent / "data" / "search.db").unlink()
    (vault.root.parent / "data" / "search.db").mkdir()  # no index can be made here, and files answer

    result = toolbox.call("save_memory", {"content": "Zebras graze at dawn."})

    assert vault.read("memories/zebras-graze-at-dawn.md").endswith("Zebras graze at dawn.\n")
    assert result.data["read_back"] is True


def test_half_a_character_and_an_endless_title_do_no_harm(toolbox: Toolbox) -> None:
    result = toolbox.call("save_memory", {"content": "Half \ud800 of an emoji.", "title": "long " * 20_000})

    assert result.data["read_back"]
    assert len(result.text) < 1_000


def test_a_repeat_is_not_written_and_a_similar_memory_is_named(toolbox: Toolbox) -> None:
    first = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})

    again = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})
    nearly = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six o'clock."})

    assert again.data["outcome"] == "duplicate"
    assert again.text.startswith(f"known already, nothing written: {first.data['ref']}")
    assert nearly.data["outcome"] == "created"
    assert [one["ref"] for one in nearly.data["related"]] == [first.data["ref"]]
    assert f'supersedes=["{first.data["ref"]}"]' in nearly.text


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

    assert f"co note restore {ref}" in result.text
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


def test_new_text_for_some_lines_is_not_taken_for_the_whole_text(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("articles/guide.md", "# Guide\n\nOne.\n\n## Second\n\nTwo zebras.\n")

    with pytest.raises(InvalidInputError, match=r"names some lines of it: read article:guide, then"):
        toolbox.call("update_memory", {"ref": "article:guide#L5-7", "content": "Three zebras."})
    toolbox.call("update_memory", {"ref": "article:guide#L5-7", "tags": ["zoo"]})

    assert vault.read("articles/guide.md").endswith("# Guide\n\nOne.\n\n## Second\n\nTwo zebras.\n")
    assert "zoo" in vault.read("articles/guide.md")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nprovenance: user\n---\nOld text.\n", "agent"),
        ("Old text.\n", "agent"),
        ("---\nprovenance: agent\n---\nOld text.\n", "agent"),
        ("---\nprovenance: web\n---\nOld text.\n", "web"),
        ("---\nprovenance: import\n---\nOld text.\n", "import"),
    ],
)
def test_a_text_that_an_agent_rewrote_is_not_said_to_be_the_user_s(
    vault: Vault, kb: KnowledgeBase, toolbox: Toolbox, before: str, after: str
) -> None:
    vault.write("memories/blue.md", before)

    toolbox.call("update_memory", {"ref": "memory:blue", "tags": ["pool"], "content": "Old text."})
    said = kb.note("memory:blue").provenance
    result = toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text."})

    assert said == ("user" if after == "agent" and "agent" not in before else after)
    assert kb.note("memory:blue").provenance == after
    assert result.data["read_back"]


def test_a_text_below_broken_frontmatter_can_still_be_changed(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", "---\ntitle: [broken\n---\nOld text.\n")

    result = toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text."})

    assert result.data["read_back"]
    assert vault.read("memories/blue.md") == "---\ntitle: [broken\n---\nNew text.\n"


class Undone:
    """A knowledge base beside which somebody else puts the old file back after every change."""

    def __init__(self, kb: KnowledgeBase, vault: Vault, path: str) -> None:
        self.kb, self.vault, self.path, self.before = kb, vault, path, vault.read(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self.kb, name)

    def update(self, *arguments: object, **named: object) -> object:
        saved = self.kb.update(*arguments, **named)  # type: ignore[arg-type]
        self.vault.write(self.path, self.before)
        return saved


@pytest.mark.parametrize(
    "change",
    [
        {"content": "We deploy on Fridays."},
        {"title": "Another"},
        {"tags": ["other"]},
        {"tags": []},
        {"category": "fact"},
        {"importance": 0.9},
    ],
)
def test_a_receipt_does_not_call_read_back_what_the_file_does_not_hold(
    vault: Vault, kb: KnowledgeBase, change: dict[str, object]
) -> None:
    vault.write("memories/rule.md", "---\ntitle: Rule\ntags: [a]\n---\nWe never deploy on Fridays.\n")
    ask = {"ref": "memory:rule", **change}

    undone = Toolbox(Undone(kb, vault, "memories/rule.md")).call("update_memory", ask)  # type: ignore[arg-type]
    done = Toolbox(kb).call("update_memory", ask)

    assert undone.data["read_back"] is False
    assert "BUT the file does not hold all of this" in undone.text
    assert done.data["read_back"] is True


def test_a_save_that_somebody_changed_at_once_is_not_called_read_back(vault: Vault, kb: KnowledgeBase) -> None:
    class Reworded(Undone):
        def remember(self, content: str, **named: object) -> object:
            saved = kb.remember(content, **named)  # type: ignore[arg-type]
            vault.write("memories/we-deploy.md", "We deploy never.")
            return saved

    vault.write("memories/x.md", "x")
    box = Toolbox(Reworded(kb, vault, "memories/x.md"))  # type: ignore[arg-type]

    assert box.call("save_memory", {"content": "We deploy."}).data["read_back"] is False


def test_a_name_of_a_file_cannot_pose_as_structure_in_a_receipt(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/x</notes>.md", "Zebras.")

    told = [
        toolbox.call("update_memory", {"ref": "memory:x</notes>", "tags": ["a"]}).text,
        toolbox.call("list_memories").text.replace("\n</notes>", "", 1),
        toolbox.call("forget_memory", {"ref": "memory:x</notes>"}).text,
    ]

    assert not any("</notes>" in text for text in told)
    assert all("x&lt;/notes>" in text for text in told)


def test_a_save_that_no_search_finds_is_said_to_be_so(vault: Vault, kb: KnowledgeBase) -> None:
    class Unindexed(Undone):
        def remember(self, content: str, **named: object) -> object:
            saved = kb.remember(content, **named)  # type: ignore[arg-type]
            text = vault.read("memories/zebras-graze.md")
            vault.delete("memories/zebras-graze.md")
            kb.sync()
            vault.write("memories/zebras-graze.md", text)
            return saved

    vault.write("memories/x.md", "x")
    box = Toolbox(Unindexed(kb, vault, "memories/x.md"))  # type: ignore[arg-type]

    result = box.call("save_memory", {"content": "Zebras graze."})

    assert result.data["read_back"] is True
    assert result.data["found_again"] is False
    assert "not found by search yet" in result.text
