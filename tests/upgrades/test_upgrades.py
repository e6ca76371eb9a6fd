"""What every released version wrote is read by this one: notes stay as they are, and what cannot be made again is kept.

`make.py` wrote the folders with the numbers of versions.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
import time
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import apsw
import httpx2
import pytest

from co_cli.activity.database import create_activity, versions
from co_cli.activity.judgements import read_learned
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.values import content_hash
from co_cli.importers.recorded_sessions import state_file
from co_cli.index.sqlite.connection import APPLICATION, SCHEMA_VERSION
from co_cli.version import __version__
from tests.agent.protocols.test_harness import TEA, Store
from tests.chat_server import ChatServer, text
from tests.cli.chat.conftest import offline_and_patient as offline_and_patient
from tests.cli.chat.conftest import server as server
from tests.command import Co
from tests.folder import Vault
from tests.hooks.events import PROMPT, event, given
from tests.hooks.test_hook_capture import Session, said
from tests.server.browser import wait_for
from tests.server.processes import web_process

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MIGRATIONS = ROOT / "co_cli" / "team" / "migrations"
CREATED = re.compile(r"^create table (\w+)", re.MULTILINE)
VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/team.sql"))
DERIVED = (
    *("search.db*", "map.json", "boundaries.jsonl", "languages-*.bin", "as-of", "demo", "outage.json"),
    *("*.lock", "*.waiting", "co.log*"),
)
"""In the data folder: not kept, because this version makes it again."""
QUESTION = "Where does the kettle stand?"
DRINKS, BOOKS = "I prefer green tea in the morning.", "Perhaps I shall read about tides."
SAVED = {"content": "Limes smell sweet.", "tags": ["tree"]}
KEY = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
"""A save that may be sent again."""
PUSHED = {"memories/birch.md": "Birches are white.\n", "memories/cedar.md": "Cedars smell good.\n"}
"""Two notes that somebody pushed to a team. The keeper has taken over the first."""


def names_of(root: Path) -> dict[str, str]:
    """What stands for what in the files that are kept."""
    return {
        "{root}": str(root),
        "{python}": sys.executable,
        "{vault}": content_hash(os.fsencode(root / "vault")),
        "{transcript}": Path(state_file(str(root / "data"), str(root / "home" / "transcript.jsonl"))).stem,
    }


def replace_names(folder: Path, names: dict[str, str]) -> None:
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        data, name = file.read_bytes(), file.name
        for old, new in names.items():
            data, name = data.replace(old.encode(), new.encode()), name.replace(old, new)
        file.write_bytes(data)
        file.rename(file.with_name(name))


def restore(version: Path, root: Path) -> None:
    """The folders of a version, as if they had been made here."""
    shutil.copytree(version, root, dirs_exist_ok=True)
    replace_names(root, names_of(root))
    for script in (root / "data").rglob("*.sql"):
        connection = apsw.Connection(str(script.with_suffix(".db")))
        connection.pragma("journal_mode", "wal")
        connection.execute(script.read_text("utf-8"))
        connection.close()
        script.unlink()


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def upgraded(request: pytest.FixtureRequest, co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Co:
    restore(request.param, tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return co


def columns(file: Path) -> dict[str, list[str]]:
    """Of each table and index."""
    connection = apsw.Connection(str(file))
    try:
        names = [str(row[0]) for row in connection.execute("select name from sqlite_master order by name")]
        return {name: [str(row[1:]) for row in connection.pragma("table_xinfo", name) or ()] for name in names}
    finally:
        connection.close()


def test_this_version_has_left_its_own_data_before_it_is_released() -> None:
    assert VERSIONS[-1].name == ".".join(__version__.split(".")[:2])
    last = (VERSIONS[-1] / "data" / "activity.sql").read_text("utf-8")
    assert f"pragma user_version = {max(versions())};" in last
    team = (VERSIONS[-1] / "team.sql").read_text("utf-8")
    assert [file.name for file in sorted(MIGRATIONS.glob("*.sql")) if file.name not in team] == []


def test_every_table_and_every_state_file_of_today_is_in_what_this_version_left(tmp_path: Path) -> None:
    left = VERSIONS[-1]
    activity, team = ((left / name).read_text("utf-8") for name in ("data/activity.sql", "team.sql"))
    create_activity(str(tmp_path / "new.db"))
    connection = apsw.Connection(str(tmp_path / "new.db"))
    tables = [str(name) for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    connection.close()
    assert [name for name in tables if f"insert into {name} values" not in activity] == []
    created = CREATED.findall("".join(file.read_text("utf-8") for file in MIGRATIONS.glob("*.sql")))
    assert [name for name in ("migrations", *created) if f"INSERT INTO team.{name} " not in team] == []

    written = state_files()
    assert written >= {"activity.db", "review.json", "sessions"}
    kept = {file.name.replace(".sql", ".db") for file in (left / "data").iterdir()}
    assert {name for name in written - kept if not any(fnmatch(name, one) for one in DERIVED)} == set()
    documented = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert [name for name in written if not name.endswith(".lock") and f"`{name}" not in documented] == []
    others = ("config/co-cli/settings.toml", "project/.co-cli/settings.toml", "vault/.trash", "vault/.checkpoints")
    assert [name for name in others if not (left / name).exists()] == []


def state_files() -> set[str]:
    """What the program calls its files and folders in the data folder, by its source."""
    found: set[str] = set()
    for file in (ROOT / "co_cli").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.path.join" and len(node.args) > 1:
                folder, name = node.args[:2]
                if not ast.unparse(folder).endswith("data_dir"):
                    continue
                if isinstance(name, ast.Constant):
                    found.add(str(name.value))
                elif isinstance(name, ast.Name) and name.id.isupper():
                    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                    found.add(getattr(import_module(module), name.id))
    return found


def test_every_note_is_found_and_none_is_touched(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    folders = [tmp_path / "vault", tmp_path / "handbook", tmp_path / "project"]
    before = {file: file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}

    for query, ref in (
        ("where is the kettle", "memory:kettle"),
        ("rollback", "article:deploys"),
        ("how often does Mara read mail", "entity:mara"),
        ("what did we say about trees", "conversation:trees"),
        ("laptop of new colleagues", "folder:handbook/onboarding.md"),
    ):
        found = upgraded("search", query, "--json").json
        assert found["hits"][0]["ref"].startswith(ref), query
        assert (found["backend"], found["degraded"]) == ("hybrid", [])
    assert {note["ref"] for note in upgraded("list", "--json").json} >= {"memory:oak", "resource:guide"}
    assert "as the farmer says" in upgraded("show", "oak", "--raw").out
    for command in ("index status", "doctor", "index verify"):
        assert upgraded(*command.split()).code == 0, command
    assert {file: file.read_bytes() for file in before} == before
    connection = apsw.Connection(str(data_dir / "search.db"))
    assert (connection.pragma("user_version"), connection.pragma("application_id")) == (SCHEMA_VERSION, APPLICATION)
    connection.close()


def test_history_feedback_and_trash_are_kept(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    kettle = upgraded("note", "history", "kettle", "--json").json
    assert [change["what"] for change in kettle["changes"]] == ["updated", "updated", "created"]
    assert (kettle["recalls"], kettle["opens"]) == (2, 1)  # one of them is in the spool
    elm = upgraded("note", "history", "memory:elm", "--json").json
    assert [change["what"] for change in elm["changes"]] == ["removed", "created"]

    stats = upgraded("feedback", "stats", "--json").json
    assert stats["logged"] == 2
    assert upgraded("feedback", "tune", "--json").json["said"] == 2
    assert upgraded("feedback", "give", "kettle", "good", "--query", "which room has the kettle").code == 0
    assert upgraded("feedback", "tune", "--json").json["said"] == 3

    assert [note["path"] for note in upgraded("list", "--trash", "--json").json] == [
        "memories/elm.md",
        "memories/kettle.md",
    ]
    assert upgraded("note", "restore", "elm").code == 0
    assert upgraded("search", "beetles", "--json").json["hits"][0]["ref"] == "memory:elm"
    new = tmp_path / "new.db"
    create_activity(str(new))
    assert columns(data_dir / "activity.db") == columns(new)


def test_settings_sources_trust_and_tokens_are_kept(
    upgraded: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upgraded("config", "show", "half_life_days").out.strip() == "200.0"
    assert "10.1.0.0/16" in upgraded("config", "show", "web_allow").out
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.chdir(tmp_path / "project")
    assert upgraded("config", "show", "context_tokens").out.strip() == "800"
    assert upgraded("config", "show", "vault").out.strip() == str(tmp_path / "project/.co-cli/knowledge")
    untrusted = upgraded("note", "context", "when do we deploy")
    assert "you trusted another folder, which was here before" in untrusted.err + untrusted.out  # a copy is another

    monkeypatch.setenv("CO_VAULT", str(tmp_path / "vault"))
    [source] = [row for row in upgraded("source", "list", "--json").json if row["source"] == "folder:handbook"]
    assert source["path"] == str(tmp_path / "handbook")
    refused = upgraded("edit", "folder:handbook/onboarding.md", "--body", "Changed.")
    assert (refused.code, "read-only" in refused.err) == (2, True)
    assert [(one["name"], one["role"]) for one in upgraded("token", "list", "--json").json] == [("mara", "read")]


def test_what_was_understood_from_conversations_is_kept(upgraded: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_MODEL", "ollama:qwen3")
    assert upgraded("note", "extract", "--all").out == "Nothing new to read.\n"  # but a conversation without turns
    [waiting] = upgraded("note", "review", "--only", "proposed", "--json").json["findings"]
    assert waiting["proposed"] == BOOKS
    spent = upgraded("feedback", "stats", "--json").json["extraction"]
    assert (spent["facets"], spent["tokens"]) == ({"proposed": 1, "saved": 1}, 50)

    assert upgraded("note", "extract", "--undo", "memory:i-prefer-green-tea-in-the-morning").code == 0
    proposed = upgraded("note", "review", "--only", "proposed", "--json").json["findings"]
    assert {one["proposed"] for one in proposed} == {DRINKS, BOOKS}


def test_learned_weights_dismissed_findings_last_results_and_backups_are_kept(
    upgraded: Co, tmp_path: Path, data_dir: Path
) -> None:
    (tmp_path / "words").mkdir()
    status = upgraded("index", "status", "--vault", str(tmp_path / "words"), "--json").json
    assert status["learned"] is None, "they were learned for another formula"
    [learned] = read_learned(str(data_dir)).values()
    assert learned["meaning"] == 0.85
    review = upgraded("note", "review", "--only", "expired", "--json").json
    assert (review["findings"], review["dismissed"]) == ([], 1)
    assert "first day" in upgraded("show", "1").out

    for file in data_dir.glob("activity.db*"):
        file.unlink()
    [backup] = (data_dir / "backups").iterdir()
    assert upgraded("data", "restore", str(backup)).code == 0
    changes = upgraded("note", "history", "kettle", "--json").json["changes"]
    assert [change["what"] for change in changes] == ["updated", "updated", "created"]


def test_a_browser_stays_signed_in_and_a_save_that_it_sends_again_is_one(upgraded: Co, data_dir: Path) -> None:
    signed_in, answered = (data_dir / name for name in ("web-token.json", "answered-saves.json"))
    token, saves = (json.loads(file.read_text()) for file in (signed_in, answered))
    signed_in.write_text(json.dumps(token | {"made": time.time()}))  # both are forgotten after a time
    answered.write_text(json.dumps({name: [*kept[:2], time.time()] for name, kept in saves.items()}))

    with web_process() as (url, _):
        headers = {"Authorization": f"Bearer {token['token']}", **KEY}
        again = httpx2.post(f"{url}/notes", json=SAVED, headers=headers, verify=False)

    assert (again.status_code, again.json()["outcome"]) == (200, "created")
    assert [note["ref"] for note in upgraded("list", "--json").json if "limes" in note["ref"]] == [
        "memory:limes-smell-sweet"
    ]


def test_a_chat_goes_on_from_where_it_was_left_or_from_a_checkpoint(
    upgraded: Co, server: ChatServer, tmp_path: Path
) -> None:
    for options in (["--continue"], ["--from", "tea"]):
        server.play(text("Tea."))
        assert upgraded("chat", *options, "What do I drink?").out == "Tea.\n"
        assert server.said("user").startswith(f"{DRINKS}\n{BOOKS}\n")
    with pytest.importorskip("tests.cli.chat.terminal", reason="pexpect drives the terminal").Terminal(
        tmp_path
    ) as chat:
        chat.prompt()
        chat.press("\x1b[A")
        chat.see("/checkpoint Tea")


def test_coding_agents_go_on_with_their_sessions_and_can_be_undone(
    upgraded: Co, home: Path, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"prompt": QUESTION}
    assert "in the hall" not in given(upgraded, "claude-code", PROMPT, **asked), "the session has it already"
    assert "in the hall" in given(upgraded, "claude-code", PROMPT, session_id="another", **asked)
    stdin, elsewhere = event("qwen", PROMPT, home, **asked), {"CO_VAULT": str(home / "elsewhere")}
    hooked = upgraded.process(
        "hook", "qwen", "--seconds", "30", "--data-dir", str(data_dir), stdin=stdin, env=elsewhere
    )
    assert "in the hall" in hooked.out, "the variables of the day it was set up count"

    monkeypatch.setenv("CO_CAPTURE", "keep")
    kept = "conversations/go-on.md"
    vault.write(kept, vault.read(kept).replace("The harbour is Sol.", "Somewhere."))
    session = Session(upgraded, vault)
    session.say(said("user", "And the pilot?"), said("assistant", "Mara."))
    session.pause()
    wait_for(lambda: "Mara." in vault.read(kept))
    assert "Sol." not in vault.read(kept), "what was read is not read again"

    assert upgraded.process("setup", "qwen", "--undo").code == 0
    assert json.loads((home / ".qwen" / "settings.json").read_text()) == {"model": "mine"}


@pytest.mark.usefixtures("upgraded")
def test_an_operation_of_the_harness_is_not_carried_out_again(kb: KnowledgeBase) -> None:
    assert Store(kb).write("main/tea.md", "Green tea.\n", None, TEA).replayed


def test_two_versions_that_share_a_data_folder_take_turns_and_lose_nothing(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    for turn in range(4):
        assert co("remember", f"Turn {turn} was taken by somebody.").code == 0
        found = co("search", f"who took turn {turn}", "--json").json
        assert f"turn-{turn}" in found["hits"][0]["ref"]
        connection = apsw.Connection(str(data_dir / "search.db"))
        connection.pragma("user_version", SCHEMA_VERSION + 1)  # the other version has rebuilt it
        connection.close()

    assert len(co("list", "--json").json) == len(vault.notes()) == 4


def test_doctor_names_what_another_version_wrote_each_on_one_line(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    co("feedback", "stats")
    for name, version in (("search.db", SCHEMA_VERSION + 1), ("activity.db", max(versions()) + 1)):
        connection = apsw.Connection(str(data_dir / name))
        connection.pragma("user_version", version)
        connection.close()
    (data_dir / "sources.toml").write_text('[[source]]\nvault = "/v"\nsource = "dream"\nname = "x"\npath = "/x"\n')

    checked = co("doctor")

    lines = checked.out.splitlines()
    [index] = [line for line in lines if "another version" in line]
    assert index.startswith(f"ok  {data_dir / 'search.db'} was made by another version of co-cli, and is rebuilt")
    [activity] = [line for line in lines if "is of a newer co-cli" in line]
    assert activity.startswith(f"!!  {data_dir / 'activity.db'}")
    assert "update co-cli" in checked.out
    [sources] = [line for line in lines if "'dream'" in line]
    assert "a newer one may" in sources
    assert co("doctor").out.count("another version") == 0  # it was rebuilt


def test_a_setting_of_a_newer_version_is_one_line_with_the_fix(co: Co, home: Path) -> None:
    file = home / ".config" / "co-cli" / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text("half_life_days = 200\ndreams = 3\n")

    for command in (("doctor",), ("search", "oaks")):
        ran = co(*command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"co: {file}:2: unknown setting 'dreams': `co config show` lists them; "
            "or update co-cli, if a newer one wrote the line\n"
        )
