"""A save says when an older memory says something else about the same, and does about it what it is told to."""

from __future__ import annotations

from pathlib import Path

import pexpect
import pytest

from co_cli.errors import InvalidInputError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.command import Co
from tests.upkeep.measuring import SETS, measure
from tests.upkeep.terminal import terminal
from tests.vault import Vault

OLD, NEW = "The door code is 1111.", "The door code is 2222."
OLD_REF = "memory:the-door-code-is-1111"


@pytest.mark.parametrize("name", SETS)
def test_hardly_anything_is_noticed_wrongly_and_most_is_noticed(name: str) -> None:
    found = measure(name)

    assert found.precision >= 0.97, found.false
    assert found.recall >= (0.65 if name.startswith("later") else 0.9), found.missed


def test_the_receipt_names_the_memory_that_says_something_else(kb: KnowledgeBase, vault: Vault) -> None:
    old = kb.remember(OLD)
    before = vault.files()

    saved = kb.remember(NEW)

    assert saved.outcome == "created"
    assert [(one.ref, one.title, one.why) for one in saved.related] == [
        (old.ref, "The door code is 1111", "says something else about the same")
    ]
    assert len(vault.files()) == len(before) + 1
    assert kb.search("door code").hits[0].ref in (old.ref, saved.ref)


def test_a_moved_person_is_noticed_whoever_links_them(kb: KnowledgeBase) -> None:
    old = kb.remember("[[Mara]] lives in [[Lisbon]].")

    assert [one.ref for one in kb.remember("Mara moved to Porto.").related] == [old.ref]


def test_a_short_text_under_the_same_title_is_about_the_same(kb: KnowledgeBase) -> None:
    old = kb.remember("1111", title="Door code")

    assert [one.ref for one in kb.remember("2222", title="Door code").related] == [old.ref]


def test_what_is_only_similar_is_not_named(kb: KnowledgeBase) -> None:
    for text in ("Mara likes tea.", "Invoice 12 was paid on 3 May.", "The port of the staging server is 8080."):
        kb.remember(text)

    others = ("Mara likes coffee.", "Invoice 13 was paid on 9 May.", "The port of the production server is 9090.")
    assert [kb.remember(text).related for text in others] == [(), (), ()]


def test_superseding_is_written_into_the_new_note_only(kb: KnowledgeBase, vault: Vault) -> None:
    old = kb.remember(OLD)
    before = Path(old.path).read_bytes()

    saved = kb.remember(NEW, on_related="supersede")

    assert kb.note(saved.ref).supersedes == (old.ref,)
    assert old.ref in saved.detail
    assert Path(old.path).read_bytes() == before
    assert [hit.ref for hit in kb.search("door code").hits] == [saved.ref]
    assert old.ref in [hit.ref for hit in kb.search("door code", outdated=True).hits]


def test_what_was_superseded_is_not_named_again(kb: KnowledgeBase) -> None:
    kb.remember(OLD)
    second = kb.remember(NEW, on_related="supersede")

    assert [one.ref for one in kb.remember("The door code is 3333.").related] == [second.ref]


def test_what_no_longer_holds_is_not_named(kb: KnowledgeBase) -> None:
    kb.remember(OLD, fields={"valid_until": "2020-01-01"})

    assert kb.remember(NEW).related == ()


def test_keeping_both_names_nothing(kb: KnowledgeBase) -> None:
    kb.remember(OLD)

    assert kb.remember(NEW, on_related="keep").related == ()


