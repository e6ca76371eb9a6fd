"""pgbouncer in front of PostgreSQL: in session mode everything works, in transaction mode nothing starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.postgres import new_database, pooled
from tests.vault.team.servers import Team, keep

pytestmark = pytest.mark.postgres


@pytest.mark.slow
def test_a_pool_that_shares_sessions_is_refused_with_one_line(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with pooled(new_database(), "transaction") as address:
        monkeypatch.setenv("CO_ENGINE", address)
        ran = [co("index", "sync"), co.process("serve", "--port", "0")]

    for one in ran:
        assert (one.code, one.out, len(one.err.strip().splitlines())) == (2, "", 1)
        assert "pgbouncer in transaction mode, which co cannot use: set pool_mode = session" in one.err


def test_a_pool_that_keeps_sessions_apart_serves_a_team(tmp_path: Path) -> None:
    with pooled(new_database(), "session") as address:
        team = Team(tmp_path, address)
        one, two = team.server("one"), team.server("two")
        saved = one.remember("Elms like water.")
        assert two.search("what do elms like").hits[0].ref == saved.ref
        keep(one)
        assert "Elms like water." in team.pushed("memories/elms-like-water.md")
        two.rebuild()
        assert one.search("what do elms like").hits[0].ref == saved.ref
        team.close()
