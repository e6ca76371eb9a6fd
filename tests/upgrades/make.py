"""Write what this version keeps, as text, into the folder of its number: `python -m tests.upgrades.make`.

Run it once before a release, commit the folder with `git add -f` (vaults ignore their own trash), and never change it
afterwards: every later version must read it. What depends on the place where it was made has a name in braces, in
files and in their names. What is derived from files is left out. The team's schema needs the PostgreSQL of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import apsw
import httpx2
import pexpect

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.routes import API
from co_cli.vault.team import takeover
from co_cli.vault.team.keeper import server_name
from co_cli.version import __version__
from tests import postgres
from tests.agent.protocols.test_harness import TEA, Store
from tests.chat_server import ChatServer, text
from tests.cli.chat.terminal import CTRL_D, Terminal
from tests.cli.screen import terminal
from tests.command import write_script
from tests.conftest import OUTSIDE
from tests.conversations.conftest import answers, facet
from tests.hooks.events import event
from tests.hooks.test_hook_capture import said
from tests.server.conftest import serving
from tests.server.processes import web_process
from tests.upgrades.test_upgrades import BOOKS, DERIVED, DRINKS, KEY, PUSHED, QUESTION, SAVED, names_of, replace_names
from tests.upkeep.feedback.conftest import QUESTIONS
from tests.vault.team.servers import Team, git
from tests.vault.team.test_takeover import keep_one_part, push_many

PLACE = Path(__file__).parent / ".".join(__version__.split(".")[:2])
TABLES = "select name, type, sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by rowid"
OAK = b"---\r\ntitle: Oaks   # as the farmer says\r\nhue: green\r\n---\r\nOaks live long.\r\n"
DEPLOYS = "# Deploys\n\nThe blue pool takes traffic first.\n\n## Rollback\n\nSwitch back to green.\n"
VISA = "---\ncreated: 2024-03-01\nvalid_until: 2025-06-30\n---\nThe visa holds.\n"


def main() -> None:
    for name in [name for name in os.environ if name.startswith(OUTSIDE)]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as place, postgres.programs():
        root = Path(place).resolve()
        _use(root)
        team = _use_as_team(root / "of a team")
        shutil.rmtree(PLACE, ignore_errors=True)
        for folder in ("vault", "handbook", "project", "data", "config", "home"):
            ignored = shutil.ignore_patterns(*DERIVED) if folder == "data" else None
            shutil.copytree(root / folder, PLACE / folder, ignore=ignored)
        (PLACE / "team.sql").write_text(team, "utf-8")
        for file in (path for path in PLACE.rglob("*") if path.is_file()):
            if file.suffix == ".db":
                file.with_suffix(".sql").write_text(_dump(file), "utf-8")
            if ".db" in file.suffix:
                file.unlink()
        replace_names(PLACE, {there: name for name, there in names_of(root).items()})
    print(f"{sum(path.is_file() for path in PLACE.rglob('*'))} files in {PLACE}")


def _use(root: Path) -> None:
    """What a person does in some weeks."""
    for folder in ("vault/memories", "vault/articles", "handbook", "project", "home/.qwen", "words/memories"):
        (root / folder).mkdir(parents=True)
    (root / "vault/memories/oak.md").write_bytes(OAK)
    (root / "vault/memories/visa.md").write_text(VISA)
    (root / "vault/articles/deploys.md").write_text(DEPLOYS)
    (root / "handbook/onboarding.md").write_text("# Onboarding\n\nNew colleagues get a laptop on their first day.\n")
    (root / "home/.qwen/settings.json").write_text('{"model": "mine"}\n')
    write_script(root / "programs/qwen", "exit 1")
    environment = {
        "HOME": str(root / "home"),
        "PATH": f"{root / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(root / "config"),
        "CO_DATA_DIR": str(root / "data"),
        "CO_VAULT": str(root / "vault"),
        "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static",
        "CO_KNOWLEDGE_READER": "off",
    }

    def co(*arguments: str, given: str = "", **more: str) -> None:
        _run(root, environment | more, *arguments, given=given)

    co("index", "sync")
    co("remember", "The kettle stands in the kitchen.", "--title", "Kettle", "--tag", "home")
    co("remember", "Elms fall ill when beetles come.", "--title", "Elm")
    co("remember", "Reads mail once a day.", "--kind", "entity", "--title", "Mara", "--importance", "0.8")
    co("remember", "We talked about trees.", "--kind", "conversation", "--title", "Trees")
    co("remember", "The guide", "--kind", "resource", "--title", "Guide", "--url", "https://example.org/guide")
    co("edit", "kettle", "--body", "The kettle stands in the hall.")
    co("edit", "kettle", "--add-tag", "tea")
    co("forget", "elm")
    co("add", str(root / "handbook"), "--name", "handbook", "--read-only")
    co("config", "trust", str(root / "vault"))
    co("search", "where is the kettle")
    co("show", "kettle")
    co("feedback", "give", "kettle", "good", "--query", "where is the kettle")
    co("feedback", "give", "oak", "bad", "--query", "where is the kettle")
    co("feedback", "stats")
    co("config", "set", "half_life_days", "200", CO_VAULT="")
    co("config", "set", "web_allow", "10.1.0.0/16, wiki.example.org", CO_VAULT="")
    co("init", str(root / "project"))
    (root / "project/.co-cli/settings.toml").write_text('knowledge_exclude = ["drafts/"]\ncontext_tokens = 800\n')
    co("remember", "Deploys wait for Mondays.", "--vault", str(root / "project/.co-cli/knowledge"))
    co("token", "create", "--role", "read", "--name", "mara")
    _learn(root / "words", environment)
    with patch.dict(os.environ, environment):
        _talk(root)
        _decide(root)
        _save_as_others(root)
    co("data", "backup")
    co("search", "first day laptop")  # stays in the spool


def _learn(vault: Path, environment: dict[str, str]) -> None:
    """Rate answers until weights are learned. The notes of this vault are not kept."""
    rated = QUESTIONS[:30]
    words = ", ".join(word for word, _ in rated)
    (vault / "memories/list.md").write_text(f"Shopping words: {words}. What is the best one?")
    for _, note in rated:
        (vault / f"memories/{note}.md").write_text(f"{note.capitalize()}.")
    environment = environment | {"CO_VAULT": str(vault)}
    _run(vault, environment, "index", "sync")
    for word, note in rated:
        _run(vault, environment, "feedback", "give", f"memory:{note}", "good", "--query", word)
    _run(vault, environment, "feedback", "tune", "--apply")


def _talk(root: Path) -> None:
    """With a model in a terminal, and with a coding agent; and read what was said."""
    _run(root, {}, "setup", "qwen")
    prompt = event("claude-code", "prompt", root / "home", prompt=QUESTION)
    _run(root, {}, "hook", "claude-code", "--seconds", "30", given=prompt)
    (root / "home/transcript.jsonl").write_text(said("user", "Go on.") + said("assistant", "The harbour is Sol."))
    stop = event("claude-code", "answer", root / "home")
    _run(root, {"CO_CAPTURE": "keep"}, "hook", "claude-code", "--seconds", "30", given=stop)
    while not any("Sol." in file.read_text() for file in (root / "vault/conversations").glob("*.md")):
        time.sleep(0.1)
    with ChatServer([text("Noted."), text("Do.")]) as server:
        model = {"CO_MODEL": "ollama:qwen3", "OLLAMA_BASE_URL": server.url}
        with Terminal(root, **model, CO_CAPTURE="keep") as chat:
            for line, shown in ((DRINKS, "Noted."), (BOOKS, "Do."), ("/checkpoint Tea", "checkpoint:tea")):
                chat.prompt()
                chat.type(line)
                chat.see(shown)
            chat.prompt()
            chat.press(CTRL_D)
            assert chat.end() == 0
        [kept] = [file for file in (root / "vault/conversations").glob("*.md") if DRINKS in file.read_text()]
        lines = kept.read_text().splitlines()
        drinks, books = (lines.index(line) + 1 for line in (DRINKS, BOOKS))
        found = facet("preference", DRINKS, drinks, confidence=0.9), facet("fact", BOOKS, books, confidence=0.2)
        server.play(answers(), answers(*found))  # the coding agent's conversation is older
        _run(root, model | {"CO_CAPTURE": "save"}, "note", "extract")


def _decide(root: Path) -> None:
    """Keep a note that is out of date."""
    with terminal(root, "note", "review", "--only", "expired") as child:
        child.expect_exact("[q] quit")
        child.sendline("k")
        child.expect(pexpect.EOF)


def _save_as_others(root: Path) -> None:
    """In a browser, and with the harness's `Memory`."""
    with web_process() as (url, _):
        secret = json.loads((root / "data/web-token.json").read_text())["token"]
        headers = {"Authorization": f"Bearer {secret}", **KEY}
        httpx2.post(f"{url}/notes", json=SAVED, headers=headers, verify=False).raise_for_status()
    with KnowledgeBase.open(root / "vault", root / "data") as kb:
        Store(kb).write("main/tea.md", "Green tea.\n", None, TEA)