def test_merging_adds_to_the_old_note_and_changes_no_other_line(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/door.md", "---\n# mine\ntitle:   The door\n---\nThe door code is 1111.\n")
    kb.sync()

    saved = kb.remember(NEW, on_related="merge")

    assert (saved.ref, saved.outcome) == ("memory:door", "updated")
    text = vault.read("memories/door.md")
    assert text.startswith("---\n# mine\ntitle:   The door\n")
    assert text.endswith("---\nThe door code is 1111.\n\nThe door code is 2222.\n")
    assert vault.notes() == ["memories/door.md"]


def test_a_note_that_is_superseded_by_name_is_never_joined(kb: KnowledgeBase, vault: Vault) -> None:
    old = kb.remember("The nightly backup of the harbour database runs at dawn on the old server in the loft.")

    saved = kb.remember(
        "The nightly backup of the harbour database runs at dawn on the old server in the attic.", supersedes=old.ref
    )

    assert saved.outcome == "created"
    assert kb.note(saved.ref).supersedes == (old.ref,)


def test_a_mistaken_choice_is_refused_before_anything_is_written(kb: KnowledgeBase, vault: Vault) -> None:
    with pytest.raises(UnknownRefError):
        kb.remember(NEW, supersedes="memory:nothing")
    with pytest.raises(InvalidInputError, match="tell, keep, supersede, merge"):
        kb.remember(NEW, on_related="overwrite")  # type: ignore[arg-type]

    assert vault.notes() == []


def test_an_agent_is_told_and_chooses_by_saving_again(kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb)
    toolbox.call("save_memory", {"content": OLD})

    told = toolbox.call("save_memory", {"content": NEW})
    chosen = toolbox.call("save_memory", {"content": NEW, "supersedes": OLD_REF})

    assert told.data["related"][0]["ref"] == OLD_REF
    assert f'supersedes=["{OLD_REF}"]' in told.text
    assert chosen.data["ref"] == told.data["ref"]
    assert kb.note(chosen.data["ref"]).supersedes == (OLD_REF,)
    assert [hit["ref"] for hit in toolbox.call("recall_memory", {"query": "door code"}).data["hits"]] == [
        told.data["ref"]
    ]


def test_an_agent_can_choose_at_once(kb: KnowledgeBase) -> None:
    toolbox = Toolbox(kb)
    toolbox.call("save_memory", {"content": OLD})

    done = toolbox.call("save_memory", {"content": NEW, "on_related": "supersede"})

    assert kb.note(done.data["ref"]).supersedes == (OLD_REF,)
    assert "BUT" not in done.text


def test_the_command_prints_what_to_run_and_it_works(co: Co) -> None:
    co("remember", OLD)

    said = co("remember", NEW).out.splitlines()

    assert said[1] == f"{OLD_REF} says something else about the same: The door code is 1111"
    command = said[2].split()
    assert command[0] == "co"
    assert co(*command[1:]).code == 0
    assert [hit["ref"] for hit in co("search", "door code", "--json").json["hits"]] == ["memory:the-door-code-is-2222"]


def test_the_command_takes_the_choice_as_an_option(co: Co) -> None:
    co("remember", OLD)

    assert co("remember", NEW, "--supersedes", OLD_REF, "--json").json["related"] == []
    assert "memory:the-door-code-is-2222" in co("remember", "The door code is 3333.", "--on-related", "supersede").out
    assert (
        co("remember", "The door code is 4444.", "--json").json["related"][0]["ref"] == "memory:the-door-code-is-3333"
    )


def test_asking_needs_somebody_to_ask(co: Co) -> None:
    ran = co("remember", NEW, "--ask")

    assert ran.code == 2
    assert "--on-related" in ran.err


@pytest.mark.parametrize(("key", "kept"), [("s", ["2222"]), ("k", ["1111", "2222"]), ("m", ["1111"])])
def test_in_a_terminal_a_key_decides(co: Co, kb: KnowledgeBase, key: str, kept: list[str]) -> None:
    co("remember", OLD)

    with terminal(co.folder, "remember", NEW, "--ask") as child:
        child.expect_exact("keep both")
        child.sendline(key)
        child.expect(pexpect.EOF)

    kb.sync()
    refs = {hit.ref for hit in kb.search("door code").hits}
    assert refs == {f"memory:the-door-code-is-{code}" for code in kept}


def test_in_another_tier_the_command_works_there(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CO_VAULT")
    (tmp_path / "project" / ".co-cli").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    co("remember", OLD, "--tier", "user")

    said = co("remember", NEW, "--tier", "user").out.splitlines()

    assert said[1].startswith(f"user:{OLD_REF} says something else")
    assert co(*said[2].split()[1:]).code == 0
    assert [hit["ref"] for hit in co("search", "door code", "--json").json["hits"]] == [
        "user:memory:the-door-code-is-2222"
    ]


@pytest.mark.parametrize(
    ("old", "new", "noticed"),
    [
        ("Mara prefers tea, not coffee.", "Mara prefers coffee.", True),
        ("Prefers coffee.", "Prefers tea, not coffee.", True),
        ("Parcels go to Lisbon, not to Porto.", "Parcels go to Porto.", True),
        ("Mara prefers tea, not coffee.", "Mara prefers cocoa.", False),
        ("Mara prefers tea, not coffee.", "Ben prefers coffee.", False),
        ("The red key opens the door, not the gate.", "The blue key opens the gate.", False),
        ("Mara bought tea, not coffee.", "Mara bought coffee.", False),
    ],
)
def test_what_one_says_is_not_so_and_the_other_says_is_so_is_noticed(
    kb: KnowledgeBase, old: str, new: str, noticed: bool
) -> None:
    kept = kb.remember(old)

    assert [one.ref for one in kb.remember(new).related] == ([kept.ref] if noticed else [])
