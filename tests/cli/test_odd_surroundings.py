"""Odd locales, outputs, homes, refs and libraries: the right answer, or one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.ground.errors import SettingsError
from co_cli.ground.settings import load_settings
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from tests.command import Co
from tests.folder import Vault
from tests.rights import can_obey, obey_permissions

CLONE = Path(__file__).parents[2]
INSTALLED_ELSEWHERE = """
import sys
sys.prefix, sys.modules["psycopg"] = sys.argv.pop(1), None
from co_cli.cli.app import run
run()
"""
"""`co` in an environment in this folder, without the extra postgres."""


@pytest.mark.medium
def test_text_survives_a_locale_that_is_not_utf8(co: Co, vault: Vault) -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert co.process("remember", "Straße nach Köln 部署", "--title", "Weg", env=environment).code == 0

    assert "Straße nach Köln 部署" in vault.read("memories/weg.md")


@pytest.mark.medium
def test_json_is_right_where_the_output_is_not_utf8(co: Co, vault: Vault) -> None:
    vault.write("memories/zh.md", "部署在星期二。")

    assert co.process("show", "zh", "--json", env={"PYTHONIOENCODING": "ascii"}).json["body"] == "部署在星期二。"


@pytest.mark.medium
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_behind_the_output_is_one_line(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "co_cli", "list"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert ran.returncode == 3
    assert b"Traceback" not in ran.stderr


@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="a program cannot be started without streams there")
def test_a_command_works_where_its_streams_are_closed(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    listed = co.process("list", before=lambda: os.close(2))
    unknown = co.process("lst", before=lambda: os.close(2))
    saved = co.process("remember", "Elms died.", before=lambda: os.closerange(0, 3))

    assert (listed.code, listed.out[:10]) == (0, "memory:oak")
    assert (unknown.code, unknown.out) == (2, "")
    assert saved.code == 0
    assert vault.notes() == ["memories/elms-died.md", "memories/oak.md"]


def test_without_a_home_nothing_is_made_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the system does not know

    with pytest.raises(SettingsError, match="set HOME"):
        load_settings(environ={}, start=str(tmp_path))


@pytest.mark.medium
@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_a_home_that_cannot_be_written_is_one_line_that_names_another_place(tmp_path: Path) -> None:
    home, project = tmp_path / "locked", tmp_path / "project"
    home.mkdir(mode=0o500)
    project.mkdir()
    environment = {"HOME": str(home), **{f"XDG_{name}_HOME": str(home / name) for name in ("DATA", "CONFIG", "CACHE")}}
    co = Co(project)

    ran = co.process("list", env=environment, before=obey_permissions)

    assert (ran.err.count("\n"), str(home) in ran.err) == (1, True), ran.err
    assert "CO_VAULT or --vault names another folder" in ran.err


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.skipif(not can_obey(), reason="this root cannot give up its right to ignore permissions")
def test_init_makes_a_vault_that_works_and_says_what_a_home_that_cannot_be_written_lacks(tmp_path: Path) -> None:
    home, project = tmp_path / "locked", tmp_path / "project"
    home.mkdir(mode=0o500)
    project.mkdir()
    environment = {"HOME": str(home), **{f"XDG_{name}_HOME": str(home / name) for name in ("DATA", "CONFIG", "CACHE")}}
    co, vault = Co(project), project / ".co-cli" / "knowledge"

    made = co.process("init", env=environment, before=obey_permissions)

    assert (made.code, made.err) == (0, "")
    created, following, problem = made.out.splitlines()
    assert (created, following[:17]) == (f"created {vault}", "next: co remember")
    assert problem == (
        f"the data folder {home}/DATA/co-cli cannot be written (Permission denied), so the notes here are not added "
        f"to prompts: set CO_DATA_DIR to another folder, then `co config trust {vault}`"
    )
    assert co.process("remember", "Oaks live long.", env=environment, before=obey_permissions).code == 0
    found = co.process("search", "oaks", env=environment, before=obey_permissions)
    assert (found.code, "memory:oaks-live-long" in found.out) == (0, True)

    elsewhere = environment | {"CO_DATA_DIR": str(tmp_path / "data")}
    assert co.process("config", "trust", str(vault), env=elsewhere, before=obey_permissions).code == 0
    told = co.process("note", "context", "how long do oaks live", env=elsewhere, before=obey_permissions)
    assert "Oaks live long." in told.out


@pytest.mark.parametrize(
    ("receipt", "tool"),
    [("uv-receipt.toml", "uv tool install"), ("pipx_metadata.json", "pipx install --force"), ("x", "pip install")],
)
def test_an_extra_is_installed_with_the_tool_that_installed_co(tmp_path: Path, receipt: str, tool: str) -> None:
    (tmp_path / receipt).touch()
    settings = {"CO_ENGINE": "postgresql://127.0.0.1:1/none", "CO_VAULT": str(tmp_path), "CO_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", INSTALLED_ELSEWHERE, str(tmp_path), "list"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, check=False)

    assert ran.stderr == f'co: PostgreSQL needs psycopg: `{tool} "{CLONE}[postgres]"`\n'


def test_search_works_without_a_vector_library_that_can_be_loaded(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    broken = tmp_path / "vec0"
    broken.with_suffix(".so").write_bytes(b"not for this machine")
    vault.write("memories/oak.md", "Oaks live long.")
    index = KnowledgeIndex(SqliteEngine(str(data_dir / "search.db"), str(broken)), vault.root)
    index.sync()

    assert [hit.ref for hit in index.search("oaks")] == ["memory:oak"]
    index.close()
