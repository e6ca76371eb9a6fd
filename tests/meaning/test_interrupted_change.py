"""A space that is being built survives a server that dies and a process that is killed: what was done stays done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from co_cli.embedding.static import SPACE as STATIC
from co_cli.index.embed import SLOW_BATCH
from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

NOTES = 100
REQUESTS = 2
"""That a batch of passages takes."""


@pytest.fixture
def notes(vault: Vault) -> Vault:
    for number in range(NOTES):
        vault.write(f"memories/{number}.md", f"Order {number} is shipped from shelf {number * 7} of the warehouse.")
    return vault


def test_a_server_that_dies_midway_leaves_what_it_did(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
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
    assert (found.state, found.degraded) == ("found", [])
    assert set(found.hits[0].signals) >= {"meaning"}

    server = TurnedOllama()
    try:
        open_kb("ollama", model, server.url).sync()
        assert len(server.documents) == NOTES - SLOW_BATCH
    finally:
        server.close()
    assert inside.spaces() == {"static:co-static-256": 0, f"ollama:{model}": NOTES}
    assert inside.waiting == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_that_is_killed_midway_leaves_what_it_did(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str, data_dir: Path
) -> None:
    open_kb().sync()
    ollama.faults = [None] * REQUESTS + ["slow"]
    chosen = {
        "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "ollama",
        "CO_KNOWLEDGE_EMBEDDING_MODEL": model,
        "CO_KNOWLEDGE_EMBEDDING_HOST": ollama.url,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "index", "sync", "--vault", str(notes.root), "--data-dir", str(data_dir)],
        env={**os.environ, **chosen},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    started = time.monotonic()
    while len(ollama.requests) <= REQUESTS and time.monotonic() - started < 120:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=120) == -signal.SIGKILL

    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": SLOW_BATCH}
    assert open_kb().search("where are parcels kept before they leave").degraded == []
    asked = len(ollama.documents)
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()

    assert len(ollama.documents) - asked == NOTES - SLOW_BATCH
    assert inside.spaces() == {"static:co-static-256": 0, f"ollama:{model}": NOTES}
    assert kb.status().space == f"ollama:{model}:256:1"
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_a_sync_with_little_time_goes_on_where_the_last_one_stopped(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    ollama.pause = 0.2
    kb = open_kb("ollama", model, ollama.url)
    kb.sync(seconds=0)
    assert inside.spaces() == {"static:co-static-256": NOTES, f"ollama:{model}": 0}

    done = [0]
    for _ in range(100):
        kb.sync(seconds=0.8)
        done.append(inside.spaces()[f"ollama:{model}"])
        if done[-1] == NOTES:
            break

    assert done == sorted(done)
    assert kb.status().space == f"ollama:{model}:256:1"
    assert len(done) > 2, "there was time for everything at once"
