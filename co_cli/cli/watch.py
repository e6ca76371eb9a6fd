"""`co index watch`: keep the index fresh and print what changed, one line for each batch of changes."""

from __future__ import annotations

import argparse
import os
import queue
import sys
import time

from co_cli.cli.opening import open_knowledge_base
from co_cli.cli.terminal import ProgressBar, Screen, columns, printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.watching import Batch, Notice, Watcher
from co_cli.sources.origin import Origin, kind_of
from co_cli.values import moment_text

MOST_REFS = 20
"""Maximum number of refs on one line; JSON has all of them."""
News = Batch | Notice

EPILOG = """\
Files that you save, move or delete are searchable half a second later. A line
is printed for each batch of changes, and nothing while nothing happens:

  12:03:11  2 changed, 1 new: memory:blue-first, article:park, memory:oak

`co mcp` and `co chat` watch by themselves, and `co search` checks the files
each time. So you need this only for programs that read search.db, and to see
what changes. Press Ctrl-C to stop.

examples:
  co index watch
  co index watch --json | jq --unbuffered -r '.added[]?'
  co index watch --poll          on a network drive
"""


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--poll", action="store_true", help="check all files every two seconds")
    parser.epilog = EPILOG
    parser.set_defaults(run=watch)


def watch(options: argparse.Namespace) -> int:
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    bar = ProgressBar("indexing")
    with open_knowledge_base(options) as kb:
        if sys.stderr.isatty():
            print(f"co index watch: {printable(kb.root)} is being watched; press Ctrl-C to stop", file=sys.stderr)
        try:
            with Watcher(kb, news.put, poll=options.poll, progress=bar) as watcher:
                return _follow(kb, watcher, news, bar, options.json)
        except KeyboardInterrupt:
            return 0  # the normal way to stop


def _follow(kb: KnowledgeBase, watcher: Watcher, news: queue.SimpleQueue[News], bar: ProgressBar, as_json: bool) -> int:
    """Print the news until the watcher ends; by itself it does so only after an unexpected error."""
    while True:
        try:
            one = news.get(timeout=0.5)  # Windows notices Ctrl-C in between
        except queue.Empty:
            if not watcher.alive:
                return 3
            continue
        bar.done()
        now = time.time()
        if as_json:
            _print_object(_as_object(kb, one, now))
        else:
            moment = time.strftime("%H:%M:%S", time.localtime(now))
            print(f"{moment}  {describe(kb, one, len(moment) + 2)}")
        sys.stdout.flush()


def describe(kb: KnowledgeBase, news: News, indent: int) -> str:
    if isinstance(news, Notice):
        return printable(news.text)
    changes = _changes(kb, news)
    counts = ", ".join(f"{len(refs):,} {what}" for what, refs in changes.items() if refs)
    refs = [ref for names in changes.values() for ref in names]
    screen = Screen()
    room = screen.width - indent - columns(counts) - 2 if screen.interactive else sys.maxsize
    return f"{counts}: {_fitting(refs, room)}"


def _fitting(refs: list[str], room: int) -> str:
    """As many refs as fit on the line, and the number of the others."""
    shown, used = list[str](), 0
    for ref in refs[:MOST_REFS]:
        text = printable(ref)
        left = len(refs) - len(shown) - 1
        used += columns(text) + 2
        if used + (len(f"and {left:,} more") if left else 0) > room and shown:
            break
        shown.append(text)
    rest = len(refs) - len(shown)
    return ", ".join(shown) + (f", and {rest:,} more" if rest else "")


def _changes(kb: KnowledgeBase, batch: Batch) -> dict[str, list[str]]:
    """Refs by kind of change. Notes that are gone have no ref any more, so their path is shown."""
    found: dict[str, list[str]] = {"changed": [], "new": [], "moved": [], "removed": [], "missing": []}
    for origin, report in batch.reports:
        gone = "missing" if kind_of(origin).keeps_missing else "removed"
        found["changed"] += _refs(kb, origin, report.changed)
        found["new"] += _refs(kb, origin, report.added)
        found["moved"] += _refs(kb, origin, [new for _, new in report.moved])
        for name, paths in ((gone, report.gone), ("removed", report.excluded)):
            found[name] += [os.path.join(origin.label, path) if origin.name else path for path in paths]
        found["missing"] += report.kept
    return found


def _refs(kb: KnowledgeBase, origin: Origin, paths: list[str]) -> list[str]:
    index = kb.index if origin == kb.index.origin else kb.index.of(origin)
    return [index.ref_of(path) or path for path in paths]


def _as_object(kb: KnowledgeBase, news: News, now: float) -> dict[str, object]:
    at = moment_text(now)
    if isinstance(news, Notice):
        return {"at": at, "event": news.event, "text": news.text}
    changes = _changes(kb, news)
    changes["added"] = changes.pop("new")
    return {"at": at, "event": "changed", **changes, "took_ms": round(news.seconds * 1000, 1)}


def _print_object(value: dict[str, object]) -> None:
    """One object per line."""
    import json

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not unicode))
