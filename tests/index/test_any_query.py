"""Whatever a person types: it parses, it runs, and it never raises."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.ground.hits import Filters
from co_cli.index.tokens import is_stop_word, tokens
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.retrieval.query import parse
from tests.folder import Vault

# fmt: off
HOSTILE = [
    "", " \t\n", '"', '""', '"unclosed', 'un"balanced" "quotes', "AND", "AND OR NOT", "oak AND", "NOT oak", "NEAR(",
    "NEAR(oak elm, 5)", "*", "oak*", "^oak", "-", "--", "-oak", "- oak", "-5", '-"live long"', '-"', "((((",
    "oak) OR (elm", "{title body}: oak", "title:oak", "body : oak", "grams : x", "oak + elm",
    "'; drop table docs; --", "%s {0} {filters} :match", "🌳", "👩‍👩‍👧‍👦 family", "\0", "oak\0elm", "\0-oak",
    "-\0-oak", "\ud800", "oak\udcffelm", "\ud83d 🌳", "東京", "木*", "-木", '"木と森" -東京', "\u200b\u200e\u202e",
    "ﬁ ﬀ ẞ İ", "ก็", "क्षत्रिय",
    "a" * 30_000,
    "oak " * 25_000,
    '"' * 100_000,
    "(" * 100_000,
    "- " * 50_000,
    "-x " * 33_000,
    "木" * 100_000,
    "🌳" * 25_000,
    " ".join(f'"phrase {number}" -not{number} word{number}' for number in range(4_000)),
]
# fmt: on
PIECES = st.sampled_from([*"\"-()*^ :{}+,'_#é木🌳\0\ud800", *"AND OR NOT NEAR( oak long the 東京 tag:".split(), " "])


@pytest.fixture(scope="module")
def trees() -> Iterator[KnowledgeIndex]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Vault(Path(folder).resolve() / "vault")
        vault.write("memories/oak.md", "Oaks live long. 東京の木は高い。 🌳 NOT AND (x)")
        vault.write("articles/elm.md", "# Elms\n\nThe elm falls ill.\n\n## Cure\n\nNone -5 degrees.")
        index = KnowledgeIndex(Path(folder, "search.db"), vault.root)
        index.sync()
        yield index
        index.close()


@pytest.mark.medium
def test_hostile_queries_run_and_end_soon(trees: KnowledgeIndex) -> None:
    for text in HOSTILE:
        started = time.process_time()
        trees.search(text)
        assert time.process_time() - started < 5, ascii(text[:20])


@pytest.mark.medium
@settings(max_examples=80, deadline=None)
@given(text=st.text(st.characters(), max_size=20), key=st.text(st.characters(), max_size=10))
def test_any_text_is_a_filter(trees: KnowledgeIndex, text: str, key: str) -> None:
    assert trees.search("oaks", tags=[text]) == []
    assert trees.notes.docs(Filters(tags=(text,), category=text, fields=((key, text),))) == []
    assert trees.notes.docs(Filters(tags=(text, "x"), any_tag=True)) == []


@pytest.mark.medium
@settings(max_examples=100, deadline=None)
@given(word=st.from_regex(r"[a-z]{3,12}", fullmatch=True), noise=st.lists(PIECES, max_size=6))
def test_a_word_is_found_whatever_stands_around_it(word: str, noise: list[str]) -> None:
    query = parse(" ".join([*(piece for piece in noise if piece not in '"-#' and ":" not in piece), word]))

    assert set(tokens(word)) <= set(query.words.terms) or is_stop_word(word)
