"""`co data import` and `co data export`."""

from __future__ import annotations

import argparse
import contextlib
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
        "co               a folder or zip that `co data export` wrote\n\n"
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
        "Markdown is a byte-for-byte copy in the same folders, which `co data import co`\n"
        "reads. JSONL has one object per note, for scripts. Nothing is overwritten.\n\n"
        "examples:\n  co data export --to notes-2026\n  co data export --to backup.zip\n"
        "  co data export memory --tag deploy --to - | jq .title\n"
    )
    parser.set_defaults(run=export)


def import_(options: argparse.Namespace) -> int:
    from co_cli.importers import ImportRequest, import_export  # --help does without readers and parsers

    request = ImportRequest(options.format, options.path, options.yes, options.on_conflict or "skip", options.trust)
    with open_knowledge_base(options) as kb, contextlib.ExitStack() as bars:

        def stage(verb: str) -> ProgressBar:
            bars.close()  # that of the stage before
            bar = ProgressBar(verb)
            bars.callback(bar.done)
            return bar

        report = import_export(kb, request, stage)
    failed = [receipt for receipt in report.receipts if receipt.outcome == "failed"]
    if options.json:
        counts = Counter(receipt.outcome for receipt in report.receipts)
        print_json(
            {
                "format": options.format,
                "written": report.written,
                "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
                "items": [receipt._asdict() for receipt in report.receipts],
                "remarks": report.remarks,
            }
        )
        return 2 if failed else 0
    for receipt in failed:
        print(printable(f"co: {receipt.origin}: {receipt.detail}"), file=sys.stderr)
    if len(failed) < len(report.receipts):
        _show(Screen(), report)
    return 2 if failed else 0


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
            report = export_notes(kb, notes, options.to, options.format, bar)
        finally:
            bar.done()
    for failure in report.failures:
        print(printable(f"co: {failure}"), file=sys.stderr)
    if options.json:
        print_json(report._asdict())
    elif options.to != "-":
        print(printable(f"{count_of(report.notes, 'note')} exported to {report.to} ({size_of(report.bytes)})"))
    return 3 if report.failures else 0


def _show(screen: Screen, report: ImportReport) -> None:
    """The number of items by kind and outcome, then the first few of each outcome."""
    names = {outcome: outcome if report.written else WOULD_BE.get(outcome, outcome) for outcome in OUTCOMES}
    counts = Counter((receipt.noun, receipt.outcome) for receipt in report.receipts)
    nouns = {receipt.noun: count_of(2, receipt.noun).partition(" ")[2] for receipt in report.receipts}
    outcomes = [outcome for outcome in OUTCOMES if any(counts[noun, outcome] for noun in nouns)]
    first = max(map(columns, nouns.values()))
    screen.line(screen.paint(" " * first + "".join(f"  {names[outcome]:>9}" for outcome in outcomes), "dim"))
    for noun, title in nouns.items():
        screen.line(f"{title:<{first}}" + "".join(f"  {counts[noun, outcome]:>9,}" for outcome in outcomes))
    for outcome in outcomes:
        if outcome in ("unchanged", "failed"):
            continue
        found = [receipt for receipt in report.receipts if receipt.outcome == outcome]
        screen.line()
        screen.line(screen.paint(f"{names[outcome]}:", "bold"))
        for receipt in found[:SHOWN]:
            _show_receipt(screen, receipt)
        if len(found) > SHOWN:
            screen.line(screen.paint(f"  … and {len(found) - SHOWN:,} more", "dim"))
    screen.line()
    for remark in report.remarks:
        screen.wrapped(remark + ".")
    if not report.written:
        planned = {"created", "updated"} & {*outcomes}
        screen.wrapped("Nothing is written yet: run the same command with --yes." if planned else "Nothing to write.")


def _show_receipt(screen: Screen, receipt: Receipt) -> None:
    name = receipt.title or receipt.origin
    name = name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "…"
    if not receipt.detail and receipt.ref and screen.fits("  ", name, receipt.ref):
        screen.line(f"  {printable(name)}  {screen.paint(printable(receipt.ref), 'cyan')}")
    else:
        screen.wrapped(f"{name}: {receipt.detail}" if receipt.detail else name, "  ")
