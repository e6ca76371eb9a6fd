"""Write what this version keeps, as text, into the folder of its number: `python -m tests.upgrades.make`.

Run it once before a release, commit the folder with `git add -f` (vaults ignore their own trash), and never change it
afterwards: every later version must read it. Paths below the place where it was made are `{root}`. What is derived from
files is left out. The team's schema needs the PostgreSQL of the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw

from co_cli.version import __version__
from tests import postgres
from tests.team.servers import Team, git

PLACE = Path(__file__).parent / ".".join(__version__.split(".")[:2])
DERIVED = ("search.db*", "activity.db*", "*.lock", "co.log", "map.json", "last-search.json", "outage.json")
TABLES = "select name, type, sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by rowid"
OAK = b"---\r\ntitle: Oaks   # as the farmer says\r\nhue: green\r\n---\r\nOaks live long.\r\n"
DEPLOYS = "# Deploys\n\nThe blue pool takes traffic first.\n\n## Rollback\n\nSwitch back to green.\n"
PROMPT = '{"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "where is the kettle?"}'


def main() -> None:
    with tempfile.TemporaryDirectory() as place, postgres.programs():
        root = Path(place).resolve()
        _use(root)
        team = _use_as_team(root / "of a team")
        shutil.rmtree(PLACE, ignore_errors=True)
        for folder in ("vault", "handbook", "project", "data", "config"):
            ignored = shutil.ignore_patterns(*DERIVED) if folder == "data" else None
            shutil.copytree(root / folder, PLACE / folder, ignore=ignored)
        (PLACE / "data" / "activity.sql").write_text(_dump(root / "data" / "activity.db"), "utf-8")
        (PLACE / "team.sql").write_text(team, "utf-8")
        for file in (path for path in PLACE.rglob("*") if path.is_file()):
            file.write_bytes(file.read_bytes().replace(str(root).encode(), b"{root}"))
    print(f"{sum(path.is_file() for path in PLACE.rglob('*'))} files in {PLACE}")


def _use(root: Path) -> None:
    """What a person does in some weeks."""
    for folder in ("vault/memories", "vault/articles", "handbook", "project", "home"):
        (root / folder).mkdir(parents=True)
    (root / "vault/memories/oak.md").write_bytes(OAK)
    (root / "vault/articles/deploys.md").write_text(DEPLOYS)
    (root / "handbook/onboarding.md").write_text("# Onboarding\n\nNew colleagues get a laptop on their first day.\n")
    environment = {
        "HOME": str(root / "home"),
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
    co("hook", "claude-code", given=PROMPT)
    co("feedback", "stats")
    co("config", "set", "half_life_days", "200", CO_VAULT="")
    co("config", "set", "web_allow", "10.1.0.0/16, wiki.example.org", CO_VAULT="")
    co("init", str(root / "project"))
    (root / "project/.co-cli/settings.toml").write_text('knowledge_exclude = ["drafts/"]\ncontext_tokens = 800\n')
    co("remember", "Deploys wait for Mondays.", "--vault", str(root / "project/.co-cli/knowledge"))
    co("token", "create", "--role", "read", "--name", "mara")
    co("search", "first day laptop")  # stays in the spool


def _use_as_team(place: Path) -> str:
    """The rows of a team's schema, while no keeper has committed anything yet: its one commit is `{first}`."""
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
    rows = postgres.dump_schema("team", team.address).replace(git(team.clone, "rev-parse", "HEAD"), "{first}")
    return "".join(line for line in rows.splitlines(True) if line[0] not in "-\\")  # commands of one version of psql


def _run(folder: Path, environment: dict[str, str], *arguments: str, given: str = "") -> None:
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    command = [sys.executable, "-m", "co_cli", *arguments]
    environment = inherited | environment | {"LOGNAME": "ada"}
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
