"""A model on loopback that reads conversations from a script, and vaults that capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.vault.vault import Opening
from tests.agent.conftest import offline_and_patient as offline_and_patient
from tests.chat_server import Turn, calls
from tests.cli.chat.conftest import server as server
from tests.folder import Vault

OpenVault = Callable[..., KnowledgeBase]


def answers(*values: dict[str, Any]) -> Turn:
    """The structured answer of a model: a list."""
    return calls(("final_result", {"response": list(values)}))


def facet(kind: str, text: str, first: int, last: int | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "text": text, "first_line": first, "last_line": last or first, **more}


@pytest.fixture
def open_vault(vault: Vault, data_dir: Path) -> Iterator[OpenVault]:
    """The vault, opened with these settings."""
    with ExitStack() as opened:

        def open_with(opening: Opening | None = None, **flags: Any) -> KnowledgeBase:
            settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir), **flags})
            return opened.enter_context(KnowledgeBase.open(settings=settings, opening=opening))

        yield open_with
