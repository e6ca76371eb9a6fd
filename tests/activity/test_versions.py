"""Each document has a head and every head it had before, whatever happens to files and to search.db."""

from __future__ import annotations

from pathlib import Path

from co_cli.activity import Activity
from co_cli.activity.events import Head, Indexed
from co_cli.activity.versions import known, moved_to, versions
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.activity.conftest import NOON, index, rows
from tests.folder import Vault

OAK = Head("oak.md", "a1", "Oak", 10)
VERSIONS = "select path, what from versions join documents on documents.id = document_id order by versions.id"


def history(activity: Activity, path: str) -> list[str]:
    with activity.database.reading() as connection:
        head = known(connection, activity.root, path)
        assert head is not None
        return [version.what for version in versions(connection, head.id, 100)]


def test_a_move_keeps_the_history_and_the_use(activity: Activity) -> None:
    index(activity, OAK, saved_by="cli")
    activity.opened(f"{activity.root}/oak.md")
    assert activity.flush()
    moved = OAK._replace(path="tree/oak.md")

    index(activity, moved, moved=[("oak.md", "tree/oak.md")])
    index(activity, moved._replace(hash="b2"))

    assert history(activity, "tree/oak.md") == ["updated", "moved", "created"]
    with activity.database.reading() as connection:
        assert known(connection, activity.root, "oak.md") is None
        assert moved_to(connection, activity.root, "oak.md") == "tree/oak.md"
    assert rows(activity, "select opens from uses") == [(1,)]


def test_what_the_page_saves_while_somebody_types_is_one_version(activity: Activity) -> None:
    moments = (
        (0, "web", "a1"),
        (2, "web", "b2"),
        (300, "web", "c3"),
        (301, "cli", "d4"),
        (302, "web", "e5"),
        (303, "web:mara", "f6"),
        (1_000, "web:mara", "a7"),
    )
    for after, who, file_hash in moments:
        activity.write([Indexed(activity.root, NOON + after, [OAK._replace(hash=file_hash)], saved_by=who)])

    kept = rows(activity, "select at, what, hash, front_end from versions order by id")
    assert kept == [
        (NOON + 300, "created", "c3", "web"),
        (NOON + 301, "updated", "d4", "cli"),
        (NOON + 302, "updated", "e5", "web"),
        (NOON + 303, "updated", "f6", "web:mara"),
        (NOON + 1_000, "updated", "a7", "web:mara"),
    ]


def test_a_change_that_is_reported_late_does_not_replace_a_later_one(activity: Activity) -> None:
    index(activity, OAK, saved_by="cli")
    activity.write([Indexed(activity.root, NOON - 5, [OAK._replace(hash="b2")], removed=["oak.md"])])

    assert rows(activity, "select hash, gone from documents") == [("a1", None)]


def test_syncs_saves_changes_and_removals_are_versions(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/elm.md", "Elms fall ill.")
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    saved = kb.remember("Ashes burn well.", title="Ash")
    kb.update(saved.ref, content="Ashes burn very well.")
    kb.forget(saved.ref)
    kb.restore(saved.ref)
    vault.write("memories/oak.md", "Oaks live longer.")
    kb.sync()
    expected = [
        ("memories/elm.md", "seen"),
        ("memories/oak.md", "seen"),
        ("memories/ash.md", "created"),
        ("memories/ash.md", "updated"),
        ("memories/ash.md", "removed"),
        ("memories/ash.md", "restored"),
        ("memories/oak.md", "updated"),
    ]
    assert rows(kb.activity, VERSIONS) == expected

    kb.rebuild()

    assert rows(kb.activity, VERSIONS) == expected


def test_deleting_search_db_loses_no_history(kb: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")
    kb.sync()
    vault.write("memories/oak.md", "Oaks live longer.")
    kb.sync()

    kb.engine.close()
    for file in data_dir.glob("search.db*"):
        file.unlink()
    vault.path("memories/elm.md").rename(vault.path("memories/wych-elm.md"))
    kb.sync()
    assert kb.activity.flush()

    assert history(kb.activity, "memories/oak.md") == ["updated", "seen"]
    assert history(kb.activity, "memories/wych-elm.md") == ["moved", "seen"]


def test_what_was_there_before_the_first_sync_is_not_listed_as_changed(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/old.md", "---\ncreated: 2020-01-01\n---\nIt was here before co.\n")
    toolbox = Toolbox(kb)

    first = toolbox.call("list_memories", {"since": "1h"}).text
    vault.write("memories/old.md", "---\ncreated: 2020-01-01\n---\nIt was changed since.\n")
    then = toolbox.call("list_memories", {"since": "1h"}).text

    assert first == "0 of 0 notes changed since 1h, newest first."
    assert "memory:old · Old · updated " in then
