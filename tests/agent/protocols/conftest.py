"""Fixtures for other memory protocols."""

from __future__ import annotations

import pytest

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.agent.conftest import offline_and_patient as offline_and_patient


@pytest.fixture
def memory(kb: KnowledgeBase) -> MemoryToolProtocol:
    """Anthropic's memory tool over the vault."""
    return MemoryToolProtocol(kb)
