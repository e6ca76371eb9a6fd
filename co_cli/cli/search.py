"""`co search` and `co note recall`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from co_cli.cli.opening import (
    add_filters,
    add_moment,
    filters_of,
    mention,
    moment_of,
    narrowed_by,
    open_knowledge_base,
    print_json,
    sync_first,
)
from co_cli.cli.terminal import Screen, age, count_of
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.profiles import PROFILES, check_weights
from co_cli.service.searching import learned_in_use
from co_cli.settings import this_process
from co_cli.values import LOWEST_SHOWN, Hit, SearchResult, worth_showing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    Options = Any  # argparse.Namespace, or PlainQuery in its place

STRONGEST = 2
"""Parts of a score that are shown without --explain."""
SIGNALS = {
    "name": "the query is its title, an alias, its file name or its ref",
    "meaning": "the cosine between the query and the passage",
    "words": "bm25 divided by the best bm25, less if only a few of the words occur",
    "reader": "the score of a model that read query and passage",
    "recency": "how new it is, or how far into its validity window",
    "importance": "its importance field, or how many notes mention it",
    "severity": "its severity field",
    "tags": "tags that the query and the note share",
    "domain": "the query names its domain",
    "links": "how near it is to the best hits over links",
    "use": "how often it was found and opened",
    "tier": "which vault it is in",
}
NO_NOTES_YET = (
    "Nothing found: there are no notes here yet. `co remember TEXT` saves one, `co add DIR` makes a folder searchable, "
    "`co demo` searches a sample."
)
NO_WORDS = "Nothing found: the query has no letters or digits. `--backend grep` searches for other characters."
SYNTAX = """\
query syntax:
  any words               notes with any of them, and notes close in meaning
  "a phrase"              must be there as it is
  -word                   must not occur
  tag:ops or #ops         only notes with this tag
  path:guides file:2026   only notes whose path or file name has this
  last week, since May    only notes of that time

examples:
  co search "how do we deploy"
  co search '"blue pool" -green' --tag deploy --since 30d
  co search latency --source article --where domain=billing --json
"""


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source",
        action="append",
        metavar="SOURCE",
        help="only this: memory, article, folder, obsidian, or one that `co source list` lists (repeatable)",
    )


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to look for")
    add_source(parser)
    _add_common(parser)
    parser.epilog = SYNTAX
    parser.set_defaults(run=search)


def add_recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to remember")
    _add_common(parser)
    parser.epilog = 'examples:\n  co note recall "what does Mara prefer"\n  co note recall deploy --tag ops --limit 3\n'
    parser.set_defaults(run=recall)


class PlainQuery:
    """The options of a query that names none: what argparse would say, without importing it."""

    vault = data_dir = source = tag = category = since = until = as_of = where = backend = profile = weights = None
    min_score = None
    any_tag = outdated = no_sync = json = explain = verbose = no_words = no_meaning = prefix = False
    limit = 10
    last = False
    """Does the process end with this query?"""

    def __init__(self, run: Callable[[PlainQuery], int], query: list[str]) -> None:
        self.run, self.query = run, query


def search(options: Options) -> int:
    return _answer(options, options.source)


def recall(options: Options) -> int:
    return _answer(options, ["memory"])


def add_ranking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), metavar="NAME", help=f"how to rank: {', '.join(PROFILES)}"
    )
    parser.add_argument(
        "--weights", metavar="W", help="weights that replace the profile's: words=0.5,meaning=0.5,recency=0.2"
    )
    parser.add_argument("--min-score", type=float, metavar="S", help="leave out hits with a lower score")
    parser.add_argument("--no-words", action="store_true", help="search by meaning alone")
    parser.add_argument("--no-meaning", action="store_true", help="search by words alone")
    parser.add_argument("--prefix", action="store_true", help="the last word may be the beginning of one")


def read_weights(text: str) -> dict[str, float]:
    """`words=0.3,recency=0.2`, as it is typed on a command line."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidInputError(f"weights are NAME=NUMBER, such as words=0.3,recency=0.2, not {part!r}") from None
    return check_weights(found)


def ranking_of(options: Options) -> dict[str, Any]:
    """What `add_ranking` added, as a search takes it."""
    return {
        "profile": options.profile,
        "weights": read_weights(options.weights) if options.weights else None,
        "min_score": options.min_score,
        "words": not options.no_words,
        "meaning": not options.no_meaning,
        "prefix": options.prefix,
    }


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--limit", type=int, default=PlainQuery.limit, metavar="N", help="maximum number of results (default 10)"
    )
    parser.add_argument(
        "--backend", choices=("grep", "fts5", "hybrid"), help="how to search (setting knowledge_search_backend)"
    )
    add_ranking(parser)
    parser.add_argument("--explain", action="store_true", help="show every part of each score, and what it means")
    parser.add_argument("--no-sync", action="store_true", help="do not look for changed files first")
    add_filters(parser)
    add_moment(parser)


