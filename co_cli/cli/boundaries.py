"""The model of the setting `boundaries_model`, made when the first long document needs it: it is slow to import."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note
from co_cli.settings import Settings
from co_cli.sources.passages import LONGEST, Lines

if TYPE_CHECKING:
    from co_cli.agent.boundaries import ModelBoundaries

KEPT = "boundaries.jsonl"
"""The file in the data folder that remembers what it answered."""


@contextlib.contextmanager
def boundaries_for(kb: KnowledgeBase) -> Generator[None]:
    """While this lasts, a sync asks the model that the settings name, if they name one."""
    if not kb.settings.boundaries_model:
        yield
        return
    kb.index.boundaries = proposing = ConfiguredBoundaries(kb.settings.boundaries_model, kb.settings)
    try:
        yield
    finally:
        kb.index.boundaries = None
        proposing.close()


class ConfiguredBoundaries:
    """A model that cannot be used is told once, and documents are cut without it."""

    def __init__(self, model: str, settings: Settings) -> None:
        self._model, self._kept = model, os.path.join(settings.data_dir, KEPT)
        self._boundaries: ModelBoundaries | None = None
        self._unusable = False

    def __call__(self, note: Note) -> Sequence[Lines] | None:
        if self._unusable or len(note.body) <= LONGEST:
            return None
        if self._boundaries is None:
            from co_cli.agent.boundaries import ModelBoundaries, log
            from co_cli.chat.models import load_model

            try:
                self._boundaries = ModelBoundaries(load_model(self._model), self._kept)
            except KnowledgeError as error:
                self._unusable = True
                log.warning("documents are cut without a model: %s", error)
                return None
        return self._boundaries(note)

    def close(self) -> None:
        if self._boundaries:
            self._boundaries.close()
