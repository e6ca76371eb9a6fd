"""The audit of `co serve`: who asked for which note, through the JSON API and MCP alike, and never what they typed."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import API
from co_cli.server.team_site import SIGN_INS
from tests.command import Co
from tests.folder import Vault
from tests.mcp.talking import over_http
from tests.server.browser import wait_for
from tests.server.conftest import Server, client, serving, token
from tests.server.processes import serving as process_of

pytestmark = pytest.mark.medium
WORDS = ("zebra", "walnut", "longest", "crates")
"""In the notes and queries of these tests, and in no name of a note."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def team(vault: Vault, data_dir: Path, file: Path) -> Iterator[Server]:
    vault.write("memories/oak.md", "Oaks live longest, says the zebra.")
    settings = replace(load_settings({"vault": str(vault.root), "data_dir": str(data_dir)}), audit=str(file))
    with KnowledgeBase.open(settings=settings) as kb:
        kb.sync()
        with serving(kb, AccessTokens.of(kb.vault)) as server:
            yield server


def entries(file: Path, count: int) -> list[dict[str, Any]]:
    """All of them, when there are so many: each is written after its answer."""
    wait_for(lambda: len(file.read_text("utf-8").splitlines()) >= count)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def about(entry: dict[str, Any]) -> tuple[object, ...]:
    return tuple(entry[name] for name in ("who", "action", "notes", "allowed"))


def test_reads_saves_and_refusals_of_page_api_and_mcp_are_recorded_without_a_word_of_them(
    team: Server, file: Path
) -> None:
    writer, reader, admin = (token(team.kb, role, role) for role in ("write", "read", "admin"))
    with client(team, reader) as asking, client(team, writer) as saving, client(team, "") as stranger:
        asking.get(f"{API}/search", params={"q": "which zebra lives longest"})
        asking.get(f"{API}/rendered/memory:oak")
        saved = saving.post(f"{API}/notes", json={"content": "Keep walnut crates dry.", "title": "Boxes"}).json()
        saving.put(f"{API}/notes/{saved['ref']}", json={"content": "Keep walnut crates cool."})
        saving.delete(f"{API}/notes/{saved['ref']}")
        saving.post(f"{API}/restored", json={"ref": saved["ref"]})
        asking.put(f"{API}/notes/memory:oak", json={"content": "A zebra."})
        stranger.get(f"{API}/notes/memory:oak", headers={"X-Forwarded-For": "203.0.113.9"})
        asking.get("/livez")
    with over_http(f"{team.url}/mcp", token=reader) as talk:
        talk.call_tool("recall_memory", {"query": "zebra"})
        talk.call_tool("read_note", {"ref": "memory:oak"})
        talk.call_tool("save_memory", {"content": "A walnut is a nut."})
        talk.read_resource("co://memory/oak")
    found = entries(file, 12)
    told = [about(entry) for entry in found]
    oak, boxes = ["memory:oak"], ["memory:boxes"]
    assert told[:8] == [
        ("read", "GET /api/v1/search", oak, True),
        ("read", "GET /api/v1/rendered/{ref:any}", oak, True),
        ("write", "POST /api/v1/notes", boxes, True),
        ("write", "PUT /api/v1/notes/{ref:any}", boxes, True),
        ("write", "DELETE /api/v1/notes/{ref:any}", boxes, True),
        ("write", "POST /api/v1/restored", boxes, True),
        ("read", "PUT /api/v1/notes/{ref:any}", oak, False),
        (None, "no route", [], False),
    ]
    tools = [entry for entry in told[8:] if entry[1] != "POST /mcp" or entry[2]]
    assert tools == [
        ("read", "recall_memory", oak, True),
        ("read", "read_note", oak, True),
        ("read", "save_memory", [], False),
        ("read", "POST /mcp", oak, True),
    ]
    assert found[7]["address"] == "127.0.0.1 203.0.113.9"
    assert {entry["status"] for entry in found if not entry["allowed"]} == {403, 401, 200}
    assert [word for word in WORDS if word in file.read_text("utf-8")] == []
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    with client(team, admin) as asking, client(team, writer) as other:
        listed = asking.get(f"{API}/audit").json()
        assert listed == found[::-1]
        assert asking.get(f"{API}/audit", params={"who": "write", "limit": 2}).json() == [found[5], found[4]]
        refused = asking.get(f"{API}/audit", params={"note": "memory:oak", "allowed": False}).json()
        assert refused == [found[6]]
        assert other.get(f"{API}/audit").status_code == 403


