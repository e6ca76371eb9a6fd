"""Sessions of agents: what one was given, looked up and saved, from the rows of activity.db.

Prompts name their session; searches and saves of tools do not. They belong to the session of the same front end that
was last active, and those over MCP to the coding agent that was; after a long pause they are a session of their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from co_cli.activity.feed import Entry, asked_entry, given_entry, saved_entry
from co_cli.ground.values import moment_text
from co_cli.index.sqlite.connection import fetch

PAUSE = 1_800.0
"""Seconds without anything, after which a tool's call begins another session."""
MOST_ROWS = 5_000
"""The newest of each table that are grouped."""
MCP, OWN_TOOLS = "mcp", ("agent", "chat")
"""These front ends bring their own tools; all others with conversations call ours over MCP."""

TURNS = """
select 'given', id, at, front_end, conversation, notes, tokens, prompt, late from turns
where vault_id = (select id from vaults where root = :root) order by at desc limit :limit
"""
SEARCHES = """
select 'asked', id, at, front_end, null, 0, 0, null, null from searches
where vault_id = (select id from vaults where root = :root)
    and front_end not in ('cli', 'web', 'python') and front_end not like 'web:%'
order by at desc limit :limit
"""
SAVES = """
select 'saved', versions.id, at, front_end, null, 0, 0, null, null from versions
join documents on documents.id = document_id
where vault_id = (select id from vaults where root = :root) and what <> 'seen'
    and front_end not in ('cli', 'web', 'python') and front_end not like 'web:%'
order by at desc limit :limit
"""
GIVEN = """
select at, front_end, conversation, notes, tokens, injected, cited, prompt, given, late from turns
where id in (select value from json_each(:ids))
"""
ASKED = """
select at, front_end, text, state, hits, results from searches where id in (select value from json_each(:ids))
"""
SAVED = """
select at, front_end, what, 1, versions.title, json_array(path) from versions
join documents on documents.id = document_id where versions.id in (select value from json_each(:ids))
"""


class AgentSession(NamedTuple):
    """A session in one line."""

    id: str
    front_end: str
    conversation: str | None
    """Its name in the client; None if nothing named it."""
    started: str
    ended: str
    """The last time that something happened."""
    prompt: str | None
    """The first, if the log has texts."""
    prompts: int
    late: int
    """Prompts that got no notes, because it took too long."""
    late_seconds: float | None
    """After which the last of them was not waited for any longer; None if there is none."""
    notes: int
    tokens: int
    asked: int
    saved: int


@dataclass
class _Group:
    front_end: str
    conversation: str | None
    started: float
    ended: float = 0.0
    prompt: str | None = None
    late: int = 0
    late_seconds: float | None = None
    notes: int = 0
    tokens: int = 0
    rows: dict[str, list[int]] = field(default_factory=lambda: {"given": [], "asked": [], "saved": []})

    @property
    def session(self) -> AgentSession:
        name = self.conversation or f"{self.started:.3f}"
        times = moment_text(self.started), moment_text(self.ended)
        prompts, asked, saved = map(len, self.rows.values())
        return AgentSession(
            f"{self.front_end}/{name}",
            self.front_end,
            self.conversation,
            *times,
            self.prompt,
            prompts,
            self.late,
            self.late_seconds,
            self.notes,
            self.tokens,
            asked,
            saved,
        )


def list_sessions(connection: apsw.Connection, root: str) -> list[AgentSession]:
    """The sessions of a vault, the last active first."""
    return [group.session for group in _groups(connection, root)]


def session_entries(connection: apsw.Connection, root: str, id: str) -> tuple[AgentSession, list[Entry]] | None:
    """One session and what happened in it, oldest first; None if it is not known."""
    group = next((group for group in _groups(connection, root) if group.session.id == id), None)
    if group is None:
        return None
    given, asked, saved = (
        fetch(connection, statement, {"ids": json.dumps(group.rows[kind])})
        for kind, statement in (("given", GIVEN), ("asked", ASKED), ("saved", SAVED))
    )
    cited = [(row[0], row[6]) for row in given if row[6]]
    found = [(row[0], given_entry(*row)) for row in given]
    found += [(row[0], asked_entry(row, cited)) for row in asked]
    found += [(row[0], saved_entry(*row)) for row in saved]
    return group.session, [entry for _, entry in sorted(found, key=lambda pair: pair[0])]


def _groups(connection: apsw.Connection, root: str) -> list[_Group]:
    window = {"root": root, "limit": MOST_ROWS}
    rows = [row for statement in (TURNS, SEARCHES, SAVES) for row in fetch(connection, statement, window)]
    named: dict[tuple[str, str], _Group] = {}
    latest: dict[str, _Group] = {}
    """By front end, the session that its tools' calls belong to."""
    found: list[_Group] = []
    for kind, id, at, front_end, conversation, notes, tokens, prompt, late in sorted(rows, key=lambda row: row[2]):
        base = front_end.partition(":")[0]
        group = named.get((front_end, conversation)) if conversation else latest.get(front_end) or latest.get(base)
        if group is None or (not conversation and at - group.ended > PAUSE):
            group = _Group(front_end, conversation, at)
            found.append(group)
        latest[front_end] = group
        if conversation:
            named[front_end, conversation] = group
            latest[front_end if base in OWN_TOOLS else MCP] = group
        group.ended, group.prompt = at, group.prompt or prompt
        group.late += late is not None
        group.late_seconds = group.late_seconds if late is None else late
        group.notes += notes
        group.tokens += tokens
        group.rows[kind].append(id)
    return sorted(found, key=lambda group: -group.ended)
