"""Tokens of a vault, in a file or in a team's database: both stores do the same."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from co_cli.activity import acting
from co_cli.ground.access import ROLES
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import moment_text
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.server.access_tokens import AccessTokens, FileTokens
from co_cli.vault.team.schema import connect_team
from co_cli.vault.team.team_tokens import TeamTokens
from tests.postgres import new_database

Open = Callable[[str], AccessTokens]


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.postgres)])
def open_tokens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """The tokens of a vault by its name, each time as another server opens them."""
    address = new_database() if request.param == "database" else ""
    with ExitStack() as stack:

        def open_it(vault: str) -> AccessTokens:
            if not address:
                return AccessTokens(FileTokens(str(tmp_path), vault))
            engine = stack.enter_context(closing(PostgresEngine(address, roots={vault: vault})))
            return AccessTokens(TeamTokens(engine, vault, connect_team(engine, vault)))

        yield open_it


def test_every_server_knows_a_token_from_its_creation_until_it_is_revoked(open_tokens: Open) -> None:
    one, another = open_tokens("handbook"), open_tokens("handbook")
    assert another.all() == []
    secret, token = one.create("write", "mara")

    assert another.find(secret) == token
    assert (token.name, token.role, token.vault) == ("mara", "write", "handbook")
    assert [another.find(wrong) for wrong in ("", "x", secret + "x", "\ud800")] == [None] * 4
    assert another.revoke("mara") == token
    assert one.find(secret) is None
    with pytest.raises(InvalidInputError, match="there is no token 'mara' for handbook"):
        one.revoke("mara")


def test_a_token_expires_and_says_when_it_was_used(open_tokens: Open) -> None:
    tokens = open_tokens("handbook")
    secret, token = tokens.create("read", "mara", days=1, per_second=5)
    short, _ = tokens.create("read", "short", days=0.5 / 86_400)
    assert (token.per_second, token.last_used) == (5, "")
    assert tokens.find(secret) == token
    while tokens.find(short):
        time.sleep(0.1)
    mara, expired = tokens.all()

    assert mara.created <= mara.last_used < mara.expires
    assert expired.has_expired(moment_text(time.time()))


def test_a_rotated_token_replaces_the_old_one_which_may_work_for_a_while(open_tokens: Open) -> None:
    one, another = open_tokens("handbook"), open_tokens("handbook")
    first, token = one.create("write", "ci", days=30, per_second=7)
    second, _ = one.rotate("ci")
    assert (another.find(first), another.find(second)) == (None, replace(token, created=one.all()[0].created))
    third, renewed = one.rotate("ci", keep_hours=1)

    assert [another.find(secret) is not None for secret in (first, second, third)] == [False, True, True]
    assert (renewed.name, renewed.role, renewed.per_second) == ("ci", "write", 7)
    assert len(another.all()) == 1
    with pytest.raises(InvalidInputError, match="there is a token ci already"):
        another.create("read", "ci")
    with pytest.raises(InvalidInputError, match="there is no token 'cd'"):
        one.rotate("cd")
    one.revoke("ci")
    assert [another.find(secret) for secret in (first, second, third)] == [None] * 3


def test_every_change_of_a_token_is_recorded(open_tokens: Open) -> None:
    tokens, other = open_tokens("handbook"), open_tokens("diary")
    tokens.create("read", "ci")
    tokens.rotate("ci")
    reset = acting.set("web:root")
    try:
        tokens.revoke("ci")
    finally:
        acting.reset(reset)
    changes = tokens.changes()

    assert [change.action for change in changes] == [
        "revoked the token ci",
        "rotated the token ci (read)",
        "created the token ci (read)",
    ]
    assert changes[0].who == "web:root"
    assert changes[1].who.startswith("cli:")
    assert other.changes() == []


def test_a_token_opens_its_own_vault_only(open_tokens: Open) -> None:
    own, other = open_tokens("handbook"), open_tokens("diary")
    secret, _ = own.create("admin", "mara")
    foreign, token = other.create("read", "mara")

    assert other.find(secret) is None
    assert own.find(foreign) is None
    own.revoke("mara")
    assert (other.find(foreign), other.all()) == (token, [token])


def test_a_name_is_used_once_and_is_made_up_if_there_is_none(open_tokens: Open) -> None:
    tokens = open_tokens("handbook")
    names = [tokens.create(role)[1].name for role in ROLES]
    tokens.create("read", "jon-desk")

    with pytest.raises(InvalidInputError, match="there is a token jon-desk already"):
        tokens.create("write", "jon-desk")
    for wrong in ("two words", "x" * 41, "a/b", "jon@example.org"):
        with pytest.raises(InvalidInputError, match="choose another with --name"):
            tokens.create("read", wrong)
    assert {one.name for one in tokens.all()} == {*names, "jon-desk"}


def test_a_server_that_had_too_many_files_open_knows_its_tokens_again(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    secret, token = AccessTokens(FileTokens(str(tmp_path), "handbook")).create("write", "mara")
    server = AccessTokens(FileTokens(str(tmp_path), "handbook"))
    os.close(next_handle := os.dup(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_handle, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            server.find(secret)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert server.find(secret) == token


def test_tokens_that_cannot_be_read_now_are_not_replaced(tmp_path: Path) -> None:
    there = tmp_path / "tokens.json"
    there.symlink_to(there)
    with pytest.raises(OSError, match="symbolic links"):
        AccessTokens(FileTokens(str(tmp_path), "handbook")).create("write", "mara")
    assert there.is_symlink()