def test_a_part_of_an_article_that_is_found_or_opened_is_recorded_as_the_article(
    team: Server, vault: Vault, file: Path
) -> None:
    vault.write("articles/ash.md", "# Ash\n\nAshes are felled in winter.\n")
    team.kb.sync()
    with client(team, token(team.kb, "admin")) as asking:
        (hit,) = asking.get(f"{API}/search", params={"q": "ashes felled", "limit": 1}).json()["hits"]
        assert hit["ref"].startswith("article:ash#L")
        asking.get(f"{API}/notes/{hit['ref'].replace('#', '%23')}")
        by_words = {"backend": "fts5"}
        asking.post(f"{API}/compare", json={"q": "ashes felled", "left": by_words, "right": by_words})
        assert [entry["notes"] for entry in entries(file, 3)] == [["article:ash"]] * 3
        assert len(asking.get(f"{API}/audit", params={"note": "article:ash"}).json()) == 3


def test_texts_that_are_read_many_at_once_are_recorded_each(team: Server, file: Path) -> None:
    with client(team, token(team.kb, "read")) as asking:
        assert asking.get(f"{API}/bodies", params={"ref": ["memory:oak", "memory:gone"]}).status_code == 200
    assert [entry["notes"] for entry in entries(file, 1)] == [["memory:oak"]]


def test_strangers_who_are_refused_again_and_again_do_not_fill_the_file(team: Server, file: Path) -> None:
    with client(team, "") as stranger:
        for _ in range(3 * SIGN_INS):
            assert stranger.get(f"{API}/notes/memory:oak").status_code == 401
    with client(team, token(team.kb, "read")) as asking:
        asking.get(f"{API}/tags")
    wait_for(lambda: "tags" in file.read_text("utf-8"))
    refused = [entry for entry in entries(file, 1) if not entry["allowed"]]
    assert SIGN_INS <= len(refused) < 2 * SIGN_INS


def test_a_file_that_is_rotated_gets_the_next_lines_and_one_that_cannot_be_written_makes_a_server_unready(
    team: Server, file: Path
) -> None:
    secret = token(team.kb, "read")
    with client(team, secret) as asking:
        asking.get(f"{API}/notes/memory:oak")
        first = entries(file, 1)
        moved = file.rename(file.with_suffix(".1"))
        asking.get(f"{API}/tags")
        assert [entry["action"] for entry in entries(file, 1)] == ["GET /api/v1/tags"]
        assert len(moved.read_text("utf-8").splitlines()) == len(first), "renamed"
        os.truncate(file, 0)
        asking.get(f"{API}/status")
        assert [entry["action"] for entry in entries(file, 1)] == ["GET /api/v1/status"], "copied and truncated"

        file.unlink()
        file.mkdir()  # as unwritable as a disk that is full
        assert asking.get(f"{API}/notes/memory:oak").status_code == 200
        ready = wait_for(lambda: (answer := asking.get("/readyz")).status_code == 503 and answer)
        assert ready.text == "audit: it cannot be written\n"
        file.rmdir()
        assert asking.get("/readyz").text == "ok\n"
        assert [entry["notes"] for entry in entries(file, 1)] == [["memory:oak"]], "nothing is lost"


def test_two_vaults_that_share_the_file_show_their_admins_only_their_own_entries(team: Server, file: Path) -> None:
    admin = token(team.kb, "admin")
    with client(team, admin) as asking:
        asking.get(f"{API}/notes/memory:oak")
        (mine,) = entries(file, 1)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**mine, "vault": "hr"}) + "\nhalf a li")
        assert asking.get(f"{API}/audit").json() == [mine]


@pytest.mark.slow
def test_co_serve_writes_the_file_that_its_option_names(
    co: Co, vault: Vault, kb: LocalKnowledgeBase, data_dir: Path, file: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    secret = token(kb, "admin")
    environment = {"CO_VAULT": str(vault.root), "CO_DATA_DIR": str(data_dir)}
    with process_of(environment, arguments=("--audit", str(file))) as server, server.client(secret) as asking:
        assert asking.get(f"{API}/notes/memory:oak").status_code == 200
        assert asking.get(f"{API}/audit").json()[0]["notes"] == ["memory:oak"]
    with process_of(environment) as server, server.client(secret) as asking:
        assert asking.get(f"{API}/audit").json()["error"]["message"].startswith("this server writes no audit")
    wrong = co("serve", "--port", "0", "--audit", str(vault.root))
    assert (wrong.code, wrong.err) == (2, f"co: audit: {vault.root} cannot be written: Is a directory\n")
