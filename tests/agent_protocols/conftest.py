"""Fixtures of the neighbours' protocols."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.agent import harness
from co_cli.agent.anthropic_memory import MemoryToolProtocol


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no bug."""
    monkeypatch.setattr(harness, "FRESH_SECONDS", 60.0)


@pytest.fixture
def memory(kb: KnowledgeBase) -> MemoryToolProtocol:
    """Anthropic's memory tool over the vault."""
    return MemoryToolProtocol(kb)
