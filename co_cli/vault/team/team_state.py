"""How far a team vault is on its way into git and out of it, and what that means to a person."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from co_cli.index.authority import AuthorityHealth
from co_cli.notes.refs import ENDINGS
from co_cli.sources.origin import IGNORE_FILE

KEEPER_SECONDS = 120.0
"""After which a keeper that says nothing is not there."""
SHOWN, LONGEST_SHOWN = 3, 100
"""Skipped files that are named, and letters of each path."""
STATE = """
select commit, epoch, keeper, behind, checked_at, problem,
    (select count(*) from team.changes where vault_id = vaults.id and not pushed),
    (select min(saved_at) from team.changes where vault_id = vaults.id and not pushed), skipped, files_behind,
    extract(epoch from clock_timestamp())::float8
from team.vaults where id = %(vault)s
"""


class TeamState(NamedTuple):
    """What is known about a vault's way into git."""

    commit: str | None
    epoch: int
    keeper: str | None
    behind: int
    """Commits of the remote that were not taken over yet."""
    checked_at: float | None
    """When the keeper last finished."""
    problem: str | None
    """What went wrong in its last round, such as that the remote could not be reached."""
    outbox: int
    """Changes that are not pushed yet."""
    oldest: float | None
    """When the first of them was saved."""
    skipped: dict[str, str]
    """Files of the commit that no server has, with the reasons."""
    files_behind: int
    """Files of a push that is being taken over which are not in the vault yet."""
    now: float
    """The time of the database, as all of the others: clocks of servers differ."""

    @property
    def silence(self) -> float | None:
        """For how many seconds no keeper has finished a round; None if none ever did."""
        return None if self.checked_at is None else max(0.0, self.now - self.checked_at)

    @property
    def waits(self) -> float:
        """For how many seconds the first change that is not pushed has waited; 0.0 if none does."""
        return 0.0 if self.oldest is None else max(0.0, self.now - self.oldest)

    @classmethod
    def read(cls, row: tuple[Any, ...]) -> TeamState:
        """From a row of `STATE`."""
        state = cls(*row)
        return state._replace(skipped=json.loads(str(state.skipped)))


def health_of(state: TeamState) -> list[AuthorityHealth]:
    """Whether a server brings what is saved to git, and which files no server can have."""
    waits, fix = f"saved changes that are not pushed: {state.outbox:,}", ""
    waits += f"; files of a push that are not here yet: {state.files_behind:,}" if state.files_behind else ""
    if state.silence is None or state.silence > KEEPER_SECONDS:
        text, fix = f"no server commits what is saved; {waits}", "co serve"
    elif state.problem:
        remote = re.match("git (fetch|push)", state.problem)
        fix = "make the git remote reachable: git remote -v" if remote else f"read co.log of {state.keeper}"
        text = f"{state.problem}; {waits}"
    else:
        text = f"{state.keeper} commits what is saved; {waits}"
    found = [AuthorityHealth("team", text, fix)]
    if state.skipped:
        named = "; ".join(f"{path[:LONGEST_SHOWN]}: {why}" for path, why in list(state.skipped.items())[:SHOWN])
        notes = any(path.lower().endswith((*ENDINGS, IGNORE_FILE)) for path in state.skipped)
        text = f"files of the git repository that no server has: {len(state.skipped):,} ({named})"
        found.append(AuthorityHealth("team files", text, "rename or shorten them in git" if notes else ""))
    return found
