"""deploy/compose.yaml: its commands, started without containers, make a team of two servers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from co_cli.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from tests.postgres import copy_schema, new_database
from tests.server.browser import PATIENCE
from tests.team.conftest import team as team
from tests.team.servers import Team, git, keep

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not DEPLOY.exists(), reason="an installed package has no deploy folder"),
    pytest.mark.skipif(sys.platform == "win32", reason="deploy/start is a shell script"),
]


class Service:
    """A server of compose.yaml, with a folder of this machine for its volume."""

    def __init__(self, name: str, team: Team) -> None:
        given = {"DATABASE_PASSWORD": "", "VAULT_REMOTE": str(team.remote), "NOTES_HOST": "notes.example"}
        text = re.sub(r"\$\{(\w+)(?::-)?\}", lambda one: given.get(one[1], ""), (DEPLOY / "compose.yaml").read_text())
        about: dict[str, Any] = yaml.safe_load(text)["services"][name]
        (volume,) = about["volumes"]
        self.command, (self.data, inside) = about["command"], (team.place / name, volume.partition(":")[2])
        self.data.mkdir()
        values = {key: (value or "").replace(inside, str(self.data), 1) for key, value in about["environment"].items()}
        found = {"HOME": str(self.data), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.environment = {
            **found,
            **values,
            "CO_ENGINE": team.address,
            "CO_KNOWLEDGE_READER": "off",
            "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static",
        }

    def start(self, command: str) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([DEPLOY / "start", *shlex.split(command)], env=self.environment, **pipes)


def test_a_backup_of_the_schema_team_has_tokens_the_audit_and_saves_that_git_does_not_have(team: Team) -> None:
    one = team.server("one")
    secret, token = AccessTokens.of(one.vault).create("read", "mara")
    saved = one.remember("Elms like water.")
    audit = team.ask("select who, action, path from team.audit")
    assert [path for _, _, path in audit] == ["memories/elms-like-water.md"]
    restored = new_database()
    copy_schema("team", team.address, restored)

    team.address = restored
    assert team.ask("select who, action, path from team.audit") == audit
    two = team.server("two")
    assert two.search("what do elms like").hits[0].ref == saved.ref
    assert {note.ref for note in two.notes()} == {saved.ref, "memory:oak"}
    assert AccessTokens.of(two.vault).find(secret) == token
    keep(two)
    assert "Elms like water." in git(team.remote, "show", "HEAD:memories/elms-like-water.md")


def test_two_servers_start_from_a_git_repository_and_an_empty_database(team: Team) -> None:
    one, two = (Service(name, team) for name in ("one", "two"))
    out, problems = one.start("co token create --role write --name mara --json").communicate(timeout=PATIENCE)
    assert problems == ""
    secret = json.loads(out)["token"]
    with ExitStack() as stack:
        running = [service.start(service.command.replace("8767", "0")) for service in (one, two)]
        for process in running:
            stack.callback(process.wait)
            stack.callback(process.kill)
        assert running[0].stderr
        assert running[1].stderr
        urls = [process.stderr.readline().split()[-1].replace("0.0.0.0", "127.0.0.1") for process in running]  # type: ignore[union-attr]
        with KnowledgeBase.connect(urls[0], secret) as here, KnowledgeBase.connect(urls[1], secret) as there:
            saved = here.remember("Elms like water.", ack="pushed")  # type: ignore[call-arg]
            assert saved.receipt
            assert saved.receipt.pushed
            assert {hit.ref for hit in there.search("what do elms and oaks like").hits} == {saved.ref, "memory:oak"}
        assert git(team.remote, "log", "-1", "--format=%an %H") == f"mara {saved.receipt.committed}"
        for process in running:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(PATIENCE) for process in running] == [0, 0]


def test_the_image_has_what_the_build_needs_and_no_secret_of_the_checkout(tmp_path: Path) -> None:
    """Docker is not needed: the patterns of .dockerignore are few enough to follow by hand."""
    root = DEPLOY.parent
    ignored = (root / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    copied = re.findall(r"^COPY (?:--\S+ )?(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert "*" in ignored
    assert {name for names in copied for name in names.split()} == kept
    assert all((root / name).exists() for name in kept)
    assert ".env" in (root / ".gitignore").read_text().splitlines()

    source = tmp_path / "source"
    source.mkdir()
    for name in kept - {"deploy/start"}:
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, source / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert [*tmp_path.glob("*.whl")]


def test_images_have_a_version() -> None:
    images = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    images += re.findall(r"image: (\S+/\S+)", (DEPLOY / "compose.yaml").read_text())
    assert len(images) == 2
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in images)
