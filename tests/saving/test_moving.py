"""A note that is moved keeps its links, its history and what it superseded, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import NoteConflictError
from co_cli.tools import Toolbox
from tests.folder import Vault
from tests.postgres import new_database
from tests.vault.team.servers import Team

NOTES = {
    "memories/otter.md": "Otters swim. See [the pond](pond.md).\n",
    "memories/pond.md": "The pond is deep.\n",
    "memories/by-name.md": "Ask [[otter]] first.\n",
    "memories/by-path.md": "Ask [[memories/otter|her]] and [x](otter.md).\n",
    "memories/gate-1.md": "The gate code is 1111.\n",
    "memories/gate-2.md": "---\nsupersedes: [memory:gate-1]\n---\nThe gate code is 2222.\n",
}


on_postgres = partial(pytest.param, marks=pytest.mark.postgres)


@pytest.fixture(params=["sqlite", on_postgres("postgres"), on_postgres("team")])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[KnowledgeBase, Path]]:
    """A vault with these notes, and its folder: on each engine, and a team's whose truth is git."""
    vault = Vault(tmp_path / "vault")
    for path, text in NOTES.items():
        vault.write(path, text)
    if request.param == "sqlite":
        with KnowledgeBase.open(vault.root, tmp_path / "data") as kb:
            yield kb, vault.root
        return
    team = Team(tmp_path, new_database())
    if request.param == "team":
        for path, text in NOTES.items():
            team.push(path, text)
    kb = team.server("one") if request.param == "team" else team.open(vault.root)
    kb.sync()
    yield kb, Path(kb.root)
    team.close()


@pytest.mark.slow
@pytest.mark.medium
def test_links_to_and_from_a_moved_note_are_kept(opened: tuple[KnowledgeBase, Path]) -> None:
    kb, root = opened
    toolbox = Toolbox(kb)

    moved = toolbox.call("update_memory", {"ref": "memory:otter", "path": "animals/"}).text

    assert moved.startswith("updated memory:animals/otter (")
    assert "memory:by-path" in moved
    assert (root / "memories/animals/otter.md").read_text() == "Otters swim. See [the pond](../pond.md).\n"
    assert not (root / "memories/otter.md").exists()
    assert (root / "memories/by-name.md").read_text() == "Ask [[otter]] first.\n"
    assert (
        root / "memories/by-path.md"
    ).read_text() == "Ask [[memories/animals/otter|her]] and [x](animals/otter.md).\n"
    around = toolbox.call("read_note", {"ref": "memory:animals/otter", "around": True}).text
    assert "Links to: memory:pond" in around
    assert "memory:by-name: " in around
    assert "memory:by-path: " in around
    assert '<note ref="memory:animals/otter"' in toolbox.call("recall_memory", {"query": "otters swim"}).text


@pytest.mark.medium
def test_what_a_note_superseded_stays_superseded(opened: tuple[KnowledgeBase, Path]) -> None:
    toolbox = Toolbox(opened[0])

    toolbox.call("update_memory", {"ref": "memory:gate-1", "path": "old/gate.md"})

    assert 'outdated="superseded by memory:gate-2"' in toolbox.call("read_note", {"ref": "memory:old/gate"}).text


@pytest.mark.medium
def test_a_change_that_also_moves_a_note_to_a_taken_path_changes_nothing(opened: tuple[KnowledgeBase, Path]) -> None:
    kb, root = opened
    with pytest.raises(NoteConflictError, match=r"memories/pond.md exists already; nothing was moved or changed"):
        kb.update("memory:otter", "Otters dive.", path="pond.md")

    assert {path: (root / path).read_text() for path in NOTES} == NOTES
    assert not (root / ".trash").exists()


@pytest.mark.medium
def test_links_by_the_old_title_keep_working_when_a_note_gets_another_title(opened: tuple[KnowledgeBase, Path]) -> None:
    kb, _ = opened
    kb.sync()
    kb.update("memory:otter", title="River otters", fields={"aliases": ["lutra"]})
    for name in ("zoo", "park"):
        kb.remember("Visit the [[River otters#Where|otters]].", title=name)
    kb.remember("Otters do not swim.", title="No swim", fields={"supersedes": "River otters"})

    renamed = kb.update("memory:otter", title="Otters of the lake")

    assert renamed.detail == "memory:otter; 4 notes link to it; its old title is an alias now"
    assert kb.note("memory:otter").aliases == ("lutra", "River otters")
    assert {"memory:park", "memory:zoo"} <= {link.ref for link in kb.links("memory:otter")[1]}
    assert kb.outdated(kb.note("memory:otter")) == "superseded by memory:no-swim"
    kb.update("memory:otter", title="River otters")
    assert kb.note("memory:otter").aliases == ("lutra",), "the title is no alias of itself"


@pytest.mark.medium
def test_a_new_title_adds_no_alias_if_nothing_links_by_the_old_one(opened: tuple[KnowledgeBase, Path]) -> None:
    kb, _ = opened
    kb.sync()

    assert kb.update("memory:pond", title="A deep pond").detail == "memory:pond; 1 note links to it"
    assert kb.note("memory:pond").aliases == ()
    assert kb.update("memory:gate-2", title="Gate").detail == ""
