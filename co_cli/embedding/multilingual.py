"""Texts in sixteen languages to unit vectors: universal-sentence-encoder-multilingual and the static model together.

For English, the 256 numbers of the static model and the 512 of the encoder are projected to 256: two models that vote
find more than each alone. For any other text the static model knows nothing, and the encoder's numbers have a
projection of their own, learned so that a translation is near its English text. `python -m benchmarks projection`
learns both. The extra `co-cli[languages]` installs the encoder; nothing is downloaded at run time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from co_cli.embedding.languages_encoder import SentenceEncoder
from co_cli.embedding.languages_weights import WIDTH, converted
from co_cli.embedding.space import LANGUAGES, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import SPACE as STATIC
from co_cli.embedding.static import shared_embedder
from co_cli.ground.errors import EmbeddingError
from co_cli.notes.language import guess_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PROJECTION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", "languages-projection.bin")
"""Float16: 768 rows for English, of which the first 256 are for the static model, then 512 for other languages."""
WHOLE_WORDS = 0.7
"""The share of words that the static model has as a whole, from which a text without a common word is English: of
such sentences of Tatoeba, 93 of 100 in English have it and 7 in French, German and others."""
KNOWN_LANGUAGES = frozenset("ar de en es fr it ja ko nl pl pt ru th tr zh".split())
"""What the encoder was trained on. Of others it knows hardly anything."""


def is_english(text: str) -> bool:
    language = guess_language(text)
    return language == "en" or (not language and shared_embedder().share_known(text) >= WHOLE_WORDS)


class MultilingualEmbedder:
    """256 dimensions; about 70 passages a second on one core."""

    def __init__(self, data_dir: str) -> None:
        """The encoder's weights are unpacked once into `data_dir`."""
        self._data_dir = data_dir
        self._loaded: tuple[SentenceEncoder, Floats, Floats] | None = None
        self._loading = Lock()

    @property
    def space(self) -> VectorSpace:
        return LANGUAGES

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        import numpy as np

        encoder, english, other = self._load()
        encoded = encoder.encode(texts)
        static = shared_embedder().embed(texts, "document")
        vectors: list[Vector | None] = []
        for text, numbers, word_vector in zip(texts, encoded, static, strict=True):
            if word_vector is not None and is_english(text):
                both = np.concatenate([np.frombuffer(word_vector, "<f4"), numbers])
                projected = both @ english
            else:
                projected = numbers @ other
            length = float(np.linalg.norm(projected))
            vectors.append((projected / length).astype("<f4").tobytes() if length else None)
        return vectors

    def _load(self) -> tuple[SentenceEncoder, Floats, Floats]:
        """Read once, and by one thread: the first one may have to unpack the weights."""
        with self._loading:
            self._loaded = self._loaded or self._read()
            return self._loaded

    def _read(self) -> tuple[SentenceEncoder, Floats, Floats]:
        import numpy as np

        encoder = SentenceEncoder(converted(self._data_dir))
        matrix = np.fromfile(PROJECTION, "<f2").astype(np.float32).reshape(-1, LANGUAGES.dimensions)
        if len(matrix) != STATIC.dimensions + 2 * WIDTH:
            fix = 'reinstall with `pip install --force-reinstall "co-cli"`'
            raise EmbeddingError(f"{PROJECTION} is not the file it should be: {fix}")
        first = STATIC.dimensions + WIDTH
        return encoder, matrix[:first], matrix[first:]
