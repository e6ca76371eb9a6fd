"""`agent`: each coding agent that is installed, with co set up in it and a vault with one note about the harbour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folder import Vault
from tests.hooks.clients.agents import PROGRAMS, Agent, program
from tests.hooks.clients.model_server import ModelServer

HARBOUR = "In winter the boat sleeps in the harbour of Sol, at pier 7."


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def notes(tmp_path: Path) -> Vault:
    """The person's own vault."""
    vault = Vault(tmp_path / "home" / "notes")
    vault.write("memories/winter.md", f"{HARBOUR}\n")
    vault.write("memories/tea.md", "Mara drinks green tea in the morning.\n")
    return vault


@pytest.fixture(params=PROGRAMS)
def agent(request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer, notes: Vault) -> Agent:
    client = str(request.param)
    if not program(client).exists():
        pytest.skip(f"{client} is not installed: .ci/clients {client}")
    agent = Agent(client, tmp_path, model)
    agent.co("config", "set", "vault", str(notes.root))
    agent.co("config", "set", "capture", "keep")
    agent.co("config", "set", "knowledge_embedding_provider", "static")
    return agent
