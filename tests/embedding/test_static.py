"""The embedded model: two implementations, one set of vectors, and no network."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.model_index import index_of
from benchmarks.plain_model import PlainModel
from co_cli.embedding.static import COLD_CHARACTERS, FILE, REVISION, SPACE, WORDS, StaticEmbedder, StaticModel
from co_cli.embedding.static import split_words as split
from co_cli.ground.errors import EmbeddingError

REFERENCE_VECTORS = [
    json.loads(line) for line in Path(__file__).with_name("reference_vectors.jsonl").read_text("utf-8").splitlines()
]
MODEL, PLAIN = StaticModel(), PlainModel()

Embed = Callable[[list[str]], list[bytes | None]]


@pytest.fixture(params=["few", "many"])
def embed(request: pytest.FixtureRequest) -> Embed:
    """Both implementations."""
    return MODEL.embed_few if request.param == "few" else MODEL.embed_many


def assert_same(vector: bytes | None, expected: list[float] | tuple[float, ...]) -> None:
    if vector is None:
        assert not any(expected)
    else:
        assert struct.unpack("<256f", vector) == pytest.approx(expected, abs=1e-4)


def test_the_revision_and_the_index_are_those_of_the_file() -> None:
    data = Path(FILE).read_bytes()

    assert hashlib.sha256(data).hexdigest()[:8] == REVISION
    assert SPACE.model.endswith(f"@{REVISION}")
    assert Path(FILE).with_suffix(".idx").read_bytes() == index_of(data)


def test_vectors_are_those_that_came_with_the_model(embed: Embed) -> None:
    for sample, vector in zip(REFERENCE_VECTORS, embed([sample["text"] for sample in REFERENCE_VECTORS]), strict=True):
        assert_same(vector, sample["vector"])


def test_the_index_finds_the_same_pieces_as_a_dict_of_all() -> None:
    tokens, choose = MODEL.tokens(), random.Random(7)
    made_up = [
        "".join(choose.choices("abcdefghijklmnopqrstuvwxyzé0123456789", k=choose.randrange(1, 18))) for _ in range(100)
    ]
    words = [*choose.sample(tokens, 500), *made_up, tokens[0], tokens[-1], min(tokens), max(tokens), "\ud800"]
    by_dict = StaticModel()
    by_dict.embed_few([" ".join(tokens[1_000:2_000])])

    by_index = [StaticModel().embed_few([" ".join(words[at : at + 50])]) for at in range(0, len(words), 50)]

    assert by_index == [by_dict.embed_few([" ".join(words[at : at + 50])]) for at in range(0, len(words), 50)]


def test_a_text_without_a_known_piece_has_no_vector(embed: Embed) -> None:
    assert embed(["", "   \n\t", "東京は静かです", "🙂🙂", "x" * 61, "\ud800", "\u0301\u0302"]) == [None] * 7


def test_vectors_stay_with_their_texts_in_a_batch(embed: Embed) -> None:
    texts = ["an angry customer", "", "the blue pool", "東京", "an angry customer"]

    vectors = embed(texts)

    assert [vector is None for vector in vectors] == [False, True, False, True, False]
    assert vectors[0] == vectors[4] == embed(["an angry customer"])[0]
    assert embed([]) == []


WORDS_OF_ALL_KINDS = "deploy customer ##ing kubernetes blorptastic zyxwvut foo_bar v2.0.1 Ünïcödé".split()
texts_of_any_kind = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789 _-.,'", max_size=80),
    st.lists(st.sampled_from(WORDS_OF_ALL_KINDS) | st.text(max_size=8), max_size=12).map(" ".join),
)


@pytest.mark.medium
@settings(max_examples=50, deadline=None)
@given(texts=st.lists(texts_of_any_kind, max_size=3))
def test_both_implementations_agree_with_a_plain_one_on_any_text(texts: list[str]) -> None:
    for text, few, many in zip(texts, MODEL.embed_few(texts), MODEL.embed_many(texts), strict=True):
        expected = PLAIN.embed(text)
        assert (few is None) == (many is None) == (not any(expected))
        assert_same(few, expected)
        assert_same(many, expected)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_finds_the_same_words(text: str) -> None:
    assert split(text) == WORDS.findall(text.lower())


def test_a_damaged_file_is_refused_with_the_fix(tmp_path: Path) -> None:
    data, path = Path(FILE).read_bytes(), tmp_path / "model.bin"
    index = index_of(data)
    for content, its_index in (
        (None, index),
        (b"", index),
        (b"NOPE" + data[4:], index),
        (data[:-1000], index),
        (data, b""),
    ):
        if content is not None:
            path.write_bytes(content)
        path.with_suffix(".idx").write_bytes(its_index)
        with pytest.raises(EmbeddingError, match=r"model\.bin.*reinstall"):
            StaticEmbedder(str(path)).embed(["oaks"], "query")


FRESH = f"""
import sys

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(f"touched the network: {{event}} {{arguments}}")

sys.addaudithook(refuse)
from co_cli.embedding.embedders import Embedders
SLOW = {{"numpy", "asyncio", "socket", "httpx", "ollama", "pydantic_ai", "onnxruntime"}}
embedders = Embedders("static")
embedder = embedders.of(embedders.space)
print(len(embedder.embed(["how do we calm an angry customer"], "query")[0]), *SLOW & set(sys.modules))
print(len(embedder.embed(["Caf\\u00e9 " * {COLD_CHARACTERS}], "document")[0]), "numpy" in sys.modules)
for provider in ("encoder", "ollama", "openai", "gemini"):
    embedders = Embedders(provider)
    assert embedders.of(embedders.space).space == embedders.space
print(*SLOW & set(sys.modules) - {{"numpy", "asyncio", "socket"}})
try:
    __import__("socket").socket()
except RuntimeError as error:
    print(error)
"""


def test_a_fresh_process_imports_nothing_slow_for_a_query_and_never_touches_the_network() -> None:
    ran = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, timeout=60)

    assert ran.returncode == 0, ran.stderr
    query, much, others, guard = ran.stdout.splitlines()
    assert (query, much, others) == ("1024", "1024 True", "")
    assert guard.startswith("touched the network")
