"""The model of the setting `boundaries_model`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

from co_cli.knowledge_base import KnowledgeBase


@contextlib.contextmanager
def boundaries_for(kb: KnowledgeBase) -> Generator[None]:
    """Let syncs ask the model that the settings name, if they name one."""
    name = kb.settings.boundaries_model
    if not name:
        yield
        return
    from co_cli.agent.boundaries import ModelBoundaries  # imports pydantic, and pydantic-ai for the first long document
    from co_cli.chat.models import load_model

    stored = os.path.join(kb.settings.data_dir, "boundaries.jsonl")
    kb.index.boundaries = ModelBoundaries(lambda: load_model(name), stored)
    try:
        yield
    finally:
        kb.index.boundaries = None
