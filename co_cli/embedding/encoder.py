"""The encoder: texts to unit vectors, by a model of six layers that was trained for questions about notes."""

from __future__ import annotations

from collections.abc import Sequence

from co_cli.embedding.model_file import FOLDER, ModelFile, native, pool
from co_cli.embedding.space import ENCODER, EmbedKind, Vector, VectorSpace
from co_cli.embedding.word_pieces import END, START, UNKNOWN
from co_cli.ground.priority import gives_way

MOST_TOKENS = 256
SUMS = "e5014d18", "56c2e6e9"


class EncoderEmbedder:
    """Reads the first 254 pieces of a text; tens of passages a second on one core."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._file = ModelFile("encoder", SUMS, folder)

    @property
    def space(self) -> VectorSpace:
        return ENCODER

    @property
    def loaded(self) -> bool:
        return self._file.loaded

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        model = self._file.load()

        def vector(text: str) -> Vector | None:
            pieces = model.pieces.pieces(text, MOST_TOKENS - 2)
            if all(piece == UNKNOWN for piece in pieces):
                return None
            return model.run((START, *pieces, END)).astype("<f4").tobytes()

        def guarded(text: str) -> Vector | None:
            with native:
                return vector(text)

        return list(map(guarded, texts) if gives_way() else pool().map(vector, texts))
