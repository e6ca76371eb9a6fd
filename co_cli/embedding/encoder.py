"""The encoder: texts to unit vectors, by a model of six layers that was trained for questions about notes."""

from __future__ import annotations

from collections.abc import Sequence

from co_cli.embedding.model_file import FOLDER, ModelFile, pool
from co_cli.embedding.space import ENCODER, EmbedKind, Vector, VectorSpace
from co_cli.embedding.word_pieces import END, START, UNKNOWN

MOST_TOKENS = 256
SHA256 = "5177ea4a41aa391df5464d934a92b0f0c4e48d41b66c2bcc219548f3d6da7bdf"
GRAPH_SHA256 = "1cb4bdce2e74d14fd3441fbb5a4efb8b7c5608ac17b15164d78ea21e1eba732c"


class EncoderEmbedder:
    """Reads the first 254 pieces of a text; tens of passages a second on one core."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._file = ModelFile("encoder", SHA256, GRAPH_SHA256, folder)

    @property
    def space(self) -> VectorSpace:
        return ENCODER

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        model = self._file.load()

        def vector(text: str) -> Vector | None:
            pieces = model.pieces.pieces(text, MOST_TOKENS - 2)
            if all(piece == UNKNOWN for piece in pieces):
                return None
            return model.run((START, *pieces, END)).astype("<f4").tobytes()

        return list(pool().map(vector, texts))
