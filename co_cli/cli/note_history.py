"""`co note history`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from co_cli.cli.opening import add_limit, open_synced, print_result, result_ref
from co_cli.cli.terminal import age, size_of
from co_cli.searching.note_details import NoteHistory, note_history
from co_cli.vault.history import NoteChange

SHORT_HASH = 10


def add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note; it may be forgotten or deleted")
    add_limit(parser, 50)


def run_history(options: argparse.Namespace) -> int:
    """
    Lists when a note was created, changed, moved or removed, newest first, with
    git's commits if the vault is in a repository, and the questions that found it.

    examples:
      co note history memory:blue-pool-first
      co note history article:runbooks/deploy --json
    """
    with open_synced(options) as kb:
        found = note_history(kb.vault, result_ref(kb, options.ref), options.limit)
    lines = [f"{found.title or found.path}  {found.ref}", *_lines(found)]
    return print_result(options, found, lines)


def _lines(found: NoteHistory) -> Iterator[str]:
    if found.recalls or found.opens:
        last = age(max(found.recalled or "", found.opened or ""), time.time())
        yield f"  recalled {found.recalls:,} x, opened {found.opens:,} x, last {last}"
    if found.gone is not None:
        yield f"  gone since {found.gone}"
    for change in found.changes:
        yield f"  {change.at[:16].replace('T', ' ')}  {_text(change)}"
    if not found.changes:
        yield "  No history yet."
    if found.questions:
        yield "  found by:"
    for question in found.questions:
        times = f" ({question.times:,} x)" if question.times > 1 else ""
        yield f"  {question.at[:16].replace('T', ' ')}  {question.text}{times}"
    yield from (f"note: {problem}" for problem in found.left_out)


def _text(change: NoteChange) -> str:
    if change.source == "git":
        lines = f", +{change.lines_added} -{change.lines_deleted} lines" if change.lines_added is not None else ""
        return f"git {(change.hash or '')[:SHORT_HASH]}  {change.what} ({change.author}{lines})"
    by = change.front_end or change.author
    details = [f"by {by}"] if by else []
    details += [f"from {change.before}"] if change.before else []
    if change.size is not None and change.what != "removed":
        details.append(f"{size_of(change.size)}{f', {change.grew:+,}' if change.grew else ''}")
    if change.receipt:
        details.append(f"commit {(change.receipt.committed or 'follows')[:SHORT_HASH]}")
        details += [] if change.receipt.pushed else ["not pushed yet"]
    return f"{change.what:<8}  {(change.hash or '')[:SHORT_HASH]}  {', '.join(details)}".rstrip()
