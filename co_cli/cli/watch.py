"""`co watch`: keep the index up to the files, and say what changed, a line at a time."""

from __future__ import annotations

import argparse
import os
import queue
import sys
import time

from co_cli.cli.opening import open_knowledge_base
from co_cli.cli.terminal import ProgressBar, Screen, columns, printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.moments import moment_text
from co_cli.service.news import Batch, News, Notice
from co_cli.service.watching import Watcher
from co_cli.sources.origin import Origin, kind_of

MOST_REFS = 20
"""As many are named on one line; JSON names all."""

EPILOG = """\
Files that you save, move or delete are searchable half a second later. A line
is printed for each batch of changes, and nothing while nothing happens:

  12:03:11  2 changed, 1 new: memory:blue-first, article:park, memory:oak

`co mcp` and `co chat` watch by themselves; `co search` looks at the files when
it is asked. So this is for programs that read search.db, for seeing what is
noticed, and for vaults of 20,000 notes and more: while they are watched, every
command asks the watcher and spares the walk. Ctrl-C ends it.

examples:
  co watch
  co watch --json | jq --unbuffered -r '.added[]?'
  co watch --poll          on a drive whose changes the system does not tell of
"""


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--poll", action="store_true", help="look at the files every two seconds")
    parser.epilog = EPILOG
    parser.set_defaults(run=watch)


def watch(options: argparse.Namespace) -> int:
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    bar = ProgressBar("indexing")
    with open_knowledge_base(options) as kb:
        if sys.stderr.isatty():
            print(f"co watch: {printable(kb.root)} is kept up to date; Ctrl-C ends it", file=sys.stderr)
        try:
            with Watcher(kb, news.put, poll=options.poll, progress=bar) as watcher:
                return _follow(kb, watcher, news, bar, options.json)
        except KeyboardInterrupt:
            return 0  # the way to end it


def _follow(kb: KnowledgeBase, watcher: Watcher, news: queue.SimpleQueue[News], bar: ProgressBar, as_json: bool) -> int:
    """Print what is heard until the watcher ends, which it does of itself only when something is broken."""
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
            print(f"{moment}  {_told(kb, one, len(moment) + 2)}")
        sys.stdout.flush()


def _told(kb: KnowledgeBase, news: News, indent: int) -> str:
    if isinstance(news, Notice):
        return printable(news.text)
    changes = _changes(kb, news)
    counts = ", ".join(f"{len(refs):,} {what}" for what, refs in changes.items() if refs)
    refs = [ref for names in changes.values() for ref in names]
    screen = Screen()
    room = screen.width - indent - columns(counts) - 2 if screen.interactive else sys.maxsize
    return f"{counts}: {_fitting(refs, room)}"


def _fitting(refs: list[str], room: int) -> str:
    """As many as stand on the line, and how many more there are."""
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
    """Refs by what became of them. What is gone has no ref any more: it is named by its file."""
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
    """One object a line."""
    import json

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not unicode))