def _answer(options: Options, sources: list[str] | None) -> int:
    query, recalls = query_of(options.query), options.run is recall
    ranking = {**ranking_of(options), **moment_of(options), "backend": options.backend}
    with open_knowledge_base(options) as kb:
        if not options.no_sync:
            sync_first(kb, options.backend)
        found = kb.search(query, limit=options.limit, sources=sources, **ranking, **filters_of(options))
        if options.json:
            print_json(as_object(found))
        else:
            show_result(found, kb if recalls else None, explain=options.explain, linked=bool(kb.index.linked))
            if found.state == "absent" and narrowed_by(options) and (found.searched.notes or kb.index.linked):
                from co_cli.cli.narrowing import say_unused, say_without_filters  # rarely needed

                say_unused(Screen(), kb, options.tag)
                wider = kb.search(query, limit=1, sources=["memory"] if recalls else None, **ranking)
                say_without_filters(wider, narrowed_by(options))
            if options.explain:
                _say_if_learned(kb, ranking)
        sys.stdout.flush()
        if this_process.chatty:
            numbers = (found.backend, found.state, len(found.hits), found.searched.notes, found.took_ms)
            mention("searched by %s: %s, %d hits of %d notes, %s ms", *numbers)
        kb.track(found)  # after the answer is shown, so that nobody waits for it
        if isinstance(options, PlainQuery) and options.last:
            kb.engine.database.leave()
    return 0 if found.state == "found" else 1


def query_of(words: list[str]) -> str:
    query = " ".join(words)
    if not query.strip():
        raise InvalidInputError("the query is empty: say what to look for")
    return query


def as_object(found: SearchResult) -> dict[str, object]:
    hits: list[dict[str, object]] = [hit._asdict() for hit in found.hits]
    return {**found._asdict(), "searched": found.searched._asdict(), "hits": hits}


def show_result(
    found: SearchResult,
    whole_from: KnowledgeBase | None = None,
    now: float | None = None,
    explain: bool = False,
    linked: bool = False,
) -> None:
    """Print hits; with a knowledge base, whole notes. `linked`: whether there are sources besides the vault."""
    screen, now, hits = Screen(), time.time() if now is None else now, worth_showing(found)
    if found.state != "found":
        screen.wrapped(nothing_found(found, linked))
        if hits:
            screen.line()
    for number, hit in enumerate(hits):
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
        screen.wrapped(_about(hit, now, explain), "  ", style="dim")
    if explain and hits:
        screen.line()
        for name, meaning in SIGNALS.items():
            if any(name in hit.signals for hit in hits):
                screen.wrapped(f"{name:<9} {meaning}", style="dim")
    for what in found.understood:
        screen.wrapped(what, style="dim")
    if explain and hits and found.confidence is not None:
        screen.wrapped(f"confidence {found.confidence:.2f} that something here is about it", style="dim")
    if found.suggestions and found.state != "found":
        screen.wrapped(f"Words that occur here: {', '.join(found.suggestions)}?")
    for reason in found.degraded:
        screen.wrapped(f"note: {reason}", style="yellow")


def nothing_found(found: SearchResult, linked: bool = False) -> str:
    searched = f"{count_of(found.searched.notes, 'note')} searched"
    if found.state == "inconclusive":
        return f"Nothing found, but not everything could be asked ({searched})."
    fresh = f", index fresh as of {found.searched.fresh_as_of}" if found.searched.fresh_as_of else ""
    if not found.searched.notes and not linked:
        return NO_NOTES_YET
    if not any(map(str.isalnum, found.query)):
        return NO_WORDS
    if worth_showing(found):
        return f"Nothing here clearly answers that: {searched}{fresh}. The nearest:"
    return f"Nothing found: {searched}{fresh}."


def _whole(hit: Hit, kb: KnowledgeBase) -> str | None:
    try:
        return kb.note(hit.ref).body
    except KnowledgeError:
        return None  # gone since it was indexed


def _about(hit: Hit, now: float, explain: bool) -> str:
    tags = " ".join(f"#{tag}" for tag in hit.tags)
    parts = sorted(hit.signals.items(), key=lambda part: -part[1])
    if not parts:
        score = ""  # listed, not ranked
    elif explain:
        score = f"{hit.score:.4f} = " + " + ".join(f"{name} {value:.4f}" for name, value in parts)
    else:
        strongest = [part for part in parts if part[1] >= LOWEST_SHOWN][:STRONGEST] or parts[:1]
        score = f"{hit.score:.2f} ({', '.join(f'{name} {value:.2f}' for name, value in strongest)})"
    gone = "missing at its origin" if hit.missing else ""
    weak = "weak match" if hit.weak else ""
    return " · ".join(part for part in (tags, age(hit.created, now), gone, weak, score) if part)


def _say_if_learned(kb: KnowledgeBase, ranking: dict[str, Any]) -> None:
    learned = learned_in_use(kb, ranking["profile"], ranking["weights"])
    if learned is not None:
        weights = f"meaning {learned['meaning']:.2f}, words {learned['words']:.2f}"
        Screen().wrapped(f"weights   {weights}: learned from feedback (`co feedback tune`)", style="dim")
