"""Words and meaning together; with the embedded model, without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.embedding.meaning.conftest import Open
from tests.embedding.meaning.inside import Inside
from tests.folder import Vault

QUESTION = "how do we calm an angry customer"


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/apology.md", "An upset client is soothed by an apology and by listening to complaints.")
    vault.write("memories/backup.md", "The database backup runs at night.")
    vault.write("memories/pier.md", "The pier of the harbour lies calm.")
    vault.write("memories/invoice.md", "Invoices are due in thirty days.")
    return vault


def refs(kb: KnowledgeBase, query: str, limit: int = 10) -> list[str]:
    return [hit.ref for hit in kb.search(query, limit=limit).hits]


def test_a_note_without_any_word_of_the_question_is_found_by_its_meaning(open_kb: Open, notes: Vault) -> None:
    kb = open_kb()
    kb.sync()

    found = kb.search(QUESTION)

    assert (found.backend, found.state, found.degraded) == ("hybrid", "found", [])
    assert "memory:apology" in [hit.ref for hit in found.hits[:2]]
    assert [hit.ref for hit in kb.search(QUESTION, backend="fts5").hits] == ["memory:pier"]


def test_without_a_provider_search_goes_by_words_even_where_vectors_are(
    open_kb: Open, notes: Vault, inside: Inside
) -> None:
    open_kb().sync()
    kb = open_kb("none")
    notes.write("memories/new.md", "A new note about the harbour.")
    kb.sync()

    found = kb.search("calm")

    assert ([hit.ref for hit in found.hits], found.degraded) == (["memory:pier"], [])
    assert "meaning" not in found.hits[0].signals
    assert (kb.status().space, kb.status().unembedded) == (None, 0)
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []
    assert len(inside.vectors()) == 4

    open_kb().sync()

    assert len(inside.vectors()) == 5


def test_an_exact_word_is_never_dropped_whatever_the_weights(open_kb: Open, notes: Vault) -> None:
    open_kb().sync()

    for meaning in (0.0, 0.2, 0.8, 1.0):
        assert "memory:pier" in refs(open_kb(knowledge_hybrid_vector_weight=meaning), "calm angry customers")


GUARDED = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        sys.stderr.write(f"touched the network: {event} {arguments}\\n")
        sys.stderr.flush()
        import os
        os._exit(77)

sys.addaudithook(refuse)
from co_cli.cli.app import main
code = main(sys.argv[1:])
sys.stdout.flush()
raise SystemExit(code)
"""


CONNECT = "import socket; socket.create_connection(('127.0.0.1', 9))\n"
COMMANDS = (
    ("search", "how do we calm an angry customer"),
    ("index", "sync"),
    ("index", "reembed", "--fresh"),
    ("doctor",),
)


def guarded(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.medium
def test_no_command_touches_the_network(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/apology.md", "De-escalation starts with an apology to the client.")

    for arguments in COMMANDS:
        ran = guarded(GUARDED, *arguments)
        assert (ran.returncode, ran.stderr) == (0, ""), arguments
        assert arguments[0] != "search" or "memory:apology" in ran.stdout
    ran = guarded(GUARDED.replace("from co_cli", f"{CONNECT}from co_cli"))
    assert (ran.returncode, ran.stderr.startswith("touched the network: socket.")) == (77, True), "the guard works"
