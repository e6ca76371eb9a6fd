"""Many clients that search at once get the answers that each would get alone."""

from __future__ import annotations

import json
import random
import shutil
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground import deadline
from co_cli.ground.paths import sample_vault
from co_cli.retrieval.rerank import TOO_BUSY
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import API
from co_cli.server.web_app import READS
from tests.folder import Vault
from tests.server.browser import PATIENCE, wait_for
from tests.server.conftest import serving as in_thread
from tests.server.conftest import token
from tests.server.processes import Serving, serving
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team, git

pytestmark = pytest.mark.slow

CLIENTS, ASKED = 16, 6
"""Each client asks each of the questions, in an order of its own."""


def questions() -> list[str]:
    """Those that words alone do not answer, so that the reader reads."""
    lines = Path(sample_vault(), "questions.jsonl").read_text("utf-8").splitlines()
    return [line["question"] for line in map(json.loads, lines) if line["kind"] == "paraphrase"][:ASKED]


def answer(server: Serving, secret: str, asked: Sequence[str]) -> dict[str, Any]:
    """What decides about an answer, of each question. `read`: however busy the server is."""
    found: dict[str, Any] = {}
    with server.client(secret) as asking:
        for question in asked:
            result = asking.post(f"{API}/search", json={"q": question, "track": False, "read": True}).json()
            hits = [(hit["ref"], hit["score"], hit["signals"]) for hit in result["hits"]]
            found[question] = (result["state"], result["confidence"], result["degraded"], result["meta"]["read"], hits)
    return found


def tokens(kb: KnowledgeBase) -> list[str]:
    return [token(kb, "read", f"client-{number}") for number in range(CLIENTS)]


def differing(environment: dict[str, str], secrets: Sequence[str]) -> list[Any]:
    """What clients that ask at once are answered otherwise than one alone."""
    asked = questions()
    with serving(environment) as server:
        alone = answer(server, secrets[0], asked)
    assert any(read for *_, read, _ in alone.values())
    orders = [random.Random(number).sample(asked, len(asked)) for number in range(CLIENTS)]
    with serving(environment) as server, ThreadPoolExecutor(CLIENTS) as clients:  # it knows no score yet
        together = list(clients.map(lambda one, order: answer(server, one, order), secrets, orders))
    return [answers for answers in together if answers != alone]


def test_sixteen_clients_get_the_same_hits_and_scores_as_one(tmp_path: Path, indexed_sample: Path) -> None:
    vault, data = indexed_sample / "vault", tmp_path / "data"
    shutil.copytree(indexed_sample / "data", data)
    with KnowledgeBase.open(vault, data) as kb:
        secrets = tokens(kb)

    environment = {"CO_VAULT": str(vault), "CO_DATA_DIR": str(data), "CO_KNOWLEDGE_READER": "on"}
    assert differing(environment, secrets) == []


@pytest.mark.postgres
def test_sixteen_clients_of_a_team_get_the_same_hits_and_scores_as_one(team: Team) -> None:
    shutil.copytree(sample_vault(), team.clone, dirs_exist_ok=True)
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "The sample vault")
    git(team.clone, "push", "--quiet")
    secrets = tokens(team.server("one"))
    team.close()
    places = {"CO_VAULT": str(team.place / "one"), "CO_DATA_DIR": str(team.place / "one-data")}

    assert differing({**places, "CO_ENGINE": team.address, "CO_KNOWLEDGE_READER": "on"}, secrets) == []


