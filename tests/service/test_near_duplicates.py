"""Saving what is there already joins the note that says it, says which, and never loses a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.twins import words_of
from co_cli.settings import load_settings
from tests.vault import Vault

BACKUP = "The nightly backup of the harbour database runs at dawn on the old server in the loft."


def test_the_same_words_again_are_a_duplicate_and_write_nothing(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP, tags=["ops"])
    before = vault.read("memories/" + Path(first.path).name)

    again = kb.remember(f"**{BACKUP.upper()}**", tags=["ops"])

    assert (again.outcome, again.ref) == ("duplicate", first.ref)
    assert first.ref in again.detail
    assert vault.read("memories/" + Path(first.path).name) == before
    assert len(vault.notes()) == 1


@pytest.mark.parametrize(
    "new",
    [
        BACKUP.replace("at dawn", "at sunrise"),
        BACKUP.replace(".", ", upstairs."),
        BACKUP.replace("nightly ", ""),
        "Remember: " + BACKUP,
    ],
)
def test_a_near_duplicate_joins_the_note_and_no_word_of_either_is_lost(
    kb: KnowledgeBase, vault: Vault, new: str
) -> None:
    first = kb.remember(BACKUP)

    second = kb.remember(new)

    assert second.ref == first.ref
    assert second.outcome in ("updated", "duplicate")
    assert first.ref in second.detail
    assert len(vault.notes()) == 1
    assert {*words_of(BACKUP), *words_of(new)} <= set(words_of(kb.note(first.ref).body))
    assert kb.search(words_of(new)[-1]).hits[0].ref == first.ref


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "The backup of the harbour database runs at 3 in the loft.",
            "The backup of the harbour database runs at 4 in the loft.",
        ),
        ("Deploy to the blue pool on Fridays at noon.", "Never deploy to the blue pool on Fridays at noon."),
        ("Bex likes the green kettle.", "Anselm sends invoices on Mondays."),
    ],
)
def test_another_fact_is_another_note(kb: KnowledgeBase, vault: Vault, one: str, other: str) -> None:
    assert kb.remember(one).outcome == "created"
    assert kb.remember(other).outcome == "created"
    assert len(vault.notes()) == 2


def test_new_tags_of_a_duplicate_are_added_to_the_note(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP, tags=["ops"])

    again = kb.remember(BACKUP, tags=["Database", "ops"])

    assert again.outcome == "updated"
    assert "database" in again.detail
    assert kb.note(first.ref).tags == ("ops", "database")


NEAR = BACKUP.replace("at dawn", "at sunrise")
FAR = "A backup of the harbour database runs on some server in the loft."


@pytest.mark.parametrize(
    ("threshold", "second", "notes"), [("1", NEAR, 2), ("0.9", NEAR, 1), ("0.9", FAR, 2), ("0.5", FAR, 1)]
)
def test_the_threshold_is_a_setting(vault: Vault, data_dir: Path, threshold: str, second: str, notes: int) -> None:
    environ = {"CO_KNOWLEDGE_DUPLICATE_THRESHOLD": threshold}
    settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)}, environ)

    with KnowledgeBase.open(settings=settings) as kb:
        kb.remember(BACKUP)
        kb.remember(second)

    assert len(vault.notes()) == notes


def test_a_near_duplicate_is_found_among_many_notes_of_the_same_words(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(130):
        vault.write(f"memories/{number}.md", f"{BACKUP} Row {number}: {'and so on ' * (number % 7)}of {number * 31}.")
    kb.sync()
    first = kb.remember(BACKUP)

    second = kb.remember(BACKUP.replace("at dawn", "at sunrise"))

    assert (first.outcome, second.outcome, second.ref) == ("created", "updated", first.ref)


def test_a_near_duplicate_of_another_vault_is_no_twin(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    other = Vault(tmp_path / "other")
    for number in range(60):
        other.write(f"memories/{number}.md", BACKUP)
    with KnowledgeBase.open(vault=other.root, data_dir=data_dir) as kb:
        kb.sync()

    with KnowledgeBase.open(vault=vault.root, data_dir=data_dir) as kb:
        first = kb.remember(BACKUP)
        second = kb.remember(BACKUP.replace("at dawn", "at sunrise"))

    assert (first.outcome, second.ref) == ("created", first.ref)


def test_a_twin_that_was_edited_meanwhile_keeps_the_edit(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP)
    path = "memories/" + Path(first.path).name
    vault.write(path, vault.read(path) + "\nSince March it also copies the pictures to the second shed.\n")

    second = kb.remember(BACKUP.replace("at dawn", "at sunrise"))

    saved = " ".join(vault.read(note) for note in vault.notes())
    assert "second shed" in saved
    assert "sunrise" in saved
    assert "at dawn" in saved
    assert second.outcome in ("created", "updated")


def test_a_twin_with_broken_frontmatter_loses_nothing(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/backup.md", f"---\ntitle: [oops\n---\n{BACKUP}\n")
    kb.sync()

    saved = kb.remember(BACKUP.replace("at dawn", "at sunrise"), tags=["ops"])

    assert saved.outcome == "created"
    assert vault.read("memories/backup.md") == f"---\ntitle: [oops\n---\n{BACKUP}\n"
    assert len(vault.notes()) == 2


def test_a_twin_whose_file_is_gone_is_no_twin(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP)
    vault.delete("memories/" + Path(first.path).name)

    assert kb.remember(BACKUP).outcome == "created"
    assert len(vault.notes()) == 1


def test_joining_keeps_every_other_byte_of_the_note(kb: KnowledgeBase, vault: Vault) -> None:
    head = "---\r\n# mine\r\ntitle:   'Backup'  # quoted\r\nunknown: {a: 1}\r\n---\r\n"
    vault.write("memories/backup.md", head + BACKUP + "\r\n")
    kb.sync()

    saved = kb.remember(BACKUP.replace(".", ", upstairs."))

    assert saved.outcome == "updated"
    text = vault.read("memories/backup.md")
    kept = [line for line in text.split("\r\n") if not line.startswith("updated: ")]
    assert "\r\n".join(kept) == head + BACKUP.replace(".", ", upstairs.") + "\r\n"


def test_an_empty_text_is_refused(kb: KnowledgeBase, vault: Vault) -> None:
    for text in ("", "  \n", "\0"):
        with pytest.raises(InvalidInputError):
            kb.remember(text)
    assert vault.notes() == []


def test_processes_that_save_the_same_words_at_once_make_one_note(vault: Vault, data_dir: Path) -> None:
    places = ["--vault", str(vault.root), "--data-dir", str(data_dir)]
    command = [sys.executable, "-m", "co_cli", "remember", BACKUP, *places]

    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [writer.communicate()[0] for writer in writers]

    assert sorted(line.split()[0] for line in said) == ["created", "duplicate:", "duplicate:", "duplicate:"]
    assert len(vault.notes()) == 1


def test_words_that_an_agent_adds_to_a_note_of_the_user_are_not_said_to_be_the_user_s(
    kb: KnowledgeBase, vault: Vault
) -> None:
    first = kb.remember("The staging database is refreshed every Monday at six in the morning.", provenance="user")

    joined = kb.remember(
        "The staging database is refreshed every Monday at six o'clock in the morning.", provenance="agent"
    )
    again = kb.remember("The staging database is refreshed every Monday at six in the morning.", provenance="agent")

    assert (joined.ref, joined.outcome, again.outcome) == (first.ref, "updated", "duplicate")
    assert kb.note(first.ref).provenance == "agent"
