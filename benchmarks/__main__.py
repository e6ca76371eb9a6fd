"""`python -m benchmarks NAME`: measure cost as ratios within one run, and quality on question sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from benchmarks.environments import CACHE, Environments
from benchmarks.measuring import BenchRow, growth
from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen
from co_cli.ground.errors import KnowledgeError


class Bench(NamedTuple):
    """A function of a module with the same name. `notes` is the default number of generated notes."""

    summary: str
    notes: int | None = None
    sets: bool = False
    """Does it take question sets or files? With `notes` it does so instead of generating them."""
    programs: bool = False
    """Does it run other programs, each in an environment of its own?"""


COST = {
    "sync": Bench("first sync, one without changes, and one after ten edits", 10_000),
    "first": Bench("first sync, compared with a plain implementation", 10_000),
    "remember": Bench("one save, compared with writing the file alone", 10_000),
    "search": Bench("one warm search, compared with the `simple` baseline", 10_000),
    "cold": Bench("one search in a new process, with and without the encoder", 10_000),
    "reader": Bench("one search whose first 20 results are read", 10_000),
    "waiting": Bench("one search while notes wait for vectors, compared with an idle one", 5_000),
    "languages": Bench("provider `languages`: embedding, loading, a cold search, sizes", 1_000),
    "footprint": Bench("the size of search.db and the memory of a process", 10_000),
    "watch": Bench("how soon a save is found, and what an idle watcher costs", 2_000),
    "mcp": Bench("the start of the MCP server, compared with its SDK", 10_000),
    "web": Bench("the page in a browser: opening it, typing, a changed file", 10_000),
    "lancedb": Bench("one search, compared with LanceDB if it is installed", 10_000),
    "ripgrep": Bench("one cold search, compared with ripgrep if it is installed", 10_000),
    "peers": Bench("other MCP servers: tools, start, memory, searches", sets=True, programs=True),
    "real_model": Bench("what commands do with a real, very weak model", programs=True),
    "team": Bench("PostgreSQL: first sync, queries, HNSW's recall; SQLite's answers", 10_000, sets=True),
    "team_load": Bench("64 clients search and 8 save for two minutes, on two servers", 2_000),
    "team_search": Bench("16 clients search, without the reader and with it", 6_666),
    "team_saves": Bench("20 clients save, through one server and through two", 2_000),
    "team_mix": Bench("50 clients search, read, save and use MCP, on two servers", 20_000),
    "team_push": Bench("a push of many files while two clients save, on two servers", 5_000),
    "skills": Bench("finding one of 1,000 skills, compared with listing all"),
}
QUALITY = {
    "crowd": Bench("questions about small vaults among up to 20,000 other notes", sets=True),
    "precision": Bench("do agents get the notes that answer, and no others?", sets=True),
    "year": Bench("a year of facts that change and expire: is the valid one first?"),
    "hooks": Bench("a month of a coder's prompts: who gets notes, and are they right?", 2_000),
    "feedback": Bench("what ratings of half the questions do for the other half"),
    "long_texts": Bench("do questions find the right part of a long text?", sets=True),
    "turns": Bench("are turns of conversations found as well as notes?", sets=True),
    "layout": Bench("how many nearest neighbours does the map of the page keep?", sets=True),
    "absence": Bench("fit how sure a search is that something answers", sets=True),
    "projection": Bench("learn the projection of `languages` from translations", sets=True),
    "held_out": Bench("choose a number on all families of sets but one, score that one", sets=True),
    "compare": Bench("is the second `co eval --json` file better than the first?", sets=True),
}
BENCHES = {**COST, **QUALITY}
EPILOG = """\
cost (ratios to something measured in the same run):
{cost}

quality:
{quality}

Everything works in a temporary folder; your notes are not touched.
Several sizes, as in --notes 1000,10000, also show how each figure grows.

examples:
  python -m benchmarks search --notes 1000,10000
  python -m benchmarks held_out sets/scifact sets/cosqa sets/locomo_obs
  python -m benchmarks compare before.json after.json
  python -m benchmarks peers sets/xquad_en --install
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    bench = BENCHES[options.name]
    if options.sets and not bench.sets:
        parser.error(f"{options.name} takes no folders")
    if bench.sets and not options.sets and bench.notes is None:
        parser.error(f"{options.name} needs folders or files")
    if options.sets and options.notes:
        parser.error("name folders, or say how many notes to generate")
    if options.install and not bench.programs:
        parser.error(f"{options.name} installs nothing")
    if options.notes and bench.notes is None:
        parser.error(f"{options.name} generates no notes")
    module = import_module(f"benchmarks.{MODULES.get(options.name, options.name)}")
    run = getattr(module, f"bench_{options.name}")
    tables: dict[int, list[BenchRow]] = {}
    try:
        for notes in sorted(options.notes or [bench.notes or 0]):
            given = [options.sets] if options.sets else [notes] if bench.notes else []
            bar = ProgressBar(options.name)
            places = [Environments(options.environments, options.install)] if bench.programs else []
            tables[notes] = run(*given, bar, *places)
            bar.done()
    except KnowledgeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    grown = growth(tables)
    if options.json:
        rows = [{**row._asdict(), "kept": row.kept} for table in tables.values() for row in table]
        print_json({"bench": options.name, "rows": rows, "growth": [row._asdict() for row in grown]})
        return 0
    for notes, table in tables.items():
        _show(table, f"{notes:,} notes" if len(tables) > 1 else "")
    if grown:
        _show(grown, "growth: the factor, and its ratio to the growth in notes")
    return 0


MODULES = {
    "reader": "reader.speed",
    "lancedb": "peers",
    "ripgrep": "peers",
    "team_saves": "team_load",
    "team_search": "team_load",
    "team_mix": "team_load",
    "compare": "bootstrap",
}


def make_parser() -> argparse.ArgumentParser:
    lists = ("\n".join(f"  {name:<12}{bench.summary}" for name, bench in part.items()) for part in (COST, QUALITY))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what co-cli costs on this machine, and how good it is on question sets.",
        epilog=EPILOG.format(cost=next(lists), quality=next(lists)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHES, metavar="NAME", help="a benchmark of the lists below")
    parser.add_argument("sets", nargs="*", metavar="SET", help="question sets in BEIR's layout, or files to compare")
    parser.add_argument("--notes", type=_counts, metavar="N[,N...]", help="how many to generate")
    parser.add_argument("--environments", metavar="FOLDER", default=CACHE, help="of other programs (default: a cache)")
    parser.add_argument("--install", action="store_true", help="install there what is missing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise ValueError("at least 1")
    return counts


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


if __name__ == "__main__":
    sys.exit(main())
