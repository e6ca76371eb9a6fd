"""What a long-lived process keeps in memory is never older than search.db."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.static import StaticEmbedder
from co_cli.index.connection import Database, vector_extension
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.knowledge_base import KnowledgeBase
from tests.meaning.conftest import Open
from tests.vault import Vault

pytest.importorskip("numpy", reason="vectors are kept in memory with numpy: pip install numpy")

APOLOGY = "---\ntitle: Angry callers\n---\nDe-escalation starts with an apology to the client.\n"
BACKUP = "---\ntitle: Backups\n---\nThe database backup runs at night.\n"
QUESTION = "how do we calm an upset customer"


def nearest(kb: KnowledgeBase) -> list[str]:
    """Paths by meaning alone, best first, from the vectors in memory."""
    index = kb.index
    space = index.spaces().active
    assert space is not None
    [vector] = StaticEmbedder().embed([QUESTION], "query")
    assert vector is not None
    ids = [neighbour.passage_id for neighbour in index.nearest(space, vector)]
    assert index._resident is not None
    return [passage.path for passage in index.passages(ids)]


@pytest.fixture
def settled(open_kb: Open, vault: Vault) -> KnowledgeBase:
    """Two notes, whose vectors are in memory."""
    vault.write("memories/apology.md", APOLOGY)
    vault.write("memories/backup.md", BACKUP)
    kb = open_kb()
    kb.sync()
    assert nearest(kb) == ["memories/apology.md", "memories/backup.md"]
    return kb


def test_a_note_saved_through_another_connection_is_seen(settled: KnowledgeBase, open_kb: Open, vault: Vault) -> None:
    vault.write("memories/regret.md", "Calm an upset customer by saying sorry first.")
    open_kb().sync()

    assert nearest(settled)[0] == "memories/regret.md"


def test_a_note_deleted_through_another_connection_is_gone(settled: KnowledgeBase, open_kb: Open) -> None:
    open_kb().forget("memory:apology")

    assert nearest(settled) == ["memories/backup.md"]


def test_texts_exchanged_by_another_process_are_seen(settled: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/apology.md", BACKUP)
    vault.write("memories/backup.md", APOLOGY)

    subprocess.run(
        [sys.executable, "-m", "co_cli", "sync", "--vault", str(vault.root), "--data-dir", str(data_dir)],
        check=True,
        capture_output=True,
        timeout=60,
    )

    assert nearest(settled) == ["memories/backup.md", "memories/apology.md"]


def test_a_rebuild_by_another_is_seen_though_ids_mean_other_notes_now(
    settled: KnowledgeBase, open_kb: Open, vault: Vault
) -> None:
    vault.write("memories/a-first.md", "Invoices are due in thirty days.")
    vault.write("memories/backup.md", APOLOGY)
    vault.delete("memories/apology.md")

    open_kb().rebuild()

    assert nearest(settled) == ["memories/backup.md", "memories/a-first.md"]


def test_a_deleted_search_db_takes_its_vectors_along(settled: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    vault.delete("memories/apology.md")
    for file in data_dir.glob("search.db*"):
        file.unlink()

    settled.sync()

    assert nearest(settled) == ["memories/backup.md"]


def test_another_vault_in_the_same_file_changes_nothing_here(
    settled: KnowledgeBase, open_kb: Open, tmp_path: Path
) -> None:
    other = Vault(tmp_path / "other")
    other.write("memories/mine.md", APOLOGY)
    open_kb(root=other.root).sync()

    assert nearest(settled) == ["memories/apology.md", "memories/backup.md"]


def test_only_the_vectors_of_the_space_that_answers_are_kept(settled: KnowledgeBase, data_dir: Path) -> None:
    space = settled.index.spaces().active
    assert space is not None
    database = Database(str(data_dir / "search.db"), vector_extension())
    with database.writing() as connection:  # as after an update that brings another file of the static model
        connection.execute("update spaces set model = 'co-static-256@older' where id = :id", {"id": space.id})
    KnowledgeIndex(database, settled.root, embedders=Embedders("static")).sync()
    database.close()

    assert nearest(settled) == ["memories/apology.md", "memories/backup.md"]
    resident = settled.index._resident
    assert resident is not None
    assert {number for number, _ in resident._held} != {space.id}
    assert len({number for number, _ in resident._held}) == 1


@pytest.mark.parametrize(
    "chunks",
    [
        "select rowids, vectors from {table}_kept_elsewhere where :part",
        "select rowids, x'00' from {table}_chunks where partition00 = :part",
    ],
    ids=["other tables", "other chunks"],
)
def test_a_vec0_that_keeps_its_chunks_in_another_way_is_asked_for_each_vector(
    open_kb: Open, vault: Vault, monkeypatch: pytest.MonkeyPatch, chunks: str
) -> None:
    vault.write("memories/apology.md", APOLOGY)
    vault.write("memories/backup.md", BACKUP)
    kb = open_kb()
    kb.sync()

    monkeypatch.setattr("co_cli.index.resident.CHUNKS", chunks)

    assert nearest(kb) == ["memories/apology.md", "memories/backup.md"]
