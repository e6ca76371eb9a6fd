"""What was said of answers, and what was learned from it: rows of activity.db, and a small file for searches.

A note is judged once for each question; the last word counts, and what was inferred from use never replaces what
somebody said. Rows are written inside the caller's transaction. Learned weights are in a file of their own, because a
cold search must not open activity.db; whatever is wrong with that file, search goes on without it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import apsw

from co_cli.activity.events import Cited, Opened
from co_cli.activity.query_log import fold, last_question
from co_cli.activity.versions import document_id, vault_id
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.files import locked, replace
from co_cli.notes.refs import path_of, ref_of, source_ref, without_lines

MOST = 5_000
"""Judgements that a vault keeps; the oldest go first."""
SHORTLY = 1_800.0
"""Seconds after a search in which an opened or cited note counts as its answer."""
MOST_CITED = 20
REFS = re.compile(r"(?<![\w:])(?:memory|article):[^\s\]\[()<>{},;\"'`|*]+")
WEIGHTS_FILE = "learned.json"

PUT = """
insert into judgements (vault_id, document_id, folded, query, good, how, at, ref, ranking, candidates)
values (:vault, :document, :folded, :query, :good, :how, :at, :ref, :ranking, :candidates)
on conflict (vault_id, document_id, folded) do update set query = excluded.query, good = excluded.good,
    how = excluded.how, at = excluded.at, ref = excluded.ref, ranking = excluded.ranking,
    candidates = excluded.candidates
where excluded.how = 'said' or (judgements.how <> 'said' and judgements.candidates is null)
"""
DROP_OLDEST = """
delete from judgements where id in (
    select id from judgements where vault_id = :vault order by at desc, id desc limit -1 offset :most
)
"""
RANK = "update judgements set ranking = :ranking, candidates = :candidates where id = :id"
ALL = """
select id, folded, query, good, how, ref, ranking, candidates from judgements where vault_id = :vault order by at, id
"""
VERDICTS = "select sum(good), sum(1 - good) from judgements where document_id = :document and how = 'said'"
CLEAR = "delete from judgements where vault_id = :vault"
ADD_TUNING = """
insert into tunings (vault_id, at, what, space, meaning, words, judgements, before, after)
values (:vault, :at, :what, :space, :meaning, :words, :judgements, :before, :after)
"""
TUNINGS = """
select at, what, space, meaning, words, judgements, before, after from tunings
where vault_id = :vault order by id desc limit 10
"""


class Candidate(NamedTuple):
    """A note that was ranked for a question, with the parts of its score."""

    ref: str
    words: float
    """As with a weight of 1, like meaning."""
    meaning: float
    rest: float
    """The part that does not depend on these weights."""


class Judgement(NamedTuple):
    """What was said of one note as the answer to a question."""

    id: int
    question: str
    """Folded; empty: about the note alone, or the log leaves texts out."""
    query: str | None
    good: bool
    how: str
    """said, opened or cited"""
    ref: str
    ranking: str | None
    """The vectors and the formula that ranked the candidates; None: not ranked yet."""
    candidates: tuple[Candidate, ...]


class Tuning(NamedTuple):
    """Weights that were applied, refused or reset."""

    at: float
    what: str
    space: str
    meaning: float
    words: float
    judgements: float
    before: float | None = None
    after: float | None = None


def put_judgement(
    connection: apsw.Connection, root: str, place: tuple[str, str], judgement: Judgement, at: float
) -> tuple[int, int]:
    """`root` is the vault that was asked, `place` the folder and path of the note. Returns its verdicts, good and bad.

    The judgement's id is ignored.
    """
    vault = vault_id(connection, root)
    document = document_id(connection, vault_id(connection, place[0]), place[1])
    row = judgement._asdict() | {"vault": vault, "document": document, "at": at, "good": int(judgement.good)}
    row |= {"folded": row.pop("question"), "candidates": _dumped(judgement.candidates)}
    del row["id"]
    connection.execute(PUT, row)
    connection.execute(DROP_OLDEST, {"vault": vault, "most": MOST})
    good, bad = fetch(connection, VERDICTS, {"document": document})[0]
    return int(good or 0), int(bad or 0)


def rank_judgement(connection: apsw.Connection, judgement: Judgement) -> None:
    """Store the candidates of a judgement that had none, or those of another ranking."""
    values = {"id": judgement.id, "ranking": judgement.ranking, "candidates": _dumped(judgement.candidates)}
    connection.execute(RANK, values)


def judgements(connection: apsw.Connection, root: str) -> list[Judgement]:
    """Oldest first."""
    found: list[Judgement] = []
    for *values, shown in fetch(connection, ALL, {"vault": vault_id(connection, root)}):
        candidates = tuple(Candidate(*one) for one in json.loads(shown or "[]"))
        found.append(Judgement._make((*values, candidates)))
    return found


def clear_judgements(connection: apsw.Connection, root: str) -> int:
    """Delete them and overwrite their words in the file. Returns how many there were."""
    connection.pragma("secure_delete", 1)
    connection.execute(CLEAR, {"vault": vault_id(connection, root)})
    return connection.changes()


def infer_judgements(connection: apsw.Connection, events: Sequence[Opened | Cited]) -> None:
    """A note that was opened or cited shortly after a search found it counts as its answer."""
    for event in events:
        how, paths = ("opened", [event.path]) if isinstance(event, Opened) else ("cited", _cited_paths(event.text))
        for path in paths:
            refs = [ref_of(path, source) for source in ("memory", "article")]
            query = last_question(connection, event.root, refs, event.at, SHORTLY)
            if query is not None:
                judgement = Judgement(0, fold(query), query, True, how, source_ref(path), None, ())
                put_judgement(connection, event.root, (event.root, path), judgement, event.at)


def _cited_paths(text: str) -> list[str]:
    """The vault's own notes that a text names."""
    refs = (without_lines(found.rstrip(".:!?")) for found in REFS.findall(text))
    return list(dict.fromkeys(path for ref in refs if (path := path_of(ref))))[:MOST_CITED]