def test_a_server_with_too_many_searches_reads_for_agents_only_and_says_so(
    indexed_sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_READER", "on")
    shutil.copytree(indexed_sample / "data", tmp_path / "data")
    with KnowledgeBase.open(indexed_sample / "vault", tmp_path / "data") as kb:
        access = AccessTokens.of(kb.vault)
        secret = access.create("read", "mara")[0]
        with in_thread(kb, access) as server, server.client() as client, ThreadPoolExecutor(48) as clients:
            client.headers["Authorization"] = f"Bearer {secret}"

            def ask(number: int, **how: object) -> tuple[int, list[str]]:
                found = client.post(f"{API}/search", json={"q": f"{questions()[0]} {number}", **how}).json()
                return found["meta"]["read"], found["degraded"]

            alone = ask(-1)
            with monkeypatch.context() as during:
                during.setattr(deadline, "SECONDS", 1.0)
                together = list(clients.map(ask, range(48)))
                insisting = list(clients.map(lambda number: ask(number, read=True), range(48, 64)))
                agents = list(clients.map(lambda number: ask(number, judge=True), range(64, 80)))
            assert alone == (20, [])
            assert (0, [TOO_BUSY]) in together
            assert {read for read, _ in together} <= {0, 20}
            assert {*map(str, insisting), *map(str, agents)} == {str(alone)}
            assert ask(-2) == alone


@contextmanager
def behind_one_address(servers: Sequence[Serving]) -> Iterator[str]:
    """A proxy: each connection goes to the next server."""
    ports = cycle([int(server.url.rpartition(":")[2]) for server in servers])

    class Proxied(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", next(ports)), PATIENCE) as server:
                back = threading.Thread(target=pass_on, args=(server, self.request))
                back.start()
                pass_on(self.request, server)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxied) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.postgres
def test_several_processes_with_one_folder_are_one_server_behind_a_proxy(team: Team) -> None:
    one_folder = team.server("one")
    secrets = [token(one_folder, "write", f"client-{number}") for number in range(4)]
    team.close()
    places = {"CO_VAULT": str(team.place / "one"), "CO_DATA_DIR": str(team.place / "one-data")}
    environment, host = {**places, "CO_ENGINE": team.address}, ("--allow-host", "127.0.0.1")

    def work(address: str, secret: str) -> list[str]:
        """Save, and look for it at once. Each request is a new connection, so another process is asked."""
        refs: list[str] = []
        headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}
        for number in range(5):
            with httpx2.Client(base_url=f"{address}{API}", headers=headers, verify=False, timeout=PATIENCE) as asking:
                # a secret may begin with `-`, which would be an operator
                text = f"The gate of {secret.encode().hex()[:8]} opens at {number}."
                saved = asking.post("/notes", json={"content": text}).json()
                found = asking.post("/search", json={"q": text, "limit": 1}).json()
                assert [hit["ref"] for hit in found["hits"]] == [saved["ref"]], found
                refs.append(saved["ref"])
        return refs

    with (
        serving(environment, arguments=host) as one,
        serving(environment, arguments=host) as two,
        behind_one_address((one, two)) as address,
        ThreadPoolExecutor(len(secrets)) as clients,
    ):
        refs = [ref for found in clients.map(lambda secret: work(address, secret), secrets) for ref in found]
        assert len({*refs}) == 20
        assert all(sum(line.get("status") == 200 for line in server.lines) >= 10 for server in (one, two))
        wait_for(lambda: not team.ask("select 1 from team.changes where not pushed limit 1"))
        assert [server.traces() for server in (one, two)] == [[], []]
    pushed = git(team.remote, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert len([path for path in pushed if "the-gate-of" in path]) == 20


def test_searches_end_when_their_clients_leave_and_readyz_says_while_all_are_busy(
    vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        vault.write(f"articles/{number}.md", f"{'x' * 30}\n" * 1_500)
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    monkeypatch.setattr(deadline, "SECONDS", 100 * PATIENCE)  # only the clients end them
    access = AccessTokens.of(kb.vault)
    secret = access.create("read", "mara")[0]
    slow = f"{API}/search?q=line%3A%2F%28.*%29%28.*%29%7B14%7D%5B~%5E%5D%2F"
    asked = f"GET {slow} HTTP/1.1\r\nHost: {{}}\r\nAuthorization: Bearer {secret}\r\n\r\n"
    with in_thread(kb, access) as server, server.client() as client:
        assert client.get("/readyz").text == "ok\n"
        leaving = [socket.create_connection(server.listening.getsockname(), PATIENCE) for _ in range(READS + 8)]
        for connection in leaving:
            connection.sendall(asked.format(server.host).encode())
        wait_for(lambda: client.get("/readyz").text == "searches: all 4 at once are busy, and 8 more wait\n")
        assert client.get(f"{API}/notes/memory:oak").status_code == 200, "who reads a note does not wait for searches"
        for connection in leaving:
            connection.close()
        assert [hit["ref"] for hit in client.get(f"{API}/search?q=oaks").json()["hits"]][:1] == ["memory:oak"]
        wait_for(lambda: client.get("/readyz").text == "ok\n")
