"""A profile names which steps run; weights are checked before they are used."""

from __future__ import annotations

import pytest

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.profiles import DEFAULT_PROFILE, PROFILES, Mix, profile_named, weighed, weights_of
from co_cli.settings import BY_NAME
from tests.vault import Vault

QUESTION = "how do we calm an angry customer"


def test_the_setting_and_the_profiles_agree() -> None:
    assert set(BY_NAME["knowledge_profile"].choices) <= set(PROFILES)


def test_an_unknown_profile_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"default, exact, meaning, spec, .*rrf, not 'fast'"):
        profile_named("fast")


@pytest.mark.parametrize("weights", [{"word": 1.0}, {"words": 1.5}, {"words": -0.1}, {"words": 0.0, "meaning": 0.0}])
def test_weights_that_make_no_sense_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        weighed(DEFAULT_PROFILE, weights)


def test_a_weight_that_is_not_named_counts_for_nothing() -> None:
    assert weighed(DEFAULT_PROFILE, {"meaning": 0.5}) == (DEFAULT_PROFILE, Weights(meaning=0.5, words=0.0))
    assert weighed(DEFAULT_PROFILE, None) == (DEFAULT_PROFILE, None)


def test_who_names_words_or_meaning_says_what_the_whole_score_is_made_of() -> None:
    profile, balance = weighed(PROFILES["agent"], {"words": 0.3, "recency": 0.2})

    assert balance == Weights(meaning=0.0, words=0.3)
    assert profile.mix == Mix(0.3, (("recency", 0.2),))


def test_who_names_only_others_adds_them_and_the_ranking_keeps_the_rest() -> None:
    profile, balance = weighed(DEFAULT_PROFILE, {"importance": 0.25})

    assert balance is None
    assert profile.mix == Mix(0.75, (("importance", 0.25),))


def test_weights_are_typed_as_names_and_numbers() -> None:
    assert weights_of("words=0.3, recency=0.2") == {"words": 0.3, "recency": 0.2}
    for text in ("words", "words=", "words=much", "0.3"):
        with pytest.raises(InvalidInputError, match=r"words=0\.3,recency=0\.2"):
            weights_of(text)


@pytest.fixture
def asked(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/apology.md", "Say sorry first, then offer the guest a refund.")
    vault.write("memories/pier.md", "The customer pier is calm in the morning.")
    vault.write("memories/oak.md", "Oaks live for centuries.")
    kb.sync()
    return kb


def signals(kb: KnowledgeBase, profile: str) -> set[str]:
    return {name for hit in kb.search(QUESTION, profile=profile).hits for name in hit.signals}


def test_each_profile_answers_with_its_own_signals(asked: KnowledgeBase) -> None:
    assert signals(asked, "exact") == {"words"}
    assert {"related", "words", "meaning"} <= signals(asked, "default")
    assert signals(asked, "meaning") == {"words", "meaning"}
    assert all(hit.score == hit.signals["meaning"] for hit in asked.search(QUESTION, profile="meaning").hits)


def test_spec_is_the_plain_formula(asked: KnowledgeBase) -> None:
    hits = asked.search("customer pier", profile="spec").hits

    assert hits[0].ref == "memory:pier"
    assert hits[0].signals == {"words": 0.3, "meaning": 0.7}
    assert all(hit.signals["words"] == 0 for hit in asked.search("customer oaks", profile="spec").hits)


def test_weights_of_one_query_win_over_the_profile(asked: KnowledgeBase) -> None:
    hits = asked.search("customer pier", profile="spec", weights={"words": 1.0}).hits

    assert hits[0].signals == {"words": 1.0, "meaning": 0.0}


def test_an_unknown_profile_is_refused_by_a_search(asked: KnowledgeBase) -> None:
    with pytest.raises(InvalidInputError):
        asked.search("pier", profile="fast")
