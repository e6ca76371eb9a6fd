"""What happened lately in a vault, newest first: searches, notes added to agents' prompts, and saves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

import apsw

from co_cli.activity.judgements import SHORTLY
from co_cli.ground.values import moment_text
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.refs import source_ref, without_lines

Kind = Literal["asked", "given", "saved"]
NAMED = 5
"""Notes that are named of one sync or import."""

ASKED = """
select at, front_end, text, state, hits, results from searches
where vault_id = (select id from vaults where root = :root) and at < :before
    and (:front_end is null or :front_end in (front_end, substr(front_end, 1, instr(front_end, ':') - 1)))
order by at desc limit :limit
"""
GIVEN = """
select at, front_end, conversation, notes, tokens, injected, cited from turns
where vault_id = (select id from vaults where root = :root) and at < :before and (notes or cited is not null)
    and (:front_end is null or :front_end in (front_end, substr(front_end, 1, instr(front_end, ':') - 1)))
order by at desc limit :limit
"""
SAVED = """
select at, ifnull(front_end, 'file'), what, count(*), min(versions.title), json_group_array(path) from versions
join documents on documents.id = document_id
where vault_id = (select id from vaults where root = :root) and at < :before and what <> 'seen'
    and (:front_end is null
        or :front_end in (ifnull(front_end, 'file'), substr(front_end, 1, instr(front_end, ':') - 1)))
group by at, what order by at desc limit :limit
"""
CITED = """
select at, cited from turns
where vault_id = (select id from vaults where root = :root) and at >= :since and at < :until and cited is not null
"""
LATEST = """
select
    (select max(id) from searches where vault_id = vaults.id),
    (select max(id) from turns where vault_id = vaults.id),
    (select max(id) from judgements where vault_id = vaults.id),
    (select max(id) from extractions where vault_id = vaults.id),
    (select max(versions.id) from versions join documents on documents.id = document_id where vault_id = vaults.id),
    (select group_concat(facets.id || state) from facets join documents on documents.id = document_id
        where vault_id = vaults.id)
from vaults where root = :root
"""


class EntryNote(NamedTuple):
    """A note that was found, given or saved."""

    ref: str
    cited: bool = False
    why: str | None = None
    """Of a note that was given: always, named, contextual or recalled; None if it was only cited."""
    tokens: int | None = None


class Entry(NamedTuple):
    """Something that happened."""

    at: str
    kind: Kind
    front_end: str
    """`file` if a note was changed outside of co."""
    text: str | None
    """The question, or the title of the note; None if the log leaves texts out."""
    outcome: str
    """found, absent or inconclusive; given, cited, or for a prompt that got no note nothing or, if it took too long,
    late; created, updated, moved, removed or restored"""
    total: int
    """Notes that were found or given, also if the log does not name them."""
    notes: list[EntryNote]
    tokens: int | None = None
    conversation: str | None = None
    prompt: str | None = None
    given: str | None = None
    """What the person asked, and exactly what was added to it."""
    late: float | None = None
    """After how many seconds a client did not wait any longer for notes."""


class FeedQuery(NamedTuple):
    """What to read: only these kinds, of one front end or all, before a moment."""

    kinds: Sequence[Kind]
    front_end: str | None
    before: float
    limit: int


class FeedPage(NamedTuple):
    """Some of it, and the `before` that continues it; None if there is no more."""

    entries: list[Entry]
    next: float | None


def read_latest(connection: apsw.Connection, root: str) -> object:
    """Another value when something was recorded about this vault."""
    return fetch(connection, LATEST, {"root": root})


def read_feed(connection: apsw.Connection, root: str, query: FeedQuery) -> FeedPage:
    """What happened in this vault before a moment."""
    window = {"root": root, "before": query.before, "front_end": query.front_end, "limit": query.limit + 1}
    found: list[tuple[float, Entry]] = []
    if "asked" in query.kinds:
        rows = fetch(connection, ASKED, window)
        since = min((row[0] for row in rows), default=query.before)
        cited = fetch(connection, CITED, {"root": root, "since": since, "until": query.before + SHORTLY})
        found += [(row[0], asked_entry(row, cited)) for row in rows]
    if "given" in query.kinds:
        found += [(row[0], given_entry(*row)) for row in fetch(connection, GIVEN, window)]
    if "saved" in query.kinds:
        found += [(row[0], saved_entry(*row)) for row in fetch(connection, SAVED, window)]
    found.sort(key=lambda pair: -pair[0])
    last = found[query.limit - 1][0] if len(found) > query.limit else None
    # also those of the same moment as the last
    return FeedPage([entry for at, entry in found if last is None or at >= last], last)


def asked_entry(row: tuple[float, str, str | None, str, int, str | None], citations: list[tuple[float, str]]) -> Entry:
    at, front_end, text, state, hits, results = row
    cited = {without_lines(ref) for then, refs in citations if at <= then < at + SHORTLY for ref in json.loads(refs)}
    refs = dict.fromkeys(without_lines(ref) for ref, _ in json.loads(results or "[]"))
    notes = [EntryNote(ref, ref in cited) for ref in refs]
    return Entry(moment_text(at), "asked", front_end, text, state, hits, notes)


def saved_entry(at: float, front_end: str, what: str, count: int, title: str, paths: str) -> Entry:
    notes = [EntryNote(source_ref(path)) for path in json.loads(paths)[:NAMED]]
    return Entry(moment_text(at), "saved", front_end, title if count == 1 else None, what, count, notes)


def given_entry(
    at: float,
    front_end: str,
    conversation: str | None,
    count: int,
    tokens: int,
    injected: str | None,
    refs: str | None,
    prompt: str | None = None,
    text: str | None = None,
    late: float | None = None,
) -> Entry:
    cited = dict.fromkeys(without_lines(ref) for ref in json.loads(refs or "[]"))
    given = json.loads(injected or "[]")
    notes = [EntryNote(ref, without_lines(ref) in cited, why, size) for ref, why, size in given]
    named = {without_lines(note.ref) for note in notes}
    notes += [EntryNote(ref, True) for ref in cited if ref not in named]
    outcome = "given" if count else "cited" if cited else "late" if late else "nothing"
    said = conversation, prompt, text, late
    return Entry(moment_text(at), "given", front_end, None, outcome, count, notes, tokens, *said)
