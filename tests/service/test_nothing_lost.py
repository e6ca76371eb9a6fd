"""Saving, joining and changing never lose what somebody wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.errors import InvalidInputError, VaultError
from tests.vault import Vault


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The parser is written in C.", "The parser is written in C++."),
        ("Scripts begin with set -e here.", "Scripts begin with set +e here."),
        ("Alert when load < limit on blue.", "Alert when load > limit on blue."),
        ("The sensor reads 5 metres at dawn.", "The sensor reads -5 metres at dawn."),
        ("Lunch may cost $40 a head.", "Lunch may cost €40 a head."),
        ("Compare refs with == in the store.", "Compare refs with != in the store."),
        ("✅ deploy on a quiet day", "❌ deploy on a quiet day"),
        ("Green follows after ten quiet minutes.", "Green follows after twenty quiet minutes."),
        ("We deploy on Tuesday morning.", "We deploy on Thursday morning."),
    ],
)
def test_a_sign_or_a_number_makes_another_fact(kb: KnowledgeBase, vault: Vault, one: str, other: str) -> None:
    kb.remember(one)
    saved = kb.remember(other)

    written = "\n".join(kb.note(row.ref).body for row in kb.notes())
    assert saved.outcome != "duplicate"
    assert one in written
    assert other in written


def test_markdown_of_the_old_text_stays_when_a_longer_wording_joins(kb: KnowledgeBase, vault: Vault) -> None:
    old = "- [ ] Blue takes traffic first, see [[pool rules]] and `a->b` before anything else happens"
    vault.write("memories/pool.md", old + "\n")
    kb.sync()

    kb.remember("Blue takes traffic first, see pool rules and a b before anything else happens at all")

    assert old in vault.read("memories/pool.md")


def test_bytes_that_are_not_utf8_survive_a_near_duplicate(kb: KnowledgeBase, vault: Vault) -> None:
    before = b"The caf\xe9 on the quay opens at nine and closes when the last boat is in.\n"
    path = vault.root / "memories" / "cafe.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    kb.sync()

    kb.remember("The café on the quay opens at nine and closes when the very last boat is in.")

    assert any(file.read_bytes().startswith(before.rstrip(b"\n")) for file in path.parent.glob("*.md"))


def test_what_a_duplicate_says_besides_its_text_is_taken_or_named(kb: KnowledgeBase) -> None:
    text = "Blue takes traffic first, then green."
    first = kb.remember(text, category="fact")
    again = kb.remember(text, title="Order of the pools", category="decision", fields={"importance": 0.9})

    note = kb.note(first.ref)
    assert note.metadata["importance"] == 0.9
    assert note.category == "fact"
    assert "category" in again.detail


def test_tags_stay_as_they_are_written_when_one_joins(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/pool.md", "---\ntags: [Deploy, Ops]\n---\nBlue takes traffic first, then green. #Pool\n")
    kb.sync()

    kb.remember("Blue takes traffic first, then green. #Pool", tags=["new"])

    assert "tags: [Deploy, Ops, new]\n" in vault.read("memories/pool.md")


@pytest.mark.parametrize("empty", ["", " \n\t "])
def test_an_empty_text_does_not_replace_a_note(kb: KnowledgeBase, empty: str) -> None:
    saved = kb.remember("Worth keeping.")

    with pytest.raises(InvalidInputError, match="empty"):
        kb.update(saved.ref, empty)
    assert "Worth keeping." in kb.note(saved.ref).body


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
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(vault.root), str(data_dir), saved.ref, who])
        for who in ("left", "right")
    ]
    assert [process.wait(60) for process in running] == [0, 0]

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


def test_refs_of_odd_names_lead_back_to_their_own_note(kb: KnowledgeBase, vault: Vault) -> None:
    names = ["a.markdown", "a.markdown.md", "x.md", "x.md.md", "a#L1.md", "a.md"]
    for name in names:
        vault.write(f"memories/{name}", f"This is {name} itself.")
    kb.sync()

    for row in kb.notes():
        assert kb.note(row.ref).path == Path(row.path).relative_to(vault.root.resolve()).as_posix()
    assert len(kb.notes()) == len(names)


def test_text_that_tempts_a_pattern_takes_no_time(kb: KnowledgeBase, vault: Vault) -> None:
    """Each of these took minutes while a pattern tried every way to read it."""
    vault.write("memories/links.md", "](" * 10_000)
    assert kb.sync().added == ["memories/links.md"]
    assert kb.remember("字" * 20_000).outcome == "created"
