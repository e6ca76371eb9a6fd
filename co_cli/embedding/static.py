"""The embedded static model as an `Embedder`: meaning on every machine with no server, no key and no download.

A fresh process with little to embed is served by the cold implementation; numpy takes over when it is loaded anyway or
when there is enough work to be worth its import. Both give the same vectors. Without numpy the cold one does it all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.embedding.static_cold import ColdStaticModel
from co_cli.embedding.static_file import SPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.embedding.static_batch import BatchStaticModel

COLD_CHARACTERS = 20_000
"""Importing numpy costs as much as embedding about this much text without it."""


class StaticEmbedder:
    """Words to vectors by table; a query and a document with the same words have the same vector."""

    def __init__(self) -> None:
        self._cold: ColdStaticModel | None = None
        self._batch: BatchStaticModel | None = None
        self._characters = 0

    @property
    def space(self) -> VectorSpace:
        return SPACE

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        self._characters += sum(map(len, texts))
        return self._model().embed(texts)

    def _model(self) -> ColdStaticModel | BatchStaticModel:
        if self._batch is not None:
            return self._batch
        if "numpy" in sys.modules or self._characters > COLD_CHARACTERS:
            self._batch = _batch_model()
            if self._batch is not None:
                return self._batch
        if self._cold is None:
            self._cold = ColdStaticModel()
        return self._cold


def shared_embedder() -> StaticEmbedder:
    """The one of this process: its file is opened and its words are split once."""
    if not _shared:
        _shared.append(StaticEmbedder())
    return _shared[0]


_shared: list[StaticEmbedder] = []


def _batch_model() -> BatchStaticModel | None:
    try:
        from co_cli.embedding.static_batch import BatchStaticModel
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        return None  # slower, with the same vectors
    return BatchStaticModel()
