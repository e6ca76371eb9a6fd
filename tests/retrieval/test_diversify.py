"""Each note has one hit, its best passage; and that can be turned off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.diversify import one_a_note
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.profiles import DEFAULT_PROFILE
from co_cli.service.searching import search_index
from co_cli.values import Filters
from tests.vault import Vault

DOCS = st.lists(st.integers(0, 6), max_size=30)


def ranked(docs: list[int]) -> list[Scored]:
    return [Scored(number, doc, 1 - number / 100, {}) for number, doc in enumerate(docs)]


@given(docs=DOCS, limit=st.integers(1, 8))
def test_each_note_has_one_hit_and_it_is_its_best(docs: list[int], limit: int) -> None:
    scored = ranked(docs)

    chosen = one_a_note(scored, limit)

    found = [candidate.doc_id for candidate in chosen]
    assert len(found) == len(set(found)) == min(limit, len(set(docs)))
    for candidate in chosen:
        assert candidate == next(other for other in scored if other.doc_id == candidate.doc_id)
    assert chosen == sorted(chosen, key=lambda candidate: -candidate.score)


@given(docs=DOCS, limit=st.integers(1, 8))
def test_turned_off_the_best_passages_stay_of_whichever_notes(docs: list[int], limit: int) -> None:
    assert one_a_note(ranked(docs), limit, diversify=False) == ranked(docs)[:limit]


def test_a_search_without_it_answers_with_several_passages_of_a_note(kb: KnowledgeBase, vault: Vault) -> None:
    sections = "\n\n".join(f"## Part {number}\n\n{'The harbour is deep. ' * 60}" for number in range(4))
    vault.write("articles/harbour.md", f"# Harbour\n\n{sections}\n")
    kb.sync()

    assert len(kb.search("deep harbour").hits) == 1
    with kb.index.snapshot():
        passages = DEFAULT_PROFILE._replace(diversify=False)
        found = search_index(kb.index, kb.embedders, "deep harbour", Filters(), 10, None, passages)
    assert len(found.hits) > 1
    assert len({hit.ref for hit in found.hits}) == len(found.hits)
