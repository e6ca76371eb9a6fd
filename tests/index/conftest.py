"""An index by words alone: what is tested here holds without vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from tests.vault import Vault


@pytest.fixture
def database(data_dir: Path) -> Iterator[Database]:
    opened = Database(str(data_dir / "search.db"))
    yield opened
    opened.close()


@pytest.fixture
def index(database: Database, vault: Vault) -> KnowledgeIndex:
    return KnowledgeIndex(database, str(vault.root))
