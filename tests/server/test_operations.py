"""What an operator does while a team works: change settings, fill a disk, rebuild the index, put a pool in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from co_cli.server.readiness import LEAST_DISK
from co_cli.server.routes import API
from tests.command import Co
from tests.folder import Vault
from tests.postgres import new_database, pooled
from tests.server.browser import PATIENCE, wait_for
from tests.server.conftest import token
from tests.server.processes import Serving, serving
from tests.server.test_open_id import CLIENT, Provider
from tests.server.test_open_id import provider as provider
from tests.trouble.file_systems import fill, small_disk
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team, git

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP, and processes cannot mount"),
]

NOTES = 500


def save(client: httpx2.Client, text: str) -> httpx2.Response:
    return client.post(f"{API}/notes", json={"content": text, "on_related": "keep"})


def found(client: httpx2.Client, query: str) -> list[str]:
    answer = client.post(f"{API}/search", json={"q": query, "limit": 5})
    assert answer.status_code == 200, answer.text
    return [hit["ref"] for hit in answer.json()["hits"]]


# -- settings of a running server --------------------------------------------------------------------------------------


def read_again(server: Serving, text: str) -> dict[str, Any]:
    """The line that the server logs after SIGHUP, which has this text."""
    server.process.send_signal(signal.SIGHUP)
    return wait_for(lambda: [line for line in server.lines if text in line["text"]])[-1]


def test_sighup_takes_over_limits_and_access_and_keeps_the_old_if_the_new_are_wrong(
    vault: Vault, co: Co, tmp_path: Path, provider: Provider
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    mara = co("token", "create", "--role", "write", "--name", "mara").out.strip()
    file, secret = tmp_path / "config" / "co-cli" / "settings.toml", tmp_path / "secret"
    file.parent.mkdir(parents=True)
    secret.write_text("the-secret-of-the-client")
    about = f'oidc_issuer = "{provider.issuer}"\noidc_client = "{CLIENT}"\n'
    file.write_text(f'most_notes = 1\noidc_groups = ["readers=read"]\n{about}')
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "CO_OIDC_SECRET_FILE": str(secret)}
    with serving(environment) as server, server.client(mara) as client, httpx2.Client(verify=False) as outside:
        outside.get(f"{provider.issuer}/jwks")
        access = provider.sign(aud=f"{server.url}/mcp", groups=["writers"])
        with server.client(access) as signed_in:
            assert signed_in.get(f"{API}/session").status_code == 401
            assert "may have 1" in save(client, "Elms like water.").text

            file.write_text(f'most_notes = 2\noidc_groups = ["readers=read", "writers=write"]\n{about}')
            assert "changed: most_notes, oidc_groups" in read_again(server, "read again")["text"]
            assert save(signed_in, "Elms like water.").status_code == 200
            assert "may have 2" in save(client, "Ashes burn well.").text

            file.write_text("most_notes = many")
            assert read_again(server, "were not read again")["level"] == "warning"
            file.write_text(f"most_notes = 3\n{about}oidc_groups = ['writers:write']")
            assert "is not GROUP=ROLE" in read_again(server, "GROUP=ROLE")["text"]
            assert "may have 2" in save(client, "Ashes burn well.").text
            assert signed_in.get(f"{API}/session").json()["role"] == "write"

            file.write_text(f'most_notes = 3\nknowledge_profile = "rrf"\n{about}')
            assert read_again(server, "start the server again to change knowledge_profile")["level"] == "warning"
            assert save(client, "Ashes burn well.").status_code == 200
            assert signed_in.get(f"{API}/session").status_code == 401
        revoked = co("token", "revoke", "mara")
        assert (revoked.code, client.get(f"{API}/session").status_code) == (0, 401), "tokens need no signal"
        assert server.traces() == []


def test_sighup_changes_the_limits_of_each_vault_of_a_file(vault: Vault, co: Co, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    mara = co("token", "create", "--role", "write", "--name", "mara").out.strip()
    file = tmp_path / "vaults.toml"
    table = f'[handbook]\nhost = "handbook.example"\nvault = "{vault.root}"\nmost_notes = '
    file.write_text(f"{table}1")
    with (
        serving({}, arguments=("--vaults", str(file))) as server,
        server.client(mara, Host="handbook.example") as client,
    ):
        assert "may have 1" in save(client, "Elms like water.").text
        file.write_text(f'{table}2\n[diary]\nhost = "diary.example"\nvault = "{tmp_path}"')
        assert "changed: most_notes" in read_again(server, "read again")["text"]
        assert server.line(text="start the server again to add or remove vaults")
        assert save(client, "Elms like water.").status_code == 200


def test_sighup_while_a_server_starts_does_not_end_it(vault: Vault, tmp_path: Path) -> None:
    file = tmp_path / "vaults.toml"
    os.mkfifo(file)  # whoever writes it waits until the server reads it
    command = [sys.executable, "-m", "co_cli", "serve", "--port", "0", "--vaults", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with file.open("w") as writing:
            process.send_signal(signal.SIGHUP)
            writing.write(f'[handbook]\nhost = "handbook.example"\nvault = "{vault.root}"\n')
        assert process.stderr
        assert '"url"' in process.stderr.readline()
        process.kill()


def test_sighup_reads_the_settings_of_each_vault_though_those_of_another_are_wrong(
    vault: Vault, co: Co, tmp_path: Path
) -> None:
    names = ("handbook", "diary")
    file = tmp_path / "vaults.toml"
    for name in names:
        (tmp_path / name).mkdir()

    def write(**more: str) -> None:
        about = 'oidc_issuer = "https://provider.example"\noidc_client = "co"\n'
        tables = [
            f'[{name}]\nhost = "{name}.example"\nvault = "{tmp_path / name}"\n{about}{more.get(name, "")}\n'
            for name in names
        ]
        file.write_text("".join(tables))

    write()
    with serving({"CO_OIDC_SECRET": "the-secret-of-the-client"}, arguments=("--vaults", str(file))) as server:
        wait_for(lambda: sum("url" in line for line in server.lines) == len(names))
        wrong = 'oidc_groups = ["writers:write"]'
        for name, other in (names, names[::-1]):
            write(**{name: wrong, other: f"most_notes = {len(name)}"})
            said = read_again(server, f"{tmp_path / name}: settings were not read again")
            assert "is not GROUP=ROLE" in said["text"]
            server.line(text=f"{tmp_path / other}: settings were read again; changed: most_notes")


# -- several servers ---------------------------------------------------------------------------------------------------


def environment_of(team: Team, name: str, folder: Path | None = None) -> dict[str, str]:
    folder = folder or team.place / name
    if not (folder / ".git").exists():
        git(team.place, "clone", "--quiet", str(team.remote), str(folder))
    places = {"CO_VAULT": str(folder), "CO_DATA_DIR": str(team.place / f"{name}-data")}
    return {**places, "CO_ENGINE": team.address, "HOME": str(team.place)}


def secret_of(team: Team) -> str:
    kb = team.server("nils")
    try:
        return token(kb)
    finally:
        kb.close()


class Clients:
    """They save and look for it at once, on each server in turn, until they are told to stop."""

    def __init__(self, urls: list[str], secret: str, **headers: str) -> None:
        self.saved: list[str] = []
        self.problems: list[str] = []
        self._stop = threading.Event()
        headers["Authorization"] = f"Bearer {secret}"
        self._threads = [
            threading.Thread(target=self._work, args=(name, url, headers)) for name, url in enumerate(urls)
        ]

    def _work(self, name: int, url: str, headers: dict[str, str]) -> None:
        with httpx2.Client(base_url=url, headers=headers, verify=False, timeout=PATIENCE) as client:
            number = 0
            while not self._stop.is_set():
                number += 1
                mark = f"Mark{name}x{number}"
                try:
                    answer = save(client, f"{mark} is here.")
                    self.saved += [answer.json()["ref"]] if answer.is_success else []
                    self.problems += [] if answer.is_success else [answer.text]
                    if answer.is_success and answer.json()["ref"] not in found(client, mark):
                        self.problems.append(f"{mark} is not found")
                except (httpx2.HTTPError, AssertionError) as error:
                    self.problems.append(f"{type(error).__name__}: {error}")

    @contextmanager
    def working(self) -> Iterator[Clients]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def wait(self, more: int = 4) -> None:
        before = len(self.saved)
        wait_for(lambda: len(self.saved) >= before + more or self.problems)


def pushed(team: Team) -> set[str]:
    wait_for(lambda: not team.ask("select 1 from team.changes where not pushed limit 1"))
    paths = git(team.remote, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    return {path.replace("memories/", "memory:").removesuffix(".md") for path in paths}


@pytest.mark.postgres
def test_a_rebuild_fails_no_search_and_no_save_on_any_server(team: Team) -> None:
    for number in range(NOTES):
        (team.clone / "memories" / f"{number}.md").write_text(f"Parcel {number} is on the shelf {number % 7}.\n")
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Many notes")
    git(team.clone, "push", "--quiet")
    secret = secret_of(team)
    environments = [environment_of(team, name) for name in ("one", "two")]
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(environment)) for environment in environments]
        clients = Clients([server.url for server in servers], secret)
        with clients.working():
            clients.wait()
            command = [sys.executable, "-m", "co_cli", "index", "rebuild"]
            before = len(clients.saved)
            done = subprocess.run(command, env={**os.environ, **environments[0]}, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert len(clients.saved) > before, "they save meanwhile"
            clients.wait()
        assert clients.problems == []
        assert {*clients.saved} <= pushed(team)
        command[-1] = "verify"
        checked = subprocess.run(command, env={**os.environ, **environments[1]}, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
        assert [server.traces() for server in servers] == [[], []]


@pytest.mark.postgres
def test_sighup_reads_files_with_secrets_again(team: Team) -> None:
    secret = team.place / "secret"
    secret.write_text("the-old-secret-of-the-webhook")
    with (
        serving({**environment_of(team, "one"), "CO_WEBHOOK_SECRET_FILE": str(secret)}) as server,
        server.client() as host,
    ):

        def accepts(given: str) -> bool:
            return host.post("/webhook", headers={"X-Gitlab-Token": given}).status_code == 200

        assert accepts("the-old-secret-of-the-webhook")
        secret.write_text("the-new-secret-of-the-webhook")
        assert "changed: none" in read_again(server, "read again")["text"]
        assert (accepts("the-old-secret-of-the-webhook"), accepts("the-new-secret-of-the-webhook")) == (False, True)
        secret.write_text("short")
        assert "needs 16 ASCII characters" in read_again(server, "needs 16")["text"]
        assert accepts("the-new-secret-of-the-webhook")


@pytest.mark.postgres
def test_a_full_disk_of_one_server_stops_its_saves_only_and_it_catches_up_afterwards(
    team: Team, tmp_path: Path
) -> None:
    secret = secret_of(team)
    with small_disk(tmp_path / "disk", "80m") as disk, ExitStack() as stack:
        environments = [environment_of(team, "one", disk / "one"), environment_of(team, "two")]
        full, other = (stack.enter_context(serving(environment)) for environment in environments)
        here, there = (stack.enter_context(server.client(secret)) for server in (full, other))
        assert save(here, "Elms like water.").status_code == 200
        assert here.get("/readyz").text == "ok\n"

        filler = fill(disk, leave=LEAST_DISK // 2)
        assert here.get("/readyz").status_code == 503
        assert "disk: 25 MB are left for the vault" in here.get("/readyz").text
        filler.unlink()
        filler = fill(disk)
        refused = save(here, "Ashes burn well.")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (507, "disk_full")
        assert save(there, "Firs are green.").status_code == 200
        assert found(here, "what is green")[0] == found(there, "what is green")[0] == "memory:firs-are-green"
        assert "memory:ashes-burn-well" not in found(there, "what burns"), "it was refused"

        filler.unlink()
        wait_for(lambda: here.get("/readyz").text == "ok\n")
        assert save(here, "Ashes burn well.").status_code == 200
        wait_for(lambda: (disk / "one" / "memories" / "firs-are-green.md").exists())
        assert {"memory:elms-like-water", "memory:firs-are-green", "memory:ashes-burn-well"} <= pushed(team)
        assert [server.traces() for server in (full, other)] == [[], []]


@pytest.mark.postgres
def test_two_servers_behind_pgbouncer_in_session_mode_work_as_without_it(tmp_path: Path) -> None:
    with pooled(new_database(), "session") as address:
        team = Team(tmp_path, address)
        secret = secret_of(team)
        with ExitStack() as stack:
            servers = [stack.enter_context(serving(environment_of(team, name))) for name in ("one", "two")]
            clients = Clients([server.url for server in servers], secret)
            with clients.working():
                clients.wait(20)
            assert clients.problems == []
            assert {*clients.saved} <= pushed(team)
            with servers[1].client(secret) as there:
                assert there.get("/readyz").text == "ok\n"
            assert [server.traces() for server in servers] == [[], []]
        team.close()
