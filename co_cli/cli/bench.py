"""`co bench`: measure this machine. Times differ everywhere, so what counts are ratios to a yardstick of one run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from co_cli.benchmarks.measuring import BenchRow
from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen
from co_cli.errors import InvalidInputError

NOTES = 10_000


class Bench(NamedTuple):
    """One thing that can be measured."""

    summary: str
    run: Callable[[argparse.Namespace], list[BenchRow]]


def add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=tuple(BENCHES), metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument(
        "--notes",
        type=_sizes,
        metavar="N",
        help="how many notes to generate (default 10,000); N,N,... shows the growth",
    )
    parser.add_argument(
        "--rows", type=int, metavar="N", help="of log: how many searches; of scan: vectors; of words: passages"
    )
    listing = "\n".join(f"  {name:<10}{bench.summary}" for name, bench in BENCHES.items())
    parser.epilog = f"{listing}\n\nWorks in a temporary folder and removes it; your notes are not touched.\n"
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from co_cli.benchmarks.measuring import growth

    bench, sizes = BENCHES[options.name], options.notes
    tables: dict[int, list[BenchRow]] = {}
    for size in sizes or [None]:
        options.notes = size
        tables[size or 0] = bench.run(options)
    tables = dict(sorted(tables.items()))
    rows = [row for table in tables.values() for row in table]
    grown = growth(tables)
    if options.json:
        shown = [{**row._asdict(), "kept": row.kept} for row in rows]
        print_json({"bench": options.name, "rows": shown, "growth": [row._asdict() for row in grown]})
    else:
        for size, table in tables.items():
            _show(table, f"{size:,} notes" if len(tables) > 1 else "")
        if grown:
            _show(grown, "growth: how many times as much, and that beside how many times as many notes")
    return 0


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _of_notes(module: str, name: str) -> Callable[[argparse.Namespace], list[BenchRow]]:
    """A bench that takes how many notes there are, imported when it is run."""

    def run(options: argparse.Namespace) -> list[BenchRow]:
        from importlib import import_module

        bench = getattr(import_module(f"co_cli.benchmarks.{module}"), name)
        return bench(_positive("--notes", options.notes, NOTES), ProgressBar("indexing"))

    return run


def _sync(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.sync import bench_sync

    return bench_sync(_positive("--notes", options.notes, NOTES), lambda: ProgressBar("indexing"))


def _log(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.log import ROWS, bench_log

    notes, rows = _positive("--notes", options.notes, 2_000), _positive("--rows", options.rows, ROWS)
    return bench_log(notes, rows, ProgressBar("writing"))


def _watch(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.watch import NOTES, bench_watch

    return bench_watch(_positive("--notes", options.notes, NOTES), ProgressBar("indexing"))


def _scan(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.scan import ROWS, bench_scan

    return bench_scan(_positive("--rows", options.rows, options.notes or ROWS))


def _words(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.words import ROWS, bench_words

    return bench_words(_positive("--rows", options.rows, options.notes or ROWS), ProgressBar("writing"))


def _skills(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.cli.bench_skills import bench_skills

    if options.notes is not None:
        raise InvalidInputError("--notes: `co bench skills` has a thousand skills, and no notes")
    return bench_skills(ProgressBar("asking"))


def _feedback(options: argparse.Namespace) -> list[BenchRow]:
    from co_cli.benchmarks.feedback import bench_feedback

    if options.notes is not None:
        raise InvalidInputError("--notes: `co bench feedback` asks the sample vault")
    return bench_feedback(ProgressBar("asking"))


BENCHES = {
    "sync": Bench("the first sync, one without changes and one after ten edits", _sync),
    "first": Bench(
        "the first sync beside a plain implementation, and beside reading", _of_notes("first", "bench_first")
    ),
    "embed": Bench(
        "the first sync beside embedding the same texts with a plain loop", _of_notes("embed", "bench_embed")
    ),
    "remember": Bench(
        "one save in a vault of many notes beside writing the file alone", _of_notes("remember", "bench_remember")
    ),
    "search": Bench("one search in a process that stays, beside a simple hybrid", _of_notes("search", "bench_search")),
    "scan": Bench("a scan of vectors beside reading as much memory", _scan),
    "words": Bench("ranking by words where there are many passages", _words),
    "lancedb": Bench("one search beside LanceDB over the same rows, if installed", _of_notes("peers", "bench_lancedb")),
    "ripgrep": Bench("one search in a fresh process beside ripgrep, if installed", _of_notes("peers", "bench_ripgrep")),
    "footprint": Bench(
        "search.db beside the notes, and the memory of a process", _of_notes("footprint", "bench_footprint")
    ),
    "sources": Bench("a search of one source where there is another as large", _of_notes("sources", "bench_sources")),
    "cold": Bench("one search in a fresh process beside a bare Python start", _of_notes("cold", "bench_cold")),
    "log": Bench("a query log of a million rows: `co stats` and searches", _log),
    "watch": Bench("a watcher: how soon a save is found, and what waiting costs", _watch),
    "mcp": Bench("the start of the MCP server beside importing its SDK", _of_notes("mcp", "bench_mcp")),
    "feedback": Bench("what judgements of half of the questions do for the other half", _feedback),
    "skills": Bench("a thousand skills found on demand beside all of them in the prompt", _skills),
}


def _positive(option: str, value: int | None, default: int) -> int:
    if value is not None and value < 1:
        raise InvalidInputError(f"{option} is at least 1, not {value}")
    return default if value is None else value


def _show(rows: list[BenchRow], title: str = "") -> None:
    screen = Screen()
    width = max(len(row.name) for row in rows)
    if title:
        screen.line(screen.paint(title, "bold"))
    for row in rows:
        text = f"{row.name:<{width}}  {row.value:>12,.3f} {row.unit:<8}"
        if row.skipped:
            text = f"{row.name:<{width}}  skipped: {row.skipped}"
        if row.ratio is not None:
            text += f"{row.ratio:>8.2f} x"
        if row.kept is not None:
            verdict = screen.paint("kept", "green") if row.kept else screen.paint("missed", "red")
            text += f"  goal {row.goal:g} x: {verdict}"
        screen.line(text.rstrip())
