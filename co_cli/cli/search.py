"""`co search` and `co recall`."""

from __future__ import annotations

import time

from co_cli.cli.opening import add_filters, fields_of, open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, age, count_of
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import Hit, SearchResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    Options = Any  # argparse.Namespace, or PlainQuery in its place

SYNTAX = """\
words:     all of them first, any of them if that finds too little
"a phrase" must stand as it is        -word  must not occur

examples:
  co search "how do we deploy"
  co search '"blue pool" -green' --tag deploy --since 30d
  co search latency --source article --where domain=billing --json
"""


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to look for")
    parser.add_argument("--source", action="append", choices=("memory", "article"), help="only these (repeatable)")
    _add_common(parser)
    parser.epilog = SYNTAX
    parser.set_defaults(run=search)


def add_recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to remember")
    _add_common(parser)
    parser.epilog = 'examples:\n  co recall "what does Mara prefer"\n  co recall deploy --tag ops --limit 3\n'
    parser.set_defaults(run=recall)


class PlainQuery:
    """The options of a query that names none: what argparse would say, without importing it."""

    vault = data_dir = source = tag = category = since = until = where = backend = None
    any_tag = no_sync = json = False
    limit = 10

    def __init__(self, run: Callable[[PlainQuery], int], query: list[str]) -> None:
        self.run, self.query = run, query


def search(options: Options) -> int:
    return _answer(options, options.source, whole=False)


def recall(options: Options) -> int:
    return _answer(options, ["memory"], whole=True)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--limit", type=int, default=PlainQuery.limit, metavar="N", help="at most so many (default 10)"
    )
    parser.add_argument("--backend", choices=("grep", "fts5", "hybrid"), help="how to search (setting search_backend)")
    parser.add_argument("--no-sync", action="store_true", help="do not look for changed files first")
    add_filters(parser)


def _answer(options: Options, sources: list[str] | None, whole: bool) -> int:
    query = query_of(options.query)
    with open_knowledge_base(options) as kb:
        if not options.no_sync:
            sync_first(kb, options.backend)
        found = kb.search(
            query,
            limit=options.limit,
            sources=sources,
            tags=options.tag,
            any_tag=options.any_tag,
            category=options.category,
            since=options.since,
            until=options.until,
            backend=options.backend,
            fields=fields_of(options),
        )
        if options.json:
            print_json(as_object(found))
        else:
            show_result(found, kb if whole else None)
    return 0 if found.hits else 1


def query_of(words: list[str]) -> str:
    query = " ".join(words)
    if not query.strip():
        raise InvalidInputError("the query is empty: say what to look for")
    return query


def as_object(found: SearchResult) -> dict[str, object]:
    hits: list[dict[str, object]] = [hit._asdict() for hit in found.hits]
    return {**found._asdict(), "searched": found.searched._asdict(), "hits": hits}


def show_result(found: SearchResult, whole_from: KnowledgeBase | None = None, now: float | None = None) -> None:
    """Hits for a person; with a knowledge base, each note whole."""
    screen, now = Screen(), time.time() if now is None else now
    for number, hit in enumerate(found.hits):
        if number:
            screen.line()
        screen.titled(hit.title, hit.ref)
        if hit.heading:
            screen.wrapped(hit.heading, "  ")
        body = _whole(hit, whole_from) if whole_from else None
        if body is None:
            screen.wrapped(hit.snippet, "  ", hit.marks)
        else:
            for line in body.strip().splitlines():
                screen.wrapped(line, "  ") if line else screen.line()
        screen.wrapped(_about(hit, now), "  ", style="dim")
    if not found.hits:
        screen.line(nothing_found(found))
    for reason in found.degraded:
        screen.wrapped(f"note: {reason}", style="yellow")


def nothing_found(found: SearchResult) -> str:
    searched = f"{count_of(found.searched.notes, 'note')} searched"
    if found.state == "inconclusive":
        return f"Nothing found, but not everything could be asked ({searched})."
    fresh = f", index fresh as of {found.searched.fresh_as_of}" if found.searched.fresh_as_of else ""
    return f"Nothing found: {searched}{fresh}."


def _whole(hit: Hit, kb: KnowledgeBase) -> str | None:
    try:
        return kb.note(hit.ref).body
    except KnowledgeError:
        return None  # gone since it was indexed: the snippet is what is left


def _about(hit: Hit, now: float) -> str:
    tags = " ".join(f"#{tag}" for tag in hit.tags)
    reasons = " ".join(f"{name} {value:.2f}" for name, value in hit.signals.items())
    return " · ".join(part for part in (tags, age(hit.created, now), f"{hit.score:.2f} ({reasons})") if part)
