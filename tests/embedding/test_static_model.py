"""The embedded model: two implementations, one set of vectors."""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.embedding.static import COLD_CHARACTERS, StaticEmbedder, StaticModel
from co_cli.embedding.static_model import FILE, REVISION, SPACE, WORDS, words
from co_cli.errors import EmbeddingError

from .reference import ReferenceModel

REFERENCE_VECTORS = [
    json.loads(line) for line in Path(__file__).with_name("reference_vectors.jsonl").read_text("utf-8").splitlines()
]
TOLERANCE = 1e-4
MODEL = StaticModel()

Embed = Callable[[list[str]], list[bytes | None]]


@pytest.fixture(params=["few", "many"])
def embed(request: pytest.FixtureRequest) -> Embed:
    """Both implementations."""
    return MODEL.embed_few if request.param == "few" else MODEL.embed_many


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack("<256f", vector)


def assert_same(vector: bytes | None, expected: list[float] | tuple[float, ...]) -> None:
    if vector is None:
        assert not any(expected)
    else:
        assert max(abs(a - b) for a, b in zip(numbers(vector), expected, strict=True)) < TOLERANCE


def test_the_revision_is_the_beginning_of_the_files_checksum() -> None:
    assert hashlib.sha256(Path(FILE).read_bytes()).hexdigest()[:8] == REVISION
    assert SPACE.model.endswith(f"@{REVISION}")


@pytest.mark.parametrize("sample", REFERENCE_VECTORS, ids=lambda sample: sample["text"][:20])
def test_vectors_are_those_that_came_with_the_model(embed: Embed, sample: dict[str, object]) -> None:
    [vector] = embed([str(sample["text"])])

    assert_same(vector, sample["vector"])  # pyright: ignore[reportArgumentType]


def test_vectors_have_unit_length(embed: Embed) -> None:
    [vector] = embed(["Deploys go through the blue pool first."])

    assert vector is not None
    assert sum(value * value for value in numbers(vector)) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("text", ["", "   \n\t", "東京は静かです", "🙂🙂", "x" * 61, "\ud800", "\u0301\u0302"])
def test_a_text_without_a_known_piece_has_no_vector(embed: Embed, text: str) -> None:
    assert embed([text]) == [None]


def test_vectors_stay_with_their_texts_in_a_batch(embed: Embed) -> None:
    texts = ["an angry customer", "", "the blue pool", "東京", "an angry customer"]

    vectors = embed(texts)

    assert [vector is None for vector in vectors] == [False, True, False, True, False]
    assert vectors[0] == vectors[4] == embed(["an angry customer"])[0]
    assert embed([]) == []


def test_case_and_accents_make_no_difference(embed: Embed) -> None:
    plain, written = embed(["cafe resume naive", "CAFÉ Résumé naïve"])

    assert plain is not None
    assert_same(written, numbers(plain))


VOCABULARY_WORDS = [
    "deploy",
    "customer",
    "##ing",
    "kubernetes",
    "blorptastic",
    "zyxwvut",
    "foo_bar",
    "v2.0.1",
    "Ünïcödé",
]
texts_of_any_kind = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789 _-.,'", max_size=80),
    st.lists(st.sampled_from(VOCABULARY_WORDS) | st.text(max_size=8), max_size=12).map(" ".join),
)


@settings(max_examples=120, deadline=None)
@given(texts=st.lists(texts_of_any_kind, max_size=3))
def test_both_implementations_agree_with_the_reference_on_any_text(reference: ReferenceModel, texts: list[str]) -> None:
    few, many = MODEL.embed_few(texts), MODEL.embed_many(texts)

    for text, one, other in zip(texts, few, many, strict=True):
        expected = reference.vector(text)
        assert (one is None) == (other is None) == (not any(expected))
        assert_same(one, expected)
        assert_same(other, expected)


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_finds_the_same_words(text: str) -> None:
    assert words(text) == WORDS.findall(text.lower())


def test_a_paraphrase_is_nearer_than_another_subject(embed: Embed, cosine: Callable[..., float]) -> None:
    question, answer, other = embed(
        [
            "how do we calm an angry customer",
            "De-escalation starts with an apology to the client.",
            "The database backup runs at night.",
        ]
    )

    assert cosine(question, answer) > cosine(question, other) + 0.1


def test_much_text_is_embedded_several_times_faster_than_by_the_reference(reference: ReferenceModel) -> None:
    texts = [
        f"Note {number}: deploys go through the blue pool, green follows after quiet minutes." for number in range(200)
    ]
    MODEL.embed_many(texts[:10])

    started = time.process_time()
    for text in texts[:20]:
        reference.vector(text)
    plain = (time.process_time() - started) * 10
    started = time.process_time()
    MODEL.embed_many(texts)
    batch = time.process_time() - started

    assert batch * 4 < plain


def test_an_embedder_has_the_same_vectors_before_and_after_it_turns_to_numpy() -> None:
    embedder = StaticEmbedder()
    [before] = MODEL.embed_few(["the blue pool"])

    embedder.embed(["word " * COLD_CHARACTERS], "document")
    [after] = embedder.embed(["the blue pool"], "query")

    assert before is not None
    assert_same(after, numbers(before))


@pytest.mark.parametrize("damage", ["missing", "empty", "other magic", "torn", "other dimensions"])
def test_a_damaged_file_is_refused_with_the_fix(damage: str, tmp_path: Path) -> None:
    data = Path(FILE).read_bytes()
    path = tmp_path / "model.bin"
    header = b'{"rows": 1, "dim": 2, "bigrams": 0, "tf": 0.25, "hidden": 0}'
    small = b"SEM2" + struct.pack("<II", len(header), 5) + header + b"[UNK]" + b"\0\0" + b"\0\0"
    damaged = {"empty": b"", "other magic": b"NOPE" + data[4:], "torn": data[:-1000], "other dimensions": small}
    if damage in damaged:
        path.write_bytes(damaged[damage])

    with pytest.raises(EmbeddingError, match=r"model\.bin.*reinstall"):
        StaticEmbedder(str(path)).embed(["oaks"], "query")
