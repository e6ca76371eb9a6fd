"""A toolbox over the test's vault."""

from __future__ import annotations

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox


@pytest.fixture
def toolbox(kb: KnowledgeBase) -> Toolbox:
    return Toolbox(kb)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader that new installations have. Asked for before `kb` and `toolbox`."""
    monkeypatch.delenv("CO_KNOWLEDGE_READER")
