"""A save whose answer is lost can be sent again with its key: it is one save, on any server, and gets one answer."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import ServerUnavailableError
from co_cli.ground.values import DAY
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import API
from tests.command import Co
from tests.server.browser import PATIENCE
from tests.server.conftest import Server, client, serving, token
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team

KEY = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
ELM = {"content": "Elms like water.", "tags": ["tree"]}
ENDS = b"\r\n\r\n"


class ForgetfulProxy:
    """Forwards each connection to the next of these servers, and closes the first ones when the answer has come."""

    def __init__(self, servers: list[Server], forgets: int) -> None:
        self._servers, self._forgets = servers, forgets
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for server in self._servers:
            connection, _ = self._listening.accept()
            with connection:
                self.requests.append(_message(connection))
                request = self.requests[-1].replace(self.url.removeprefix("http://").encode(), server.host.encode())
                with socket.create_connection(("127.0.0.1", int(server.host.partition(":")[2]))) as there:
                    there.sendall(request)
                    answer = _message(there)
                if len(self.requests) > self._forgets:
                    connection.sendall(answer.replace(ENDS, b"\r\nConnection: close" + ENDS, 1))

    def close(self) -> None:
        self._listening.close()


def _message(connection: socket.socket) -> bytes:
    """A request or an answer with a Content-Length."""
    data = b""
    while ENDS not in data or len(data.partition(ENDS)[2]) < _length(data):
        part = connection.recv(65_536)
        assert part
        data += part
    return data


def _length(data: bytes) -> int:
    lines = data.partition(ENDS)[0].lower().splitlines()
    return next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length")), 0)


@pytest.fixture
def servers(team: Team) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        kbs = [team.server(name) for name in ("one", "two")]
        yield [stack.enter_context(serving(kb, AccessTokens.of(kb.vault))) for kb in kbs]


@pytest.mark.postgres
def test_a_save_whose_answer_is_lost_is_sent_again_to_another_server_and_is_one_save(
    team: Team, servers: list[Server]
) -> None:
    with (
        closing(ForgetfulProxy(servers, forgets=1)) as proxy,
        KnowledgeBase.connect(proxy.url, token(servers[0].kb)) as remote,
    ):
        saved = remote.remember("Elms like water.", path="trees/elm.md")
    assert (saved.outcome, saved.ref) == ("created", "memory:trees/elm")
    assert saved.path == f"{servers[1].kb.root}/memories/trees/elm.md"
    assert len(proxy.requests) == 2
    assert team.ask("select count(*) from team.changes where path like '%elm%'") == [(1,)]
    assert saved.receipt
    assert saved.receipt.seq == saved.seq == team.ask("select max(seq) from team.changes")[0][0]


@pytest.mark.postgres
def test_a_save_that_gets_no_answer_twice_says_so_and_is_not_sent_a_third_time(servers: list[Server]) -> None:
    with (
        closing(ForgetfulProxy(servers, forgets=2)) as proxy,
        KnowledgeBase.connect(proxy.url, token(servers[0].kb)) as remote,
        pytest.raises(ServerUnavailableError, match="does not answer"),
    ):
        remote.remember("Elms like water.")
    assert len(proxy.requests) == 2


@pytest.mark.postgres
def test_a_key_gives_one_answer_on_every_server_and_belongs_to_one_token_and_one_day(
    team: Team, servers: list[Server]
) -> None:
    one, two = servers
    mara, nils = token(one.kb, name="mara"), token(one.kb, name="nils")
    with client(one, mara) as here, client(two, mara) as there, client(two, nils) as other:
        with ThreadPoolExecutor(4) as pool:
            asking = [here, there] * 2
            answers = [
                done.json() for done in pool.map(lambda it: it.post(f"{API}/notes", json=ELM, headers=KEY), asking)
            ]
        parts = [{name: answer[name] for name in answer if name not in ("path", "receipt")} for answer in answers]
        assert parts == [parts[0]] * 4
        assert parts[0]["outcome"] == "created"
        assert team.ask("select count(*) from team.changes where path like '%elm%'") == [(1,)]
        assert other.post(f"{API}/notes", json=ELM, headers=KEY).json()["outcome"] == "duplicate"
        team.ask(f"update team.answers set moment = moment - {DAY}")
        late = there.post(f"{API}/notes", json={"content": "Limes smell sweet."}, headers=KEY)
        assert late.json()["outcome"] == "created"
        assert team.ask("select count(*) from team.answers") == [(1,)], "older ones are deleted"


@pytest.mark.postgres
def test_a_save_that_fails_leaves_its_key_unused(team: Team, servers: list[Server]) -> None:
    with client(servers[0], token(servers[0].kb)) as saving:
        team.ask("alter table team.changes add constraint full_disk check (path not like '%elm%')")
        assert saving.post(f"{API}/notes", json=ELM, headers=KEY).status_code >= 500
        team.ask("alter table team.changes drop constraint full_disk")
        assert saving.post(f"{API}/notes", json=ELM, headers=KEY).json()["outcome"] == "created"


@pytest.mark.medium
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_key_with_another_save_is_refused_and_one_without_end_too(
    engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "sqlite":
        kb: KnowledgeBase = request.getfixturevalue("kb")
        server = request.getfixturevalue("on_sqlite")
    else:
        server = request.getfixturevalue("servers")[0]
        kb = server.kb
    with client(server, token(kb)) as saving:
        first = saving.post(f"{API}/notes", json=ELM, headers=KEY).json()
        again = saving.post(f"{API}/notes", json=ELM, headers={"Idempotency-Key": f'"{KEY["Idempotency-Key"]}"'})
        assert {**again.json(), "receipt": None} == {**first, "receipt": None}
        other = saving.post(f"{API}/notes", json={**ELM, "tags": []}, headers=KEY)
        assert (other.status_code, other.json()["error"]["kind"]) == (422, "key_reused")
        assert "send a new one" in other.json()["error"]["message"]
        long = saving.post(f"{API}/notes", json=ELM, headers={"Idempotency-Key": "x" * 256})
        assert (long.status_code, long.json()["error"]["kind"]) == (400, "invalid_input")
        assert len([note for note in kb.notes() if "elm" in note.ref]) == 1


@pytest.fixture
def on_sqlite(kb: KnowledgeBase) -> Iterator[Server]:
    kb.sync()
    with serving(kb, AccessTokens.of(kb.vault)) as server:
        yield server


@pytest.mark.medium
def test_the_command_sends_a_lost_save_again(
    on_sqlite: Server, kb: KnowledgeBase, co: Co, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    monkeypatch.setenv("CO_TOKEN", token(kb))
    with closing(ForgetfulProxy([on_sqlite, on_sqlite], forgets=1)) as proxy:
        done = co("remember", "Elms like water.", "--server", proxy.url, "--json")
    assert json.loads(done.out)["outcome"] == "created"
    assert len(proxy.requests) == 2
    kept = json.loads((data_dir / "answered-saves.json").read_text())
    assert len(kept) == 1
