"""Another model: the old vectors answer until the new ones are complete, and the two are never mixed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from co_cli.embedding.static import SPACE as STATIC
from co_cli.index.embed import SLOW_BATCH
from co_cli.index.indexed_notes import FEW
from tests.command import Co
from tests.embedding.meaning.conftest import Open
from tests.embedding.meaning.inside import Inside
from tests.embedding.meaning.servers import TurnedOllama
from tests.folder import Vault

APOLOGY = "An upset client is soothed by an apology and by listening to complaints."
QUESTION = "how do we calm an angry customer"


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/apology.md", APOLOGY)
    vault.write("memories/backup.md", "The database backup runs at night.")
    vault.write("memories/pier.md", "The pier of the harbour lies calm.")
    return vault


def test_another_provider_is_noticed_built_and_swapped_in(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    open_kb().sync()
    assert inside.spaces() == {"static:co-static-256": 3}

    kb = open_kb("ollama", host=ollama.url)
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 3, "ollama:embeddinggemma": 3}
    assert (kb.status().space, kb.status().building) == ("ollama:embeddinggemma:256:1", None)
    asked = len(ollama.asked)
    found = kb.search(QUESTION)
    assert (found.hits[0].ref, found.degraded) == ("memory:apology", [])
    assert ollama.asked[asked:] == [f"task: search result | query: {QUESTION}"]


def test_while_a_space_is_built_the_old_one_answers_also_for_new_notes(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    open_kb().sync()
    notes.write("memories/new.md", "Invoices are due in thirty days.")
    ollama.faults = ["404"]
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 4, f"ollama:{model}": 0}
    assert kb.search("when must a bill be paid").hits[0].ref == "memory:new"

    notes.write("memories/later.md", "Holidays are announced a month ahead.")
    notes.delete("memories/new.md")
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 4, f"ollama:{model}": 4}


def test_while_many_new_notes_wait_for_a_slow_model_the_static_vectors_answer(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, model: str
) -> None:
    """A note that waits ranks as it would with the static model alone, and no search waits for the others."""
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()
    notes.write("memories/bill.md", "Invoices are due in thirty days.")
    for number in range(FEW):
        notes.write(f"memories/order-{number}.md", f"Order {number} is shipped from shelf {number * 7}.")
    asked = len(ollama.asked)

    kb.sync(seconds=0)
    found = kb.search("when must a bill be paid")

    assert found.hits[0].ref == "memory:bill"
    assert len(ollama.asked) == asked
    alone = open_kb(root=notes.root, data_dir=str(notes.root.parent / "alone"))
    alone.sync()
    assert [(hit.ref, hit.score) for hit in found.hits] == [
        (hit.ref, hit.score) for hit in alone.search("when must a bill be paid").hits
    ]
    kb.sync()
    kb.search(QUESTION)
    assert ollama.asked[-1] == QUESTION


@pytest.mark.medium
def test_new_vectors_answer_only_when_those_of_the_added_folders_are_complete_too(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str, co: Co, tmp_path: Path
) -> None:
    Vault(tmp_path / "more").write("refund.md", "A client who is cross gets the money back.")
    co("add", str(tmp_path / "more"))
    old, new = f"{model}-1", f"{model}-2"
    open_kb("ollama", old, ollama.url).sync()
    ollama.faults = [None, "404"]  # the vault is done, the folder is not

    kb = open_kb("ollama", new, ollama.url)
    kb.sync()

    assert inside.spaces() == {"static:co-static-256": 4, f"ollama:{old}": 4, f"ollama:{new}": 3}
    found = kb.search(QUESTION)
    assert {hit.source for hit in found.hits} == {"memory", "folder"}
    assert ollama.requests[-1]["model"] == old

    one = open_kb("ollama", new, ollama.url)
    one.remember("The gate is painted on Fridays.")  # makes no folder complete
    assert one.status().space == f"ollama:{old}:256:1"
    kb.sync()
    kb.search(QUESTION)
    assert ollama.requests[-1]["model"] == new
    assert inside.spaces() == {"static:co-static-256": 5, f"ollama:{old}": 0, f"ollama:{new}": 5}


def test_a_search_that_is_overtaken_by_a_swap_asks_again_in_the_new_space(
    open_kb: Open, notes: Vault, ollama: TurnedOllama
) -> None:
    kb = open_kb("ollama", host=ollama.url)
    kb.sync()

    ollama.meanwhile = lambda: open_kb().sync()
    found = kb.search(QUESTION)

    assert (found.hits[0].ref, found.degraded) == ("memory:apology", [])
    assert [hit.score for hit in found.hits] == [hit.score for hit in open_kb().search(QUESTION).hits]


NOTES = 100
REQUESTS = 2
"""That a batch of passages takes."""


@pytest.fixture
def orders(vault: Vault) -> Vault:
    for number in range(NOTES):
        vault.write(f"memories/{number}.md", f"Order {number} is shipped from shelf {number * 7} of the warehouse.")
    return vault


@pytest.mark.medium
def test_a_server_that_dies_midway_leaves_what_it_did(
    open_kb: Open, orders: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    open_kb().sync()
    ollama.faults = [None] * REQUESTS + ["dies"]
    kb = open_kb("ollama", model, ollama.url)
    seen: list[tuple[int, int]] = []
    kb.sync(lambda done, total: seen.append((done, total)))

    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": SLOW_BATCH}
    assert (SLOW_BATCH, NOTES) in seen
    state = kb.status()
    assert (state.space, state.building, state.unembedded) == (
        STATIC.key,
        f"ollama:{model}:256:1",
        NOTES - SLOW_BATCH,
    )
    found = kb.search("where are parcels kept before they leave")
    assert found.state == "found"
    assert found.degraded[0].startswith("answered with the vectors of static: Ollama is not running")
    assert set(found.hits[0].signals) >= {"meaning"}

    server = TurnedOllama()
    try:
        open_kb("ollama", model, server.url).sync()
        assert len(server.documents) == NOTES - SLOW_BATCH
    finally:
        server.close()
    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": NOTES}
    assert inside.waiting == 0


@pytest.mark.medium
def test_two_processes_share_the_work_and_no_passage_is_embedded_twice(
    open_kb: Open, orders: Vault, ollama: TurnedOllama, model: str
) -> None:
    one, other = (open_kb("ollama", model, ollama.url) for _ in range(2))
    one.sync(seconds=0)
    seen: list[tuple[int, int]] = []
    in_foreground = threading.Thread(target=other.sync, args=(lambda done, total: seen.append((done, total)),))

    ollama.meanwhile = in_foreground.start
    one.embed(60)
    in_foreground.join(60)

    assert len(ollama.documents) == len({*ollama.documents}) == NOTES
    assert seen[0][1] <= NOTES
    assert other.status().space == f"ollama:{model}:256:1"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_that_is_killed_while_it_embeds_leaves_what_it_did(
    open_kb: Open, orders: Vault, ollama: TurnedOllama, inside: Inside, model: str, co: Co
) -> None:
    open_kb().sync()
    ollama.faults = [None] * REQUESTS + ["slow"]
    settings = {"PROVIDER": "ollama", "MODEL": model, "HOST": ollama.url}
    environ = os.environ | {f"CO_KNOWLEDGE_EMBEDDING_{name}": value for name, value in settings.items()}
    process = subprocess.Popen([sys.executable, "-m", "co_cli", "index", "sync"], env=environ)
    end = time.monotonic() + 60
    while len(ollama.requests) <= REQUESTS and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL

    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": SLOW_BATCH}
    assert open_kb().search("where are parcels kept before they leave").degraded == []
    asked = len(ollama.documents)
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()

    assert len(ollama.documents) - asked == NOTES - SLOW_BATCH
    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": NOTES}
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


@pytest.mark.medium
def test_a_sync_with_little_time_goes_on_where_the_last_one_stopped(
    open_kb: Open, orders: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    ollama.pause = 0.2
    kb = open_kb("ollama", model, ollama.url)
    kb.sync(seconds=0)
    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": 0}

    done = [0]
    for _ in range(100):
        kb.sync(seconds=2)
        done.append(inside.spaces()[f"ollama:{model}"])
        if done[-1] == NOTES:
            break

    assert done == sorted(done)
    assert kb.status().space == f"ollama:{model}:256:1"
    assert len(done) > 2, "there was time for everything at once"
