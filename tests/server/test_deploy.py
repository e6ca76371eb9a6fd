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
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from tests.postgres import FOLDER, copy_schema, new_database
from tests.server.browser import PATIENCE
from tests.server.conftest import serving
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team, git, keep

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.skipif(not DEPLOY.exists(), reason="an installed package has no deploy folder"),
    pytest.mark.skipif(sys.platform == "win32", reason="deploy/start is a shell script"),
]


class Service:
    """A server of compose.yaml, with a folder of this machine for its volume."""

    def __init__(self, name: str, team: Team) -> None:
        given = {"VAULT_REMOTE": str(team.remote), "NOTES_HOST": "notes.example"}
        text = re.sub(r"\$\{(\w+)(?::-)?\}", lambda one: given.get(one[1], ""), (DEPLOY / "compose.yaml").read_text())
        about: dict[str, Any] = yaml.safe_load(text)["services"][name]
        (volume,) = about["volumes"]
        self.command, (self.data, inside) = about["command"], (team.place / name, volume.partition(":")[2])
        self.data.mkdir()
        (self.data / "secrets").mkdir()
        for name in about["secrets"]:  # those that are not set
            (self.data / "secrets" / name).touch()
        places = {f"{inside}/": f"{self.data}/", "/run/secrets/": f"{self.data}/secrets/"}
        values = {key: value or "" for key, value in about["environment"].items()}
        for place, here in places.items():
            values = {key: re.sub(f"^{place}", here, value) for key, value in values.items()}
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
    audit = team.ask("select who, action, path from team.audit order by id")
    assert [path for _, _, path in audit] == ["", "memories/elms-like-water.md"], "the first is about the token"
    restored = new_database()
    copy_schema("team", team.address, restored)

    team.address = restored
    assert team.ask("select who, action, path from team.audit order by id") == audit
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
        said = [json.loads(process.stderr.readline()) for process in running]  # type: ignore[union-attr]
        urls = [line["url"].replace("0.0.0.0", "127.0.0.1") for line in said]
        with KnowledgeBase.connect(urls[0], secret) as here, KnowledgeBase.connect(urls[1], secret) as there:
            saved = here.remember("Elms like water.", ack="pushed")
            assert saved.receipt
            assert saved.receipt.pushed
            assert {hit.ref for hit in there.search("what do elms and oaks like").hits} == {saved.ref, "memory:oak"}
        assert git(team.remote, "log", "-1", "--format=%an %H") == f"mara {saved.receipt.committed}"
        for process in running:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(PATIENCE) for process in running] == [0, 0]


def test_a_backup_is_restored_by_its_drill_and_into_an_empty_database(team: Team, tmp_path: Path) -> None:
    one = team.server("one")
    AccessTokens.of(one.vault).create("read", "mara")
    one.remember("Elms like water.")
    backups, restored = tmp_path / "2026-T-Z", new_database()
    programs = Path(os.environ[FOLDER], ".pg0", "installation")
    path = [Path(sys.executable).parent, *programs.glob("*/bin"), os.environ["PATH"]]
    environment = {
        **{"HOME": str(tmp_path), "PATH": ":".join(map(str, path)), "BACKUPS": "1"},
        **{"CO_ENGINE": team.address, "VAULT_REMOTE": str(team.remote), "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static"},
    }

    def run(*command: str, **changed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [DEPLOY / command[0], *command[1:]], env={**environment, **changed}, capture_output=True, text=True
        )

    assert run("backup", str(backups), BACKUPS="0").returncode == 2
    unread = run("backup", str(backups), PGPASSWORD_FILE=str(tmp_path / "none"))
    assert (unread.returncode, backups.exists()) == (1, False), unread.stderr
    first = run("backup", str(backups)).stdout.strip()
    one.remember("Ashes like sun.")
    time.sleep(1.1)  # a backup is named by its second
    done = run("backup", str(backups))
    assert done.returncode == 0, done.stderr
    (backup,) = backups.iterdir()
    assert str(backup) == done.stdout.strip() != first, "only the newest is kept"
    assert {file.name for file in backup.iterdir()} == {"team.sql", "notes.git"}

    drill = run("restore-drill", str(backup))
    assert drill.returncode == 0, drill.stderr
    assert drill.stdout.endswith(f"restore-drill: {backup} can be restored\n")
    assert team.ask("select datname from pg_database where datname like 'co_drill%'") == []
    assert run("restore", str(backup)).stderr == (
        "restore: the database has a schema team already: name an empty one in CO_ENGINE\n"
    )
    assert run("restore", str(backup), CO_ENGINE=restored).returncode == 0
    team.address = restored
    assert team.ask("select count(*) from team.tokens") == [(0,)], "one that was revoked since must not come back"
    assert {note.ref for note in team.server("two").notes()} == {
        "memory:oak",
        "memory:elms-like-water",
        "memory:ashes-like-sun",
    }


