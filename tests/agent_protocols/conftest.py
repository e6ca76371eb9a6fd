"""Fixtures for other memory protocols."""

from __future__ import annotations

import pytest
from pydantic_ai import models

from co_cli.agent import harness
from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.knowledge_base import KnowledgeBase


@pytest.fixture(autouse=True)
def offline_and_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is called, and a busy machine is no bug."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    monkeypatch.setattr(harness, "FRESH_SECONDS", 60.0)


@pytest.fixture
def memory(kb: KnowledgeBase) -> MemoryToolProtocol:
    """Anthropic's memory tool over the vault."""
    return MemoryToolProtocol(kb)
