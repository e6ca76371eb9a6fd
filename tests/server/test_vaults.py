"""Several vaults in one `co serve`: each with its own host, repository, database, role, tokens and quota."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from co_cli.ground.errors import InvalidInputError
from co_cli.server.vaults_site import read_vaults
from tests.command import Co
from tests.postgres import FOLDER, new_database
from tests.server.browser import wait_for
from tests.server.processes import serving
from tests.server.test_deploy import DEPLOY
from tests.vault.team.servers import commit, git

API = "/api/v1"
pytestmark = [
    pytest.mark.skipif(not DEPLOY.exists(), reason="an installed package has no deploy folder"),
    pytest.mark.skipif(sys.platform == "win32", reason="deploy/new-vault is a shell script"),
]


class Vaults:
    """A file that lists two vaults, each with a note that only it has."""

    def __init__(self, place: Path) -> None:
        self.place, self.file = place, place / "vaults.toml"
        new_database()  # starts PostgreSQL
        self.admin = f"postgresql://postgres@/postgres?host={os.environ[FOLDER]}"
        self.suffix = place.name.replace("-", "_").lower()[-20:]
        self.engines: dict[str, str] = {}
        lines: list[str] = []
        for name, text in (("handbook", "Oaks live long."), ("diary", "Elms like water.")):
            remote, clone = place / f"{name}.git", place / name
            git(place, "init", "--quiet", "--bare", str(remote))
            git(place, "clone", "--quiet", str(remote), str(clone))
            commit(clone, "memories/tree.md", f"{text}\n")
            git(clone, "push", "--quiet", "origin", "HEAD")
            self.engines[name] = self.new(name)
            lines += [f"[{name}]", f'host = "{name}.notes.example"', f'vault = "{clone}"']
            lines += [f'engine = "{self.engines[name]}"', f'data_dir = "{place / "state"}"']
            lines += ["most_notes = 2"] if name == "diary" else []
        self.file.write_text("\n".join(lines))

    def new(self, name: str) -> str:
        programs = Path(os.environ[FOLDER], ".pg0", "installation")
        path = ":".join([*map(str, programs.glob("*/bin")), os.environ["PATH"]])
        command = [str(DEPLOY / "new-vault"), f"{name}_{self.suffix}"]
        done = subprocess.run(
            command, env={"PATH": path, "ADMIN": self.admin}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


@pytest.fixture
def vaults(tmp_path: Path) -> Vaults:
    return Vaults(tmp_path)


@pytest.mark.slow
@pytest.mark.postgres
def test_each_vault_has_its_own_host_tokens_and_notes(vaults: Vaults, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets: dict[str, str] = {}
    for name, engine in vaults.engines.items():
        monkeypatch.setenv("CO_ENGINE", engine)
        secrets[name] = co("token", "create", "--role", "write", "--vault", str(vaults.place / name)).out.strip()
    monkeypatch.delenv("CO_ENGINE")
    with serving({}, arguments=("--vaults", str(vaults.file))) as server, ExitStack() as stack:
        wait_for(lambda: sum("url" in line for line in server.lines) == len(vaults.engines))

        def ask(name: str, token: str, method: str, path: str, **sent: Any) -> Any:
            client = stack.enter_context(server.client(secrets[token], Host=f"{name}.notes.example"))
            return client.request(method, path, **sent)

        assert ask("handbook", "handbook", "GET", f"{API}/search?q=trees").json()["hits"][0]["title"] == "Tree"
        assert "Oaks" in ask("handbook", "handbook", "GET", f"{API}/notes/memory:tree").text
        assert "Elms" in ask("diary", "diary", "GET", f"{API}/notes/memory:tree").text
        for name, token in (("handbook", "diary"), ("diary", "handbook")):
            assert ask(name, token, "GET", f"{API}/search?q=trees").status_code == 401
        saved = ask("diary", "diary", "POST", f"{API}/notes", json={"content": "Ashes like sun.", "ack": "pushed"})
        assert saved.json()["receipt"]["pushed"]
        assert ask("handbook", "handbook", "GET", f"{API}/notes/{saved.json()['ref']}").status_code == 404
        full = ask("diary", "diary", "POST", f"{API}/notes", json={"content": "Firs like snow."})
        assert (full.status_code, full.json()["error"]["message"]) == (
            400,
            "this vault has 2 notes, and may have 2: forget some first",
        )
        assert ask("handbook", "handbook", "POST", f"{API}/notes", json={"content": "Firs like snow."}).is_success
        assert ask("attic", "diary", "GET", f"{API}/session").status_code == 421
        assert ask("attic", "diary", "GET", "/livez").text == "ok\n"
        for name in secrets:
            assert ask(name, name, "GET", "/readyz").text == "ok\n"
            assert ask(name.upper(), name, "GET", f"{API}/session").is_success, "host names have no case"
            assert server.line(vault=f"{name}.notes.example", route=f"{API}/session")
    assert "Ashes like sun." in git(vaults.place / "diary.git", "show", "HEAD:memories/ashes-like-sun.md")
    prove_that_no_role_sees_another_vault(vaults)


def prove_that_no_role_sees_another_vault(vaults: Vaults) -> None:
    other = vaults.engines["diary"]
    role, foreign = (f"co_{name}_{vaults.suffix}" for name in ("handbook", "diary"))
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(other.replace(f"//{foreign}@", f"//{role}@"))
    with psycopg.connect(vaults.engines["handbook"], autocommit=True) as own:
        assert own.execute("select current_user").fetchall() == [(role,)]
        for statement in (
            f"set role {foreign}",
            "set role postgres",
            "create extension dblink",
            "select pg_read_file('postgresql.conf')",
            "copy (select 1) to program 'true'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                own.execute(statement.encode())
        for role_to_use in ("none", "co_cli_member"):
            own.execute(f"set role {role_to_use}".encode())
            own.execute("select set_config('co_cli.roots', 'handbook' || chr(1) || 'diary', false)")
            tables = own.execute(
                "select format('%I.%I', schemaname, tablename) from pg_tables"
                " where schemaname not in ('pg_catalog', 'information_schema')"
            ).fetchall()
            seen = ""
            for (table,) in tables:
                try:
                    seen += str(own.execute(f"select t::text from {table} as t".encode()).fetchall())
                except psycopg.errors.InsufficientPrivilege:
                    assert role_to_use == "co_cli_member"
            assert "Elms" not in seen
            assert "Ashes" not in seen
            assert "Oaks" in seen or role_to_use == "co_cli_member"


@pytest.mark.postgres
def test_a_vault_can_be_dropped_and_the_other_goes_on(vaults: Vaults, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_ENGINE", vaults.engines["handbook"])
    assert co("index", "sync", "--vault", str(vaults.place / "handbook")).code == 0
    with psycopg.connect(vaults.admin, autocommit=True) as admin:
        for statement in ("drop database co_diary_{}", "drop role co_diary_{}"):
            admin.execute(statement.format(vaults.suffix).encode())
    assert "tree" in co("search", "oaks", "--vault", str(vaults.place / "handbook")).out


def test_the_vaults_of_the_guide_share_no_host_no_folder_and_no_database(tmp_path: Path) -> None:
    guide = (DEPLOY.parent / "docs" / "guides" / "team.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", guide, re.M | re.S)
    (tmp_path / "vaults.toml").write_text(text)
    found = read_vaults(str(tmp_path / "vaults.toml"))
    assert [vault.name for vault in found] == ["everyone", "support", "hr"]
    for own in ({vault.host for vault in found}, {vault.settings.vault for vault in found}):
        assert len(own) == len(found)
    assert [vault.settings.engine.rpartition("/")[2] for vault in found] == [f"co_{vault.name}" for vault in found]


def test_a_wrong_file_is_named_with_the_fix(tmp_path: Path, co: Co) -> None:
    file = tmp_path / "vaults.toml"
    assert (
        co("serve", "--port", "0", "--vaults", str(file)).err
        == f"co: {file} cannot be read: No such file or directory\n"
    )
    for text, message in (
        ("", "lists no vault"),
        ("[one", "is not TOML"),
        ("one = 1", r"\[one\] needs host and vault"),
        ('[one]\nvault = "a"', r"\[one\] needs host and vault"),
        ('[one]\nhost = "a:8080"\nvault = "a"', "without a port"),
        ('[one]\nhost = "a"\nvault = "a"\nengin = "x"', r"\[one\].*unknown setting 'engin': did you mean engine"),
        ('[one]\nhost = "a"\nvault = "a"\n[two]\nhost = "A"\nvault = "b"', "two vaults have the host a"),
        ('[one]\nhost = "a"\nvault = "a"\n[two]\nhost = "b"\nvault = "a"', "two vaults have the vault"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            read_vaults(str(file))
