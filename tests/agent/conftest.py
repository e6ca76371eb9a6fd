"""Fixtures of agent tests; others import `offline_and_patient`."""

from __future__ import annotations

import pytest
from pydantic_ai import models

from co_cli.agent import Knowledge, capability, harness
from co_cli.entrance.knowledge_base import KnowledgeBase


@pytest.fixture(autouse=True)
def offline_and_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is ever asked for real, and a busy machine is no bug: tests about haste shorten these themselves."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    monkeypatch.setattr(capability, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(capability, "CONTEXT_SECONDS", 60.0)
    monkeypatch.setattr(harness, "FRESH_SECONDS", 60.0)


@pytest.fixture
def knowledge(kb: KnowledgeBase) -> Knowledge:
    """The capability, over the test's own vault."""
    return Knowledge(knowledge_base=kb)
