"""`co index watch`: keep the index fresh and print what changed, one line for each batch of changes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from co_cli.cli.opening import open_knowledge_base
from co_cli.cli.terminal import ProgressBar, printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.freshness import Batch, Notice, Watcher
from co_cli.sources.origin import Origin, kind_of
from co_cli.values import moment_text

MOST_REFS = 20
"""Maximum number of refs on one line; JSON has all of them."""
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
    bar = ProgressBar("indexing")
    with open_knowledge_base(options) as kb:
        if sys.stderr.isatty():
            print(f"co index watch: {printable(kb.root)} is being watched; press Ctrl-C to stop", file=sys.stderr)

        def show(news: Batch | Notice) -> None:
            bar.done()
            print(_as_json(kb, news) if options.json else f"{time.strftime('%H:%M:%S')}  {describe(kb, news)}")
            sys.stdout.flush()

        try:
            Watcher(kb, show, poll=options.poll, progress=bar).run()
        except KeyboardInterrupt:
            return 0  # the normal way to stop
    return 3


def describe(kb: KnowledgeBase, news: Batch | Notice) -> str:
    """One line of text: the numbers of changes, and the first refs."""
    if isinstance(news, Notice):
        return printable(news.text)
    changes = _changes(kb, news)
    counts = ", ".join(f"{len(refs):,} {what}" for what, refs in changes.items() if refs)
    refs = [printable(ref) for names in changes.values() for ref in names]
    more = [f"and {len(refs) - MOST_REFS:,} more"] if len(refs) > MOST_REFS else []
    return f"{counts}: {', '.join([*refs[:MOST_REFS], *more])}"


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
    index = kb.index.of(origin)
    return [index.ref_of(path) or path for path in paths]


def _as_json(kb: KnowledgeBase, news: Batch | Notice) -> str:
    found: dict[str, object] = {"at": moment_text(time.time())}
    if isinstance(news, Notice):
        found |= {"event": news.event, "text": news.text}
    else:
        changes = _changes(kb, news)
        changes["added"] = changes.pop("new")
        found |= {"event": "changed", **changes, "took_ms": round(news.seconds * 1000, 1)}
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(found, ensure_ascii=not unicode)
