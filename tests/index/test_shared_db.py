"""One search.db for many processes and many vaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from tests.index.contents import contents, contents_from_scratch
from tests.vault import Vault


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("articles/elm.md", "# Elms\n\nElms fall ill.")


OPEN = """
import sys
from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
sys.stdin.readline()
index = KnowledgeIndex(Database(sys.argv[1]), sys.argv[2])
index.sync()
print(len(index.search("oaks")))
"""


def test_eight_processes_may_open_a_new_search_db_at_once(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    path = str(data_dir / "search.db")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, path, str(vault.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    assert [process.communicate(timeout=60) for process in processes] == [("1\n", "")] * 8
    database = Database(path)
    assert contents(database, vault.root) == contents_from_scratch(vault, tmp_path / "other")
    database.close()


def test_two_vaults_in_one_search_db_do_not_mix(database: Database, vault: Vault, tmp_path: Path) -> None:
    garden = Vault(tmp_path / "garden")
    garden.write("memories/oak.md", "Oaks in the garden.")
    one, other = KnowledgeIndex(database, str(vault.root)), KnowledgeIndex(database, str(garden.root))
    one.sync()
    other.sync()

    assert [doc.path for doc in other.docs()] == ["memories/oak.md"]
    assert len(one.search("oaks")) == len(other.search("oaks")) == 1
    assert one.search("garden") == []
    assert (one.counts().notes, other.counts().notes) == (2, 1)
    garden.delete("memories/oak.md")
    other.sync()
    assert other.search("oaks") == []
    assert len(one.search("oaks")) == 1
