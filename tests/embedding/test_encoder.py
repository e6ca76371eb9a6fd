"""The encoder, and BERT's tokenizer, which it shares with the reader."""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.model_file import FOLDER
from co_cli.embedding.space import ENCODER, VOCABULARY
from co_cli.embedding.word_pieces import WordPieces
from co_cli.ground.errors import ModelMissingError
from co_cli.ground.settings import load_settings
from co_cli.index.indexed_notes import FEW
from co_cli.notes.files import locked
from co_cli.vault.vault import embedding_lock, makes_vectors
from tests.command import Co
from tests.folder import Vault


@pytest.fixture(scope="module")
def encoder() -> EncoderEmbedder:
    return EncoderEmbedder()


def test_words_become_berts_numbers() -> None:
    vocabulary = Path(VOCABULARY).read_text("utf-8").splitlines()
    pieces = WordPieces(vocabulary)
    expected = {
        "hello world": [7592, 2088],
        "unaffable": [14477, 20961, 3468],
        "embeddings": [7861, 8270, 4667, 2015],
        "hello 🙂": [7592, 100],
        "x" * 101 + " hello": [100, 7592],
        "": [],
        "🙂 🙂": [100, 100],
    }
    assert len(vocabulary) == 30_522
    assert {text: pieces.pieces(text, 254) for text in expected} == expected
    assert len(pieces.pieces("embeddings " * 200, 254)) == 254


def test_vectors_stay_with_their_texts_whatever_their_length(
    encoder: EncoderEmbedder, cosine: Callable[..., float]
) -> None:
    texts = ["blue pool " * 400, "", "an angry customer", "🙂", "green"]

    vectors = encoder.embed(texts, "document")

    assert [vector is None for vector in vectors] == [False, True, False, True, False]
    for text, vector in zip(texts, vectors, strict=True):
        if vector is not None:
            assert len(struct.unpack("<256f", vector)) == ENCODER.dimensions
            assert cosine(vector, vector) == pytest.approx(1)
            assert vector == encoder.embed([text], "query")[0], "neither its neighbours nor its kind matter"


def test_a_question_in_other_words_is_nearest_to_its_answer(
    encoder: EncoderEmbedder, cosine: Callable[..., float]
) -> None:
    notes = [
        "Mamma takes apixaban, five milligrams at eight and at eight, since the flutter in 2023.",
        "The cash box is counted by two people every Friday evening.",
        "Thinner for the oil paint is in the shed, top shelf.",
    ]
    for place, question in enumerate(
        ("what drug is our mother on?", "who checks the money?", "where do I find turps?")
    ):
        asked, *texts = encoder.embed([question, *notes], "query")
        assert max(range(3), key=lambda at: cosine(asked, texts[at])) == place


def test_onnxruntime_sends_nothing_to_its_makers_and_leaves_no_identifier(
    tmp_path: Path, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CI", "GITHUB_ACTIONS", "TF_BUILD"):  # where these are set, it sends nothing anyway
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    co.process("remember", "Nobody deploys on Fridays.")

    found = co.process("search", "can we release before the weekend", python=("-X", "importtime"))

    assert found.code == 0
    assert "onnxruntime.capi" in found.err, "the encoder made the vector of the question"
    assert not list(tmp_path.rglob("deviceid"))


@pytest.mark.parametrize("damage", ["missing", "one byte changed", "another graph"])
def test_another_file_than_the_released_one_is_refused_with_the_fix(tmp_path: Path, damage: str) -> None:
    if damage != "missing":
        weights = bytearray(Path(FOLDER, "encoder.bin").read_bytes())
        weights[-1_000] ^= damage == "one byte changed"
        (tmp_path / "encoder.bin").write_bytes(weights)
        shutil.copy(Path(FOLDER, "reader.onnx"), tmp_path / "encoder.onnx")

    with pytest.raises(ModelMissingError, match=r"pip install --force-reinstall co-cli"):
        EncoderEmbedder(str(tmp_path)).embed(["blue"], "query")


def test_a_vault_is_searched_with_the_encoder_once_its_vectors_are_complete(
    vault: Vault, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")
    vault.write("memories/mamma.md", "Mamma takes apixaban, five milligrams at eight and at eight.")
    vault.write("memories/shed.md", "Thinner for the oil paint is in the shed, top shelf.")

    co("index", "sync")

    assert ENCODER.key in co("index", "status").out
    assert co("search", "what drug is our mother on?", "--json").json["hits"][0]["ref"] == "memory:mamma"


@pytest.mark.medium
def test_a_search_answers_at_once_and_another_process_makes_the_vectors(
    vault: Vault, co: Co, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")
    for number in range(FEW):
        vault.write(f"memories/order-{number}.md", f"Order {number} is shipped from shelf {number * 7}.")
    vault.write("memories/mamma.md", "Mamma takes apixaban, five milligrams at eight and at eight.")
    settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)})
    data_dir.mkdir()
    with locked(embedding_lock(settings)):  # as if one was at work
        assert makes_vectors(settings)
        assert co("search", "what drug is our mother on?", "--json").json["state"] == "found"
        assert co("index", "status", "--json").json["unembedded"] > FEW

    co("search", "what drug is our mother on?")

    end = time.monotonic() + 100
    while co("index", "status", "--json").json["space"] != ENCODER.key and time.monotonic() < end:
        time.sleep(0.1)
    assert co("search", "what drug is our mother on?", "--json").json["hits"][0]["ref"] == "memory:mamma"
