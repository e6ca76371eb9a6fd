"""How many SQL statements a call runs on search.db and activity.db: the same number, however many notes it finds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import apsw
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault

MOST_OF_A_SAVE = 140
NOTE = """---
title: Pool {number}
created: 2026-01-02
superseded_by: plan
---
Deploys of the shop go to pool {number} on the ground floor.
"""
PLAN = "---\ntitle: Plan\ncreated: 2026-01-01\nvalid_from: 2999-01-01\n---\nEverything changes.\n"

Count = Callable[[Callable[[], object]], int]


@pytest.fixture
def count() -> Iterator[Count]:
    """Counts the statements that a call runs: those of threads in the background, too."""
    lock, run = threading.Lock(), list[str]()

    def note(cursor: apsw.Cursor, statement: str, values: apsw.Bindings | None) -> bool:
        with lock:
            run.extend([] if statement.startswith("pragma") else [statement])  # a connection that is opened
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    def end_syncs() -> None:
        for name in ("co-sync", "co-vectors"):  # the first starts the second
            for thread in threading.enumerate():
                if thread.name == name:
                    thread.join()

    def count(call: Callable[[], object]) -> int:
        end_syncs()
        run.clear()
        call()
        end_syncs()
        return len(run)

    apsw.connection_hooks.append(watch)
    yield count
    apsw.connection_hooks.remove(watch)


@pytest.fixture
def pools(count: Count, vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    """Fifty memories that one search finds; each names a note that will replace it, but has not yet."""
    files = [vault.write("memories/plan.md", PLAN)]
    files += [vault.write(f"memories/pool-{number}.md", NOTE.format(number=number)) for number in range(50)]
    for file in files:
        os.utime(file, (1e9, 1e9))  # too old to be read again
    kb.sync()
    return kb


@pytest.mark.parametrize("limit", [10, 50])
def test_a_recall_needs_no_more_statements_for_many_hits(count: Count, pools: KnowledgeBase, limit: int) -> None:
    toolbox = Toolbox(pools, result_tokens=20_000)

    def recall(most: int) -> int:
        return len(toolbox.call("recall_memory", {"query": "deploys of the shop", "limit": most}).data["hits"])

    assert (recall(1), recall(limit)) == (1, limit)
    assert count(lambda: recall(limit)) <= count(lambda: recall(1))


def test_a_search_needs_no_more_statements_for_many_hits(count: Count, pools: KnowledgeBase) -> None:
    def search(most: int) -> int:
        return len(pools.search("deploys of the shop", limit=most).hits)

    assert (search(1), search(50)) == (1, 50)
    assert count(lambda: search(50)) == count(lambda: search(1))


def test_a_list_needs_no_more_statements_for_many_notes(count: Count, pools: KnowledgeBase, co: Co) -> None:
    def list_notes(most: int) -> int:
        return len(co("list", "--limit", str(most), "--json").json)

    assert (list_notes(1), list_notes(50)) == (1, 50)
    assert count(lambda: list_notes(50)) == count(lambda: list_notes(1))


def test_a_save_needs_few_statements_however_many_notes_are_like_it(
    count: Count, pools: KnowledgeBase, vault: Vault
) -> None:
    toolbox = Toolbox(pools)

    def save(content: str) -> int:
        return len(toolbox.call("save_memory", {"content": content}).data["related"])

    assert save("The kettle is in the kitchen.") == 0
    alone = count(lambda: save("Bex keeps her bicycle in the yard."))
    with_others = count(lambda: save("Deploys of the shop go to pool 77 on the ground floor."))

    assert max(alone, with_others) <= MOST_OF_A_SAVE


def test_a_save_counts_the_notes_that_were_found_before_it_in_one_statement(count: Count, pools: KnowledgeBase) -> None:
    toolbox = Toolbox(pools)

    def save_after_a_search(most: int) -> int:
        toolbox.call("save_memory", {"content": f"Bex bought {most} sacks of flour."})
        toolbox.call("search_knowledge", {"query": "deploys of the shop", "limit": most})
        return count(lambda: toolbox.call("save_memory", {"content": f"Mara sold {most} bicycles."}))

    one = save_after_a_search(1)
    assert save_after_a_search(50) < one + 9
