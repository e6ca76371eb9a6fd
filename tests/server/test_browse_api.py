"""Browsing notes: counts that follow what is chosen, sorting, pages, and cards with text and a picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.web_app import Access, Site
from tests.folder import Vault
from tests.server.api import ask
from tests.server.conftest import signed_in

TREES = {
    "memories/ash.md": "---\ntitle: ash\ntags: [tree]\ncreated: 2026-01-03\n---\nAshes are tall.",
    "memories/wood/elm.md": (
        "---\ntitle: Elm\ntags: [tree, wood]\ncreated: 2026-01-01\n---\n# Elm\n\n**Elms** ~~bend~~.^[In wind.]"
    ),
    "articles/wood/oak.md": (
        "---\ntitle: Oak\ntags: [wood]\ncreated: 2026-01-02\ndecay_protected: true\n---\n"
        "![far](https://example.org/x.png)\n\nOaks ![[oak.png]] live ![old](<old oak.jpg>) long."
    ),
    "articles/gone.md": "---\ntitle: Gone\nvalid_until: 2020-01-01\ndescription: It is gone.\n---\nText.",
}


@pytest.fixture
def trees(vault: Vault, kb: KnowledgeBase) -> TestClient:
    for number, (path, text) in enumerate(TREES.items()):
        os.utime(vault.write(path, text), (number, number))
    kb.sync()
    return signed_in(Site(kb, Access(), []))


def titles(api: TestClient, **chosen: Any) -> list[str]:
    return [note["title"] for note in ask(api, "GET", "/browse", **chosen)["notes"]]


def counts(found: Any, name: str) -> dict[str, int]:
    return {one["name"]: one["notes"] for one in found[name]}


def test_counts_follow_the_other_filters(trees: TestClient) -> None:
    every = ask(trees, "GET", "/browse")
    assert counts(every, "sources") == {"memory": 2, "article": 2}
    assert every["folders"] == [
        {"name": "articles", "notes": 2},
        {"name": "articles/wood", "notes": 1},
        {"name": "memories", "notes": 2},
        {"name": "memories/wood", "notes": 1},
    ]
    assert counts(every, "tags") == {"tree": 2, "wood": 2}

    chosen = ask(trees, "GET", "/browse", source=["memory"], tag=["wood"])
    assert (chosen["total"], counts(chosen, "sources")) == (1, {"memory": 1, "article": 1})
    assert counts(chosen, "folders") == {"memories": 1, "memories/wood": 1}
    assert counts(chosen, "tags") == {"tree": 1, "wood": 1}
    assert titles(trees, folder="articles", source=["memory"]) == []
    assert titles(trees, folder="memories/wood") == ["Elm"]
    assert titles(trees, folder="memories/wo") == []
    without = ask(trees, "GET", "/browse", counts=False)
    assert (without["total"], without["folders"], without["tags"]) == (4, [], [])


def test_notes_are_sorted_and_come_in_pages(trees: TestClient, kb: KnowledgeBase) -> None:
    assert titles(trees) == ["Gone", "Oak", "Elm", "ash"]
    assert titles(trees, sort="title") == ["ash", "Elm", "Gone", "Oak"]
    assert titles(trees, sort="created", tag=["tree"]) == ["ash", "Elm"]
    kb.note("memory:wood/elm", track=True)
    assert titles(trees, sort="opened") == ["Elm", "Gone", "Oak", "ash"]
    assert titles(trees, sort="title", offset=1, limit=2) == ["Elm", "Gone"]
    assert titles(trees, title="LM") == ["Elm"]
    assert titles(trees, ref=["memory:ash", "article:gone", "memory:nothing"]) == ["Gone", "ash"]
    assert ask(trees, "GET", "/browse", 400, sort="size")["error"]["kind"] == "invalid_input"


def test_a_card_has_plain_text_a_picture_and_what_is_special(trees: TestClient) -> None:
    gone, oak, elm, _ = ask(trees, "GET", "/browse")["notes"]

    assert (elm["ref"], elm["folder"], elm["excerpt"]) == ("memory:wood/elm", "memories/wood", "Elms bend.")
    assert (elm["picture"], elm["pinned"], elm["outdated"]) == (None, False, None)
    assert (oak["picture"], oak["pinned"], oak["excerpt"]) == ("oak.png", True, "Oaks live long.")
    assert (gone["excerpt"], gone["outdated"]) == ("It is gone.", "no longer valid")


def test_pinning_is_a_field_of_the_note(trees: TestClient, vault: Vault) -> None:
    ask(trees, "PUT", "/notes/memory:ash", fields={"decay_protected": True})
    assert titles(trees, where=["decay_protected=true"], sort="title") == ["ash", "Oak"]
    assert "decay_protected: true" in vault.read("memories/ash.md")
    ask(trees, "PUT", "/notes/memory:ash", fields={"decay_protected": None})
    assert titles(trees, where=["decay_protected=true"]) == ["Oak"]
    assert "decay_protected" not in vault.read("memories/ash.md")


def test_folders_of_linked_sources_have_their_name(trees: TestClient, kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "handbook" / "guides").mkdir(parents=True)
    (tmp_path / "handbook" / "guides" / "deploy.md").write_text("# Deploy\n\nBlue first.")
    kb.sources.add(str(tmp_path / "handbook"))
    kb.sync()

    found = ask(trees, "GET", "/browse", source=["folder"])

    assert counts(found, "folders") == {"folder:handbook": 1, "folder:handbook/guides": 1}
    assert titles(trees, folder="folder:handbook") == ["Deploy"]
