"""What is like the best candidates gains where a question is long, and every score stays the sum of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.alike import LONG, LOOKED_AT, SHARE, how_far, like_the_best
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.profiles import DEFAULT_PROFILE
from co_cli.retrieval.question import SHORT
from co_cli.service.searching import search_index
from co_cli.settings import load_settings
from co_cli.values import Filters
from tests.embedding.loopback import OllamaServer
from tests.vault import Vault

EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
LONG_QUESTION = "How should the night watch treat swollen wooden planks below the waterline after winter storms?"


def boats(vault: Vault) -> None:
    vault.write("memories/treat.md", "Swollen planks below the waterline: the night watch treats them with warm tar.")
    vault.write("memories/planks.md", "Wooden planks swell when storms drive water between them all winter.")
    vault.write("memories/storms.md", "After winter storms the watch looks below deck for water.")
    vault.write("memories/tar.md", "Warm tar and caulking cure swollen wood.")
    for number in range(30):
        vault.write(f"memories/n{number}.md", f"Invoice {number} of the bakery was paid on a Tuesday, after lunch.")


def scored(number: int, score: float, doc: int | None = None) -> Scored:
    return Scored(number, number if doc is None else doc, score, {"words": score})


def test_what_is_like_the_first_notes_overtakes_what_is_not() -> None:
    ranked = [scored(1, 0.9), scored(2, 0.8), scored(3, 0.7), scored(4, 0.5), scored(5, 0.48)]
    vectors = {1: EAST, 2: EAST, 3: EAST, 4: WEST, 5: EAST}

    again = like_the_best(ranked, vectors, 1.0)

    assert [one.passage_id for one in again] == [1, 2, 3, 5, 4]
    assert again[0].signals["alike"] == pytest.approx(SHARE / (1 + SHARE))
    assert "alike" not in again[-1].signals


def test_several_passages_of_one_note_are_one_opinion() -> None:
    ranked = [scored(1, 0.9, 7), scored(2, 0.8, 7), scored(3, 0.7, 7), scored(4, 0.7), scored(5, 0.7), scored(6, 0.5)]
    vectors = {1: EAST, 2: EAST, 3: EAST, 4: NORTH, 5: NORTH, 6: NORTH}

    again = {one.passage_id: one.signals.get("alike", 0.0) for one in like_the_best(ranked, vectors, 1.0)}

    assert again[6] > again[1]


def test_what_all_candidates_have_in_common_tells_nothing() -> None:
    """All point the same way; of the last two, the one that strays to the side of the first is like them."""
    slopes = [0.3, 0.3, 0.3, 0.62, 0.62, 0.6, 0.0]
    ranked = [scored(number, 0.9 - number / 10) for number in range(len(slopes))]

    again = like_the_best(ranked, {number: (1.0, slope) for number, slope in enumerate(slopes)}, 1.0)

    alike = {one.passage_id: one.signals.get("alike", 0.0) for one in again}
    assert alike[6] > alike[5]


def test_a_short_question_and_words_that_tell_nothing_count_for_nothing() -> None:
    assert how_far(SHORT, 1.0) == 0
    assert how_far(LONG, 0.0) == 0
    assert 0 < how_far(SHORT + 1, 1.0) < how_far(LONG, 1.0) == how_far(LONG + 5, 1.0) == 1
    ranked = [scored(number, 1 - number / 10) for number in range(6)]
    assert like_the_best(ranked, dict.fromkeys(range(6), EAST), 0.0) == ranked


@given(
    rows=st.lists(st.tuples(st.floats(0, 1), st.none() | st.tuples(*[st.floats(-1, 1)] * 3)), max_size=LOOKED_AT + 5),
    far=st.floats(0, 1),
)
def test_parts_add_up_and_nobody_is_lost(rows: list[tuple[float, tuple[float, ...] | None]], far: float) -> None:
    ranked = sorted((scored(number, score) for number, (score, _) in enumerate(rows)), key=lambda one: -one.score)
    vectors = {number: vector for number, (_, vector) in enumerate(rows) if vector}

    again = like_the_best(ranked, vectors, far)

    assert sorted(one.passage_id for one in again) == list(range(len(rows)))
    for one in again:
        assert sum(one.signals.values()) == pytest.approx(one.score, abs=1e-9)
        assert -1e-9 <= one.score <= 1 + 1e-9
    assert [one.score for one in again] == sorted((one.score for one in again), reverse=True)


def test_a_search_asks_for_it_where_the_question_is_long_and_it_can_be_turned_off(
    kb: KnowledgeBase, vault: Vault
) -> None:
    boats(vault)
    kb.sync()

    def parts(query: str, alike: bool = True) -> set[str]:
        with kb.index.snapshot():
            profile = DEFAULT_PROFILE._replace(alike=alike)
            found = search_index(kb.index, kb.embedders, query, Filters(), 10, None, profile)
        assert found.hits
        return {name for hit in found.hits for name in hit.signals}

    assert "alike" in parts(LONG_QUESTION)
    assert "alike" not in parts(LONG_QUESTION, alike=False)
    assert "alike" not in parts("swollen planks")


def test_vectors_of_other_models_are_not_compared(vault: Vault, data_dir: Path) -> None:
    """The server answers with the embedded model's vectors, so that nothing but whose they are differs."""
    boats(vault)
    server = OllamaServer()
    flags = {
        "vault": vault.root,
        "data_dir": data_dir,
        "knowledge_embedding_provider": "ollama",
        "knowledge_embedding_host": server.url,
    }
    with KnowledgeBase.open(settings=load_settings(flags)) as kb:
        kb.sync()
        hits = kb.search(LONG_QUESTION).hits
    server.close()

    assert "sentence" in hits[0].signals
    assert not any("alike" in hit.signals for hit in hits)
