"""Events into rows of activity.db: those of the spool, and changes of the index."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from co_cli.activity.events import AgentTurn, Cited, Event, Indexed, Opened, SearchEvent, read_lines
from co_cli.activity.judgements import infer_judgements
from co_cli.activity.query_log import count_uses, log_searches, log_turns
from co_cli.activity.versions import put_heads

WAS_READ = "select 1 from spool where name = :name"
SET_READ = "insert or replace into spool (id, name) values (1, :name)"


def write_spool(connection: apsw.Connection, name: str, data: bytes) -> None:
    """Write the events of a spool file, unless that was done before a crash."""
    if not connection.execute(WAS_READ, {"name": name}).get:
        _write_spooled(connection, read_lines(data))
        connection.execute(SET_READ, {"name": name})


def _write_spooled(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Write these, and skip unknown kinds of events: another version of this program may share the spool."""
    try:
        with connection:  # a savepoint
            write_events(connection, events)
    except (TypeError, ValueError, apsw.ConstraintError, apsw.MismatchError):
        for event in events if len(events) > 1 else ():
            _write_spooled(connection, [event])


def write_events(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Inside the caller's transaction."""
    searches = [event for event in events if isinstance(event, SearchEvent)]
    opened = [event for event in events if isinstance(event, Opened)]
    log_searches(connection, searches)
    log_turns(connection, [event for event in events if isinstance(event, AgentTurn)])
    count_uses(connection, searches, opened)
    infer_judgements(connection, [event for event in events if isinstance(event, (Opened, Cited))])
    for event in events:
        if isinstance(event, Indexed):
            put_heads(connection, event)
