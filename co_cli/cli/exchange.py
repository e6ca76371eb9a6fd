"""`co data import` and `co data export`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING

from co_cli.cli.opening import add_filters, filters_of, open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import ProgressBar, Screen, columns, count_of, printable, size_of
from co_cli.errors import InvalidInputError
from co_cli.values import ON_CONFLICT

if TYPE_CHECKING:
    from co_cli.importers import ImportReport, Receipt

FORMATS = ("obsidian", "basic-memory", "mem0", "claude", "chatgpt", "co")
INDEXED = "fts5"
"""An export lists notes from the index, even if searches do not use it."""
OUTCOMES = ("created", "updated", "unchanged", "skipped", "forgotten", "failed")
WOULD_BE = {"created": "new", "updated": "changed"}
"""What the outcomes are called before anything is written."""
SHOWN = 5
LONGEST_SHOWN = 80


def add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("path", nargs="+", metavar="FILE|DIR", help="the zip as downloaded, the folder, or one file")
    parser.add_argument("-y", "--yes", action="store_true", help="write; without it you only see what would be done")
    parser.add_argument(
        "--on-conflict", choices=ON_CONFLICT, help="changed here and there: leave yours (default), replace it, or stop"
    )
    parser.add_argument(
        "--trust", action="store_true", help="the files are your own words (obsidian, basic-memory, co)"
    )
    parser.epilog = (
        "chatgpt, claude  conversations become articles, memories become memories\n"
        "mem0             memories: JSON, JSON Lines, or the zip of OpenMemory\n"
        "obsidian, basic-memory\n"
        "                 the notes are copied into articles/, names and text as they are\n"
        "co               what `co data export` wrote\n\n"
        "Import an Obsidian vault when you leave Obsidian. If you keep writing there,\n"
        "`co add DIR` reads it in place instead.\n"
        "You can repeat an import: notes are not duplicated, your changes are not\n"
        "overwritten, and forgotten notes do not come back.\n\n"
        "examples:\n  co data import chatgpt export.zip\n  co data import chatgpt export.zip --yes\n"
        "  co data import claude ~/.claude/projects/app/memory --yes\n"
    )
    parser.set_defaults(run=import_)


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", choices=("memory", "article"), help="only memories or only articles")
    parser.add_argument(
        "--to", metavar="DIR|FILE", help="a new or empty folder, a new .zip or .jsonl; - is standard output"
    )
    parser.add_argument("--format", choices=("markdown", "jsonl"), help="default: from the name of --to")
    add_filters(parser)
    parser.epilog = (
        "Markdown is a byte-for-byte copy in the same folders. JSONL has one object per\n"
        "note. Nothing is overwritten. `co data import co` imports both again.\n\n"
        "examples:\n  co data export --to notes-2026\n  co data export --to backup.zip\n"
        "  co data export memory --tag deploy --to - | jq .title\n"
    )
    parser.set_defaults(run=export)


def import_(options: argparse.Namespace) -> int:
    from co_cli.importers import import_export  # --help does without readers and parsers

    with open_knowledge_base(options) as kb:
        bars: list[ProgressBar] = []

        def stage(verb: str) -> ProgressBar:
            for bar in bars:
                bar.done()
            bars.append(ProgressBar(verb))
            return bars[-1]

        try:
            report = import_export(
                kb, options.format, options.path, options.yes, options.on_conflict or "skip", options.trust, stage
            )
        finally:
            for bar in bars:
                bar.done()
    failed = [receipt for receipt in report.receipts if receipt.outcome == "failed"]
    troubles = [(trouble.place, trouble.problem) for trouble in report.troubles]
    troubles += [(receipt.origin, receipt.detail) for receipt in failed]
    code = 2 if troubles else 0
    if options.json:
        print_json(_as_json(options, report))
        return code
    for place, problem in troubles:
        print(printable(f"co: {place}: {problem}"), file=sys.stderr)
    if report.receipts:
        _tell(Screen(), options, report)
    return code


def export(options: argparse.Namespace) -> int:
    from co_cli.importers import export_notes

    if not options.to:
        raise InvalidInputError("say where to: --to DIR, --to FILE.zip, --to FILE.jsonl, or --to - for standard output")
    if options.to == "-" and options.json:
        raise InvalidInputError("--json reports about an export, and --to - prints JSON already: leave one of them out")
    with open_knowledge_base(options) as kb:
        sync_first(kb, INDEXED)
        notes = kb.notes(options.source, **filters_of(options))
        if not notes:
            print("No notes to export.", file=sys.stderr)
            return 1
        bar = ProgressBar("exporting")
        sys.stdout.flush()
        try:
            report = export_notes(kb, notes, options.to, options.format, sys.stdout.buffer, bar)
        finally:
            bar.done()
    for trouble in report.troubles:
        print(printable(f"co: {trouble.place}: {trouble.problem}"), file=sys.stderr)
    if options.json:
        print_json({**report._asdict(), "troubles": [trouble._asdict() for trouble in report.troubles]})
    elif options.to != "-":
        print(printable(f"{count_of(report.notes, 'note')} exported to {report.to} ({size_of(report.bytes)})"))
    return 3 if report.troubles else 0


def _tell(screen: Screen, options: argparse.Namespace, report: ImportReport) -> None:
    names = {outcome: outcome if report.written else WOULD_BE.get(outcome, outcome) for outcome in OUTCOMES}
    _table(screen, report.receipts, names)
    for outcome in OUTCOMES:
        found = [receipt for receipt in report.receipts if receipt.outcome == outcome]
        if outcome in ("unchanged", "failed") or not found:
            continue
        screen.line()
        screen.line(screen.paint(f"{names[outcome]}:", "bold"))
        for receipt in found[:SHOWN]:
            _row(screen, receipt)
        if len(found) > SHOWN:
            screen.line(screen.paint(f"  … and {len(found) - SHOWN:,} more", "dim"))
    screen.line()
    for remark in report.remarks:
        screen.wrapped(remark + ".")
    if report.written:
        return
    if any(receipt.outcome in ("created", "updated") for receipt in report.receipts):
        screen.wrapped("Nothing is written yet: run the same command with --yes.")
    else:
        screen.line("There is nothing to write.")


def _table(screen: Screen, receipts: list[Receipt], names: dict[str, str]) -> None:
    """The number of items by kind and outcome, without empty columns."""
    counts = Counter((receipt.noun, receipt.outcome) for receipt in receipts)
    nouns = list(dict.fromkeys(receipt.noun for receipt in receipts))
    outcomes = [outcome for outcome in OUTCOMES if any(counts[noun, outcome] for noun in nouns)]
    titles = {noun: count_of(2, noun).partition(" ")[2] for noun in nouns}
    first = max(map(columns, titles.values()))
    screen.line(screen.paint(" " * first + "".join(f"  {names[outcome]:>9}" for outcome in outcomes), "dim"))
    for noun in nouns:
        screen.line(f"{titles[noun]:<{first}}" + "".join(f"  {counts[noun, outcome]:>9,}" for outcome in outcomes))


def _row(screen: Screen, receipt: Receipt) -> None:
    name = receipt.title or receipt.origin
    name = name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "…"
    if receipt.detail:
        screen.wrapped(f"{name}: {receipt.detail}", "  ")
    elif receipt.ref and screen.fits("  ", name, receipt.ref):
        screen.line(f"  {printable(name)}  {screen.paint(printable(receipt.ref), 'cyan')}")
    else:
        screen.wrapped(name, "  ")


def _as_json(options: argparse.Namespace, report: ImportReport) -> dict[str, object]:
    counts = Counter(receipt.outcome for receipt in report.receipts)
    return {
        "format": options.format,
        "written": report.written,
        "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
        "items": [receipt._asdict() for receipt in report.receipts],
        "troubles": [trouble._asdict() for trouble in report.troubles],
        "remarks": report.remarks,
    }
