"""Fixtures of the neighbours' protocols."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import MemoryToolProtocol


@pytest.fixture
def memory(kb: KnowledgeBase) -> MemoryToolProtocol:
    """Anthropic's memory tool over the vault."""
    return MemoryToolProtocol(kb)
