"""`co data import`, `export`, `backup` and `restore`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable

from co_cli.activity.backup import FOLDER, Copy, back_up, backups, default_path, restore
from co_cli.cli.opening import (
    INDEXED,
    add_filters,
    embed_soon,
    filters_of,
    open_knowledge_base,
    open_synced,
    print_json,
    print_result,
    settings_of,
)
from co_cli.cli.terminal import ProgressBar, Screen, columns, count_of, printable, size_of
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.saves import ON_CONFLICT, masked_text
from co_cli.ground.values import OWN_SOURCES
from co_cli.importers.export import export_notes, skipped_files
from co_cli.importers.items import ImportReceipt
from co_cli.importers.note_importer import ImportRequest, import_export
from co_cli.importers.reading import IMPORTERS

OUTCOMES = ("created", "updated", "unchanged", "skipped", "forgotten", "failed")
PLANNED = {"created": "new", "updated": "changed"}
"""The names of outcomes before anything is written."""
SHOWN = 5
FAILURES_SHOWN = 10
LONGEST_SHOWN = 80


def add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=tuple(IMPORTERS), metavar="FORMAT", help=", ".join(IMPORTERS))
    parser.add_argument("path", nargs="+", metavar="FILE|DIR", help="the zip as downloaded, the folder, or one file")
    parser.add_argument("-y", "--yes", action="store_true", help="write; without it you only see what would be done")
    parser.add_argument(
        "--on-conflict", choices=ON_CONFLICT, help="changed on both sides: keep yours (default), replace it, or stop"
    )
    parser.add_argument(
        "--trust", action="store_true", help="the files are your own words (obsidian, basic-memory, co)"
    )


def run_import(options: argparse.Namespace) -> int:
    """
    chatgpt, claude  conversations, projects and memories
    claude-code, codex, gemini, qwen
                     sessions, from ~/.claude/projects, ~/.codex/sessions,
                     ~/.gemini/tmp and ~/.qwen/projects
    opencode         sessions, from `opencode export ID > session.json`
    jsonl            turns, one a line: speaker or role, text, time, session
    okf              a bundle of the Open Knowledge Format 0.2: every field stays
    mem0             memories: JSON, JSON Lines, or the zip of OpenMemory
    claude-mem       observations and summaries, from ~/.claude-mem
    obsidian, basic-memory
                     the notes are copied into articles/, names and text as they are
    co               a folder, zip or .jsonl that `co data export` wrote

    Import an Obsidian vault when you leave Obsidian. If you keep writing there,
    `co add DIR` reads it in place instead.
    You can repeat an import: notes are not duplicated, your changes are not
    overwritten, and forgotten notes do not come back.

    examples:
      co data import chatgpt export.zip
      co data import chatgpt export.zip --yes
      co data import claude ~/.claude/projects/app/memory --yes
    """
    request = ImportRequest(options.format, options.path, options.yes, options.on_conflict or "skip", options.trust)
    with open_knowledge_base(options) as kb, contextlib.ExitStack() as bars:

        def stage(verb: str) -> ProgressBar:
            bars.close()  # the bar of the previous stage
            return bars.enter_context(ProgressBar(verb, unit="files" if verb == "indexing" else "bytes"))

        receipts = import_export(kb.vault, request, stage)
        embed_soon(kb)
    failed = [receipt for receipt in receipts if receipt.outcome == "failed"]
    remarks = _remarks(receipts, options.yes)
    if options.json:
        counts = Counter(receipt.outcome for receipt in receipts)
        about = {
            "format": options.format,
            "written": options.yes,
            "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
        }
        print_json({**about, "items": receipts, "remarks": remarks})
        return 2 if failed else 0
    _complain(f"{receipt.origin}: {receipt.detail}" for receipt in failed)
    if len(failed) < len(receipts):
        screen = Screen()
        _show(screen, receipts, options.yes)
        for remark in remarks:
            screen.wrapped(remark + ".")
        if not options.yes:
            planned = any(receipt.outcome in PLANNED for receipt in receipts)
            screen.line("Nothing is written yet: run the same command with --yes." if planned else "Nothing to write.")
    return 2 if failed else 0


def _complain(problems: Iterable[str]) -> None:
    """The first few on stderr."""
    said = list(problems)
    for problem in said[:FAILURES_SHOWN]:
        print(printable(f"co: {problem}"), file=sys.stderr)
    if len(said) > FAILURES_SHOWN:
        print(f"co: and {len(said) - FAILURES_SHOWN:,} more; --json lists them all", file=sys.stderr)


def _remarks(receipts: list[ImportReceipt], written: bool) -> list[str]:
    """Sentences about masked secrets and about notes that are not trusted."""
    to_be = "" if written else "to be "
    masked = [receipt.masked for receipt in receipts if receipt.masked]
    disowned = sum(receipt.disowned for receipt in receipts)
    remarks: list[str] = []
    if masked:
        secrets = masked_text(sum(masked)).replace("masked", f"{to_be}masked")
        remarks.append(f"{secrets} in {count_of(len(masked), 'note')}")
    if disowned:
        remarks.append(
            f"{count_of(disowned, 'note')} {'claims' if disowned == 1 else 'claim'} to be your own words, to belong in "
            f"every prompt, to be pinned, or to replace another note: {to_be}marked `provenance: import`; if you wrote "
            "this export yourself, `--trust` keeps what it says"
        )
    return remarks


def _show(screen: Screen, receipts: list[ImportReceipt], written: bool) -> None:
    """A table of items by kind and outcome, then the first few of each outcome."""
    names = {outcome: outcome if written else PLANNED.get(outcome, outcome) for outcome in OUTCOMES}
    counts = Counter((receipt.noun, receipt.outcome) for receipt in receipts)
    nouns = {receipt.noun: count_of(2, receipt.noun).partition(" ")[2] for receipt in receipts}
    outcomes = [outcome for outcome in OUTCOMES if any(counts[noun, outcome] for noun in nouns)]
    first = max(map(columns, nouns.values()))
    screen.line(screen.paint(" " * first + "".join(f"  {names[outcome]:>9}" for outcome in outcomes), "dim"))
    for noun, title in nouns.items():
        screen.line(f"{title:<{first}}" + "".join(f"  {counts[noun, outcome]:>9,}" for outcome in outcomes))
    for outcome in outcomes:
        if outcome in ("unchanged", "failed"):
            continue
        found = [receipt for receipt in receipts if receipt.outcome == outcome]
        found.sort(key=lambda receipt: not receipt.detail)  # what needs attention is among the few that are shown
        screen.line()
        screen.line(screen.paint(f"{names[outcome]}:", "bold"))
        for receipt in found[:SHOWN]:
            about = f": {receipt.detail}" if receipt.detail else f"  {receipt.ref}" if receipt.ref else ""
            screen.wrapped((receipt.title or receipt.origin)[:LONGEST_SHOWN] + about, "  ")
        if len(found) > SHOWN:
            screen.line(screen.paint(f"  … and {len(found) - SHOWN:,} more", "dim"))
    screen.line()


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", choices=OWN_SOURCES, help="only notes of this kind")
    parser.add_argument(
        "--to", metavar="DIR|FILE", help="a new or empty folder, a new .zip or .jsonl; - is standard output"
    )
    parser.add_argument("--format", choices=("markdown", "jsonl", "okf"), help="default: from the name of --to")
    add_filters(parser)


def run_export(options: argparse.Namespace) -> int:
    """
    Markdown is a byte-for-byte copy in the same folders. JSONL has one object per
    note, for scripts. `co data import co` reads both. okf is a bundle of the Open
    Knowledge Format 0.2. Nothing is overwritten.

    examples:
      co data export --to notes-2026
      co data export --to backup.zip
      co data export --format okf --to bundle
      co data export memory --tag deploy --to - | jq .title
    """
    if not options.to:
        raise InvalidInputError("say where to: --to DIR, --to FILE.zip, --to FILE.jsonl, or --to - for standard output")
    if options.to == "-" and options.json:
        raise InvalidInputError("--json reports about an export, and --to - prints JSON already: leave one of them out")
    with open_synced(options, INDEXED) as kb:
        filters = filters_of(options)
        notes = kb.notes(options.source, **filters)
        skipped = [] if options.source or any(filters.values()) else skipped_files(kb.vault)
        if not options.json:
            _complain(f"not exported: {file}" for file in skipped)
        if not notes:
            print("No notes to export.", file=sys.stderr)
            return 1
        sys.stdout.flush()
        with ProgressBar("exporting", unit="notes") as bar:
            report = export_notes(kb.vault, notes, options.to, options.format, bar)._replace(skipped=skipped)
    _complain(report.failures)
    code = 3 if report.failures else 0
    if options.to == "-":
        return code
    line = f"{count_of(report.notes, 'note')} exported to {report.to} ({size_of(report.bytes)})"
    return print_result(options, report, [line], code)


def add_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to (default: backups/ in the data folder)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")


def run_backup(options: argparse.Namespace) -> int:
    """
    activity.db is the one file that co cannot rebuild: it has the history of notes,
    and what was found, opened and rated. The copy is one file, checked after
    writing, and safe to make while co is in use. Back up your notes as files, or
    keep them in git. search.db needs no backup.

    examples:
      co data backup
      co data backup /media/disk/activity.db --overwrite
    """
    settings = settings_of(options)
    path = os.path.abspath(options.file) if options.file else default_path(settings.data_dir, time.time())
    if os.path.isdir(path):
        raise InvalidInputError(f"{path} is a folder: name the file, such as {os.path.join(path, 'activity.db')}")
    made = back_up(settings, path, options.overwrite)
    lines = [f"{made.path} ({size_of(made.bytes)}): {_contents(made)}, checked and sound"]
    if settings.engine != "sqlite":
        dump = f"`pg_dump --schema team {settings.engine}`"
        lines.append(f"A team's tokens, its history and saves that are not pushed are not in it: {dump} backs them up.")
    return print_result(options, made, lines)


def add_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup (default: list the backups)")


def run_restore(options: argparse.Namespace) -> int:
    """
    The backup is checked first. The present activity.db is kept as
    activity.db.<time>; notes and index are not touched.

    examples:
      co data restore
      co data restore ~/.local/share/co-cli/backups/activity-20261115T120000Z.db
    """
    data_dir = settings_of(options).data_dir
    if not options.file:
        return _list_backups(options, data_dir)
    restored = restore(data_dir, os.path.abspath(options.file))
    lines = [f"activity.db is {restored.copy.path} now: {_contents(restored.copy)}"]
    lines += [f"The previous one is kept as {restored.kept}"] if restored.kept else []
    return print_result(options, {**restored.copy._asdict(), "kept": restored.kept}, lines)


def _list_backups(options: argparse.Namespace, data_dir: str) -> int:
    found = {path: os.path.getsize(path) for path in backups(data_dir)}
    lines = [f"{path}  ({size_of(size)})" for path, size in found.items()]
    none = f"No backup in {os.path.join(data_dir, FOLDER)}: `co data backup` makes one."
    lines.append("`co data restore FILE` restores one of them." if found else none)
    value = [{"path": path, "bytes": size} for path, size in found.items()]
    return print_result(options, value, lines)


def _contents(copy: Copy) -> str:
    documents, searches = (copy.rows.get(table, 0) for table in ("documents", "searches"))
    return f"{count_of(documents, 'document')}, {count_of(searches, 'search')}, {sum(copy.rows.values()):,} rows"
