"""Vectors take time: what people see while passages wait for them, and who makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from co_cli.embedding.space import ENCODER
from co_cli.embedding.static import SPACE as STATIC
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.paths import sample_vault
from co_cli.ground.priority import LOW, answering, pause
from co_cli.ground.settings import load_settings
from co_cli.index.embed import HASTY_BATCH
from co_cli.index.indexed_notes import FEW
from co_cli.notes.files import locked
from co_cli.searching.freshness import Freshener
from co_cli.server.access_tokens import AccessTokens
from co_cli.vault.vault import embedding_lock
from tests.cli.screen import terminal
from tests.command import Co
from tests.folder import Vault
from tests.server.conftest import client, serving, token

MANY = 120
"""Notes, enough for a bar before the first vector is there."""


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")


def write_orders(vault: Vault, count: int) -> None:
    for number in range(count):
        vault.write(f"memories/order-{number}.md", f"Order {number} is shipped from shelf {number * 7}.")
    vault.write("memories/mamma.md", "Mamma takes apixaban, five milligrams at eight and at eight.")


@contextmanager
def somebody_else_embeds(root: Path | str, data_dir: Path) -> Generator[None]:
    data_dir.mkdir(parents=True, exist_ok=True)
    with locked(embedding_lock(load_settings({"vault": str(root), "data_dir": str(data_dir)}))):
        yield


@pytest.mark.medium
def test_adding_a_folder_shows_what_it_does_and_can_be_stopped_while_it_makes_vectors(co: Co, tmp_path: Path) -> None:
    handbook = Vault(tmp_path / "handbook")
    for number in range(MANY):
        handbook.write(f"{number}.md", f"# Rule {number}\n\nOrders of shelf {number * 7} are packed by two people.\n")

    with terminal(co.folder, "add", str(handbook.root), TERM="xterm") as screen:
        screen.expect(f"{MANY} new")
        screen.expect(f"meaning: 0 of {MANY} passages; Ctrl-C is fine")
        screen.sendintr()
        screen.expect(r"co: stopped while (\d+) passages, about \d s\s+waited for vectors: searches work")
        waited = int(screen.match[1])
        rest = screen.read()

    assert 0 < waited <= MANY
    assert "`co index sync`" in rest
    assert screen.wait() == 0, "the folder was added"
    found = co("search", "who packs orders", "--json").json
    assert found["hits"][0]["source"] == "folder"
    co("index", "sync")
    state = co("index", "status", "--json").json
    assert (state["space"], state["unembedded"]) == (ENCODER.key, 0)


def test_adding_much_says_that_it_is_searchable_and_what_goes_on_in_the_background_and_how_long(
    vault: Vault, co: Co, data_dir: Path, tmp_path: Path
) -> None:
    handbook = Vault(tmp_path / "handbook")
    for number in range(300):
        handbook.write(f"{number}.md", f"Orders of shelf {number * 7} are packed by two people.\n")

    with somebody_else_embeds(vault.root, data_dir):
        ran = co("add", str(handbook.root))

    assert (ran.code, "300 new" in ran.out) == (0, True)
    expected = "searchable now; search by meaning gets better in the background: 300 passages, about 12 s"
    assert expected in ran.err
    assert co("search", "shelf 14", "--no-sync").code == 0


def test_every_front_end_says_how_many_passages_wait_and_what_makes_their_vectors(
    vault: Vault, co: Co, kb: KnowledgeBase, data_dir: Path
) -> None:
    write_orders(vault, 2 * FEW)
    kb.sync(seconds=0)
    waiting = 2 * FEW + 1

    state = co("index", "status", "--json").json
    assert state["unembedded"] == waiting
    assert 0 < state["unembedded_seconds"] < 10
    figure = f"{waiting} passages, about 2 s"
    shown = co("index", "status").out
    assert f"vectors {STATIC.key}, building {ENCODER.key}; waiting: {figure} (`co index sync`)\n" in shown
    finding = next(one for one in co("doctor", "--json").json if one["check"] == "vectors")
    assert (finding["level"], finding["fix"]) == ("warning", "co index sync")
    assert figure in finding["text"]
    with (
        somebody_else_embeds(vault.root, data_dir),
        serving(kb, AccessTokens.of(kb.vault)) as server,
        client(server, token(kb, "metrics")) as asking,
    ):
        figures = asking.get("/metrics").text
    assert f"\nco_passages_waiting {waiting}\n" in figures
    assert f"\nco_passages_waiting_seconds {state['unembedded_seconds']:.1f}\n" in figures


def test_a_search_says_that_vectors_are_not_ready_and_names_the_command_unless_they_are_being_made(
    vault: Vault, co: Co, kb: KnowledgeBase, data_dir: Path, tmp_path: Path
) -> None:
    co("index", "sync")
    handbook = Vault(tmp_path / "handbook")
    for number in range(2 * FEW):
        handbook.write(f"{number}.md", f"# Rule {number}\n\nOrders of shelf {number * 7} are packed by two people.\n")
    kb.sources.add(str(handbook.root))
    remark = f"search by meaning is still being prepared: {2 * FEW} passages, about 2 s left"

    with somebody_else_embeds(vault.root, data_dir):
        assert co("search", "who packs them", "--no-sync", "--json").json["degraded"] == [remark]
    with somebody_else_embeds(handbook.root, data_dir):  # for another vault
        found = co("search", "who packs them", "--no-sync", "--json").json
    assert found["degraded"] == [f"{remark}; `co index sync` makes them now"]
    assert found["hits"][0]["signals"]["meaning"] > 0, "static vectors answered"

    co("index", "sync")
    vault.write("memories/mamma.md", "Mamma takes apixaban.")
    with somebody_else_embeds(vault.root, data_dir):
        assert co("search", "who packs them", "--json").json["degraded"] == [], "only one passage waits"


def test_a_note_in_another_language_does_not_keep_static_vectors_from_answering(
    vault: Vault, co: Co, kb: KnowledgeBase
) -> None:
    """Neither model for English has a vector of it."""
    vault.write("memories/eiche.md", "Die Eiche steht im Park und ist sehr alt, aber niemand weiß, wie alt sie ist.")
    co("index", "sync")
    write_orders(vault, 2 * FEW)
    kb.sync(seconds=0)

    (hit,) = kb.search("which medicine does our mother take", limit=1, read=False).hits

    assert (hit.ref, hit.signals["meaning"] > 0) == ("memory:mamma", True)


def test_the_demo_answers_before_its_vectors_are_made(co: Co, data_dir: Path) -> None:
    with somebody_else_embeds(sample_vault(), data_dir / "demo"):
        found = co("demo", "who decides what ships", "--json").json

    assert (found["hits"][0]["ref"], found["degraded"]) == ("memory:odalys-has-the-last-word", [])
    with KnowledgeBase.open(sample_vault(), data_dir / "demo") as kb:
        assert kb.waiting().passages > FEW


def test_a_save_does_not_wait_for_the_vectors_of_other_notes(vault: Vault, co: Co, kb: KnowledgeBase) -> None:
    write_orders(vault, 2 * FEW)
    kb.sync(seconds=0)

    kb.update("memory:mamma", "Mamma takes nothing any more.")

    assert kb.status().unembedded >= 2 * FEW


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_the_next_command_finishes_what_a_killed_process_left(
    vault: Vault, co: Co, kb: KnowledgeBase, data_dir: Path
) -> None:
    write_orders(vault, MANY)
    kb.sync(seconds=0)
    waiting = kb.status().unembedded
    later = [sys.executable, "-m", "co_cli.cli.embed_later", str(vault.root), str(data_dir)]
    process = subprocess.Popen(later)
    end = time.monotonic() + 60
    while kb.status().unembedded == waiting and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    left = kb.status().unembedded
    assert 0 < left <= waiting - HASTY_BATCH

    cached = kb.status().cache_entries
    co("index", "sync")

    state = kb.status()
    assert (state.space, state.unembedded) == (ENCODER.key, 0)
    assert state.cache_entries - cached <= left, "what was made is not made again"


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_a_running_process_makes_vectors_at_low_priority_until_none_wait(vault: Vault, kb: KnowledgeBase) -> None:
    write_orders(vault, 2 * FEW)
    with closing(Freshener(kb)) as freshener:
        assert freshener.ensure(60) == []
        found = kb.search("what drug is our mother on?")
        assert found.hits[0].ref == "memory:mamma"
        thread = next(one for one in threading.enumerate() if one.name == "co-vectors")
        priority = 0
        with suppress(ProcessLookupError):  # it has ended
            while thread.native_id is None or (thread.is_alive() and priority != LOW):  # None: it has not begun
                priority = os.getpriority(os.PRIO_PROCESS, thread.native_id or 0)
        thread.join(60)

    assert priority == LOW
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == 0, "searches are not slowed down"
    assert (kb.status().space, kb.status().unembedded) == (ENCODER.key, 0)


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_a_process_with_a_lower_priority_than_that_keeps_it() -> None:
    """As under `nice -n 15`, whoever runs it: only root may raise a priority again."""
    code = "from co_cli.ground.priority import lower_priority; lower_priority(); print(os.nice(0) - before)"
    lines = f"import os; before = os.nice(15); {code}"
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.stderr) == ("0\n", "")


def test_making_vectors_pauses_while_a_search_runs() -> None:
    maker = threading.Thread(target=pause)
    with answering():
        maker.start()
        maker.join(0.1)
        assert maker.is_alive()
    maker.join(60)
    assert not maker.is_alive()
