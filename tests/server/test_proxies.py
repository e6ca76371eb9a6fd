"""The proxies of docs/guides/team.md, run in front of two servers that are both started again."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.command import Co
from tests.folder import Vault
from tests.server.browser import PATIENCE, wait_for
from tests.server.processes import Serving, serving
from tests.server.test_operations import Clients, environment_of, pushed, secret_of
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "team.md"
NAME = "notes.example"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no guide"),
    pytest.mark.skipif(sys.platform == "win32", reason="the proxies are those of Debian"),
]
PAUSE = 5.0
"""Seconds after which a proxy has seen that a server is back, as the guide says."""
NGINX = "daemon off; pid {place}/pid; error_log stderr; events {{}} http {{ access_log off; {temporary} {site} }}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def configuration(proxy: str, place: Path, port: int, servers: list[int]) -> list[str]:
    """The command that runs the proxy with what the guide says, on a port of its own and without TLS."""
    if not shutil.which(proxy, path="/usr/sbin:/usr/bin"):
        pytest.skip(f"{proxy} is not installed: apt install {proxy}")
    blocks = re.findall(r"^```\w*\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    (text,) = (block for block in blocks if ("reverse_proxy" if proxy == "caddy" else "proxy_pass") in block)
    for said, real in zip(("8767", "8768"), servers, strict=True):
        text = text.replace(f"127.0.0.1:{said}", f"127.0.0.1:{real}")
    file = place / "proxy.conf"
    if proxy == "caddy":
        file.write_text(
            "{\n admin off\n auto_https off\n}\n" + text.replace(f"{NAME} {{", f"http://{NAME}:{port} {{", 1)
        )
        return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    text = re.sub(r" *ssl_certificate.*\n", "", text).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {place}/{kind};" for kind in kinds)
    file.write_text(NGINX.format(place=place, temporary=temporary, site=text))
    return ["nginx", "-c", str(file)]


@contextmanager
def running(command: list[str], place: Path) -> Iterator[None]:
    environment = {"HOME": str(place), "PATH": "/usr/sbin:/usr/bin:/bin"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize("proxy", ["caddy", "nginx"])
def test_a_proxy_of_the_guide_answers_soon_after_both_servers_were_started_again(
    proxy: str, vault: Vault, co: Co, tmp_path: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    secret = co("token", "create", "--role", "read", "--name", "mara").out.strip()
    port, ports = free_port(), [free_port(), free_port()]

    def start(stack: ExitStack) -> None:
        for one in ports:
            stack.enter_context(serving({}, arguments=("--port", str(one), "--allow-host", NAME)))

    headers = {"Host": NAME, "Authorization": f"Bearer {secret}"}
    with (
        running(configuration(proxy, tmp_path, port, ports), tmp_path),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE) as client,
    ):

        def answers() -> bool:
            try:
                return client.get("/api/v1/search", params={"q": "oaks"}).status_code == 200
            except httpx2.TransportError:
                return False

        with ExitStack() as first:
            start(first)
            wait_for(answers)
            assert client.get("/readyz").text == "ok\n"
        assert not answers(), "nobody is there"
        with ExitStack() as second:
            start(second)
            began = time.monotonic()
            wait_for(answers)
            assert time.monotonic() - began < 8
            assert all(answers() for _ in range(20))


@pytest.mark.postgres
@pytest.mark.parametrize("proxy", ["caddy", "nginx"])
def test_servers_that_are_started_again_one_after_the_other_fail_no_request(
    proxy: str, team: Team, tmp_path: Path
) -> None:
    secret, port, ports = secret_of(team), free_port(), [free_port(), free_port()]
    host = f"http://127.0.0.1:{port}"
    clients = Clients([host] * 4, secret, Host=NAME)

    def start(number: int) -> Serving:
        arguments = ("--port", str(ports[number]), "--allow-host", NAME)
        server = stack.enter_context(serving(environment_of(team, str(number)), arguments=arguments))
        wait_for(lambda: httpx2.get(f"{server.url}/readyz").text == "ok\n")
        return server

    with running(configuration(proxy, tmp_path, port, ports), tmp_path), ExitStack() as stack:
        servers = [start(0), start(1)]
        wait_for(lambda: httpx2.get(f"{host}/readyz", headers={"Host": NAME}).text == "ok\n")
        with clients.working():
            for number in (0, 1):
                clients.wait()
                servers[number].process.terminate()
                if proxy == "caddy":  # which asks it
                    assert httpx2.get(f"{servers[number].url}/readyz").text == "server: it is about to stop\n"
                assert servers[number].process.wait(PATIENCE) == 0
                assert servers[number].traces() == []
                clients.wait()
                servers[number] = start(number)
                time.sleep(PAUSE)
        assert clients.problems == []
        assert {*clients.saved} <= pushed(team)
