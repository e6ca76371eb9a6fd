"""An index by words alone: what is tested here holds without vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from tests.folder import Vault


@pytest.fixture
def engine(data_dir: Path) -> Iterator[SqliteEngine]:
    opened = SqliteEngine(str(data_dir / "search.db"))
    yield opened
    opened.close()


@pytest.fixture
def index(engine: SqliteEngine, vault: Vault) -> KnowledgeIndex:
    return KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
