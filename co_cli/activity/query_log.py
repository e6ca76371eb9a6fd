"""The query log, a row for each search and for each turn of an agent that has a prompt, was given notes or cites some,
and how often documents are used. Bounded: the oldest rows go first.

Written inside the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.activity.events import AgentTurn, Opened, SearchEvent
from co_cli.activity.versions import document_ids, vault_id
from co_cli.ground.values import DAY, moment_text
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.refs import without_lines

MOST_ROWS = 200_000
MOST_DAYS = 365
LATEST = 500
"""Rows among which the search that found a note is looked for."""

ADD = """
insert into searches (vault_id, at, front_end, text, folded, backend, state, hits, took_ms, degraded, results)
values (:vault, :at, :front_end, :text, :folded, :backend, :state, :hits, :took_ms, :degraded, :results)
"""
DROP_OLDEST = "delete from searches where id <= (select max(id) from searches) - :most"
DROP_BEFORE = "delete from searches where vault_id = :vault and at < :at"
CLEAR = "delete from searches where vault_id = :vault"
ADD_TURN = """
insert into turns (vault_id, at, front_end, conversation, run, notes, tokens, injected, cited, prompt, given, late)
values (:vault, :at, :front_end, :conversation, :run, :notes, :tokens, :injected, :cited, :prompt, :given, :late)
"""
ADD_CITED = """
update turns set cited = :cited
where id > (select max(id) from turns) - :latest and vault_id = :vault and run = :run and cited is null
"""
DROP_OLDEST_TURNS = "delete from turns where id <= (select max(id) from turns) - :most"
DROP_TURNS_BEFORE = "delete from turns where vault_id = :vault and at < :at"
CLEAR_TURNS = "delete from turns where vault_id = :vault"
COUNT_RECALL = """
insert into uses (document_id, recalls, recalled) select value, 1, :at from json_each(:ids) where true
on conflict (document_id) do update set recalls = recalls + 1, recalled = max(ifnull(recalled, 0), excluded.recalled)
"""
COUNT_OPEN = """
insert into uses (document_id, opens, opened) select value, 1, :at from json_each(:ids) where true
on conflict (document_id) do update set opens = opens + 1, opened = max(ifnull(opened, 0), excluded.opened)
"""
LEAD = "update uses set led = max(ifnull(led, 0), :at) where document_id in (select value from json_each(:ids))"
LATELY = """
select text, results from searches
where id > (select max(id) from searches) - :latest and vault_id = :vault and at between :since and :until
    and results is not null
order by id desc
"""

NAMING = """
select at, text, folded, results from searches join vaults on vaults.id = vault_id
where root = :root and results is not null and exists (select 1 from json_each(:refs) where instr(results, value))
order by searches.id desc
"""


class LoggedQuestion(NamedTuple):
    """A question that found a note."""

    text: str
    """As it was typed last."""
    times: int
    at: str
    """The last time."""


def log_searches(connection: apsw.Connection, searches: Sequence[SearchEvent]) -> None:
    """Add these and drop what is too much or too old."""
    logged = [search for search in searches if search.state]
    vaults = {root: vault_id(connection, root) for root in {search.root for search in logged}}
    for search in logged:
        row = search._asdict()
        del row["root"], row["recalled"]
        row["vault"] = vaults[search.root]
        row["folded"] = None if search.text is None else fold(search.text)
        row["results"] = None if search.text is None else json.dumps(search.results, ensure_ascii=False)
        connection.execute(ADD, row)
    if logged:
        connection.execute(DROP_OLDEST, {"most": MOST_ROWS})
    for vault in vaults.values():
        newest = max(search.at for search in logged)
        connection.execute(DROP_BEFORE, {"vault": vault, "at": newest - MOST_DAYS * DAY})


def log_turns(connection: apsw.Connection, turns: Sequence[AgentTurn]) -> None:
    """Add these, citations to what the same run was given, and drop what is too much or too old."""
    for turn in turns:
        vault, cited = (
            vault_id(connection, turn.root),
            json.dumps(turn.cited, ensure_ascii=False) if turn.cited else None,
        )
        if turn.cited:
            connection.execute(ADD_CITED, {"cited": cited, "latest": LATEST, "vault": vault, "run": turn.run})
        if not turn.cited or not connection.changes():
            row = turn._asdict()
            del row["root"]
            injected = None if turn.injected is None else json.dumps(turn.injected, ensure_ascii=False)
            connection.execute(ADD_TURN, {**row, "vault": vault, "injected": injected, "cited": cited})
            connection.execute(DROP_OLDEST_TURNS, {"most": MOST_ROWS})
            connection.execute(DROP_TURNS_BEFORE, {"vault": vault, "at": turn.at - MOST_DAYS * DAY})


def count_uses(connection: apsw.Connection, searches: Sequence[SearchEvent], opened: Sequence[Opened]) -> None:
    """Each answer counts once as a recall of each document in it, and its first hit is noted."""
    recalls = [(COUNT_RECALL, search.recalled, search.at) for search in searches]
    leads = [(LEAD, search.recalled[:1], search.at) for search in searches]
    opens = [(COUNT_OPEN, ((event.root, event.path),), event.at) for event in opened]
    for statement, places, at in recalls + leads + opens:
        for root in dict.fromkeys(root for root, _ in places):
            paths = dict.fromkeys(path for place, path in places if place == root)
            numbers = document_ids(connection, vault_id(connection, root), list(paths))
            connection.execute(statement, {"ids": json.dumps(numbers), "at": at})


def clear_log(connection: apsw.Connection, root: str) -> int:
    """Delete the log of one vault and overwrite its words in the file. Returns how many searches there were."""
    connection.pragma("secure_delete", 1)  # free pages would keep the words
    vault = vault_id(connection, root)
    connection.execute(CLEAR_TURNS, {"vault": vault})
    connection.execute(CLEAR, {"vault": vault})
    return connection.changes()


def last_question(
    connection: apsw.Connection, root: str, refs: Sequence[str], until: float, seconds: float = float("inf")
) -> str | None:
    """The text of the last logged search that found one of these refs; None if there is none."""
    since = max(0.0, until - seconds)
    values = {"vault": vault_id(connection, root), "since": since, "until": until, "latest": LATEST}
    for text, results in fetch(connection, LATELY, values):
        if any(without_lines(ref) in refs for ref, _ in json.loads(results)):
            return str(text)
    return None


def questions_about(connection: apsw.Connection, root: str, refs: Sequence[str], limit: int) -> list[LoggedQuestion]:
    """The logged questions that had one of these refs among their first results, newest first."""
    found: dict[str, LoggedQuestion] = {}
    escaped = [json.dumps(ref, ensure_ascii=False)[1:-1] for ref in refs]  # as it is inside of `results`
    values = {"root": root, "refs": json.dumps(escaped)}
    for at, text, folded, results in fetch(connection, NAMING, values):
        if any(without_lines(ref) in refs for ref, _ in json.loads(results)):
            before = found.get(folded, LoggedQuestion(text, 0, moment_text(at)))
            found[folded] = before._replace(times=before.times + 1)
    return list(found.values())[:limit]


def fold(text: str) -> str:
    """Case and spacing do not make another question."""
    return " ".join(text.casefold().split())
