"""Saving and changing notes never lose text."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, VaultError
from tests.command import run_together
from tests.folder import Vault


@pytest.mark.parametrize("empty", ["", " \n\t "])
def test_an_empty_text_does_not_replace_a_note(kb: KnowledgeBase, empty: str) -> None:
    saved = kb.remember("Worth keeping.")

    with pytest.raises(InvalidInputError, match="empty"):
        kb.update(saved.ref, empty)
    assert "Worth keeping." in kb.note(saved.ref).body


@pytest.mark.slow
def test_two_processes_that_change_one_note_lose_no_change(kb: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    saved = kb.remember("Counted by two.")
    script = """
import sys
from co_cli import KnowledgeBase
vault, data, ref, who = sys.argv[1:]
with KnowledgeBase.open(vault, data) as kb:
    for number in range(15):
        kb.update(ref, fields={f"{who}{number}": number})
"""
    run_together(script, *((vault.root, data_dir, saved.ref, who) for who in ("left", "right")))

    metadata = kb.note(saved.ref).metadata
    assert [key for who in ("left", "right") for n in range(15) if (key := f"{who}{n}") not in metadata] == []


def test_the_trash_does_not_lead_out_of_the_vault(kb: KnowledgeBase, vault: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    saved = kb.remember("Stays inside.")
    (vault.root / ".trash").symlink_to(elsewhere)

    with pytest.raises(VaultError):
        kb.forget(saved.ref)
    assert list(elsewhere.iterdir()) == []
    assert "Stays inside." in kb.note(saved.ref).body


def test_a_link_in_the_trash_is_not_restored(kb: KnowledgeBase, vault: Vault, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the safe code")
    planted = vault.root / ".trash" / "20260101T000000Z" / "memories"
    planted.mkdir(parents=True)
    (planted / "x.md").symlink_to(secret)

    assert kb.store.trashed() == []


@pytest.mark.medium
def test_text_that_tempts_a_pattern_takes_no_time(kb: KnowledgeBase, vault: Vault) -> None:
    """Each of these took minutes while a pattern tried every way to read it."""
    vault.write("memories/links.md", "](" * 10_000)
    assert kb.sync().added == ["memories/links.md"]
    assert kb.remember("字" * 20_000).outcome == "created"
