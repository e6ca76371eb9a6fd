"""Fixtures of agent tests: no model is ever asked for real."""

from __future__ import annotations

import pytest
from pydantic_ai import models

from co_cli.agent import Knowledge, capability
from co_cli.knowledge_base import KnowledgeBase


@pytest.fixture(autouse=True)
def no_real_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no bug: tests about haste shorten these themselves."""
    monkeypatch.setattr(capability, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(capability, "CONTEXT_SECONDS", 60.0)


@pytest.fixture
def knowledge(kb: KnowledgeBase) -> Knowledge:
    """The capability, over the test's own vault."""
    return Knowledge(knowledge_base=kb)
