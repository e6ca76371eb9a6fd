"""What holds for every search, through a real index of more passages than words and vectors propose at once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from co_cli.embedding.space import Embedder
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.hits import Filters
from co_cli.index.engine import ReadTransaction
from co_cli.retrieval.profiles import PROFILES
from co_cli.retrieval.query import parse
from tests.folder import Vault

VOCABULARY = """
harbour boat ferry oak elm storm invoice deploy rollback pager soup winter garden clock letter radio sister doctor
customer refund violin parcel kitchen tax accountant bridge traffic incident the of in how what does Mara 2026 東京
""".split()
SENTENCES = (
    "The {0} of the {1} waits for the {2} in {3}.",
    "Mara wrote a {1} about the {0}; see [[note-{number}]].",
    "When the {2} fails, {3} the {0} and tell the {1} customer twice.",
    "{0} {0} {1}, and {2} after that.",
    "Nobody knows why 東京都 has so many a {3} and a {2}.",
)
QUERIES = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(" ".join)
ANYTHING = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(
        st.sampled_from(
            [*VOCABULARY[:8], '"', "-", "#ops", "tag:ops", "path:art", "file:9", "last week", "-oak", "\0-a"]
        ),
        max_size=6,
    ).map(" ".join),
    st.lists(
        st.sampled_from([*'()[]/-"#:<>?*+\\{}| ', "oak", "line:", "lang:", "[a:", "OR ", "(?au)"]), max_size=20
    ).map("".join),
)
SEARCHES = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write_notes(vault: Vault, count: int = 130) -> None:
    for number in range(count):
        words = [VOCABULARY[(number * step + step) % len(VOCABULARY)] for step in (1, 3, 7, 11)]
        text = SENTENCES[number % len(SENTENCES)].format(*words, number=number * 5 % count)
        front = f"title: Note {number}\ncreated: 2026-0{number % 9 + 1}-11\ntags: [{words[0]}, ops]\n"
        front += f"severity: {('critical', 'warning', 'suggestion')[number % 3]}\ndomain: {words[1]}\n"
        folder = ("memories", "articles")[number % 2]
        more = f"\n\n## The {words[2]}\n\nMore of the {words[3]}.\n" if number % 2 else "\n"
        vault.write(f"{folder}/note-{number}.md", f"---\n{front}---\n{text}{more}")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("properties")
    vault = Vault(folder / "vault")
    write_notes(vault)
    with KnowledgeBase.open(vault.root, folder / "data") as kb:
        kb.sync()
        yield kb


@pytest.fixture(autouse=True)
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two searches that are compared are of the same time: with it, the recency of a note changes."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)


@pytest.mark.medium
@SEARCHES
@given(query=QUERIES, profile=st.sampled_from([name for name in PROFILES if name != "seven"]))
def test_a_limit_only_truncates(notes: KnowledgeBase, query: str, profile: str) -> None:
    few, many = (notes.search(query, limit=limit, profile=profile).hits for limit in (10, 100))

    assert many[:10] == few


@pytest.mark.medium
@SEARCHES
@given(query=ANYTHING, backend=st.sampled_from(["hybrid", "fts5", "grep"]), prefix=st.booleans())
def test_any_text_is_a_query(notes: KnowledgeBase, query: str, backend: str, prefix: bool) -> None:
    found = notes.search(query, backend=backend, prefix=prefix)

    assert found.state in ("found", "absent")
    assert found.degraded == []
    assert len({hit.path for hit in found.hits}) == len(found.hits) <= 10


@pytest.mark.medium
@SEARCHES
@given(query=QUERIES, profile=st.sampled_from(list(PROFILES)), backend=st.sampled_from(["hybrid", "fts5"]))
def test_the_signals_of_a_hit_add_up_to_its_score(notes: KnowledgeBase, query: str, profile: str, backend: str) -> None:
    hits = notes.search(query, profile=profile, backend=backend).hits

    assert all(sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-9) for hit in hits)
    assert [hit.score for hit in hits] == pytest.approx(sorted((hit.score for hit in hits), reverse=True), abs=5e-4)
    for hit in hits[:2]:
        why = notes.why(query, hit.ref, profile=profile, backend=backend)
        assert (why.rank, why.score, why.signals) == (hits.index(hit) + 1, hit.score, hit.signals)


@pytest.mark.medium
@SEARCHES
@given(query=QUERIES)
@example(query="oak")
@example(query="oak Mara")
def test_weights_of_1_and_0_rank_by_words_alone_or_by_meaning_alone(notes: KnowledgeBase, query: str) -> None:
    """Apart from notes that are called what was asked for, which these queries avoid."""
    words = notes.search(query, limit=20, weights={"words": 1, "meaning": 0}).hits
    meaning = notes.search(query, limit=20, weights={"words": 0, "meaning": 1}).hits

    [vector] = embedder_of(notes).embed([query], "query")
    with notes.index.engine.reading() as reader:
        view = notes.index.notes.view(reader, Filters())
        matches = reader.words(view.scope, parse(query).words, 100)
        near = reader.nearest(view.scope, view.space, vector, 100) if view.space and vector else []
        by_words = paths_of(reader, [one.passage for one in matches])
        by_meaning = paths_of(reader, [one.passage for one in near if one.score > 0])
    assert {hit.path for hit in words} <= {*by_words}
    if len(parse(query).words.terms) == 1:  # of several words, a passage with more of them comes first
        assert [hit.path for hit in words] == by_words[:20]
    assert [hit.path for hit in meaning] == (by_meaning[:20] if vector else [hit.path for hit in words])
    assert {name for hit in (*words, *meaning) for name in hit.signals} <= {"words", "meaning"}


def embedder_of(kb: KnowledgeBase) -> Embedder:
    assert kb.embedders.space is not None
    embedder = kb.embedders.of(kb.embedders.space)
    assert embedder is not None
    return embedder


def paths_of(reader: ReadTransaction, passages: list[int]) -> list[str]:
    """The note of each passage, each once, in order."""
    stored = reader.passages(passages)
    return list(dict.fromkeys(f"{stored[one].root}/{stored[one].path}" for one in passages))
