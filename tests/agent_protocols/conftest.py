"""Fixtures of the neighbours' protocols."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import scoped_memory
from co_cli.service.memory_protocol import MemoryToolProtocol


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no bug."""
    monkeypatch.setattr(scoped_memory, "FRESH_WITHIN", 60.0)


@pytest.fixture
def memory(kb: KnowledgeBase) -> MemoryToolProtocol:
    """Anthropic's memory tool over the vault."""
    return MemoryToolProtocol(kb)
