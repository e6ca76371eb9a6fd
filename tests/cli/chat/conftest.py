"""Fixtures of chat tests: a vault with a few notes, and a server on loopback that speaks a model's protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic_ai import models

from tests.agent.conftest import offline_and_patient as offline_and_patient
from tests.chat_server import ChatServer
from tests.folder import Vault

BLUE = """\
---
title: Deploys go through the blue pool first
created: 2026-11-14T09:12:00Z
tags: [deploy]
provenance: user
---
Blue takes traffic first; green follows after ten quiet minutes.
"""
TEA = "---\ntags: [kitchen]\n---\nMara drinks green tea."


@pytest.fixture
def notes(vault: Vault) -> Vault:
    """A vault that knows how deploys go."""
    vault.write("memories/blue.md", BLUE)
    vault.write("memories/tea.md", TEA)
    return vault


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """The model is a server of ours on loopback: the only one that may be asked."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setenv("CO_MODEL", "ollama:qwen3")
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        yield server
