"""Several servers of one team vault know the same tokens, saves and receipts, and nothing of another vault."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks.team_load import press
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import fields_of
from co_cli.server import readiness
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import API, ROUTES
from co_cli.vault.team import keeper
from tests.command import Co
from tests.mcp.talking import over_http
from tests.postgres import own_server, replica_of
from tests.server.browser import PATIENCE, wait_for
from tests.server.conftest import Server, client, serving, token
from tests.server.processes import serving as process_of
from tests.server.test_note_page import DOT
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team, git, keep, team_of

pytestmark = pytest.mark.postgres
SECRET = "a secret of sixteen letters".replace(" ", "-")


@pytest.fixture
def servers(team: Team, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Server]]:
    monkeypatch.setenv("CO_WEBHOOK_SECRET", SECRET)
    with ExitStack() as stack:
        one, two = (team.server(name) for name in ("one", "two"))
        yield tuple(stack.enter_context(serving(kb, AccessTokens.of(kb.vault))) for kb in (one, two))


def gauges(server: Server) -> dict[str, float]:
    with server.client() as asking:
        lines = asking.get("/metrics").text.splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if line[0] != "#" and "{" not in line}


def said(server: Server) -> dict[str, Any]:
    """What the doctor says about git."""
    (found,) = [one for one in server.kb.doctor() if one.check == "team"]
    return fields_of(found)


def test_what_is_saved_on_one_server_is_found_on_the_other_at_once(servers: tuple[Server, Server]) -> None:
    one, two = servers
    secret = token(one.kb)
    for here, there, text in ((one, two, "Elms like water."), (two, one, "Limes smell sweet.")):
        with client(here, secret) as saving, client(there, secret) as asking:
            saved = saving.post(f"{API}/notes", json={"content": text}).json()
            assert saved["receipt"]["indexed"]
            assert asking.get(f"{API}/notes/{saved['ref']}").json()["body"].strip() == text
            assert asking.get(f"{API}/search", params={"q": text}).json()["hits"][0]["ref"] == saved["ref"]
            changed = asking.put(f"{API}/notes/{saved['ref']}", json={"content": f"{text} Yes."}).json()
            assert saving.get(f"{API}/notes/{saved['ref']}").json()["body"].strip() == f"{text} Yes."
            assert changed["seq"] > saved["seq"]
    AccessTokens.of(two.kb.vault).revoke("mara")
    with client(one, secret) as asking:
        assert asking.get(f"{API}/session").status_code == 401


def test_two_versions_of_a_note_are_decided_on_a_team_s_server(servers: tuple[Server, Server]) -> None:
    one, _ = servers
    copy = "memories/oak.sync-conflict-20261118-091200-ABC1234.md"
    marks = "<<<<<<< HEAD\nOaks live long.\n=======\nOaks live longest.\n>>>>>>> other\n"
    with client(one, token(one.kb)) as asking:

        def write(path: str, text: str) -> None:
            with one.kb.local.store.lock():
                one.kb.local.store.create_at(path, text.encode())

        def decide(action: str) -> tuple[int, str]:
            asking.post(f"{API}/review")
            wait_for(lambda: asking.get(f"{API}/review").json()["job"]["state"] == "done")
            (finding,) = asking.get(f"{API}/review", params={"kind": "conflict"}).json()["findings"]
            answer = asking.post(f"{API}/review/decisions", json={"key": finding["key"], "action": action})
            return answer.status_code, answer.text

        write("memories/elm.md", marks)
        assert decide("accept")[0] == 200
        assert "Oaks live longest." in asking.get(f"{API}/notes/memory:elm").text
        for action in ("forget", "keep"):
            write(copy, "Oaks live for ever.\n")
            one.kb.sync()
            assert decide(action)[0] == 200
            key = asking.get(f"{API}/review").json()["decided"][0]["key"]
            assert asking.delete(f"{API}/review/decisions/{key}").status_code == 200
            with one.kb.local.store.lock():
                one.kb.local.store.trash(copy)


def test_a_save_can_wait_until_it_is_pushed_and_is_a_commit_of_the_token_s_owner(
    team: Team, servers: tuple[Server, Server]
) -> None:
    one, two = servers
    with client(one, token(one.kb)) as saving:
        saved = saving.post(f"{API}/notes", json={"content": "Elms like water.", "ack": "pushed"}).json()
        assert saved["receipt"]["pushed"]
        assert git(team.remote, "log", "-1", "--format=%H %an") == f"{saved['receipt']['committed']} mara"
        assert "Elms like water." in git(team.remote, "show", "HEAD:memories/elms-like-water.md")
        again = saving.post(f"{API}/notes", json={"content": "Elms like water.", "ack": "pushed"}).json()
        assert (again["outcome"], again["seq"], again["receipt"]) == ("duplicate", None, None)
    with KnowledgeBase.connect(two.url, token(two.kb, "read", "jon")) as remote:
        assert remote.ask("GET", f"/saves/{saved['seq']}", dict[str, Any]) == saved["receipt"]
        with pytest.raises(InvalidInputError, match="there is no save 999"):
            remote.ask("GET", "/saves/999", dict[str, Any])
    with KnowledgeBase.connect(two.url, token(two.kb, "write", "bex")) as remote:
        receipt = remote.update(saved["ref"], "Elms like wet feet.", ack="pushed").receipt
        assert receipt
        assert receipt.pushed


def test_every_front_end_s_save_is_recorded_with_its_person(
    team: Team, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = servers
    with client(one, token(one.kb, name="mara")) as page:
        ref = page.post(f"{API}/notes", json={"content": "Elms like water."}).json()["ref"]
    with over_http(f"{two.url}/mcp", token=token(two.kb, name="jon")) as talk:
        talk.call_tool("update_memory", {"ref": ref, "tags": ["tree"]})
    with KnowledgeBase.connect(one.url, token(one.kb, name="bex")) as remote:
        remote.update(ref, title="Elms")
    monkeypatch.setenv("CO_ENGINE", team.address)
    git(Path(two.kb.root), "config", "user.name", "Nils")
    co = Co(Path(two.kb.root))
    place = ("--vault", two.kb.root, "--data-dir", two.kb.settings.data_dir)
    assert co("edit", ref, "--category", "fact", *place).code == 0
    with client(two, token(two.kb, name="ida")) as page:
        page.delete(f"{API}/notes/{ref}")
        page.post(f"{API}/restored", json={"ref": ref})

    for server in servers:
        with server.client() as asking:
            changes = asking.get(f"{API}/history/{ref}").json()["history"]["changes"]
        saves = [one for one in changes if one["source"] != "git"]
        assert [one["author"] for one in saves] == ["ida", "ida", "Nils", "bex", "jon", "mara"]
        assert [one["what"] for one in saves] == ["created", "removed", "updated", "updated", "updated", "created"]
    shown = co("note", "history", ref, *place).out
    assert "created" in shown
    assert "by mara" in shown


def test_a_push_that_the_webhook_announces_comes_in_at_once(
    team: Team, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "EVERY", 600.0)
    one, two = servers
    with client(one, token(one.kb)) as saving, httpx2.Client(verify=False, timeout=PATIENCE) as forge:
        saving.post(f"{API}/notes", json={"content": "Limes smell sweet.", "ack": "pushed"})
        team.push("memories/elm.md", "Elms like water.")
        body = b'{"ref": "refs/heads/main"}'
        signed = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        wrong = [{}, {"X-Gitlab-Token": "wrong"}, {"X-Hub-Signature-256": signed[:-1]}, {"X-Gitlab-Token": ""}]
        assert [forge.post(f"{two.url}/webhook", content=body, headers=one).status_code for one in wrong] == [403] * 4
        assert forge.post(f"{two.url}/webhook", content=body, headers={"X-Hub-Signature-256": signed}).text == "ok\n"
        wait_for(lambda: saving.get(f"{API}/notes/memory:elm").status_code == 200)
        team.push("memories/ash.md", "Ashes are grey.")
        assert forge.post(f"{two.url}/webhook", content=body, headers={"X-Gitlab-Token": SECRET}).status_code == 200
        wait_for(lambda: saving.get(f"{API}/notes/memory:ash").status_code == 200)


def first_hit(asking: httpx2.Client, query: str) -> str:
    return asking.get(f"{API}/search", params={"q": query}).json()["hits"][0]["ref"]


@pytest.mark.slow
@pytest.mark.medium
def test_secrets_in_files_are_in_no_environment_and_no_log(team: Team, tmp_path: Path) -> None:
    team.server("one")
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    environment = {"CO_ENGINE": team.address, "CO_VAULT": str(tmp_path / "one"), "CO_DATA_DIR": str(tmp_path / "state")}
    files = {f"{name}_FILE": str(tmp_path / "secret") for name in ("CO_WEBHOOK_SECRET", "PGPASSWORD", "OPENAI_API_KEY")}
    with process_of(environment | files) as server, server.client("") as host:
        answers = [host.post("/webhook", headers={"X-Gitlab-Token": given}).status_code for given in (SECRET, "wrong")]
        assert answers == [200, 403]
        if sys.platform == "linux":
            assert SECRET not in Path(f"/proc/{server.process.pid}/environ").read_text()
        assert SECRET not in server.text


@pytest.mark.slow
def test_a_push_that_nobody_announces_comes_in_soon(team: Team, servers: tuple[Server, Server]) -> None:
    secret = token(servers[0].kb)
    with client(servers[0], secret) as saving:  # the keeper has looked at the remote before
        saving.post(f"{API}/notes", json={"content": "Limes smell sweet.", "ack": "pushed"})
    team.push("memories/elm.md", "Elms like water.")

    for server in servers:
        with client(server, secret) as asking:
            wait_for(lambda asking=asking: first_hit(asking, "elms") == "memory:elm")
            assert wait_for(lambda asking=asking: asking.get(f"{API}/notes/memory:elm").status_code == 200)


def test_of_writers_on_two_servers_that_read_the_same_version_one_wins_each_round(
    servers: tuple[Server, Server],
) -> None:
    one, two = servers
    secret = token(one.kb)
    with client(one, secret) as here, client(two, secret) as there, ThreadPoolExecutor(2) as writers:
        for number in range(5):
            version = here.get(f"{API}/notes/memory:oak").json()["version"]
            texts = [f"Oak {number} of {name}." for name in ("one", "two")]
            asked = [
                writers.submit(who.put, f"{API}/notes/memory:oak", json={"content": text, "version": version})
                for who, text in zip((here, there), texts, strict=True)
            ]
            codes = [one.result().status_code for one in asked]
            assert sorted(codes) == [200, 409]
            for who in (here, there):
                assert who.get(f"{API}/notes/memory:oak").json()["body"].strip() == texts[codes.index(200)]


@pytest.mark.slow
def test_many_clients_search_and_save_on_two_servers_without_an_error(
    team: Team, servers: tuple[Server, Server]
) -> None:
    tokens = [token(servers[0].kb, "write", f"client-{number}") for number in range(20)]
    load = asyncio.run(press([one.url for one in servers], tokens, searching=16, seconds=2))

    assert load.errors == []
    assert len(load.searches) >= 16
    assert len(load.saved) >= 4
    wait_for(lambda: gauges(servers[1])["co_outbox_changes"] == 0)
    git(team.clone, "pull", "--quiet")
    texts = "\n".join(file.read_text("utf-8") for file in (team.clone / "memories").iterdir())
    assert [text for text in load.saved if text not in texts] == []


@pytest.mark.slow
def test_metrics_and_the_doctor_tell_how_far_git_is_behind(team: Team, servers: tuple[Server, Server]) -> None:
    one, two = servers
    hidden = team.remote.rename(team.remote.with_suffix(".away"))
    with client(one, token(one.kb)) as saving:
        saved = saving.post(f"{API}/notes", json={"content": "Elms like water."}).json()
        assert not saved["receipt"]["pushed"]
        wait_for(lambda: gauges(two)["co_outbox_age_seconds"] > 0)
        assert gauges(one)["co_outbox_changes"] == 1
        wait_for(lambda: "does not appear to be a git repository" in said(two)["text"])
        assert said(one)["level"] == "warning"
        hidden.rename(team.remote)
        wait_for(lambda: saving.get(f"{API}/saves/{saved['seq']}").json()["pushed"])
        wait_for(lambda: said(one)["level"] == "ok")
    behind = ("co_outbox_changes", "co_outbox_age_seconds", "co_commits_behind", "co_files_behind")
    assert [gauges(one)[name] for name in behind] == [0, 0, 0, 0]


@pytest.mark.slow
def test_metrics_tell_that_a_replica_stopped_replaying_and_searches_find_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.postgres.replica.EVERY_SECONDS", 0.0)
    with own_server() as (folder, address), replica_of(folder) as copy, ExitStack() as stack:
        team = Team(tmp_path, address)
        stack.callback(team.close)
        team.replica = copy
        server = stack.enter_context(serving(kb := team.server("one"), AccessTokens.of(kb.vault)))
        asking = stack.enter_context(client(server, token(kb)))
        standby = stack.enter_context(psycopg.connect(copy, autocommit=True))
        wait_for(lambda: gauges(server)["co_replica_behind_bytes"] == 0)

        standby.execute("select pg_wal_replay_pause()")
        saved = asking.post(f"{API}/notes", json={"content": "Elms like water."}).json()

        assert gauges(server)["co_replica_behind_bytes"] > 0
        found = asking.get(f"{API}/search", params={"q": "what do elms like"}).json()
        assert found["hits"][0]["ref"] == saved["ref"]
        standby.execute("select pg_wal_replay_resume()")
        wait_for(lambda: gauges(server)["co_replica_behind_bytes"] == 0)


def test_a_database_that_is_away_makes_the_server_unhealthy_until_it_is_back(
    team: Team, servers: tuple[Server, Server]
) -> None:
    one, _ = servers
    with client(one, token(one.kb)) as asking:
        wait_for(lambda: asking.get("/readyz").status_code == 200)
        name = conninfo_to_dict(team.address)["dbname"]
        with psycopg.connect(team.address, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"alter database {name} allow_connections false".encode())
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
            with one.client(Authorization="") as stranger:
                assert stranger.get("/readyz").text.startswith("database: ")
                assert stranger.get("/livez").status_code == 200
            connection.execute(f"alter database {name} allow_connections true".encode())
        wait_for(lambda: asking.get("/readyz").status_code == 200)
        assert asking.get(f"{API}/session").status_code == 200


def test_an_empty_folder_that_is_no_git_repository_is_served_and_not_ready(team: Team) -> None:
    plain = team.place / "plain"
    plain.mkdir()
    kb = team.open(plain)
    with serving(kb, AccessTokens.of(kb.vault)) as server, server.client(Authorization="") as stranger:
        answer = stranger.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "git: the vault is not a git repository\n")
        assert stranger.get("/livez").status_code == 200


def test_a_full_disk_of_the_clone_a_late_keeper_and_a_folder_that_lags_make_a_server_not_ready(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EVERY", "RETRY"):
        monkeypatch.setattr(keeper, name, 600.0)
    kb, other = team.server("one"), team.server("two")
    with serving(kb, AccessTokens.of(kb.vault)) as one, one.client(Authorization="") as stranger:
        wait_for(lambda: stranger.get("/readyz").status_code == 200)
        with monkeypatch.context() as full:
            full.setattr(readiness, "LEAST_DISK", 10**18)
            answer = stranger.get("/readyz")
            assert (answer.status_code, answer.text.startswith("disk: ")) == (503, True)
            assert "for the vault" in answer.text
        team.ask(f"update team.vaults set checked_at = {time.time() - 200}")
        assert re.fullmatch(r"keeper: no server has finished a round for 20\d seconds\n", stranger.get("/readyz").text)
        team.ask(f"update team.vaults set checked_at = {time.time() + 600}")

        monkeypatch.setattr(readiness, "MOST_LAG", 0.0)
        with team_of(kb).copy.held():  # nobody else can write to its folder
            other.remember("Elms like water.")
            assert stranger.get("/readyz").text.startswith("index: this server lacks what was saved")
        wait_for(lambda: stranger.get("/readyz").status_code == 200)


CLOCK = "import time; real = time.time; time.time = lambda: real() {seconds:+}\n"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [300, -300])
def test_a_server_whose_clock_is_wrong_is_ready_and_so_are_the_others(team: Team, seconds: int) -> None:
    one = team.server("one")
    keep(one)
    secret = token(one)
    two = team.place / "two"
    git(team.place, "clone", "--quiet", str(team.remote), str(two))
    environment = {"CO_ENGINE": team.address, "CO_VAULT": str(two), "CO_DATA_DIR": f"{two}-data", "HOME": str(two)}
    with (
        process_of(environment, CLOCK.format(seconds=seconds)) as wrong,
        wrong.client(secret) as there,
        serving(one, AccessTokens.of(one.vault)) as right,
        client(right, secret) as here,
    ):
        for asking in (here, there):
            assert asking.post(f"{API}/notes", json={"content": f"Elms like {asking.base_url}."}).status_code == 200
            assert [asked.get("/readyz").text for asked in (here, there)] == ["ok\n", "ok\n"]
        wait_for(lambda: team_of(one).state().outbox == 0)
        keeper = re.findall(r"^co_keeper_age_seconds (\S+)$", there.get("/metrics").text, re.M)
        assert float(keeper[0]) < PATIENCE
        assert [asked.get("/readyz").text for asked in (here, there)] == ["ok\n", "ok\n"]


def test_a_clone_without_git_makes_a_server_not_ready(team: Team, servers: tuple[Server, Server]) -> None:
    one, _ = servers
    with one.client(Authorization="") as stranger:
        wait_for(lambda: stranger.get("/readyz").status_code == 200)
        hidden = Path(one.kb.root, ".git")
        hidden.rename(hidden.with_name("git"))
        assert stranger.get("/readyz").text == "git: the clone cannot be read\n"
        hidden.with_name("git").rename(hidden)
        wait_for(lambda: stranger.get("/readyz").status_code == 200)


def test_a_token_of_one_vault_sees_nothing_of_another_in_the_same_database(
    team: Team, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Team(tmp_path / "other", team.address)
    git(tmp_path / "other", "clone", "--quiet", str(other.remote), "diary")
    git(tmp_path / "other/diary", "config", "co.vault", "diary")
    diary = other.open(tmp_path / "other/diary")
    diary.remember("The zebra is a secret of the diary.", tags=["zebra"])
    handbook, _ = servers
    mine, foreign = token(handbook.kb), token(diary)
    with serving(diary, AccessTokens.of(diary.vault)) as server:
        for secret, place in ((mine, server), (foreign, handbook)):
            with client(place, secret) as stranger:
                for one in ROUTES:
                    assert stranger.request(one.method, API + one.path.partition("{")[0]).status_code == 401
                assert [stranger.get(path).status_code for path in ("/metrics", f"{API}/events")] == [401] * 2
                assert stranger.post(f"{API}/session", json={"code": secret}).status_code == 403
                assert stranger.post("/mcp", json={}).status_code == 401
            with KnowledgeBase.connect(place.url, secret) as remote, pytest.raises(InvalidInputError, match="token"):
                remote.search("zebra")
        with client(server, foreign) as asking:
            assert asking.get(f"{API}/search", params={"q": "zebra"}).json()["state"] == "found"
    with client(handbook, mine) as asking:
        seen = [asking.get(f"{API}{path}").text for path in ("/notes", "/tags", "/filters", "/map", "/activity")]
        seen += [asking.get(f"{API}/search", params={"q": q}).text for q in ("zebra", "secret of the diary")]
        seen += [asking.post(f"{API}/given", json={"prompt": "zebra"}).text, asking.get(f"{API}/status").text]
        assert [text for text in seen if "The zebra" in text or "the-zebra" in text] == []
        assert asking.get(f"{API}/notes/memory:the-zebra-is-a-secret-of-the-diary").status_code == 404
    with over_http(f"{handbook.url}/mcp", token=mine) as talk:
        for tool in ("recall_memory", "search_knowledge"):
            assert "The zebra" not in talk.call_tool(tool, {"query": "zebra"}).content[0].text
        assert "zebra" not in talk.call_tool("list_memories", {}).content[0].text
    other.close()


def test_a_file_that_is_added_to_a_note_reaches_the_remote_and_every_server(
    team: Team, servers: tuple[Server, Server]
) -> None:
    one, two = servers
    data = {"name": "bark.png", "data": base64.b64encode(DOT).decode()}
    with client(one, token(one.kb)) as page, client(two, token(two.kb, "read", "jon")) as reading:
        added = page.post(f"{API}/files/memory:oak", json=data).json()
        assert added == {"path": "memories/bark.png", "markdown": "![bark](bark.png)"}
        page.put(f"{API}/notes/memory:oak", json={"content": f"Oaks. {added['markdown']}", "ack": "pushed"})
        read = reading.get(f"{API}/files/memory:oak", params={"name": "bark.png"})
        assert (read.status_code, read.content, read.headers["content-type"]) == (200, DOT, "image/png")
        refused = reading.post(f"{API}/files/memory:oak", json=data)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
    assert git(team.remote, "show", "--stat", "--format=%an", "HEAD~1..HEAD").startswith("mara")
    sent = subprocess.run(["git", "show", "HEAD:memories/bark.png"], cwd=team.remote, capture_output=True, check=True)
    assert sent.stdout == DOT


@pytest.mark.slow
def test_a_server_on_the_network_may_start_before_the_first_token_and_lets_nobody_in(team: Team) -> None:
    places = {"CO_VAULT": str(team.clone), "CO_DATA_DIR": str(team.place / "data"), "CO_ENGINE": team.address}
    options = ("--host", "0.0.0.0", "--allow-host", "127.0.0.1")
    with process_of({**places, "HOME": str(team.place)}, arguments=options) as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        with server.client("none") as asking:
            wait_for(lambda: asking.get("/readyz").text == "ok\n")
            assert asking.get(f"{API}/session").status_code == 401
