"""Short questions that people typed, and the note that must come first: a vault of 48 notes, through `co search`.

Each one failed for a new user or in this vault once. You can search it yourself:
`co search --vault tests/quality/everyday`.
"""

from __future__ import annotations

import shutil
import time
from datetime import date
from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault

NOTES = Path(__file__).parent / "everyday"
FIRST = {
    "when do we deploy": "memories/deploy-window.md",
    "why was the disk full": "incidents/2026-09-14-shop-down.md",
    "adr 12": "adr/ADR-012-sqlite-at-the-edge.md",
    "ADR12": "adr/ADR-012-sqlite-at-the-edge.md",
    "ADR-012": "adr/ADR-012-sqlite-at-the-edge.md",
    "notes from 2026-11-10": "daily/2026-11-10.md",
    "idempotncy key": "runbooks/payments-retry.md",
    "TP557": "parts/thermal-printer.md",
    "ZX 81": "parts/scanner.md",
    "what went wrong with the bells": "incidents/2026-02-08-silent-bells.md",
}


def test_the_right_note_comes_first_for_everyday_questions(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    shutil.copytree(NOTES, vault.root, dirs_exist_ok=True)
    today = f"daily/{date.fromtimestamp(now)}.md"
    vault.write(today, "Bought stamps, and read the lease again.")
    first = {"today": today, **FIRST}

    hits = {query: co("search", query, "--json").json["hits"][0] for query in first}

    found = {query: Path(hit["path"]).relative_to(vault.root).as_posix() for query, hit in hits.items()}
    assert found == first
    assert hits["what went wrong with the bells"]["heading"] == "Why"  # and not "What went well"


def test_a_word_that_was_respelled_is_named(co: Co, vault: Vault) -> None:
    vault.write("memories/retries.md", "Send an idempotency key with each payment. Mareike wrote the client.")

    assert 'no note has "idempotncy": searched for "idempotency"' in co("search", "idempotncy").out
    assert "searched for" not in co("search", "Mareika").out, "another name is not what was meant"


def test_each_misspelled_word_is_corrected_on_its_own(co: Co, vault: Vault) -> None:
    vault.write("memories/pat.md", "Create a personal access token in the settings of your account.")
    vault.write("memories/bus.md", "The bus to the office takes ten minutes. Karlo and Maika drive it.")

    for query, meant in {
        "personl acess tokn": {"personl": "personal", "acess": "access", "tokn": "token"},
        "tokne": {"tokne": "token"},
        "how do i make an acces tokken": {"acces": "access", "tokken": "token"},
        "bus to the offce": {"offce": "office"},
    }.items():
        found = co("search", query, "--json").json
        assert found["understood"] == [f'no note has "{one}": searched for "{other}"' for one, other in meant.items()]
        assert found["hits"][0]["ref"] == ("memory:bus" if "bus" in query else "memory:pat")
    vault.write("memories/pat.md", "Create personal access tokens in the settings of your account.")
    found = co("search", "acess tokn", "--json").json["understood"]
    assert found == ['no note has "acess": searched for "access"', 'no note has "tokn": searched for "tokens"']
    for query in ("karl", "maik", "grpc", "toll"):  # another name, another word
        assert ': searched for "' not in co("search", query).out, query
