"""Whether a server should get requests: git, disk, keeper, database and index, each with a reason if not."""

from __future__ import annotations

import shutil

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import IndexUnavailableError
from co_cli.notes.git import GitError
from co_cli.server.access_tokens import team_of

LEAST_DISK = 50_000_000
"""Bytes that the vault and the data folder need, so that saves and their clone do not fail."""
MOST_LAG = 60.0
"""Seconds after which a server should have what others saved, and its keeper or stand-by tries every few seconds."""


def not_ready(kb: LocalKnowledgeBase) -> list[str]:
    """Why this server should get no requests now. Strangers see it: it names no path and no address."""
    problems: list[str] = []
    for what, folder in (("vault", kb.root), ("data folder", kb.settings.data_dir)):
        free = shutil.disk_usage(folder).free
        if free < LEAST_DISK:
            problems.append(f"disk: {free / 1e6:.0f} MB are left for the {what}")
    try:
        return problems + _index(kb) + _team(kb)
    except IndexUnavailableError:
        return [*problems, "database: the index cannot be opened"]


def _index(kb: LocalKnowledgeBase) -> list[str]:
    return [] if kb.index.notes.state().synced_at else ["index: the vault was never indexed"]


def _team(kb: LocalKnowledgeBase) -> list[str]:
    """A remote that cannot be reached is not a reason: saves are kept, and pushed when it is back."""
    team = team_of(kb.vault)
    if team is None:
        return [] if kb.settings.engine == "sqlite" else ["git: the vault is not a git repository"]
    from co_cli.vault.team.team_state import KEEPER_SECONDS  # PostgreSQL's packages are an extra

    try:
        team.repository.run("rev-parse", "--git-dir")
    except GitError:
        return ["git: the clone cannot be read"]
    lacks = team.lag()
    problems = [f"index: this server lacks what was saved {lacks:.0f} seconds ago"] if lacks > MOST_LAG else []
    late = team.state().silence
    if late is None:
        return [*problems, "keeper: no server has looked at the remote yet"]
    if late > KEEPER_SECONDS:
        problems.append(f"keeper: no server has finished a round for {late:.0f} seconds")
    return problems
