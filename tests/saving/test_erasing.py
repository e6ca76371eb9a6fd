"""`co forget --erase` removes a note from every file that co writes, and says where it may still be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.saves import SaveKey
from co_cli.hooks.given_notes import SessionNotes
from co_cli.notes.transcripts import SpokenTurn
from co_cli.saving.turns import KeptSession, keep_turns
from tests.command import Co
from tests.folder import Vault

REF = "memory:zanzimark-code"
TEXT = "The zanzimark of the harbour office is 4711."
KEPT = "We drink green tea before every deploy."


@pytest.fixture
def busy(co: Co, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Co:
    """A vault with a note that left traces wherever a note can."""
    monkeypatch.setenv("CO_QUERY_LOG", "on")
    monkeypatch.setenv("CO_LOG_LEVEL", "debug")
    co("remember", KEPT, "--title", "Tea")
    co("remember", "The zanzimark was 1234.", "--title", "Zanzimark code", "--tag", "zanzimark")
    co("edit", REF, "--body", TEXT)
    co("edit", REF, "--title", "Zanzimark of the harbour")
    co("search", "zanzimark")
    co("search", "green tea")
    co("search", "is there a zanzimark 4711")
    co("data", "backup")
    with KnowledgeBase.open() as kb:
        turns = [
            SpokenTurn("User", "Remember that the zanzimark of the harbour office is 4711."),
            SpokenTurn("Assistant", "Saved."),
            SpokenTurn("User", "How do I brew green tea?"),
        ]
        keep_turns(kb.vault, KeptSession("5b7c8c1e-0000-4000-8000-000000000001", title="A talk"), turns)
        kb.injected([{"ref": REF, "why": "match", "tokens": 9}], "talk", "run", "what is the zanzimark?", TEXT)
        kb.cited(f"It is 4711 ({REF}).", "talk", "run")
        kb.remember(TEXT, key=SaveKey("key", "request"))
    SessionNotes(str(data_dir), "claude-code", "talk").add([REF, "memory:tea"])
    (data_dir / "co.log.1").write_text('{"text": "memories/zanzimark-code.md: unknown field"}\n{"text": "other"}\n')
    (data_dir / "chat-history").write_text("\n# 2026-11-16 09:12\n+what is the zanzimark?\n")
    co("show", REF)
    with pytest.raises(AssertionError):
        assert_gone(data_dir, co)
    return co


def assert_gone(data_dir: Path, co: Co, *words: str) -> None:
    """No file of the vault or of the data folder has one of these words, in its name or in its bytes."""
    vault = Path(co("index", "status", "--json").json["vault"])
    for file in (file for folder in (vault, data_dir) for file in folder.rglob("*") if file.is_file()):
        text = f"{file.relative_to(data_dir.parent)}\n".encode() + file.read_bytes().lower()
        for word in words or ("zanzimark", "4711"):
            assert word.encode() not in text, f"{file} has {word}"


@pytest.mark.medium
def test_no_byte_of_an_erased_note_is_left_in_the_vault_or_the_data_folder(
    busy: Co, data_dir: Path, vault: Vault
) -> None:
    erased = busy("forget", "--erase", REF, "--yes")

    assert (erased.code, erased.err) == (0, "")
    assert erased.out.startswith(f"erased {REF}: ")
    assert_gone(data_dir, busy)
    assert busy("show", REF).code == 2
    assert [hit["ref"] for hit in busy("search", "green tea", "--json").json["hits"]][:1] == ["memory:tea"]
    assert busy("note", "history", "memory:tea").code == 0
    assert "green tea" in (data_dir / "activity.db").read_bytes().decode("latin-1"), "other searches stay in the log"
    [talk] = [path for path in vault.notes() if path.startswith("conversations/")]
    assert "brew green tea" in vault.read(talk)


@pytest.mark.medium
def test_a_note_in_the_trash_can_be_erased_and_forget_says_so(busy: Co, data_dir: Path) -> None:
    forgotten = busy("forget", REF)
    assert "`co forget --erase " in forgotten.out

    assert busy("forget", "--erase", REF, "--yes").code == 0
    assert_gone(data_dir, busy)
    assert busy("list", "--trash").out == "The trash is empty.\n"


@pytest.mark.medium
def test_erasing_a_note_that_was_moved_erases_its_earlier_names(busy: Co, data_dir: Path, vault: Vault) -> None:
    with KnowledgeBase.open() as kb:
        kb.update(REF, path="secrets/zanzimark-again.md")

    assert busy("forget", "--erase", "memory:secrets/zanzimark-again", "-y").code == 0
    assert_gone(data_dir, busy)


def test_erasing_asks_first_and_without_a_terminal_needs_yes(busy: Co, vault: Vault) -> None:
    before = vault.files()
    refused = busy("forget", "--erase", REF)

    assert refused.code == 2
    assert "--yes" in refused.err
    assert busy("forget", REF, "--yes").err.startswith("co: --yes is for --erase")
    assert vault.files() == before


def test_what_remains_is_named_with_the_command_that_removes_it(co: Co, vault: Vault, data_dir: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", vault.root, *arguments], check=True, capture_output=True)

    co("remember", TEXT, "--title", "Zanzimark code")
    vault.write("articles/rooms.md", "See [[zanzimark-code]] for the door.")
    git("init", "-q")
    git("add", "-A")
    git("-c", "user.name=Mara", "-c", "user.email=mara@example.org", "commit", "-qm", "Notes")

    erased = co("forget", "--erase", REF, "-y", "--json").json

    [note] = erased
    left = "\n".join(note["left"])
    assert note["ref"] == REF
    assert "git filter-repo --invert-paths --path memories/zanzimark-code.md" in left
    assert "article:rooms" in left
    assert "co data backup" in left
    json.dumps(erased)


def test_a_note_of_a_linked_folder_is_not_erased(co: Co, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "door.md").write_text(TEXT)
    co("add", str(folder))

    refused = co("forget", "--erase", str(folder / "door.md"), "-y")

    assert refused.code == 2
    assert "cannot be erased here" in refused.err
    assert (folder / "door.md").exists()
