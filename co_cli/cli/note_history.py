"""`co note history`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from co_cli.cli.opening import add_limit, find_note, open_synced, print_result
from co_cli.cli.terminal import age, size_of
from co_cli.errors import NoteMissingError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.refs import path_of, source_ref, without_lines
from co_cli.service.history import History, NoteChange, history_of
from co_cli.values import moment_text

SHORT_HASH = 10


def add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note; it may be forgotten or deleted")
    add_limit(parser, 50)


def run_history(options: argparse.Namespace) -> int:
    """
    Lists when a note was created, changed, moved or removed, newest first, with
    git's commits if the vault is in a repository.

    examples:
      co note history memory:blue-pool-first
      co note history article:runbooks/deploy --json
    """
    with open_synced(options) as kb:
        index, ref, title, path, lost = _place(kb, options.ref)
        found = history_of(kb.activity, index, path, options.limit)
        if lost is not None and not found.changes:
            raise lost
        if lost is not None and found.head:
            ref, title = index.ref_of(found.path) or source_ref(found.path), found.head.title
    lines = [f"{title or found.path}  {ref}", *_lines(found)]
    return print_result(options, as_object(found, ref, title), lines)


def _place(kb: KnowledgeBase, ref: str) -> tuple[KnowledgeIndex, str, str, str, UnknownRefError | None]:
    """Index, ref, title and path; for a note that does not exist, the error to raise if it has no history either."""
    try:
        note = find_note(kb, ref)
    except UnknownRefError as error:
        asked = error.ref if isinstance(error, NoteMissingError) else without_lines(ref.strip())
        path = path_of(asked) or asked
        return kb.index, source_ref(path), "", path, error
    origin, path = kb.lookup.locate(note.ref)
    index = kb.index if origin == kb.index.origin else kb.index.of(origin)
    return index, note.ref, note.title, path, None


def as_object(found: History, ref: str, title: str) -> dict[str, object]:
    head: dict[str, Any] = found.head._asdict() if found.head else {}
    moments = ("updated", "gone", "recalled", "opened")
    return {
        **{"ref": ref, "title": title, "path": found.path, "hash": head.get("hash")},
        **{name: None if head.get(name) is None else moment_text(head[name]) for name in moments},
        **{name: head.get(name, 0) for name in ("recalls", "opens")},
        "changes": [{**change._asdict(), "at": moment_text(change.at)} for change in found.changes],
        "left_out": found.problems,
    }


def _lines(found: History) -> Iterator[str]:
    head = found.head
    if head and (head.recalls or head.opens):
        last = age(moment_text(max(head.recalled or 0.0, head.opened or 0.0)), time.time())
        yield f"  recalled {head.recalls:,} x, opened {head.opens:,} x, last {last}"
    if head and head.gone is not None:
        yield f"  gone since {moment_text(head.gone)}"
    for change in found.changes:
        yield f"  {moment_text(change.at)[:16].replace('T', ' ')}  {_text(change)}"
    if not found.changes:
        yield "  No history yet."
    yield from (f"note: {problem}" for problem in found.problems)


def _text(change: NoteChange) -> str:
    if change.source == "git":
        lines = f", +{change.lines_added} -{change.lines_deleted} lines" if change.lines_added is not None else ""
        return f"git {(change.hash or '')[:SHORT_HASH]}  {change.what} ({change.author}{lines})"
    details = [f"by {change.front_end}"] if change.front_end else []
    details += [f"from {change.before}"] if change.before else []
    if change.size is not None and change.what != "removed":
        details.append(f"{size_of(change.size)}{f', {change.grew:+,}' if change.grew else ''}")
    return f"{change.what:<8}  {(change.hash or '')[:SHORT_HASH]}  {', '.join(details)}".rstrip()
