"""How sure it is that anything here has to do with the question."""

from __future__ import annotations

import pytest

from co_cli.embedding.space import VectorSpace
from co_cli.retrieval.abstain import confidence
from co_cli.retrieval.evidence import Evidence
from co_cli.retrieval.fuse import Scored, Weights
from co_cli.retrieval.profiles import DEFAULT_PROFILE
from co_cli.retrieval.trace import Trace

MEASURED = VectorSpace("static", "test", 256, certainty=(20.0, 4.0, -10.0))


def trace(cosines: dict[int, float], related: dict[int, float], trust: float = 0.0) -> Trace:
    ranked = [Scored(passage, passage, cosine, {}) for passage, cosine in cosines.items()]
    evidence = {passage: Evidence(related=share) for passage, share in related.items()}
    return Trace(DEFAULT_PROFILE, [], cosines, [], trust, Weights(0.4, 0.6), ranked, [], evidence, ranked)


def test_nearer_passages_and_shared_words_make_it_surer() -> None:
    far = confidence(trace({1: 0.1}, {1: 0.0}), MEASURED, 250)
    near = confidence(trace({1: 0.5}, {1: 0.0}), MEASURED, 250)
    shared = confidence(trace({1: 0.1}, {1: 1.0}), MEASURED, 250)

    assert far is not None
    assert near is not None
    assert shared is not None
    assert 0 < far < shared < near < 1
    assert near == pytest.approx(0.5)


def test_the_best_of_several_passages_counts() -> None:
    one = confidence(trace({1: 0.5}, {1: 0.9}), MEASURED, 250)

    assert confidence(trace({2: 0.1, 1: 0.5, 3: 0.2}, {2: 0.0, 1: 0.9}), MEASURED, 250) == one


def test_without_evidence_the_trust_in_words_takes_its_place() -> None:
    assert confidence(trace({1: 0.4}, {}, trust=0.5), MEASURED, 250) == confidence(
        trace({1: 0.4}, {1: 0.5}), MEASURED, 250
    )


def test_nobody_knows_in_a_space_that_was_not_measured_or_without_candidates() -> None:
    assert confidence(trace({1: 0.9}, {}), VectorSpace("ollama", "x", 256), 250) is None
    assert confidence(trace({}, {}), MEASURED, 250) is None


def test_the_ends_of_the_scale_are_no_error() -> None:
    assert confidence(trace({1: 0.0}, {}), MEASURED._replace(certainty=(1.0, 1.0, -5_000.0)), 250) == 0.0


def test_the_same_cosine_says_more_in_a_small_vault() -> None:
    small = confidence(trace({1: 0.3}, {1: 0.0}), MEASURED, 2)
    usual = confidence(trace({1: 0.3}, {1: 0.0}), MEASURED, 250)
    large = confidence(trace({1: 0.3}, {1: 0.0}), MEASURED, 100_000)

    assert small is not None
    assert usual is not None
    assert small > usual
    assert large == usual
