"""The query log: one row a search, counts by the day kept beside it, and the oldest rows dropped in small steps.

Written in batches inside the caller's transaction. A batch is summed up before it is written: a thousand searches of
one day are one change to that day's row.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence

import apsw

from co_cli.activity.events import Searched
from co_cli.activity.versions import document_id, vault_id

MOST_ROWS = 1_000_000
MOST_DAYS = 365
STEP = 500
"""Rows dropped at most beyond those that come: a search after a long holiday must not pay for a year."""
DAY = 86_400

FIND_QUESTION = "select id from questions where vault_id = :vault and folded = :folded"
ADD_QUESTION = """
insert into questions (vault_id, folded, text, asked) values (:vault, :folded, :text, 0) returning id
"""
ASK = "update questions set asked = asked + :times where id = :id"
FORGET_QUESTION = "delete from questions where id = :id and asked <= 0"

PUT_QUERY = """
insert into queries (vault_id, at, day, question_id, door, backend, state, hits, took_ms, degraded, results)
values (:vault, :at, :day, :question, :door, :backend, :state, :hits, :took_ms, :degraded, :results)
"""
PUT_DAY = """
insert into days (vault_id, day, searches, unanswered, degraded)
values (:vault, :day, :searches, :unanswered, :degraded)
on conflict (vault_id, day) do update set searches = searches + excluded.searches,
    unanswered = unanswered + excluded.unanswered, degraded = degraded + excluded.degraded
"""
PUT_LATENCY = """
insert into latencies (vault_id, day, bucket, searches) values (:vault, :day, :bucket, :searches)
on conflict (vault_id, day, bucket) do update set searches = searches + excluded.searches
"""
PUT_DOOR = """
insert into doors (vault_id, day, door, searches) values (:vault, :day, :door, :searches)
on conflict (vault_id, day, door) do update set searches = searches + excluded.searches
"""
LOGGED = "select queries from logged"
LOG = "update logged set queries = queries + :more"

OLDEST = "select id, at, question_id from queries order by id limit :limit"
OLDEST_OF_VAULT = """
select id, at, question_id from queries indexed by queries_by_question where vault_id = :vault limit :limit
"""
DROP_QUERY = "delete from queries where id = :id"
DROP_DAYS = (
    "delete from days where day < :day",
    "delete from latencies where day < :day",
    "delete from doors where day < :day",
)
DROP_VAULT = (
    "delete from days where vault_id = :vault",
    "delete from latencies where vault_id = :vault",
    "delete from doors where vault_id = :vault",
)

PUT_RECALL = """
insert into uses (document_id, recalls, recalled) values (:id, :times, :at)
on conflict (document_id) do update set
    recalls = recalls + excluded.recalls, recalled = max(ifnull(recalled, 0), excluded.recalled)
"""
PUT_OPEN = """
insert into uses (document_id, opens, opened) values (:id, :times, :at)
on conflict (document_id) do update set
    opens = opens + excluded.opens, opened = max(ifnull(opened, 0), excluded.opened)
