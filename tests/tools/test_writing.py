"""Tools that write, and their receipts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, NoteConflictError
from co_cli.tools import Toolbox
from tests.folder import Vault


def test_a_save_is_read_back_and_found_again_before_it_says_so(vault: Vault, toolbox: Toolbox) -> None:
    result = toolbox.call(
        "save_memory",
        {"content": "Blue takes traffic first.", "tags": "deploy", "category": "decision", "importance": "0.8"},
    )

    assert result.text.startswith("created memory:blue-takes-traffic-first (read back; found by search).")
    assert result.data["read_back"]
    assert result.data["found_again"]
    text = vault.read("memories/blue-takes-traffic-first.md")
    assert "provenance: agent" in text
    assert "importance: 0.8" in text
    assert "deploy" in text


def test_a_repeat_is_not_written_and_a_similar_memory_is_named(toolbox: Toolbox) -> None:
    first = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})

    again = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six."})
    nearly = toolbox.call("save_memory", {"content": "The staging database is refreshed every Monday at six o'clock."})

    assert again.data["outcome"] == "duplicate"
    assert again.text == f"known already, nothing written: {first.data['ref']} (read back; found by search)."
    assert nearly.data["outcome"] == "created"
    assert [one["ref"] for one in nearly.data["related"]] == [first.data["ref"]]
    assert f'supersedes=["{first.data["ref"]}"]' in nearly.text


def test_a_memory_is_saved_where_and_for_as_long_as_the_model_says(vault: Vault, toolbox: Toolbox) -> None:
    mara = {"content": "Mara is on call.", "path": "people/mara", "valid_until": "2999-03-01"}
    saved = toolbox.call("save_memory", mara)
    inbox = toolbox.call("save_memory", {"content": "Jonas is away.", "path": "memories/people/"})

    assert (saved.data["ref"], inbox.data["ref"]) == ("memory:people/mara", "memory:people/jonas-is-away")
    assert "valid_until: 2999-03-01" in vault.read("memories/people/mara.md").replace("'", "")
    for path in ("../mara", "/etc/../../x", ".git/config", "people/.hidden", "a:b", "a//b", "con\x00"):
        with pytest.raises(InvalidInputError, match=r"cannot be a path in memories/"):
            toolbox.call("save_memory", {"content": f"Mara likes {path!r}.", "path": path})
    past = toolbox.call("save_memory", {"content": "Mara was away.", "valid_until": "2020-03-01"})
    assert "left out of searches: no longer valid" in past.text
    with pytest.raises(InvalidInputError, match="valid_until must be a date such as 2026-03-01"):
        toolbox.call("save_memory", {"content": "Mara is away.", "valid_until": "soon"})


@pytest.mark.medium
def test_a_text_that_is_too_long_for_a_memory_is_refused_with_the_call_that_saves_it(
    vault: Vault, toolbox: Toolbox
) -> None:
    text = "Zebras graze at dawn.\n" * 5_000

    with pytest.raises(InvalidInputError, match=r"110,000 bytes.*: call save_article\(content=\.\.\., title='Zoo'\)$"):
        toolbox.call("save_memory", {"content": text, "title": "Zoo"})

    assert vault.notes() == []
    assert toolbox.call("save_article", {"content": text, "title": "Zoo"}).data["ref"] == "article:zoo"


def test_a_memory_is_not_saved_where_no_search_would_find_it(vault: Vault, toolbox: Toolbox) -> None:
    vault.write(".coignore", "memories/drafts/\n*secret*\n")

    for path, title in (("drafts/mara", "Mara"), ("drafts/", "Mara"), ("people/secret.md", "Mara"), ("", "A secret")):
        with pytest.raises(InvalidInputError, match=r"is excluded \(.*\): nothing was written$"):
            toolbox.call("save_memory", {"content": "Mara is on call.", "title": title, "path": path})

    assert not [*(vault.root / "memories").rglob("*.md")]
    assert toolbox.call("save_memory", {"content": "Mara is on call.", "path": "people/"}).data["outcome"] == "created"


def test_a_conflict_names_the_next_step_and_the_files_around_it(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/people/mara.md", "Mara is on call.")
    vault.write("memories/people/jonas.md", "Jonas is away.")

    with pytest.raises(NoteConflictError) as exists:
        toolbox.call("save_memory", {"content": "Mara is not on call.", "path": "people/mara.md"})
    with pytest.raises(NoteConflictError) as changed:
        toolbox.call("update_memory", {"ref": "memory:people/mara", "content": "Away.", "version": "0" * 8})

    assert str(exists.value) == (
        "memories/people/mara.md exists already; nothing was written. Next: read_note, then update_memory with the ref "
        "and version that it gives, or save_memory with another path. In memories/people: memories/people/jonas.md, "
        "memories/people/mara.md."
    )
    assert "Nothing was written" in str(changed.value)
    assert "Next: read_note, then update_memory with the ref and version" in str(changed.value)
    assert "memories/people/jonas.md, " in str(changed.value)
    assert vault.read("memories/people/mara.md") == "Mara is on call."


def test_an_update_changes_what_it_names_and_nothing_else(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/blue.md", "---\ntitle: Blue   # mine\nodd: kept\ntags: [a]\n---\nOld text.\n")

    result = toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text.", "importance": 0.9})

    text = vault.read("memories/blue.md")
    assert result.data["outcome"] == "updated"
    assert "title: Blue   # mine\nodd: kept\ntags: [a]\n" in text
    assert "importance: 0.9" in text
    assert text.endswith("---\nNew text.\n")


@pytest.mark.slow
@pytest.mark.medium
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


def test_an_agent_that_rewrites_a_users_text_becomes_its_author(
    vault: Vault, kb: KnowledgeBase, toolbox: Toolbox
) -> None:
    for before, after in {"user": "agent", "agent": "agent", "web": "web", "import": "import"}.items():
        vault.write("memories/blue.md", f"---\nprovenance: {before}\n---\nOld text.\n")
        toolbox.call("update_memory", {"ref": "memory:blue", "tags": ["pool"], "content": "Old text."})
        assert kb.note("memory:blue").provenance == before
        toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text."})
        assert kb.note("memory:blue").provenance == after
    vault.write("memories/blue.md", "---\ntitle: [broken\n---\nOld text.\n")
    toolbox.call("update_memory", {"ref": "memory:blue", "content": "New text."})

    assert vault.read("memories/blue.md") == "---\ntitle: [broken\n---\nNew text.\n"


class Meddled:
    """A knowledge base whose vault somebody else changes right after every write."""

    def __init__(self, kb: KnowledgeBase, meddle: Callable[[], object]) -> None:
        self.kb, self.meddle = kb, meddle

    def __getattr__(self, name: str) -> object:
        return getattr(self.kb, name)

    @property
    def local(self) -> object:
        return self

    def update(self, *arguments: object, **named: object) -> object:
        saved = self.kb.update(*arguments, **named)  # type: ignore[arg-type]
        self.meddle()
        return saved


@pytest.mark.medium
def test_a_receipt_says_if_the_file_no_longer_has_what_was_written(vault: Vault, kb: KnowledgeBase) -> None:
    before = "---\ntitle: Rule\ntags: [a]\n---\nWe never deploy on Fridays.\n"
    undone = Toolbox(Meddled(kb, lambda: vault.write("memories/rule.md", before)))  # type: ignore[arg-type]
    for change in ({"content": "We deploy on Fridays."}, {"title": "Another"}, {"tags": ["b"]}, {"importance": 0.9}):
        vault.write("memories/rule.md", before)
        answer = undone.call("update_memory", {"ref": "memory:rule", **change})
        assert answer.data["read_back"] is False
        assert "BUT the file does not hold all of this" in answer.text
        assert Toolbox(kb).call("update_memory", {"ref": "memory:rule", **change}).data["read_back"] is True
