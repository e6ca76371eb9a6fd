"""The real static model, which keeps every text that it was asked to embed."""

from __future__ import annotations

from collections.abc import Sequence

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import StaticEmbedder


class CountingEmbedder:
    """Stands before the static model; `texts` are the documents it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._model = StaticEmbedder()

    @property
    def space(self) -> VectorSpace:
        return self._model.space

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        if kind == "document":
            self.texts += texts
        return self._model.embed(texts, kind)


class CountingEmbedders(Embedders):
    """Gives that embedder out for the static space."""

    def __init__(self) -> None:
        super().__init__("static")
        self.counting = CountingEmbedder()

    def of(self, space: VectorSpace) -> Embedder | None:
        return self.counting if space.key == self.counting.space.key else super().of(space)
