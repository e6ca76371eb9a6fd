"""A database that an older version made is upgraded by the first newer server, with everything that is in it."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from co_cli.ground.errors import IndexUnavailableError
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.server.routes import API
from co_cli.vault.team import schema
from co_cli.vault.team.schema import MIGRATIONS, PREPARE, connect_team
from co_cli.vault.team.team_tokens import TeamTokens
from tests.command import Co
from tests.postgres import load_schema, new_database
from tests.server.conftest import serving
from tests.upgrades.test_upgrades import KEY, PUSHED, SAVED, VERSIONS
from tests.vault.team.conftest import team as team
from tests.vault.team.servers import Team, git, keep
from tests.vault.team.test_takeover import push_many

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
FILES = sorted(MIGRATIONS.glob("*.sql"))
SECRET = "a secret of the first version"
ROWS = f"""
insert into vaults (name, first_commit, commit) values ('notes', '{{first}}', '{{first}}');
insert into tokens (hash, vault_id, name, role, created)
values ('{hashlib.sha256(SECRET.encode()).hexdigest()}', 1, 'mara', 'write', '2026-11-01T09:00:00Z');
insert into changes (vault_id, path, data, author, saved_at, version)
values (1, 'memories/elm.md', 'Elms like water.', 'mara', 1793523600, 1);
insert into audit (vault_id, moment, who, action, path, hash)
values (1, 1793523600, 'mara', 'created', 'memories/elm.md', 'x')
"""
"""What the first version wrote. Every later one must read it: do not change it."""


def empty_database() -> str:
    """With the role that owns nothing."""
    address = new_database()
    with closing(PostgresEngine(address)) as engine, engine.asking():
        pass
    return address


def made_by(version: int, first: str = "") -> str:
    """A database with the schema of the version that had so many migrations, and with rows of the first one."""
    address = empty_database()
    with psycopg.connect(address) as connection:
        connection.execute(PREPARE.encode())
        connection.execute("set search_path = team")
        for number, file in enumerate(FILES[:version]):
            connection.execute(file.read_bytes())
            connection.execute("insert into migrations values (%s, 0)", [file.name])
            if number == 0:
                connection.execute(ROWS.format(first=first).encode())
    return address


@pytest.mark.parametrize("version", range(1, len(FILES) + 1))
def test_data_of_every_older_version_is_read_by_this_one(version: int, team: Team) -> None:
    team.address = made_by(version, git(team.clone, "rev-parse", "HEAD"))
    one = team.server("one")
    found = TeamTokens(one.vault.engine, "notes", 1).find(hashlib.sha256(SECRET.encode()).hexdigest())
    assert found
    assert (found.name, found.role, found.expires) == ("mara", "write", "")
    assert "Elms like water." in one.note("memory:elm").body
    keep(one)
    assert "Elms like water." in team.pushed("memories/elm.md")
    assert team.ask("select name from team.migrations order by name") == [(file.name,) for file in FILES]
    assert ("mara", "created") in team.ask("select who, action from team.audit")


@pytest.mark.parametrize("version", VERSIONS, ids=lambda folder: folder.name)
def test_what_a_released_version_saved_is_read_and_committed(version: Path, team: Team) -> None:
    team.address = empty_database()
    rows = (version / "team.sql").read_text("utf-8")
    push_many(team, PUSHED)
    for name, revision in (("{first}", "HEAD^"), ("{second}", "HEAD")):
        rows = rows.replace(name, git(team.clone, "rev-parse", revision))
    load_schema(rows, team.address)
    one = team.server("one")

    assert (one.note("memory:elm").tags, one.note("memory:oak").body) == (("tree",), "Oaks live long.\n")
    assert [home for _, home in one.store.trashed()] == ["memories/ash.md"]
    tokens = {token.name: (token.role, token.per_second) for token in TeamTokens(one.vault.engine, "notes", 1).all()}
    assert tokens == {"mara": ("write", 7), "prometheus": ("metrics", 0)}
    team.ask("update team.answers set moment = extract(epoch from now())")  # they are kept for a day
    with serving(one) as server, server.client() as saving:
        again = saving.post(f"{API}/notes", json=SAVED, headers=KEY).json()
    assert (again["outcome"], again["ref"]) == ("created", "memory:limes-smell-sweet")
    assert "memory:birch" in [note.ref for note in one.notes()], "the first part of a push"
    assert "memory:cedar" not in [note.ref for note in one.notes()]
    keep(one)
    assert "Cedars" in one.note("memory:cedar").body
    assert team.ask("select path from team.audit where action = 'create' group by path having count(*) > 1") == []
    assert team.ask("select * from team.taken") == []
    assert "Elms like water." in team.pushed("memories/elm.md")
    assert ("ada", "change", "memories/elm.md") in team.ask("select who, action, path from team.audit")
    assert team.ask("select name from team.migrations order by name") == [(file.name,) for file in FILES]


def test_doctor_names_a_newer_database_on_one_line(team: Team, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    one = team.server("one")
    team.ask("insert into team.migrations values ('999_next.sql', 0)")
    monkeypatch.setenv("CO_VAULT", one.root)
    monkeypatch.setenv("CO_ENGINE", team.address)

    ran = co("doctor")

    assert (ran.code, ran.err) == (3, "")
    assert " is of a newer co-cli\n    fix: pip install -U co-cli\n" in ran.out


def test_an_older_program_refuses_a_newer_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = made_by(len(FILES))
    for file in FILES[:-1]:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path)
    newer = pytest.raises(IndexUnavailableError, match="is of a newer co-cli: `pip install -U co-cli`")
    with closing(PostgresEngine(address, roots={"notes": "notes"})) as engine, newer:
        connect_team(engine, "notes")
