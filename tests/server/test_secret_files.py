"""Secrets in files: of git, of providers and of `co` itself, as Docker and Kubernetes give them."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from tests.command import Co
from tests.embedding.loopback import OpenAIServer
from tests.folder import Vault
from tests.vault.team.servers import git

START = Path(__file__).parents[2] / "deploy" / "start"
TOKEN = "geheim-4711"


@contextmanager
def git_host(folder: Path, user: str) -> Iterator[str]:
    """A git host that wants this user and the token for everything. Yields its address."""
    expected = base64.b64encode(f"{user}:{TOKEN}".encode()).decode()

    def answer(asked: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if asked.get("HTTP_AUTHORIZATION") != f"Basic {expected}":
            start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="git"')])
            return [b""]
        given = {name: value for name, value in asked.items() if isinstance(value, str)}
        about = {"GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": user}
        body = asked["wsgi.input"].read(int(asked.get("CONTENT_LENGTH") or 0))
        done = subprocess.run(
            ["git", "http-backend"], input=body, env={**os.environ, **given, **about}, capture_output=True
        )
        head, _, text = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        start(headers.pop("Status", "200 OK"), [*headers.items()])
        return [text]

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.medium
@pytest.mark.skipif(not START.exists(), reason="an installed package has no deploy folder")
@pytest.mark.skipif(sys.platform == "win32", reason="deploy/start is a shell script")
@pytest.mark.parametrize("user", ["co", "mara"])
def test_git_gets_its_token_from_a_file_and_it_is_in_no_address_and_no_environment(user: str, tmp_path: Path) -> None:
    bare, clone, file = tmp_path / "notes.git", tmp_path / "vault", tmp_path / "token"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    git(bare, "config", "http.receivepack", "true")
    file.write_text(f"{TOKEN}\n")
    with git_host(tmp_path, user) as address:
        remote = f"{address}/notes.git" if user == "co" else f"{address}/notes.git".replace("//", f"//{user}@")
        environment = {
            **{"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0"},
            **{"CO_VAULT": str(clone), "VAULT_REMOTE": remote, "GIT_TOKEN_FILE": str(file)},
        }

        def start(*command: str, given: str = "") -> subprocess.CompletedProcess[str]:
            return subprocess.run([START, *command], env=environment, input=given, capture_output=True, text=True)

        assert TOKEN not in start("env").stdout
        git(clone, "commit", "--quiet", "--allow-empty", "-m", "By hand")
        pushed = start("git", "-C", str(clone), "push", "--quiet", "origin", "HEAD:main")
        assert (pushed.returncode, pushed.stderr) == (0, "")
        assert git(bare, "log", "-1", "--format=%s", "main") == "By hand"
        assert TOKEN not in (clone / ".git" / "config").read_text()

        elsewhere = start("git", "credential", "fill", given="protocol=https\nhost=elsewhere.example\n\n")
        assert elsewhere.returncode != 0
        assert TOKEN not in elsewhere.stdout, "another host does not get it"
        file.write_text("another\n")
        assert start("git", "-C", str(clone), "fetch").returncode != 0, "the file is read each time"


@pytest.mark.slow
@pytest.mark.medium
def test_a_key_of_a_provider_may_be_in_a_file(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    (tmp_path / "key").write_text(f"{TOKEN}\n")
    environment = {"OPENAI_API_KEY_FILE": str(tmp_path / "key"), "OPENAI_API_KEY": ""}
    provider = OpenAIServer()
    try:
        set_up = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "openai", "CO_KNOWLEDGE_EMBEDDING_HOST": provider.url}
        ran = co.process("index", "sync", env={**environment, **set_up})
    finally:
        provider.close()
    assert ran.code == 0, ran.err
    assert {*provider.keys} == {TOKEN}
    other = co.process("list", env={"OTHER_API_KEY_FILE": str(tmp_path / "none")})
    assert other.code == 0, "it may be for another program"
    missing = co.process("list", env={"CO_TOKEN_FILE": str(tmp_path / "none"), "CO_TOKEN": ""})
    assert missing.code == 2
    assert missing.err.startswith(f"co: CO_TOKEN_FILE: {tmp_path / 'none'} cannot be read:")


def test_doctor_knows_the_variables_of_secrets(co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    for name in ("CO_OIDC_SECRET", "CO_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, TOKEN)
        monkeypatch.setenv(f"{name}_FILE", "/run/secrets/unread")
    assert [found for found in co("doctor", "--json").json if found["check"] == "environment"] == []
