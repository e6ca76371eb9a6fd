"""The real static model as somebody else's would be, which keeps every text that it was asked to embed."""

from __future__ import annotations

from collections.abc import Sequence

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import StaticEmbedder


class CountingEmbedder:
    """Stands before the static model, with a space of its own; `texts` are the documents it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._model = StaticEmbedder()

    @property
    def space(self) -> VectorSpace:
        return self._model.space._replace(provider="counting")

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        if kind == "document":
            self.texts += texts
        return self._model.embed(texts, kind)


class CountingEmbedders(Embedders):
    """Chooses that embedder; its vectors are in `docs_vec_2`."""

    def __init__(self) -> None:
        super().__init__("static")
        self.counting = CountingEmbedder()
        self.space = self.counting.space

    def of(self, space: VectorSpace) -> Embedder | None:
        return self.counting if space.key == self.counting.space.key else super().of(space)
