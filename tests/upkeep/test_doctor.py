"""`doctor` finds what differs between index and files, names a fix, and with `fix` applies it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.upkeep.doctor import Finding
from tests.damage import VECTOR_DAMAGE, spoil_table, spoil_vectors
from tests.folder import Vault


@pytest.fixture
def healthy(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    for name in ("oak", "elm", "ash"):
        file = vault.write(f"memories/{name}.md", f"The {name} is a tree.")
        os.utime(file, (1_700_000_000, 1_700_000_000))
    vault.write("articles/trees.md", "# Trees\n\nMany.\n\n## Old ones\n\nFew.")
    kb.sync()
    return kb


def by_hand(kb: KnowledgeBase, statement: str) -> None:
    """What another program might do to the file."""
    with kb.engine.database.writing() as connection:
        connection.execute(statement)
    kb.close()


def troubles(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level != "ok"]


def errors(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "error" and not finding.fixed]


def counts_are_right(kb: KnowledgeBase) -> bool:
    with kb.engine.database.reading() as connection:
        counted = connection.execute("select sum(notes), sum(passages) from vaults").get
        real = connection.execute("select (select count(*) from docs), (select count(*) from passages)").get
    return counted == real


def test_a_healthy_vault_has_no_findings(healthy: KnowledgeBase) -> None:
    findings = healthy.doctor()

    assert troubles(findings) == []
    assert {"sqlite", "vault", "index", "freshness", "content"} <= {finding.check for finding in findings}


DRIFT = {
    "a row missing from the word index": "delete from docs_fts where rowid = (select min(id) from passages)",
    "a missing vector": "delete from docs_vec where rowid = (select min(id) from passages)",
    "an edited passage": "update passages set body = 'A zebra.' where id = (select min(id) from passages)",
    "a deleted passage": "delete from passages where id = (select min(id) from passages)",
    "a note with another hash": "update docs set hash = 'x' where path = 'memories/oak.md'",
}


@pytest.mark.parametrize("statement", DRIFT.values(), ids=DRIFT)
def test_drift_in_the_index_is_found_and_fixed(healthy: KnowledgeBase, statement: str) -> None:
    by_hand(healthy, statement)

    findings = errors(healthy.doctor())
    assert findings
    assert all(finding.fix for finding in findings)

    fixed = healthy.doctor(fix=True)
    assert errors(fixed) == []
    assert any(finding.fixed for finding in fixed)
    assert troubles(healthy.doctor()) == []
    assert {hit.ref for hit in healthy.search("tree", backend="fts5").hits} == {
        "memory:oak",
        "memory:elm",
        "memory:ash",
        "article:trees#L1-3",
    }
    assert counts_are_right(healthy)


def test_a_note_without_any_known_word_has_no_vector_and_is_no_problem(
    kb: KnowledgeBase, vault: Vault, caplog: pytest.LogCaptureFixture
) -> None:
    vault.write("memories/party.md", "---\ntitle: 🎉\n---\n🎉🎉🎉 zzzqqq\n")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    kb.sync()

    with caplog.at_level(logging.WARNING, "co_cli"):
        assert kb.search("zzzqqq").degraded == []
    assert caplog.records == []
    assert troubles(kb.doctor()) == []


def test_files_changed_since_the_last_sync_are_counted_and_synced(healthy: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/fir.md", "The fir is a tree.")
    vault.delete("memories/elm.md")

    (finding, *_) = [finding for finding in healthy.doctor() if finding.check == "freshness"]
    assert (finding.level, finding.fix) == ("warning", "co index sync")
    assert finding.text.endswith(": 2")

    healthy.doctor(fix=True)
    assert troubles(healthy.doctor()) == []
    assert counts_are_right(healthy)


def test_notes_that_cannot_be_read_are_named_with_a_cure(healthy: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/blob.md", b"\0\0")
    vault.write("memories/broken.md", "---\ntitle: [\n---\nA tree.")
    vault.path("memories/link.md").symlink_to("oak.md")
    healthy.sync()

    texts = [finding.text for finding in troubles(healthy.doctor())]

    assert any("memories/blob.md" in text and "not a text file" in text for text in texts)
    assert any("memories/broken.md" in text and "line " in text for text in texts)
    assert errors(healthy.doctor()) == []  # the index is as it should be


@pytest.mark.skipif(os.name == "nt", reason="a path is limited otherwise there")
def test_a_folder_that_no_permission_keeps_closed_has_its_own_reason(healthy: KnowledgeBase, vault: Vault) -> None:
    folder = os.open(vault.path("memories"), os.O_RDONLY)
    for _ in range(20):  # longer together than any path may be
        os.mkdir("x" * 250, dir_fd=folder)
        before, folder = folder, os.open("x" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(before)
    os.close(folder)
    healthy.sync()

    (found,) = troubles(healthy.doctor())

    assert found.check.endswith("unread entries")
    assert "folder cannot be read: File name too long" in found.text


@pytest.mark.parametrize("first_page", [1, 2, 3, 10, 30])
def test_doctor_fix_rebuilds_a_damaged_search_db(healthy: KnowledgeBase, data_dir: Path, first_page: int) -> None:
    healthy.close()
    path = data_dir / "search.db"
    held = bytearray(path.read_bytes())
    for place in range(first_page * 4096, len(held), 4096):
        held[place : place + 64] = b"\xff" * 64
    path.write_bytes(held)

    fixed = healthy.doctor(fix=True)

    assert errors(fixed) == []
    assert any(finding.fixed for finding in fixed)
    assert errors(healthy.doctor()) == []
    assert len(healthy.search("tree", backend="fts5").hits) == 4


@pytest.mark.parametrize("table", ["vaults", "docs", "passages", "folders", "knowledge_files", "docs_fts_data"])
def test_doctor_fix_rebuilds_a_damaged_table(healthy: KnowledgeBase, data_dir: Path, table: str) -> None:
    healthy.close()
    spoil_table(data_dir / "search.db", table)

    assert errors(healthy.doctor())

    assert errors(healthy.doctor(fix=True)) == []
    assert all("was moved aside" in finding.text for finding in troubles(healthy.doctor()))
    assert len(healthy.search("tree", backend="fts5").hits) == 4


@pytest.mark.parametrize("damage", VECTOR_DAMAGE.values(), ids=VECTOR_DAMAGE)
def test_doctor_reads_every_vector_and_rebuilds_damaged_ones(
    healthy: KnowledgeBase, data_dir: Path, damage: str
) -> None:
    healthy.close()
    spoil_vectors(data_dir / "search.db", damage)

    [found] = errors(healthy.doctor())

    assert "docs_vec" in found.text
    assert errors(healthy.doctor(fix=True)) == []
    assert errors(healthy.doctor()) == []
    assert healthy.search("tree").degraded == []


def test_without_a_search_db_the_doctor_still_answers(vault: Vault, data_dir: Path) -> None:
    data_dir.write_text("in the way")

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        findings = kb.doctor(fix=True)

    assert [finding.check for finding in errors(findings)] == ["index"]
    assert errors(findings)[0].fix


def test_files_that_changed_since_the_last_sync_are_checked_as_they_are_now(
    healthy: KnowledgeBase, vault: Vault
) -> None:
    vault.write("memories/broken.md", "---\ntags: [a\n---\nBroken.")
    vault.write("memories/oak.md", "\0 not text")
    vault.write("memories/key.md", f"The key is ghp_{'a1B2' * 9}.")

    findings = healthy.doctor()

    texts = [finding.text for finding in troubles(findings)]
    assert [text.partition(":")[0] for text in texts if "broken.md" in text] == ["memories/broken.md"]
    assert "memories/oak.md is not indexed: not a text file" in texts
    assert any("memories/key.md:1 holds" in text for text in texts)
    assert "every note can be read" not in [finding.text for finding in findings]


def test_what_was_wrong_with_a_file_that_is_mended_or_gone_is_no_finding(healthy: KnowledgeBase, vault: Vault) -> None:
    for name in ("mended", "gone"):
        vault.write(f"memories/{name}.md", "---\ntags: [a\n---\nBroken.")
    healthy.sync()
    vault.write("memories/mended.md", "Mended.")
    vault.delete("memories/gone.md")

    assert [finding.check for finding in troubles(healthy.doctor())] == ["freshness"]


def test_a_file_that_could_not_be_searched_for_secrets_is_named(healthy: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/huge.md", "x" * 2_000_001)

    (finding,) = [finding for finding in healthy.doctor() if finding.check == "secrets"]

    assert (finding.level, "memories/huge.md" in finding.text) == ("warning", True)
    assert finding.text.startswith("not checked")
