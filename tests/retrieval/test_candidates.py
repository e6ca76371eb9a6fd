"""Words, meaning and names each propose passages; every passage is a candidate once, and lacks nothing."""

from __future__ import annotations

from co_cli.index.names import Called
from co_cli.index.vectors import Neighbour
from co_cli.index.words import WordMatch
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.candidates import BY_MEANING, BY_WORDS, OVERFETCH, how_many, propose
from tests.vault import Vault

BOTH, WORDS_ONLY = WordMatch(1, 10, -3.0, True), WordMatch(2, 20, -2.0, False)
NEAR = [Neighbour(1, 0.9), Neighbour(3, 0.8)]


def test_what_is_not_known_yet_is_asked_for() -> None:
    found = propose([BOTH, WORDS_ONLY], NEAR)

    assert found.docs == {1: 10, 2: 20}
    assert found.cosines == {1: 0.9, 3: 0.8}
    assert found.near == [1, 3]
    assert found.unmeasured == [2]
    assert found.unplaced == [3]


def test_a_note_that_only_its_name_proposed_is_measured_too() -> None:
    found = propose([BOTH], NEAR, [Called(7, 70, "alias")])

    assert found.docs[7] == 70
    assert found.unmeasured == [7]


def test_a_note_that_words_proposed_as_well_keeps_the_passages_that_have_them() -> None:
    assert 7 not in propose([BOTH], NEAR, [Called(7, 10, "title")]).docs


def test_each_of_the_three_can_be_left_out() -> None:
    assert propose([], NEAR).unplaced == [1, 3]
    assert propose([BOTH], []).unmeasured == [1]
    assert propose([], [], [Called(7, 70, "ref")]).docs == {7: 70}
    assert propose([], []).docs == {}


def test_with_every_term_words_propose_only_what_has_them_all() -> None:
    assert propose([BOTH, WORDS_ONLY], NEAR, every_term=True).matches == [BOTH]


def test_who_wants_many_hits_gets_as_many_candidates() -> None:
    assert how_many(1) == (BY_WORDS, BY_MEANING)
    assert how_many(1_000) == (1_000 * OVERFETCH, 1_000 * OVERFETCH)


def test_a_profile_without_meaning_has_candidates_by_words_alone(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/doctor.md", "The doctor is in.")
    vault.write("memories/physician.md", "A physician answers.")
    kb.sync()

    assert len(kb.search("which doctor", profile="exact").hits) == 1
    assert len(kb.search("which doctor", profile="meaning").hits) == 2
