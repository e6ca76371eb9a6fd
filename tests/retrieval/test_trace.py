"""A trace holds what each step made of a search, and a step that is turned off leaves its part empty."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.profiles import DEFAULT_PROFILE, PROFILES, Profile
from co_cli.retrieval.trace import Trace
from co_cli.service.searching import Finding, search_index
from co_cli.values import Filters
from tests.vault import Vault

QUESTION = "how deep is the harbour in winter"


@pytest.fixture
def ports(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/harbour.md", "---\ntitle: Harbour\n---\nThe harbour is nine metres deep.\n")
    vault.write("memories/pier.md", "---\ntitle: Pier\n---\nIn winter the pier is closed.\n")
    vault.write("memories/oak.md", "---\ntitle: Oak\n---\nOaks live for centuries.\n")
    kb.sync()
    return kb


def find(kb: KnowledgeBase, profile: Profile, query: str = QUESTION) -> Finding:
    with kb.index.snapshot():
        return search_index(kb.index, kb.embedders, query, Filters(), 10, None, profile)


def traced(kb: KnowledgeBase, profile: Profile = DEFAULT_PROFILE, query: str = QUESTION) -> Trace:
    trace = find(kb, profile, query).trace
    assert trace is not None
    return trace


def test_every_step_leaves_what_it_made(ports: KnowledgeBase) -> None:
    trace = traced(ports)

    assert trace.matches
    assert trace.near
    assert set(trace.near) <= set(trace.cosines)
    assert 0 < trace.trust <= 1
    assert {one.passage_id for one in trace.fused} == {one.passage_id for one in trace.ranked}
    assert [term.stem for term in trace.terms] == ["deep", "harbour", "winter"]
    assert set(trace.evidence) == {one.passage_id for one in trace.fused}
    assert trace.confidence is not None


def test_without_meaning_there_is_no_trace_and_words_answer(ports: KnowledgeBase) -> None:
    finding = find(ports, PROFILES["exact"])

    assert finding.trace is None
    assert finding.ranked
    assert finding.hits[0].ref == "memory:harbour"


def test_without_rerank_neither_terms_nor_evidence_and_the_order_is_that_of_fuse(ports: KnowledgeBase) -> None:
    trace = traced(ports, DEFAULT_PROFILE._replace(rerank=False))

    assert (trace.terms, trace.evidence, trace.telling) == ([], {}, 0.0)
    assert trace.ranked == trace.fused


def test_a_long_note_gives_nothing_up_where_words_tell_that_it_is_the_one(ports: KnowledgeBase, vault: Vault) -> None:
    sections = "".join(f"## Year {year}\n\nNothing was built in that year, and nobody came.\n\n" for year in range(6))
    vault.write("articles/quay.md", f"# Quay\n\n## Depth\n\nThe quay is four metres deep in winter.\n\n{sections}")
    ports.sync()
    asked = "how deep is the quay in winter"

    def meaning(weights: Weights, profile: Profile = DEFAULT_PROFILE) -> float:
        with ports.index.snapshot():
            trace = search_index(ports.index, ports.embedders, asked, Filters(), 10, weights, profile).trace
        assert trace is not None
        return next(one.meaning for one in trace.fused if one.passage_id == trace.near[0])

    assert traced(ports, query=asked).telling == 1.0
    assert meaning(Weights(meaning=0.7, words=0.3)) == 1.0
    assert meaning(Weights(meaning=0.7, words=0.3), DEFAULT_PROFILE._replace(rerank=False)) < 1.0
    assert meaning(Weights(meaning=0.4, words=0.6)) < 1.0  # there it hardly counts, and recall loses by it


def test_without_trust_words_count_in_full(ports: KnowledgeBase) -> None:
    assert traced(ports, DEFAULT_PROFILE._replace(trust=False)).trust == 1.0
    assert traced(ports).trust < 1.0


def test_without_noise_whatever_is_nearest_is_offered(ports: KnowledgeBase) -> None:
    quiet, all_of_them = traced(ports), traced(ports, DEFAULT_PROFILE._replace(noise=False))

    assert len(all_of_them.fused) == 3 > len(quiet.fused)


def test_without_abstaining_nobody_says_how_sure_it_is(ports: KnowledgeBase) -> None:
    assert traced(ports, DEFAULT_PROFILE._replace(abstain=False)).confidence is None


def test_without_names_a_title_is_a_query_like_any_other(ports: KnowledgeBase) -> None:
    assert [one.kind for one in traced(ports, query="Pier").called] == ["title"]
    assert traced(ports, query="Pier").confidence == 1.0
    assert find(ports, DEFAULT_PROFILE._replace(names=False), "Pier").called == []


def test_with_every_term_words_propose_only_what_has_them_all(ports: KnowledgeBase) -> None:
    assert traced(ports, DEFAULT_PROFILE._replace(every_term=True)).matches == []
    assert len(traced(ports).matches) == 2