def put_tuning(connection: apsw.Connection, root: str, tuning: Tuning) -> None:
    connection.execute(ADD_TUNING, {"vault": vault_id(connection, root), **tuning._asdict()})


def tunings(connection: apsw.Connection, root: str) -> list[Tuning]:
    """The last ten, newest first."""
    return [Tuning._make(row) for row in fetch(connection, TUNINGS, {"vault": vault_id(connection, root)})]


def _dumped(candidates: Sequence[Candidate]) -> str | None:
    return json.dumps(candidates, ensure_ascii=False, separators=(",", ":")) if candidates else None


def read_weights(data_dir: str, root: str, ranking: str) -> dict[str, float] | None:
    """The weights learned for this vault with these vectors and this formula; None if there are none."""
    row: Any = _weights_file(data_dir).get(root)
    try:
        learned_for, meaning = row["ranking"], float(row["meaning"])
    except (TypeError, KeyError, ValueError):
        return None
    usable = learned_for == ranking and 0 <= meaning <= 1
    return {"meaning": meaning, "words": round(1 - meaning, 4)} if usable else None


def change_weights(data_dir: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the learned weights, by the folder of their vault."""
    path = os.path.join(data_dir, WEIGHTS_FILE)
    os.makedirs(data_dir, exist_ok=True)
    with locked(f"{path}.lock"):
        known = _weights_file(data_dir)
        before = dict(known)
        change(known)
        if known != before:
            replace(path, json.dumps(known, indent=1).encode())


def _weights_file(data_dir: str) -> dict[str, Any]:
    try:
        with open(os.path.join(data_dir, WEIGHTS_FILE), encoding="utf-8") as stream:
            found: Any = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
