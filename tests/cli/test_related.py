"""What becomes of memories that a save names as related: nothing, unless the caller supersedes them."""

from __future__ import annotations

from pathlib import Path

import pexpect
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, UnknownRefError
from co_cli.tools import Toolbox
from tests.cli.screen import terminal
from tests.command import Co
from tests.folder import Vault

OLD, NEW = "The door code is 1111.", "The door code is 2222."
OLD_REF, NEW_REF = "memory:the-door-code-is-1111", "memory:the-door-code-is-2222"


def test_superseding_is_written_into_the_new_note_only(kb: KnowledgeBase) -> None:
    old = kb.remember(OLD)
    before = Path(old.path).read_bytes()

    saved = kb.remember(NEW, on_related="supersede")

    assert kb.note(saved.ref).supersedes == (OLD_REF,)
    assert (saved.detail, saved.related) == (f"{NEW_REF}; it supersedes {OLD_REF}", ())
    assert Path(old.path).read_bytes() == before
    assert [hit.ref for hit in kb.search("door code").hits] == [saved.ref]
    assert OLD_REF in [hit.ref for hit in kb.search("door code", outdated=True).hits]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The user lives in Lisbon.", "I live in Porto now."),
        ("Port 8080 is used by the API.", "Port 8081 is used by the API."),
    ],
)
def test_another_value_for_the_same_thing_is_named_when_it_is_saved(kb: KnowledgeBase, old: str, new: str) -> None:
    saved = kb.remember(old)
    for text in ("Mara lives in Lisbon.", "Port 8082 is used by the metrics page.", "The user likes Porto."):
        kb.remember(text)

    assert [note.ref for note in kb.remember(new).related] == [saved.ref]


def test_an_article_more_hides_no_related_memory(kb: KnowledgeBase) -> None:
    old = kb.remember("door code is 1111")

    assert [one.ref for one in kb.remember("The door code is 2222").related] == [old.ref]


def test_what_was_superseded_is_not_named_again(kb: KnowledgeBase) -> None:
    kb.remember(OLD)
    second = kb.remember(NEW, on_related="supersede")

    assert [one.ref for one in kb.remember("The door code is 3333.").related] == [second.ref]


def test_a_repeat_that_names_what_it_supersedes_says_so_in_the_note(kb: KnowledgeBase, vault: Vault) -> None:
    kb.remember(OLD)
    kb.remember(NEW)

    chosen = kb.remember(NEW, supersedes=OLD_REF)
    again = kb.remember(NEW, supersedes=OLD_REF)

    assert (chosen.outcome, chosen.ref, again.outcome) == ("updated", NEW_REF, "duplicate")
    assert kb.note(NEW_REF).supersedes == (OLD_REF,)
    assert len(vault.notes()) == 2


def test_a_mistaken_choice_is_refused_before_anything_is_written(kb: KnowledgeBase, vault: Vault) -> None:
    with pytest.raises(UnknownRefError):
        kb.remember(NEW, supersedes="memory:nothing")
    with pytest.raises(InvalidInputError, match="keep, supersede, not 'merge'"):
        kb.remember(NEW, on_related="merge")  # type: ignore[arg-type]

    assert vault.notes() == []


def test_an_agent_reads_which_call_supersedes_and_makes_it(kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb)
    toolbox.call("save_memory", {"content": OLD})

    named = toolbox.call("save_memory", {"content": NEW})
    chosen = toolbox.call("save_memory", {"content": NEW, "supersedes": OLD_REF})

    assert named.data["related"][0]["ref"] == OLD_REF
    assert f'supersedes=["{OLD_REF}"]' in named.text
    assert (chosen.data["ref"], chosen.data["read_back"]) == (named.data["ref"], True)
    assert kb.note(chosen.data["ref"]).supersedes == (OLD_REF,)
    assert [hit["ref"] for hit in toolbox.call("recall_memory", {"query": "door code"}).data["hits"]] == [NEW_REF]


def test_the_command_prints_what_to_run_and_it_works(co: Co) -> None:
    co("remember", OLD)

    created, related = co("remember", NEW).out.splitlines()

    assert created == f"created {NEW_REF}"
    assert related.startswith(f"related: {OLD_REF} (75% the same words); to supersede it: co edit ")
    assert co(*related.partition(": co ")[2].split()).code == 0
    assert [hit["ref"] for hit in co("search", "door code", "--json").json["hits"]] == [NEW_REF]


def test_forgetting_says_which_note_is_valid_again_and_how_to_forget_both(co: Co) -> None:
    co("remember", OLD)
    co("remember", NEW, "--on-related", "supersede")

    forgotten, again = co("forget", NEW_REF).out.splitlines()

    assert forgotten.startswith(f"forgotten {NEW_REF}; `co note restore {NEW_REF}` restores it")
    assert again == f"valid again: {OLD_REF}, which it superseded; `co forget {OLD_REF}` forgets it, too"
    assert [hit["ref"] for hit in co("search", "door code", "--json").json["hits"]] == [OLD_REF]

    co("note", "restore", NEW_REF)
    both = co("forget", NEW_REF, OLD_REF)
    assert len(both.out.splitlines()) == 2
    assert "valid again" not in both.out
    assert co("search", "door code").code == 1


def test_what_another_note_supersedes_as_well_is_not_valid_again(kb: KnowledgeBase) -> None:
    kb.remember(OLD)
    kb.remember(NEW, supersedes=OLD_REF)
    newest = kb.remember("The door code is 3333.", supersedes=[OLD_REF, NEW_REF])

    assert kb.forget(NEW_REF).valid_again == ()
    assert kb.forget(newest.ref).valid_again == (OLD_REF,)


@pytest.mark.medium
@pytest.mark.parametrize(("key", "kept"), [("s", [NEW_REF]), ("k", [OLD_REF, NEW_REF])])
def test_in_a_terminal_a_key_decides(co: Co, kb: KnowledgeBase, key: str, kept: list[str]) -> None:
    co("remember", OLD)

    with terminal(co.folder, "remember", NEW, "--ask") as child:
        child.expect_exact("keep both")
        child.sendline(key)
        child.expect(pexpect.EOF)

    kb.sync()
    assert {hit.ref for hit in kb.search("door code").hits} == set(kept)