def _use_as_team(place: Path) -> str:
    """The rows of a team's schema, while its keeper takes over a push, and has committed nothing yet.

    The commits of others are `{first}` and `{second}`.
    """
    place.mkdir()
    team = Team(place, postgres.new_database())
    git(place, "clone", "--quiet", str(team.remote), "server")
    environment = {
        "HOME": str(place),
        "CO_DATA_DIR": str(place / "data"),
        "CO_VAULT": str(place / "server"),
        "CO_ENGINE": team.address,
        "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static",
        "CO_KNOWLEDGE_READER": "off",
    }
    for command in (
        ("remember", "Elms like water.", "--title", "Elm"),
        ("remember", "Ashes fall ill.", "--title", "Ash"),
        ("edit", "elm", "--add-tag", "tree"),
        ("forget", "ash"),
        ("token", "create", "--role", "write", "--name", "mara", "--per-second", "7"),
        ("token", "create", "--role", "metrics", "--name", "prometheus"),
    ):
        _run(place, environment, *command)
    kb = team.open(place / "server")
    with serving(kb) as server, server.client() as saving:  # as `co web` does: `co serve` would commit and push
        saving.post(f"{API}/notes", json=SAVED, headers=KEY).raise_for_status()
    push_many(team, PUSHED)
    with patch.object(takeover, "FIRST_PART", 1):
        keep_one_part(kb)
    team.close()
    rows = postgres.dump_schema("team", team.address).replace(server_name(), "server:1")
    for name, revision in (("{first}", "HEAD^"), ("{second}", "HEAD")):
        rows = rows.replace(git(team.clone, "rev-parse", revision), name)
    return "".join(line for line in rows.splitlines(True) if line[0] not in "-\\")  # commands of one version of psql


def _run(folder: Path, environment: dict[str, str], *arguments: str, given: str = "") -> None:
    command = [sys.executable, "-m", "co_cli", *arguments]
    environment = {**os.environ, **environment, "LOGNAME": "ada"}
    subprocess.run(command, cwd=folder, env=environment, input=given.encode(), check=True)


def _dump(file: Path) -> str:
    """A database as SQL."""
    connection = apsw.Connection(str(file))
    lines = [f"pragma {name} = {connection.pragma(name)};" for name in ("application_id", "user_version")]
    tables = connection.execute(TABLES).fetchall()
    lines += [f"{sql};" for *_, sql in tables]
    for name in (name for name, what, _ in tables if what == "table"):
        for row in connection.execute(f"select * from {name}"):
            lines.append(f"insert into {name} values ({', '.join(map(apsw.format_sql_value, row))});")
    connection.close()
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    main()