"""


def log_searches(
    connection: apsw.Connection,
    searches: Sequence[Searched],
    most_rows: int = MOST_ROWS,
    most_days: int = MOST_DAYS,
) -> None:
    """Write these down and drop what is too much or too old."""
    logged = [search for search in searches if search.state]
    if not logged:
        return
    vaults = {root: vault_id(connection, root)[0] for root in {search.root for search in logged}}
    asked: Counter[int] = Counter()
    questions: dict[tuple[int, str], int] = {}
    days: dict[tuple[int, int], list[int]] = {}
    latencies: Counter[tuple[int, int, int]] = Counter()
    doors: Counter[tuple[int, int, str]] = Counter()
    rows: list[dict[str, apsw.SQLiteValue]] = []
    for search in logged:
        vault, day = vaults[search.root], int(search.at // DAY)
        number = None
        if search.text is not None:
            number = _question(connection, vault, search.text, questions)
            asked[number] += 1
        sums = days.setdefault((vault, day), [0, 0, 0])
        sums[0] += 1
        sums[1] += search.state != "found"
        sums[2] += search.degraded is not None
        latencies[vault, day, bucket_of(search.took_ms)] += 1
        doors[vault, day, search.door] += 1
        rows.append(
            {
                "vault": vault,
                "at": search.at,
                "day": day,
                "question": number,
                "door": search.door,
                "backend": search.backend,
                "state": search.state,
                "hits": search.hits,
                "took_ms": search.took_ms,
                "degraded": search.degraded,
                "results": None if search.text is None else json.dumps(search.results, ensure_ascii=False),
            }
        )
    connection.executemany(PUT_QUERY, rows)
    connection.executemany(ASK, ({"id": number, "times": times} for number, times in asked.items()))
    connection.executemany(
        PUT_DAY,
        (
            {"vault": vault, "day": day, "searches": sums[0], "unanswered": sums[1], "degraded": sums[2]}
            for (vault, day), sums in days.items()
        ),
    )
    connection.executemany(
        PUT_LATENCY,
        ({"vault": vault, "day": day, "bucket": n, "searches": times} for (vault, day, n), times in latencies.items()),
    )
    connection.executemany(
        PUT_DOOR,
        ({"vault": vault, "day": day, "door": door, "searches": n} for (vault, day, door), n in doors.items()),
    )
    connection.execute(LOG, {"more": len(rows)})
    trim(connection, max(search.at for search in logged), len(rows), most_rows, most_days)


def count_recalls(connection: apsw.Connection, searches: Sequence[Searched]) -> None:
    """Each answer counts once for each document in it."""
    times: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], float] = {}
    for search in searches:
        for key in dict.fromkeys(search.recalled):
            times[key] += 1
            last[key] = max(last.get(key, 0.0), search.at)
    _count(connection, PUT_RECALL, times, last)


def count_opens(connection: apsw.Connection, opened: Sequence[tuple[str, str, float]]) -> None:
    """Each is a vault's root, a path and when."""
    times: Counter[tuple[str, str]] = Counter((root, path) for root, path, _ in opened)
    last: dict[tuple[str, str], float] = {}
    for root, path, at in opened:
        last[root, path] = max(last.get((root, path), 0.0), at)
    _count(connection, PUT_OPEN, times, last)


def trim(connection: apsw.Connection, now: float, came: int, most_rows: int, most_days: int) -> int:
    """Drop the oldest rows that are too many or too old; a few more than came. Returns how many."""
    over = int(str(connection.execute(LOGGED).get or 0)) - most_rows
    cutoff = now - most_days * DAY
    rows: list[tuple[int, float, int | None]] = connection.execute(OLDEST, {"limit": came + STEP}).fetchall()  # type: ignore[assignment]
    doomed = [row for place, row in enumerate(rows) if place < over or row[1] < cutoff]
    _drop(connection, doomed)
    for statement in DROP_DAYS:
        connection.execute(statement, {"day": int(cutoff // DAY)})
    return len(doomed)


def clear_some(connection: apsw.Connection, vault: int, limit: int) -> int:
    """Drop this many rows of one vault's log, and what was counted of it with the last. Returns how many were left."""
    rows: list[tuple[int, float, int | None]] = connection.execute(
        OLDEST_OF_VAULT, {"vault": vault, "limit": limit}
    ).fetchall()  # type: ignore[assignment]
    _drop(connection, rows)
    if len(rows) < limit:
        for statement in DROP_VAULT:
            connection.execute(statement, {"vault": vault})
    return len(rows)


def bucket_of(took_ms: float) -> int:
    """Eight to every doubling: a quantile read from them is right within a twentieth."""
    return math.floor(8 * math.log2(max(took_ms, 0.01)))


def middle_of(bucket: int) -> float:
    """Milliseconds."""
    return 2 ** ((bucket + 0.5) / 8)


def fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _question(connection: apsw.Connection, vault: int, text: str, known: dict[tuple[int, str], int]) -> int:
    key = vault, fold(text)
    number = known.get(key)
    if number is None:
        values = {"vault": vault, "folded": key[1]}
        found = connection.execute(FIND_QUESTION, values).get
        if found is None:
            found = connection.execute(ADD_QUESTION, {**values, "text": text}).get
        number = known[key] = int(str(found))
    return number


def _count(
    connection: apsw.Connection, statement: str, times: Counter[tuple[str, str]], last: dict[tuple[str, str], float]
) -> None:
    vaults = {root: vault_id(connection, root)[0] for root, _ in times}
    for (root, path), count in times.items():
        number = document_id(connection, vaults[root], path)
        connection.execute(statement, {"id": number, "times": count, "at": last[root, path]})


def _drop(connection: apsw.Connection, rows: Sequence[tuple[int, float, int | None]]) -> None:
    if not rows:
        return
    connection.executemany(DROP_QUERY, ({"id": row[0]} for row in rows))
    fewer = Counter(row[2] for row in rows if row[2] is not None)
    connection.executemany(ASK, ({"id": number, "times": -times} for number, times in fewer.items()))
    connection.executemany(FORGET_QUESTION, ({"id": number} for number in fewer))
    connection.execute(LOG, {"more": -len(rows)})
