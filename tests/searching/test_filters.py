"""Filters select the same notes in the index and in a search of the files."""

from __future__ import annotations

import os
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.hits import Filters
from co_cli.retrieval.file_search import search_files
from co_cli.retrieval.request import SearchRequest
from tests.folder import Vault
from tests.index.test_engine_contract import CASES as CONTRACT
from tests.index.test_engine_contract import FILTERED

NOTES = {
    "memories/oak.md": """---
tags: [Ops/Deploy, trees]
category: Decision
created: 2026-03-01T23:59:59Z
importance: 0.8
pinned: true
rank: 7
owner: Ärger
langs: [Python, SQL, 3, true]
nothing:
nested: {a: b}
---
The note.
""",
    "memories/elm.md": """---
tags: [ops, shop]
category: fact
created: 2026-03-02
pinned: false
rank: 70
owner: "null"
langs: Python
---
The note, with an inline #garden tag.
""",
    "articles/ash.md": """---
tags: opsy
category: ÜBUNG
created: 2026-03-01T00:00:01Z
owner: Anna Schmidt
---
The note.
""",
    "articles/fir.md": "---\nkind: memory\ntags: [caf\u00e9, 'we[ir]d*']\ncreated: 2025-12-31\n---\nThe note.\n",
    "inbox/plain.md": "The note.\n",
}

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ash elm fir oak plain"),
    ({"sources": ["memory"]}, "elm fir oak"),
    ({"sources": ["article"]}, "ash plain"),
    ({"sources": ["memory", "article"]}, "ash elm fir oak plain"),
    ({"tags": ["ops"]}, "elm oak"),
    ({"tags": ["#OPS"]}, "elm oak"),
    ({"tags": ["ops/deploy"]}, "oak"),
    ({"tags": ["ops", "trees"]}, "oak"),
    ({"tags": ["shop", "trees"]}, ""),
    ({"tags": ["shop", "trees"], "any_tag": True}, "elm oak"),
    ({"tags": "ops"}, "elm oak"),
    ({"tags": ["op"]}, ""),
    ({"tags": ["garden"]}, "elm"),
    ({"tags": ["cafe\u0301"]}, "fir"),
    ({"tags": ["we[ir]d*"]}, "fir"),
    ({"tags": ["*"]}, ""),
    ({"category": "decision"}, "oak"),
    ({"category": "übung"}, "ash"),
    ({"category": "none"}, ""),
    ({"since": "2026-03-01"}, "ash elm oak plain"),
    ({"since": "2026-03-02", "until": "2026-03-31"}, "elm"),
    ({"until": "2026-03-01"}, "ash fir oak"),
    ({"until": "2026-03-01T00:00:01Z"}, "ash fir"),
    ({"since": "2026-03-01", "until": "2026-03-01"}, "ash oak"),
    ({"until": "2026-02-28"}, "fir"),
    ({"fields": {"importance": "0.8"}}, "oak"),
    ({"fields": {"pinned": "true"}}, "oak"),
    ({"fields": {"pinned": "False"}}, "elm"),
    ({"fields": {"rank": "7"}}, "oak"),
    ({"fields": {"owner": "ärger"}}, "oak"),
    ({"fields": {"owner": "anna schmidt"}}, "ash"),
    ({"fields": {"owner": "anna"}}, ""),
    ({"fields": {"owner": "null"}}, "elm"),
    ({"fields": {"langs": "python"}}, "elm oak"),
    ({"fields": {"langs": "SQL", "rank": "7"}}, "oak"),
    ({"fields": {"langs": "3"}}, "oak"),
    ({"fields": {"langs": "true"}}, "oak"),
    ({"fields": {"nothing": "none"}}, ""),
    ({"fields": {"nothing": ""}}, ""),
    ({"fields": {"nested": "{'a': 'b'}"}}, ""),
    ({"fields": {"missing": "x"}}, ""),
    ({"fields": {"tags": "trees"}, "category": "decision", "sources": ["memory"], "since": "2026-01-01"}, "oak"),
]


@pytest.fixture
def world(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    for path, text in NOTES.items():
        file = vault.write(path, text)
        os.utime(file, (1_790_000_000, 1_790_000_000))  # 2026-09-21: a note without a date is as old as its file
    kb.sync()
    return kb


@pytest.mark.parametrize("backend", ["fts5", "grep"])
def test_a_filter_lets_the_same_notes_through(world: KnowledgeBase, backend: str) -> None:
    for filters, names in CASES:
        found = world.search("note", backend=backend, **filters)

        shown = sorted(os.path.basename(hit.path).removesuffix(".md") for hit in found.hits)
        state = "found" if names else "absent"
        assert (shown, found.backend, found.state) == (names.split(), backend, state), filters


def test_listing_notes_takes_the_same_filters_newest_first(world: KnowledgeBase) -> None:
    assert [note.ref for note in world.notes()] == [
        "article:/inbox/plain",
        "memory:elm",
        "memory:oak",
        "article:ash",
        "memory:/articles/fir",
    ]
    assert [note.ref for note in world.notes(source="memory", tags=["ops"], limit=1)] == ["memory:elm"]
    assert [note.ref for note in world.notes(category="fact", fields={"rank": "70"})] == ["memory:elm"]


def test_a_filter_that_makes_no_sense_is_refused(world: KnowledgeBase) -> None:
    wrong = {"sources": ["memories"], "since": "someday", "until": "2026-13-45", "limit": 1_001, "backend": "magic"}
    for name, value in wrong.items():
        with pytest.raises(InvalidInputError, match=r"not "):
            world.search("note", **{name: value})  # type: ignore[arg-type]


def test_a_search_of_the_files_has_every_filter_of_an_engine(kb: KnowledgeBase, vault: Vault) -> None:
    """Also those that nobody can type, such as the speakers."""
    for path, fields in FILTERED.items():
        os.utime(vault.write(path, f"---\n{fields}\n---\nAn oak here."), (1_000, 1_000))

    wrong: list[object] = []
    for case, (filters, names) in CONTRACT.items():
        found = search_files(kb.index.places(), SearchRequest("oak", filters=filters))
        shown = sorted(os.path.basename(hit.path).removesuffix(".md") for hit in found.hits)
        wrong += [(case, shown)] if shown != names.split() else []
    assert wrong == []


def test_a_search_of_the_files_can_be_limited_to_folders(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "An oak here.")

    for roots, count in ((kb.root,), 1), (("/elsewhere",), 0):
        found = search_files(kb.index.places(), SearchRequest("oak", filters=Filters(roots=roots)))
        assert len(found.hits) == count
