"""What activity.db says about the use of a vault: how much was asked, what was not answered, what took long.

Counts by the day come from tables that are kept as rows are written; only texts are counted from the log, by an index
that has nothing else in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

import apsw

from co_cli.activity.database import FILE_NAME, ActivityDatabase
from co_cli.activity.query_log import middle_of
from co_cli.errors import KnowledgeError
from co_cli.index.sqlite.connection import fetch

DAYS = """
select day, sum(searches), sum(unanswered), sum(degraded) from days
where vault_id = :vault and day between :first and :last group by day
"""
LATENCIES = """
select day, bucket, sum(searches) from latencies
where vault_id = :vault and day between :first and :last group by day, bucket order by bucket
"""
DOORS = """
select door, sum(searches) from doors where vault_id = :vault and day between :first and :last
group by door order by 2 desc, door
"""
COMMON = """
select question_id, count(*) as times from queries indexed by queries_by_question
where vault_id = :vault and question_id is not null and day between :first and :last
group by question_id order by times desc, question_id limit :limit
"""
UNANSWERED = """
select question_id, count(*) as times from queries indexed by queries_without_answer
where vault_id = :vault and question_id is not null and day between :first and :last and state <> 'found'
group by question_id order by times desc, question_id desc limit :limit
"""
QUESTIONS = "select id, text from questions where id in (select value from json_each(:ids))"
SLOW = """
select took_ms, at, ifnull(text, ''), queries.backend, queries.door
from queries indexed by queries_by_time_taken left join questions on questions.id = question_id
where queries.vault_id = :vault and day = :day order by took_ms desc limit :limit
"""
FIND_VAULTS = "select id, root from vaults where root in (select value from json_each(:roots))"
LOGGED = "select count(*) from queries indexed by queries_by_time_taken where vault_id = :vault"
RECALLED = """
select vault_id, path, recalls, recalled, opens, opened from uses join documents on documents.id = document_id
where vault_id in (select value from json_each(:vaults)) and recalls > 0
order by recalls desc, recalled desc, path limit :limit
"""
RECALLED_PATHS = """
select path from uses join documents on documents.id = document_id where vault_id = :vault and recalls > 0
"""


USES = """
select vaults.root, documents.path, uses.recalls, uses.opens
from json_each(:places) as place
cross join vaults on vaults.root = place.value ->> 0
cross join documents on documents.vault_id = vaults.id and documents.path = place.value ->> 1
cross join uses on uses.document_id = documents.id
"""


class Day(NamedTuple):
    """One day of searches; days since 1970."""

    day: int
    searches: int
    unanswered: int
    degraded: int
    half_ms: float | None
    """Half of the searches took no longer."""
    most_ms: float | None
    """Nineteen of twenty took no longer."""


class Asked(NamedTuple):
    """A text that was asked for, and how often."""

    text: str
    times: int


class Slow(NamedTuple):
    """A search that took long."""

    took_ms: float
    at: float
    text: str
    backend: str
    door: str


class Used(NamedTuple):
    """A document and how it was used."""

    root: str
    path: str
    recalls: int
    recalled: float | None
    opens: int
    opened: float | None


class Asking(NamedTuple):
    """What was asked of a vault in some days."""

    days: list[Day]
    """Every one of them, also those without a search."""
    half_ms: float | None
    most_ms: float | None
    doors: dict[str, int]
    common: list[Asked]
    unanswered: list[Asked]
    slow: list[Slow]
    logged: int
    """Rows of this vault in the log, of whatever day."""


def asking(connection: apsw.Connection, root: str, first: int, last: int, limit: int) -> Asking:
    """What was asked from the first day to the last."""
    vault = _vaults(connection, [root]).get(root, -1)
    window = {"vault": vault, "first": first, "last": last}
    counts = {day: (n, unanswered, degraded) for day, n, unanswered, degraded in fetch(connection, DAYS, window)}
    took: dict[int, dict[int, int]] = {}
    for day, bucket, searches in fetch(connection, LATENCIES, window):
        took.setdefault(day, {})[bucket] = searches
    together: dict[int, int] = {}
    for buckets in took.values():
        for bucket, searches in buckets.items():
            together[bucket] = together.get(bucket, 0) + searches
    days = [
        Day(day, *counts.get(day, (0, 0, 0)), quantile(took.get(day, {}), 0.5), quantile(took.get(day, {}), 0.95))
        for day in range(first, last + 1)
    ]
    slow: list[Slow] = []
    for day in counts:
        slow += [Slow(*row) for row in fetch(connection, SLOW, {"vault": vault, "day": day, "limit": limit})]
    return Asking(
        days,
        quantile(together, 0.5),
        quantile(together, 0.95),
        dict(fetch(connection, DOORS, window)),
        _asked(connection, COMMON, {**window, "limit": limit}),
        _asked(connection, UNANSWERED, {**window, "limit": limit}),
        sorted(slow, reverse=True)[:limit],
        fetch(connection, LOGGED, {"vault": vault})[0][0],
    )


def most_recalled(connection: apsw.Connection, roots: Sequence[str], limit: int) -> list[Used]:
    vaults = {number: root for root, number in _vaults(connection, roots).items()}
    rows = fetch(connection, RECALLED, {"vaults": json.dumps(list(vaults)), "limit": limit})
    return [Used(vaults[vault], *rest) for vault, *rest in rows]


def recalled_paths(connection: apsw.Connection, root: str) -> set[str]:
    """Documents that were in an answer at least once."""
    vault = _vaults(connection, [root]).get(root, -1)
    return {path for (path,) in fetch(connection, RECALLED_PATHS, {"vault": vault})}


def quantile(buckets: dict[int, int], share: float) -> float | None:
    """From counts by bucket; None if there are none."""
    wanted = sum(buckets.values()) * share
    for bucket in sorted(buckets):
        wanted -= buckets[bucket]
        if wanted <= 0:
            return round(middle_of(bucket), 1)
    return None


def _asked(connection: apsw.Connection, statement: str, values: dict[str, int]) -> list[Asked]:
    times: dict[int, int] = dict(fetch(connection, statement, values))
    texts = dict(fetch(connection, QUESTIONS, {"ids": json.dumps(list(times))}))
    return [Asked(texts.get(number, ""), count) for number, count in times.items()]


def _vaults(connection: apsw.Connection, roots: Sequence[str]) -> dict[str, int]:
    return {root: number for number, root in fetch(connection, FIND_VAULTS, {"roots": json.dumps(list(roots))})}


def use_counts(data_dir: str, places: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """How often documents, given by root and path, were recalled and opened. Nothing if activity.db cannot be read."""
    if not os.path.exists(os.path.join(data_dir, FILE_NAME)):
        return {}
    database = ActivityDatabase(data_dir)
    try:
        with database.reading() as connection:
            rows = fetch(connection, USES, {"places": json.dumps(list(places))})
    except KnowledgeError:
        return {}
    finally:
        database.close()
    return {(root, path): (recalls, opens) for root, path, recalls, opens in rows}