def test_the_drill_works_with_the_role_that_the_guide_makes_and_finds_a_note(tmp_path: Path) -> None:
    admin, name = new_database(), f"drill{os.getpid()}"
    programs = Path(os.environ[FOLDER], ".pg0", "installation")
    path = [Path(sys.executable).parent, *programs.glob("*/bin"), os.environ["PATH"]]
    environment = {
        **{"HOME": str(tmp_path), "PATH": ":".join(map(str, path)), "CO_KNOWLEDGE_READER": "off"},
        **{"ADMIN": admin, "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static"},
    }

    def run(*command: str, **given: str) -> str:
        done = subprocess.run(
            [DEPLOY / command[0], *command[1:]], env={**environment, **given}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    team = Team(tmp_path, run("new-vault", name))
    try:
        team.server("one").remember("Elms like water.")
        given = {"CO_ENGINE": team.address, "VAULT_REMOTE": str(team.remote)}
        said = run("restore-drill", run("backup", str(tmp_path / "backups"), **given), **given)
    finally:
        team.close()
    assert "memory:oak" in said or "Oak" in said, "it searches"
    assert said.endswith("can be restored")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", ["co-serve.service", "co-backup.service", "co-backup.timer"])
def test_units_of_systemd_are_valid(name: str, tmp_path: Path) -> None:
    for file in DEPLOY.glob("co-*.*"):  # a timer looks for its service
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", file.read_text(), flags=re.M)
        (tmp_path / file.name).write_text(text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=one", tmp_path / name], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_dashboard_and_the_alerts_name_metrics_that_a_server_has(team: Team) -> None:
    one = team.server("one")
    keep(one)
    with serving(one, AccessTokens.of(one.vault)) as server, server.client() as asking:
        asking.get("/api/v1/search", params={"q": "oaks"})
        text = asking.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    has = {f"{name}{end}" for name, kind in kinds.items() for end in (("_bucket",) if kind == "histogram" else ("",))}
    alerts = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    board = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text("utf-8"))
    asked = [rule["expr"] for rule in alerts] + [
        target["expr"] for panel in board["panels"] for target in panel["targets"]
    ]
    named = {name for expression in asked for name in re.findall(r"\b(?:co|process)_\w+", expression)}

    optional = {"co_replica_behind_bytes", "co_reader_pairs_total", "co_reader_kept_total", "co_reader_seconds_total"}
    assert named - has <= optional | {"co_backup_time_seconds"}, "with a replica, a reader, and from deploy/backup"
    assert has - {"co_requests_total"} <= named, "each is shown somewhere"
    states = {"used": 0, "free": 0, "waiting": 0}
    assert {state for state in states if f'co_database_connections{{state="{state}"}}' in text} == {*states}
    assert "co_keeper 1" in text
    assert re.search(r'^co_disk_free_bytes{folder="vault"} \d{6,}$', text, re.M)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed: apt install prometheus")
def test_promtool_accepts_the_alert_rules_and_the_metrics(team: Team) -> None:
    rules = str(DEPLOY / "monitoring" / "alerts.yaml")
    assert subprocess.run(["promtool", "check", "rules", rules], capture_output=True).returncode == 0
    one = team.server("one")
    with serving(one, AccessTokens.of(one.vault)) as server, server.client() as asking:
        assert asking.post("/api/v1/session", json={"code": "wrong"}).status_code == 403
        text = asking.get("/metrics").text
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode != 1, checked.stderr  # 3: only advice on names
    assert "co_notes 1" in text
    assert "co_sign_ins_failed_total 1" in text
    assert re.search(r'^co_build_info{version="[^"]+"} 1$', text, re.M)
    assert re.search(r"^process_resident_memory_bytes \d{8,}$", text, re.M)


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
    for name in [name for name in kept if not name.startswith("deploy/")]:
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        (source / name).parent.mkdir(exist_ok=True)
        copy(root / name, source / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert [*tmp_path.glob("*.whl")]


def test_images_have_a_version() -> None:
    images = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    images += re.findall(r"image: (\S+/\S+)", (DEPLOY / "compose.yaml").read_text())
    assert len(images) == 2
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in images)


@pytest.mark.parametrize("name", ["Dockerfile", "co-serve.service"])
def test_the_extras_of_an_installation_exist(name: str) -> None:
    (extras,) = re.findall(r'"(?:/source|co-cli)\[([\w,]+)\]"', (DEPLOY / name).read_text())
    known = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*extras.split(",")} <= {*known}, "pip only warns of others"
