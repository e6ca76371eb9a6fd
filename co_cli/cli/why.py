"""`co note why`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import (
    add_filters,
    add_moment,
    filters_of,
    find_note,
    moment_of,
    open_knowledge_base,
    print_json,
    sync_first,
)
from co_cli.cli.search import add_ranking, add_source, query_of, ranking_of
from co_cli.cli.terminal import Screen, printable
from co_cli.retrieval.explain import Explanation


def add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="the query, as it was asked")
    parser.add_argument("ref", help="the note to explain")
    parser.add_argument("-n", "--limit", type=int, default=10, metavar="N", help="how many hits the search had")
    add_source(parser)
    parser.add_argument(
        "--backend", choices=("fts5", "hybrid"), help="how to search (setting knowledge_search_backend)"
    )
    add_ranking(parser)
    add_filters(parser)
    add_moment(parser)
    parser.epilog = (
        "Follows one note through a search: its rank after each step, the step in which\n"
        "it was lost if it is not in the answer, and what would rank it higher.\n\n"
        'examples:\n  co note why "how do we deploy" memory:blue-pool-first\n'
        "  co note why deploy article:runbooks/deploy --tag ops --json\n"
    )
    parser.set_defaults(run=why)


def why(options: argparse.Namespace) -> int:
    query = query_of(options.query)
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        note = find_note(kb, options.ref)
        found = kb.why(
            query,
            note.ref,
            limit=options.limit,
            sources=options.source,
            backend=options.backend,
            **ranking_of(options),
            **filters_of(options),
            **moment_of(options),
        )
    if options.json:
        print_json({**found._asdict(), "steps": [step._asdict() for step in found.steps]})
    else:
        _show(found)
    return 0 if found.rank else 1


def _show(found: Explanation) -> None:
    screen = Screen()
    screen.titled(found.title, found.ref)
    if found.rank:
        screen.wrapped(f"Rank {found.rank} (limit {found.limit}).", "  ")
    else:
        screen.wrapped(f"Not in the answer: lost in the step `{found.lost_in}`.", "  ")
    for step in found.steps:
        missed = f"not among {step.of}" if step.of else "none found"
        place = f"rank {step.rank} of {step.of}" if step.rank else missed
        screen.wrapped(f"{step.name:<8} {place}: {step.text}", "  ")
    for hint in found.hints:
        screen.wrapped(f"hint     {printable(hint)}", "  ", style="dim")
