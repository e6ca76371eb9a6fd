"""Each document has a head and every head it had before, whatever happens to files and to search.db."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from co_cli.activity import Activity
from co_cli.activity.database import ActivityDatabase
from co_cli.activity.versions import Head, known, put_everything, put_heads, vault_id, versions, went
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.recording import record_sync
from co_cli.values import SyncReport
from tests.vault import Vault

ROOT = "/vault"


@pytest.fixture
def connection(data_dir: Path) -> Iterator[apsw.Connection]:
    database = ActivityDatabase(str(data_dir))
    with database.writing() as opened:
        yield opened
    database.close()


def told(connection: apsw.Connection, path: str, root: str = ROOT) -> list[str]:
    head = known(connection, root, path)
    assert head is not None
    return [version.what for version in versions(connection, head.id, 100)]


def test_an_upsert_answers_created_updated_or_skipped_and_why(connection: apsw.Connection) -> None:
    put_everything(connection, ROOT, lambda: [], 1.0)  # the vault is known, and empty

    first = put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak", 10)], 2.0)
    again = put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak", 10)], 3.0)
    changed = put_heads(connection, ROOT, [Head("oak.md", "b2", "Old oak", 14)], 4.0)

    assert [(one.outcome, one.why) for one in (*first, *again, *changed)] == [
        ("created", "it was not known"),
        ("skipped", "its hash is that of the head"),
        ("updated", "its hash is another"),
    ]
    head = known(connection, ROOT, "oak.md")
    assert head is not None
    assert (head.hash, head.title, head.size, head.updated) == ("b2", "Old oak", 14, 4.0)
    assert [(one.at, one.what, one.hash) for one in versions(connection, head.id, 10)] == [
        (4.0, "updated", "b2"),
        (2.0, "created", "a1"),
    ]


def test_files_older_than_the_history_are_marked_seen_not_created(connection: apsw.Connection) -> None:
    everything = [Head("oak.md", "a1", "Oak"), Head("elm.md", "e1", "Elm")]

    put_heads(connection, ROOT, everything[:1], 1.0)
    put_everything(connection, ROOT, lambda: everything, 1.0)
    put_heads(connection, ROOT, [Head("ash.md", "c1", "Ash")], 2.0)
    put_everything(connection, ROOT, lambda: pytest.fail("asked twice"), 2.0)

    assert [told(connection, path) for path in ("oak.md", "elm.md", "ash.md")] == [["seen"], ["seen"], ["created"]]


def test_a_move_keeps_the_history_and_the_use(connection: apsw.Connection) -> None:
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak")], 1.0, saved=True)

    put_heads(connection, ROOT, [Head("tree/oak.md", "a1", "Oak")], 2.0, moved=[("oak.md", "tree/oak.md")])
    put_heads(connection, ROOT, [Head("tree/oak.md", "b2", "Oak")], 3.0)

    assert told(connection, "tree/oak.md") == ["updated", "moved", "created"]
    assert known(connection, ROOT, "oak.md") is None
    assert went(connection, ROOT, "oak.md") == "tree/oak.md"


def test_a_move_onto_a_path_that_had_a_document_joins_their_histories(connection: apsw.Connection) -> None:
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak"), Head("elm.md", "e1", "Elm")], 1.0, saved=True)
    put_heads(connection, ROOT, [], 2.0, removed=["oak.md"])

    put_heads(connection, ROOT, [], 3.0, moved=[("elm.md", "oak.md")])

    assert told(connection, "oak.md") == ["moved", "removed", "created", "created"]


def test_a_removal_and_a_return_are_written_down_once_each(connection: apsw.Connection) -> None:
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak")], 1.0, saved=True)

    for at in (2.0, 3.0):
        put_heads(connection, ROOT, [], at, removed=["oak.md", "never-there.md"])
    gone = known(connection, ROOT, "oak.md")
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak")], 4.0)

    assert gone is not None
    assert gone.gone == 2.0
    assert told(connection, "oak.md") == ["restored", "removed", "created"]
    assert known(connection, ROOT, "never-there.md") is None


def test_a_file_that_went_elsewhere_while_nobody_looked_is_a_move(connection: apsw.Connection) -> None:
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak")], 1.0, saved=True)

    copied = put_heads(connection, ROOT, [Head("copy.md", "a1", "Oak")], 2.0, there=lambda path: True)
    moved = put_heads(connection, ROOT, [Head("new.md", "a1", "Oak")], 3.0, there=lambda path: path != "oak.md")

    assert [one.outcome for one in (*copied, *moved)] == ["created", "moved"]
    assert told(connection, "new.md") == ["moved", "created"]


def test_a_change_reported_late_is_sorted_by_its_time(connection: apsw.Connection) -> None:
    put_heads(connection, ROOT, [Head("oak.md", "a1", "Oak")], 1.0, saved=True)
    put_heads(connection, ROOT, [Head("oak.md", "c3", "Oak")], 3.0)

    for _ in range(2):
        late = put_heads(connection, ROOT, [Head("oak.md", "b2", "Oak")], 2.0, removed=["oak.md"])

    head = known(connection, ROOT, "oak.md")
    assert head is not None
    assert (head.hash, head.gone, late[0].outcome) == ("c3", None, "skipped")
    assert [version.hash for version in versions(connection, head.id, 10)] == ["c3", "b2", "a1"]


def test_two_vaults_do_not_mix(connection: apsw.Connection) -> None:
    put_heads(connection, "/one", [Head("oak.md", "a1", "Oak")], 1.0, saved=True)
    put_heads(connection, "/two", [Head("oak.md", "b2", "Other")], 2.0, saved=True)

    assert vault_id(connection, "/one")[0] != vault_id(connection, "/two")[0]
    assert [head.hash for root in ("/one", "/two") if (head := known(connection, root, "oak.md"))] == ["a1", "b2"]


def sync(kb: KnowledgeBase, activity: Activity) -> None:
    record_sync(activity, kb.index, kb.sync())
    assert activity.flush()


def whats(kb: KnowledgeBase, activity: Activity, path: str) -> list[str]:
    with activity.database.reading() as connection:
        return told(connection, path, kb.root)


@pytest.fixture
def told_kb(kb: KnowledgeBase, data_dir: Path) -> Iterator[tuple[KnowledgeBase, Activity]]:
    with Activity.of(kb.settings, kb.root) as activity:
        yield kb, activity


def test_syncs_and_saves_are_written_down_with_the_hash_of_the_file(
    told_kb: tuple[KnowledgeBase, Activity], vault: Vault
) -> None:
    kb, activity = told_kb
    vault.write("memories/oak.md", "Oaks live long.")
    sync(kb, activity)
    vault.write("memories/oak.md", "Oaks live longer.")
    sync(kb, activity)
    vault.path("memories/oak.md").rename(vault.path("memories/old-oak.md"))
    sync(kb, activity)
    saved = kb.remember("Elms fall ill.", title="Elm")
    record_sync(activity, kb.index, SyncReport(changed=["memories/elm.md"]), saved=True)
    vault.delete("memories/old-oak.md")
    sync(kb, activity)

    assert saved.ref == "memory:elm"
    assert whats(kb, activity, "memories/old-oak.md") == ["removed", "moved", "updated", "seen"]
    assert whats(kb, activity, "memories/elm.md") == ["created"]
    with activity.database.reading() as connection:
        head = known(connection, kb.root, "memories/elm.md")
    assert head is not None
    assert (head.hash, head.size) == (kb.index.hashes()["memories/elm.md"], len(vault.read("memories/elm.md")))


def test_a_sync_without_changes_does_not_touch_activity_db(
    told_kb: tuple[KnowledgeBase, Activity], vault: Vault, data_dir: Path
) -> None:
    kb, activity = told_kb
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()

    record_sync(activity, kb.index, kb.sync())

    assert activity.flush()
    assert not (data_dir / "activity.db").exists()


def test_deleting_search_db_loses_no_history(
    told_kb: tuple[KnowledgeBase, Activity], vault: Vault, data_dir: Path
) -> None:
    kb, activity = told_kb
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")
    sync(kb, activity)
    vault.write("memories/oak.md", "Oaks live longer.")
    sync(kb, activity)

    kb.engine.close()
    for file in data_dir.glob("search.db*"):
        file.unlink()
    vault.path("memories/elm.md").rename(vault.path("memories/wych-elm.md"))
    sync(kb, activity)

    assert whats(kb, activity, "memories/oak.md") == ["updated", "seen"]
    assert whats(kb, activity, "memories/wych-elm.md") == ["moved", "seen"]
