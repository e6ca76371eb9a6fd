"""Profiles are tables of weights, exactly as they were asked for."""

from __future__ import annotations

from typing import Any

import pytest

from co_cli.errors import InvalidInputError
from co_cli.retrieval.profiles import DEFAULT, PROFILES, check_weights, profile_named
from co_cli.retrieval.score import hybrid, rank_fusion


def test_the_table_is_the_specified_one() -> None:
    assert {name: dict(profile.weights) for name, profile in PROFILES.items() if name != "seven"} == {
        "default": {"meaning": 0.7, "words": 0.3},
        "agent": {"meaning": 0.4, "words": 0.3, "recency": 0.2, "importance": 0.1},
        "rrf": {"meaning": 0.5, "words": 0.5},
        "fresh": {"meaning": 0.6, "words": 0.4, "recency": 0.1},
    }
    assert {name: profile.half_life for name, profile in PROFILES.items()} == {
        "default": None,
        "agent": None,
        "seven": 365.0,
        "rrf": None,
        "fresh": 30.0,
    }
    assert {name for name, profile in PROFILES.items() if profile.overfetch} == {"seven"}
    assert {name: profile.formula for name, profile in PROFILES.items() if profile.formula is not hybrid} == {
        "rrf": rank_fusion
    }
    assert profile_named("default") is DEFAULT


def test_seven_is_normalised_from_ninety_hundredths() -> None:
    seven = PROFILES["seven"].weights

    assert {name: weight * 0.9 for name, weight in seven.items()} == pytest.approx(
        {"words": 0.2, "meaning": 0.15, "severity": 0.1, "recency": 0.1, "tags": 0.1, "domain": 0.1, "links": 0.15}
    )
    assert sum(seven.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({"vector": 0.5}, "weights are of meaning, words"),
        ({"name": 0.5}, "weights are of meaning, words"),
        ({"words": 1.5}, "from 0 to 1, not 1.5"),
        ({"words": -0.1}, "from 0 to 1"),
        ({"words": float("nan")}, "from 0 to 1"),
        ({"words": True}, "from 0 to 1"),
        ({"words": "much"}, "from 0 to 1, not 'much'"),
        ({"words": 0, "meaning": 0, "recency": 1}, "give one of them more"),
    ],
)
def test_weights_that_make_no_sense_are_refused_with_what_would(weights: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        check_weights(weights)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="default, agent, seven, rrf, fresh"):
        profile_named("spec")
