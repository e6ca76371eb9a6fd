"""Where words do not tell: a title that means the same, a single word that is there by chance, and what noise hides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from co_cli.embedding.static import StaticEmbedder
from co_cli.embedding.word_codes import codes_of, cosine_table
from co_cli.index.lexicon import PassageWords
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.evidence import Evidence
from co_cli.retrieval.fuse import Scored, Weights
from co_cli.retrieval.profiles import DEFAULT_PROFILE, Profile
from co_cli.retrieval.question import Term
from co_cli.retrieval.rerank import FAR, NEAR, how_telling, rerank
from co_cli.retrieval.titled import UNRELATED, titles_near
from co_cli.retrieval.trace import Trace
from co_cli.service.searching import FEW, KEPT, search_index
from co_cli.settings import load_settings
from co_cli.values import Filters
from tests.embedding.loopback import OllamaServer
from tests.vault import Vault

PLACES = "anchor rope lantern compass rudder mast keel galley cargo pilot harbour buoy tide current chart crew".split()
ASKED = "garbage pickup day"
BY_CHANCE = "garbage at the harbour"
"""Some notes have one word of it, and none has two."""


@pytest.fixture
def ships(vault: Vault) -> Vault:
    for place in PLACES:
        vault.write(f"memories/{place}.md", f"On board the sailors look after the {place}.")
        vault.write(f"memories/old-{place}.md", f"On board nobody paints the {place} at night.")
        vault.write(f"memories/new-{place}.md", f"On board the {place} hums in the wind.")
    vault.write("memories/rubbish.md", "---\ntitle: Rubbish collection\n---\nThe lorry comes on Fridays at six.")
    vault.write("memories/oak.md", "Oak is better than pine.")
    return vault


def traced(kb: KnowledgeBase, query: str, profile: Profile = DEFAULT_PROFILE) -> Trace:
    with kb.index.snapshot():
        trace = search_index(kb.index, kb.embedders, query, Filters(), 10, None, profile).trace
    assert trace is not None
    return trace


def coded(*words: str) -> dict[str, tuple[str, int]]:
    vectors = [vector for vector in StaticEmbedder().embed(words, "query") if vector is not None]
    codes = [int.from_bytes(code, "big") for code in codes_of(vectors)]
    return {word: (word, code) for word, code in zip(words, codes, strict=True)}


def near(question: str, title: str, **facts: bool) -> float | None:
    known = coded(*question.split(), *title.split())
    terms = [Term(word, 3.0, known[word][1], facts.get("named", False)) for word in question.split()]
    passages = {1: PassageWords(title.split(), [], [], own_title=facts.get("own_title", True))}
    return titles_near(terms, passages, known, cosine_table()).get(1)


def test_a_title_is_as_near_as_the_vectors_of_its_words_and_of_the_question_are() -> None:
    for question, title in [("garbage pickup", "rubbish collection"), ("doctor visit", "physician appointment")]:
        words = [*question.split(), *title.split()]
        vectors = [np.frombuffer(vector or b"", "<f4") for vector in StaticEmbedder().embed(words, "query")]
        one, other = np.sum(vectors[:2], axis=0), np.sum(vectors[2:], axis=0)
        cosine = float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))

        assert near(question, title) == pytest.approx(cosine - UNRELATED, abs=0.08)


def test_a_title_about_something_else_is_not_near_and_none_is_further_than_that() -> None:
    assert near("garbage pickup", "piano tuner") == pytest.approx(0.0, abs=0.05)
    assert (near("garbage pickup", "garbage pickup") or 0.0) <= 1.0


def test_a_title_that_is_only_how_the_text_begins_and_a_name_in_the_question_say_nothing() -> None:
    assert near("garbage pickup", "rubbish collection", own_title=False) is None
    assert near("garbage pickup", "rubbish collection", named=True) is None


def test_a_title_whose_words_nobody_knows_is_not_near() -> None:
    term = Term("garbage", 3.0, coded("garbage")["garbage"][1], False)

    assert titles_near([term], {1: PassageWords(["xq"], [], [])}, {}, cosine_table()) == {1: 0.0}
    assert titles_near([term], {1: PassageWords(["xq"], [], [])}, {"xq": ("xq", 0)}, cosine_table()) == {1: 0.0}


def test_a_near_title_lifts_a_note_where_words_do_not_tell_and_hardly_where_they_half_do() -> None:
    candidates = [Scored(1, 1, 0.0, {}, 0.0, 0.5), Scored(2, 2, 0.0, {}, 0.0, 0.45)]
    evidence = {1: Evidence(), 2: Evidence(titled=0.3)}

    told, untold = (rerank(candidates, evidence, Weights(0.4, 0.6), 1 - far, untold=far) for far in (0.3, 1.0))

    assert [one.passage_id for one in told] == [1, 2]
    assert [one.passage_id for one in untold] == [2, 1]
    assert untold[0].signals["title"] > told[1].signals["title"]


def test_one_word_tells_less_where_every_passage_is_far_and_nothing_is_named() -> None:
    terms = [Term(word, 3.0, 1, False) for word in ("boat", "storm", "rope")]
    named = [*terms[:2], terms[2]._replace(named=True)]

    assert how_telling(0.45, terms, 400, together=1, nearest=NEAR) == how_telling(0.45, terms, 400) > 0
    assert how_telling(0.45, terms, 400, together=1, nearest=FAR) == 0
    assert 0 < how_telling(0.5, terms, 400, together=1, nearest=(FAR + NEAR) / 2) < how_telling(0.5, terms, 400)
    assert how_telling(0.45, terms, 400, together=2, nearest=FAR) == how_telling(0.45, terms, 400)
    assert how_telling(0.45, named, 400, together=1, nearest=FAR) == how_telling(0.45, named, 400)
    assert how_telling(1.0, terms[:1], 400, together=1, nearest=FAR) == 1  # all that was asked for is there


def test_the_note_whose_title_means_what_was_asked_comes_first(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    trace = traced(kb, ASKED)

    assert not trace.matches
    assert trace.telling == 0
    assert max(found.titled for found in trace.evidence.values()) > 0.1
    assert kb.search(ASKED).hits[0].ref == "memory:rubbish"
    assert kb.search(ASKED).hits[0].signals["title"] > 0


def test_a_single_word_that_is_there_by_chance_is_less_evidence(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    trace = traced(kb, BY_CHANCE)

    assert trace.matches
    assert max(trace.cosines.values()) < NEAR
    assert trace.telling < how_telling(trace.trust, trace.terms, FEW)


def test_where_all_are_alike_as_skills_are_a_single_word_tells_as_far_as_it_is_there(
    kb: KnowledgeBase, ships: Vault
) -> None:
    kb.sync()

    trace = traced(kb, BY_CHANCE, DEFAULT_PROFILE._replace(apart=True))

    assert trace.telling == how_telling(trace.trust, trace.terms, FEW) > 0


def test_two_words_of_a_note_tell_though_it_is_far(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()
    query = "garbage pickup where the lantern hums"

    trace = traced(kb, query)

    assert trace.telling == how_telling(trace.trust, trace.terms, FEW) > 0
    assert kb.search(query).hits[0].ref == "memory:new-lantern"


def test_titles_are_not_looked_at_where_words_tell(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    trace = traced(kb, "the lorry comes on Fridays")

    assert trace.telling == 1
    assert all(found.titled == 0 for found in trace.evidence.values())


def test_among_few_notes_words_tell_as_far_as_they_are_there(kb: KnowledgeBase, ships: Vault) -> None:
    (ships.root / "memories" / "oak.md").unlink()
    kb.sync()

    trace = traced(kb, BY_CHANCE)

    assert trace.telling == how_telling(trace.trust, trace.terms, FEW - 1) > 0
    assert all(found.titled == 0 for found in trace.evidence.values())


def test_of_a_model_that_nobody_measured_nearness_says_nothing_about_words(ships: Vault, data_dir: Path) -> None:
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
        trace = traced(kb, BY_CHANCE)
    server.close()

    assert trace.telling == how_telling(trace.trust, trace.terms, FEW) > 0


def test_where_words_do_not_tell_the_nearest_ten_stay_if_any_is_nearer_than_noise(
    kb: KnowledgeBase, ships: Vault
) -> None:
    kb.sync()
    space = kb.index.spaces().active
    assert space is not None

    trace = traced(kb, ASKED)
    nearest = sorted(trace.cosines, key=lambda passage: -trace.cosines[passage])

    assert sum(cosine >= space.space.noise for cosine in trace.cosines.values()) < KEPT
    assert {one.passage_id for one in trace.fused} == set(nearest[:KEPT])


def test_a_question_that_nothing_is_near_to_still_finds_nothing(kb: KnowledgeBase, ships: Vault) -> None:
    kb.sync()

    assert kb.search("zzzzqqq").hits == []
