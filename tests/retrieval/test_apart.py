"""Where words do not tell, meaning is measured without what all passages of a vault have in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from co_cli.embedding.static import StaticEmbedder
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.apart import LEAST, TAKEN_OFF, cosines_apart, in_common, partly_apart
from co_cli.retrieval.fuse import stretched
from co_cli.retrieval.profiles import DEFAULT_PROFILE, Profile
from co_cli.retrieval.trace import Trace
from co_cli.service.searching import FEW, search_index
from co_cli.settings import load_settings
from co_cli.values import Filters
from tests.embedding.loopback import OllamaServer
from tests.vault import Vault

SUBJECTS = (
    "anchor rope lantern compass rudder mast keel galley cargo pilot harbour buoy tide current chart crew".split()
)
NO_WORD_OF_IT = "what soothes a furious purchaser"
ONE_BY_CHANCE = "what soothes a furious purchaser who bought the wrong chart"
WORDS_OF_IT = "anchor rope of the ship"
NUMBER = st.floats(-1, 1)
EVERYTHING = DEFAULT_PROFILE._replace(noise=False)


@pytest.fixture
def ships(vault: Vault) -> Vault:
    """All notes are a little alike."""
    for subject in SUBJECTS:
        vault.write(f"memories/{subject}.md", f"On board the ship the sailors look after the {subject} each day.")
        vault.write(f"memories/old-{subject}.md", f"On board the ship nobody paints the {subject} at night.")
        vault.write(f"memories/new-{subject}.md", f"On board the ship the {subject} hums in the wind.")
    vault.write("memories/apology.md", "On board the ship angry guests calm down after an apology.")
    vault.write("memories/oak.md", "On board the ship oak is better than pine.")
    return vault


def unit(numbers: tuple[float, ...]) -> np.ndarray:
    return np.array(numbers) / np.linalg.norm(numbers)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


@given(vectors=st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=3, max_size=6), length=st.floats(0, 0.9))
def test_cosines_alone_give_what_taking_a_vector_off_both_sides_gives(
    vectors: list[tuple[float, ...]], length: float
) -> None:
    assume(all(np.linalg.norm(vector) > 0.1 for vector in vectors))
    question, common, *passages = map(unit, vectors)

    plain = {number: cosine(question, passage) for number, passage in enumerate(passages)}
    towards = {number: cosine(common, passage) for number, passage in enumerate(passages)}
    found = cosines_apart(plain, towards, cosine(question, common), length)

    taken = length * common
    expected = {number: cosine(question - taken, passage - taken) for number, passage in enumerate(passages)}
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_passage_whose_vector_is_gone_has_no_cosine_apart() -> None:
    assert set(cosines_apart({1: 0.5, 2: 0.4}, {1: 0.2}, 0.1, 0.3)) == {1}


def test_a_part_of_the_mean_is_taken_off_and_nothing_where_there_are_few() -> None:
    assert in_common([(1.0, 0.0)] * (LEAST - 1)) is None
    assert in_common([(1.0, 0.0), (0.0, 1.0)] * LEAST) == pytest.approx([TAKEN_OFF / 2, TAKEN_OFF / 2])


def test_it_counts_as_far_as_it_should() -> None:
    plain, apart = {1: 0.9, 2: 0.5, 3: 0.1}, {1: 0.0, 2: 0.8}

    assert partly_apart(plain, apart, 0.0) == stretched(plain)
    assert partly_apart(plain, apart, 1.0) == {1: 0.0, 2: 1.0, 3: 0.0}
    assert partly_apart(plain, apart, 0.5) == pytest.approx({1: 0.5, 2: 0.75, 3: 0.0})


def traced(kb: KnowledgeBase, query: str, profile: Profile = DEFAULT_PROFILE) -> Trace:
    with kb.index.snapshot():
        trace = search_index(kb.index, kb.embedders, query, Filters(), 10, None, profile).trace
    assert trace is not None
    return trace


def meaning_of(trace: Trace) -> dict[int, float]:
    return {one.passage_id: one.meaning for one in trace.fused}


def computed(kb: KnowledgeBase, trace: Trace, query: str) -> dict[int, float]:
    """What meaning is worth where the common part counts for nothing, from the vectors themselves."""
    space = kb.index.spaces().active
    assert space is not None
    stored = {passage: np.array(vector) for passage, vector in kb.index.vectors(space, list(trace.cosines)).items()}
    blob = StaticEmbedder().embed([query], "query")[0]
    assert blob is not None
    taken = TAKEN_OFF * np.mean(list(stored.values()), axis=0)
    question = np.frombuffer(blob, "<f4") - taken
    return stretched({passage: cosine(question, vector - taken) for passage, vector in stored.items()})


@pytest.mark.parametrize("query", [NO_WORD_OF_IT, ONE_BY_CHANCE])
def test_a_question_whose_words_do_not_tell_is_measured_without_what_the_notes_have_in_common(
    kb: KnowledgeBase, ships: Vault, query: str
) -> None:
    kb.sync()

    trace = traced(kb, query, EVERYTHING)

    plain, apart = stretched(trace.cosines), computed(kb, trace, query)
    far = 1 - trace.telling if trace.matches else 1.0
    expected = {one: far * apart[one] + (1 - far) * plain[one] for one in meaning_of(trace)}
    assert far > 0.5
    assert len(trace.fused) == 3 * len(SUBJECTS) + 2 == FEW  # so that the mean is that of the whole vault
    assert meaning_of(trace) == pytest.approx(expected, abs=0.02)
    assert apart != pytest.approx(plain, abs=0.05)
    assert kb.search(query).hits[0].ref == "memory:apology"


def test_a_question_whose_words_tell_is_measured_as_it_stands(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    trace = traced(kb, WORDS_OF_IT, EVERYTHING)

    assert trace.telling == 1
    assert meaning_of(trace) == pytest.approx({one: stretched(trace.cosines)[one] for one in meaning_of(trace)})


def test_a_profile_may_want_it_whatever_words_tell(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    trace = traced(kb, WORDS_OF_IT, EVERYTHING._replace(apart=True))

    expected = computed(kb, trace, WORDS_OF_IT)
    assert trace.telling == 1
    assert meaning_of(trace) == pytest.approx({one: expected[one] for one in meaning_of(trace)}, abs=0.02)


def test_among_few_notes_words_are_taken_as_they_are(kb: KnowledgeBase, ships: Vault) -> None:
    (ships.root / "memories" / "oak.md").unlink()
    kb.sync()

    trace = traced(kb, ONE_BY_CHANCE, EVERYTHING)

    assert trace.telling < 0.5
    assert trace.fused[0].words + trace.fused[1].words > 0
    assert meaning_of(trace) == pytest.approx({one: stretched(trace.cosines)[one] for one in meaning_of(trace)})


def test_the_cosines_of_other_models_are_left_as_they_are(ships: Vault, data_dir: Path) -> None:
    """The server answers with the embedded model's vectors, so that nothing but whose they are differs."""
    server = OllamaServer()
    flags = {
        "vault": ships.root,
        "data_dir": data_dir,
        "knowledge_embedding_provider": "ollama",
        "knowledge_embedding_host": server.url,
    }
    with KnowledgeBase.open(settings=load_settings(flags)) as kb:
        kb.sync()
        trace = traced(kb, ONE_BY_CHANCE, EVERYTHING)
    server.close()

    assert trace.telling < 0.5
    assert meaning_of(trace) == pytest.approx({one: stretched(trace.cosines)[one] for one in meaning_of(trace)})


def test_half_of_the_mean_of_sixteen_vectors_is_taken_off_and_nothing_of_fewer() -> None:
    assert in_common([[1.0, 0.0]] * 15) is None
    assert in_common([[1.0, 0.0]] * 16) == pytest.approx([0.5, 0.0])


def test_a_passage_that_could_not_be_measured_apart_keeps_its_meaning() -> None:
    assert partly_apart({1: 0.2, 2: 0.8}, {1: 0.5}, 1.0)[2] == 1.0
