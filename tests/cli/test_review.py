"""`co note review` finds what went stale, does nothing by itself, and does what a key says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pexpect
import pytest

from co_cli.activity import Activity
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.cli.screen import terminal
from tests.command import Co
from tests.folder import Vault

TOKEN = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
BACKUP = "The nightly backup of the harbour database runs at dawn on the old server in the {}."


def memory(vault: Vault, name: str, text: str, *fields: str) -> None:
    head = "".join(f"{field}\n" for field in ("created: 2024-03-01", *fields))
    vault.write(f"memories/{name}.md", f"---\n{head}---\n{text}\n")


def findings(co: Co, *arguments: str) -> list[dict[str, Any]]:
    ran = co("note", "review", "--json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json["findings"]


def found(co: Co, kind: str) -> list[list[str]]:
    return [one["refs"] for one in findings(co, "--only", kind)]


def test_near_duplicates_are_found_with_the_older_one_first(co: Co, vault: Vault) -> None:
    memory(vault, "new", BACKUP.format("attic"), "created: 2025-01-01")
    vault.write("memories/old.md", f"---\ncreated: 2023-01-01\n---\n{BACKUP.format('loft')}\n")
    vault.write("articles/one.md", "The same words.\n")
    vault.write("articles/two.md", "The **same** words!\n")
    memory(vault, "other", "Bex likes the green kettle.")

    refs = found(co, "near-duplicate")

    assert ["memory:old", "memory:new"] in refs
    assert sorted(map(sorted, refs)) == [["article:one", "article:two"], ["memory:new", "memory:old"]]


def test_memories_about_the_same_thing_may_contradict_each_other(co: Co, vault: Vault) -> None:
    memory(vault, "old", "The weekly team meeting is on Tuesday at ten.")
    vault.write("memories/new.md", "---\ncreated: 2025-01-01\n---\nTeam meeting every week: Wednesday at nine.\n")
    memory(vault, "done", "The weekly team meeting is on Monday at ten.", "superseded_by: memory:old")
    memory(vault, "other", "Bex likes the green kettle.")

    [conflict] = findings(co, "--only", "possible-conflict")

    assert conflict["refs"] == ["memory:old", "memory:new"]
    assert "is close in meaning to memory:new" in conflict["reason"]
    assert conflict["actions"] == ["forget", "supersede", "edit", "keep"]


def test_expired_notes_and_chains_that_lead_nowhere_are_found(co: Co, vault: Vault) -> None:
    memory(vault, "visa", "The visa holds.", "valid_until: 2025-06-30")
    memory(vault, "pass", "The pass holds.", "valid_until: 2999-06-30")
    memory(vault, "lost", "A rule.", "supersedes: [memory:pass, '[[gone]]']", "superseded_by: memory:nowhere")

    assert [(one["refs"], one["reason"]) for one in findings(co, "--only", "expired")] == [
        (["memory:visa"], "valid until 2025-06-30")
    ]
    chains = findings(co, "--only", "superseded")
    assert [one["reason"] for one in chains] == [
        "supersedes names 'gone', which does not exist",
        "superseded_by names 'memory:nowhere', which does not exist",
    ]


def test_a_link_to_a_picture_that_is_there_is_not_broken(co: Co, vault: Vault) -> None:
    vault.write("attachments/Map.png", b"\x89PNG")
    vault.write("articles/img/tide.svg", b"<svg/>")
    (vault.root.parent / "outside.png").write_bytes(b"not of this vault")
    vault.write("articles/plan.md", "# Plan\n\n![[map.png]] ![](img/tide.svg) ![[gone.png]] [x](../../outside.png)\n")
    co("index", "sync")

    assert [one["reason"] for one in findings(co, "--only", "broken-link")] == [
        "[[gone.png]] does not exist",
        "[[../../outside.png]] does not exist",
    ]
    links = {one["target"]: one["there"] for one in co("show", "article:plan", "--json").json["links"]}
    assert links == {"map.png": True, "gone.png": False, "img/tide.svg": True, "../../outside.png": False}
    assert "links: map.png, gone.png (not there), img/tide.svg" in " ".join(co("show", "article:plan").out.split())


def test_a_secret_is_found_in_text_and_fields_and_never_printed(co: Co, vault: Vault) -> None:
    memory(vault, "bot", f"The bot uses {TOKEN} at night.")
    memory(vault, "field", "Something.", f"api: {TOKEN[:-1]}6", f"title: Token {TOKEN}")

    printed = co("note", "review").out + co("note", "review", "--json").out

    assert found(co, "secret")[:1] == [["memory:bot"]]
    assert ["memory:field"] in found(co, "secret")
    assert TOKEN not in printed
    assert TOKEN[:-1] not in printed
    assert "ghp_…" in printed


def test_oversized_memories_and_pinned_notes_are_found(co: Co, vault: Vault) -> None:
    memory(vault, "long", "A long story about the harbour. " * 200)
    memory(vault, "profile", "Mara is the user. " * 300, "loading: always")
    vault.write("articles/book.md", "A long story about the harbour. " * 200)

    assert found(co, "oversized") == [["memory:long"], ["memory:profile"]]


def test_oversized_names_the_always_loaded_notes_that_are_dropped_and_not_those_that_are_loaded(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_CONTEXT_TOKENS", "1000")
    for day, (name, importance) in enumerate((("vital", 0.9), ("old", 0.5), ("middle", 0.5), ("new", 0.5)), 1):
        fields = f"loading: always\nimportance: {importance}\ncreated: 2026-01-0{day}"
        memory(vault, name, f"Mara likes the {name} harbour. " * 50, fields)

    given = co("note", "context", "--json").json["report"]

    loaded = [note["ref"] for note in given["injected"]]
    assert sorted(found(co, "oversized")) == sorted([note["ref"]] for note in given["cut"])
    assert loaded[:2] == ["memory:vital", "memory:new"]
    assert ["memory:old"] in found(co, "oversized")


def test_what_no_search_ever_showed_is_an_orphan_unless_it_is_linked(
    co: Co, vault: Vault, kb: KnowledgeBase, data_dir: Path
) -> None:
    for name, text in (("oak", "Oaks live long."), ("elm", "Elms are [[ash]]."), ("ash", "Ashes."), ("fir", "Firs.")):
        memory(vault, name, text)
    kb.sync()
    with Activity(kb.settings, kb.root) as activity:
        activity.searched(kb.search("oaks", backend="fts5"))
        assert activity.flush()

    assert found(co, "orphan") == [["memory:fir"]]
    assert sorted(found(co, "never-recalled")) == [["memory:ash"], ["memory:elm"]]


def test_in_a_pipe_nothing_is_asked_and_nothing_changes(co: Co, vault: Vault) -> None:
    memory(vault, "visa", "The visa holds.", "valid_until: 2025-06-30")
    before = {path: vault.read(path) for path in vault.notes()}

    ran = co("note", "review", stdin="f")

    assert "memory:visa" in ran.out
    assert {path: vault.read(path) for path in vault.notes()} == before


@pytest.mark.medium
def test_keys_forget_supersede_keep_and_leave(co: Co, vault: Vault, kb: KnowledgeBase) -> None:
    memory(vault, "a-old", "The door code is 1111.")
    vault.write("memories/a-new.md", "---\ncreated: 2025-01-01\n---\nThe door code is 2222.\n")
    memory(vault, "visa", "The visa holds.", "valid_until: 2025-06-30")
    memory(vault, "pass", "The pass holds.", "valid_until: 2025-07-30")
    memory(vault, "link", "See [[nowhere]].")

    with terminal(co.folder, "note", "review") as child:
        child.expect_exact("near-duplicate")
        child.expect_exact("[q] quit")
        child.sendline("s")
        child.expect_exact("supersedes memory:a-old")
        child.expect_exact("[q] quit")
        child.sendline("f")
        child.expect_exact("forgotten")
        child.expect_exact("[q] quit")
        child.sendline("x")  # no key of this finding: nothing happens
        child.sendline("k")
        child.expect_exact("will not be asked again")
        child.expect_exact("[q] quit")
        child.sendline("q")
        child.expect(pexpect.EOF)

    assert kb.note("memory:a-new").supersedes == ("memory:a-old",)
    assert "memories/a-old.md" in vault.notes()
    left = findings(co)
    assert [(one["kind"], one["refs"]) for one in left] == [("broken-link", ["memory:link"])]
    assert len([path for path in vault.notes() if path in ("memories/visa.md", "memories/pass.md")]) == 1


@pytest.mark.medium
def test_a_kept_finding_comes_back_when_it_is_about_something_else(co: Co, vault: Vault) -> None:
    memory(vault, "visa", "The visa holds.", "valid_until: 2025-06-30")
    with terminal(co.folder, "note", "review") as child:
        child.expect_exact("[q] quit")
        child.sendline("k")
        child.expect(pexpect.EOF)
    assert co("note", "review", "--json").json["dismissed"] == 1

    memory(vault, "visa", "The visa holds.", "valid_until: 2025-09-30")

    assert found(co, "expired") == [["memory:visa"]]


@pytest.mark.medium
def test_the_editor_opens_for_a_finding(co: Co, vault: Vault) -> None:
    memory(vault, "link", "See [[nowhere]].")
    with terminal(co.folder, "note", "review", EDITOR="sed -i s/nowhere/link/") as child:
        child.expect_exact("[q] quit")
        child.sendline("e")
        child.expect(pexpect.EOF)

    assert found(co, "broken-link") == []


def test_everything_else_is_reviewed_where_activity_db_cannot_be_used(co: Co, vault: Vault, data_dir: Path) -> None:
    memory(vault, "oak", "Oaks live long, see [[elm]].")
    (data_dir / "activity.db").mkdir(parents=True)

    ran = co("note", "review")

    assert ran.code == 0, ran.err
    assert "[[elm]] does not exist" in ran.out
    assert "proposed was skipped" in ran.out + ran.err
    assert found(co, "broken-link") == [["memory:oak"]]


def test_a_damaged_list_of_kept_findings_only_asks_again(co: Co, vault: Vault, data_dir: Path) -> None:
    memory(vault, "visa", "The visa holds.", "valid_until: 2025-06-30")
    data_dir.mkdir()
    for damage in ("", "{", "[]", '{"x": 1}'):
        (data_dir / "review.json").write_text(damage)
        assert found(co, "expired") == [["memory:visa"]], damage
