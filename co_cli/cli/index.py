"""`co index sync|watch|status|rebuild|reembed|verify|move` and `co doctor`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

from co_cli.agent.models import load_model
from co_cli.cli.coding_agents import check_clients
from co_cli.cli.opening import (
    embed_now,
    json_text,
    kept_text,
    open_knowledge_base,
    print_result,
    problem_lines,
    settings_of,
)
from co_cli.cli.terminal import ProgressBar, count_of, print_message, printable, size_of
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.reports import BINARY, SyncReport, Waiting
from co_cli.ground.settings import this_process
from co_cli.ground.summaries import Status
from co_cli.ground.values import fields_of, moment_text
from co_cli.searching.freshness import Batch, Notice, Watcher
from co_cli.upkeep.about import bug_report
from co_cli.upkeep.doctor import unread_text
from co_cli.upkeep.moving import move_history
from co_cli.upkeep.verification import OriginCheck, verify
from co_cli.vault.ranking import learned_weights

MOST_SHOWN = 20
"""Refs on a line of `co index watch`, files with one kind of problem, and differences; JSON has all of them."""
CHANGES = ("changed", "added", "moved", "removed", "missing")
MARKS = {"ok": "ok", "warning": "!!", "error": "XX"}


def add_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drop-missing", action="store_true", help="remove notes whose files are gone")


def run_sync(options: argparse.Namespace) -> int:
    """
    `co search` does this by itself. Run it to see what changed, and which files
    could not be read.

    When most files of a vault are gone at once, as when its drive is not mounted,
    its notes stay in the index, marked as missing. If you did delete them,
    --drop-missing removes them.

    examples:
      co index sync
      co index sync --drop-missing
    """
    with _open_to_index(options) as kb, ProgressBar("indexing", unit="files") as bar:
        this_process.reads_pictures = True
        report = kb.sync(bar, 0, options.drop_missing)
        embed_now(kb, bar)
        report = replace(report, kept=tuple(kb.index.notes.missing()))  # also those of earlier syncs
    return _print_report(options, report)


def run_rebuild(options: argparse.Namespace) -> int:
    """
    Reads every file of the vault into a new search.db and swaps it in when it is
    complete. Other vaults in the same search.db are indexed again when they are
    next used; on PostgreSQL they are left alone. Notes are never changed.
    """
    with _open_to_index(options) as kb, ProgressBar("indexing", unit="files") as bar:
        report = kb.rebuild(bar)
    return _print_report(options, report)


@contextmanager
def _open_to_index(options: argparse.Namespace) -> Generator[LocalKnowledgeBase]:
    """A vault whose syncs ask the model of the setting boundaries_model where to cut.

    In the end, say if that failed, and why the vectors that the settings choose are not in use, if they are not.
    """
    settings, boundaries = settings_of(options), None
    name = settings.boundaries_model
    if name:
        from co_cli.agent.boundaries import ModelBoundaries  # imports pydantic

        boundaries = ModelBoundaries(lambda: load_model(name), os.path.join(settings.data_dir, "boundaries.jsonl"))
    with open_knowledge_base(options, settings=settings, boundaries=boundaries) as kb:
        yield kb
        chosen, used = kb.embedders.space, kb.status().space
        problem = kb.embedders.problem() if chosen and used not in (None, chosen.key) else None
    if problem:
        print_message(f"co: {problem}", sys.stderr)
    for reason, count in boundaries.problems.items() if boundaries else ():
        without = f"{count_of(count, 'document')} cut without the model {name}"
        print_message(f"co: {without}: {reason}", sys.stderr)


def _print_report(options: argparse.Namespace, report: SyncReport) -> int:
    lines = [kept_text(len(report.kept))] if report.kept else []
    lines.append(_counts(report, [(len(report.removed), "removed")]) or "The vault is empty.")
    lines += _troubles(report.skipped, report.problems)
    for label, linked in report.linked:
        gone = [(len(linked.gone), "removed"), (len(linked.kept), "missing"), (len(linked.excluded), "left out")]
        counts = _counts(linked, gone)
        lines.append(f"{label}  {counts or 'no texts there'}")
        lines += _troubles([(path, reason) for path, reason in linked.skipped if reason != BINARY], ())
        lines += [f"problem  {text}" for text in problem_lines(linked.problems)]
    return print_result(
        options, {**fields_of(report), "linked": {label: fields_of(linked) for label, linked in report.linked}}, lines
    )


def _counts(report: SyncReport, gone: list[tuple[int, str]]) -> str:
    added, changed, moved = len(report.added), len(report.changed), len(report.moved)
    counts = ((added, "added"), (changed, "changed"), (moved, "moved"), *gone, (report.unchanged, "unchanged"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def _troubles(skipped: Sequence[tuple[str, str]], problems: Sequence[tuple[str, str]]) -> list[str]:
    lines = _first([f"skipped  {path}: {reason}" for path, reason in skipped])
    return lines + _first([f"problem  {path}: {problem} (indexed anyway)" for path, problem in problems])


def _first(lines: list[str]) -> list[str]:
    return lines[:MOST_SHOWN] + _left_out(lines)


def _left_out(found: Sequence[object]) -> list[str]:
    left = len(found) - MOST_SHOWN
    return [f"    and {left:,} more (--json lists them)"] if left > 0 else []


def run_status(options: argparse.Namespace) -> int:
    """
    example:
      co index status --json
    """
    with open_knowledge_base(options) as kb:
        state = kb.status()
        waiting = kb.index.waiting()
        learned = learned_weights(kb.vault.ranking)
    notes = ", ".join(count_of(count, source) for source, count in state.notes.items()) or "none yet"
    missing = f", {state.missing:,} of them missing: the files are gone" if state.missing else ""
    behind = f", {count_of(waiting, 'file')} changed since" if waiting else ""
    trashed = [f"{tier}: {count_of(count, 'note')}" for tier, count in state.trashed_in_tiers.items()]
    rows = [
        ("vault", f"{state.vault} ({state.tier})" if state.tier else state.vault),
        ("notes", f"{notes} ({count_of(state.passages, 'passage')}){missing}"),
        *(("linked", f"{label} ({count_of(notes, 'note')})") for label, notes in state.linked.items()),
        ("index", f"{state.search_db} ({size_of(state.search_db_bytes)})"),
        ("synced", f"{state.synced_at or 'never'}{behind}"),
        ("search", state.backend),
        ("vectors", _vectors(state)),
        ("trash", ", ".join((count_of(state.trashed, "note"), *trashed))),
    ]
    rows += [("weights", "learned from feedback: `co feedback tune`")] if learned else []
    rows += [("slow", state.unindexed)] if state.unindexed else []
    rows += [("unread", unread_text(state.unread))] if state.unread else []
    rows += [("aside", f"{path} is not used: see `co doctor`") for path in state.moved_aside]
    lines = [*(f"{name:<8}{value}" for name, value in rows), *_troubles(state.skipped, state.problems)]
    return print_result(options, {**fields_of(state), "waiting": waiting, "learned": learned}, lines)


def _vectors(state: Status) -> str:
    if state.space is None:
        return "none: search by words only"
    building = f", building {state.building}" if state.building else ""
    waiting = Waiting(state.unembedded, state.unembedded_seconds)
    return f"{state.space}{building}{f'; waiting: {waiting} (`co index sync`)' if waiting.passages else ''}"


def add_reembed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="do not take vectors from the cache")


def run_reembed(options: argparse.Namespace) -> int:
    """
    co notices a new provider or model by itself, and makes its vectors in the
    background. Until they are complete, searches use the old ones. This command
    makes all vectors now, also those that exist already.

    example:
      CO_KNOWLEDGE_EMBEDDING_PROVIDER=encoder co index reembed
    """
    with open_knowledge_base(options) as kb, ProgressBar("embedding") as bar:
        kb.sync(bar, seconds=0)  # notes first: the next line embeds them
        result = kb.reembed(bar, options.fresh)
        state = kb.status()
    done, problem = (result.done, result.problem) if result else (0, None)
    lines = [f"{count_of(done, 'passage')} embedded; searches use {_vectors(state)}"]
    lines += [f"stopped: {problem}"] if problem else []
    if result is None:
        why = "the vault is empty" if kb.embedders.space else "the embedding provider is `none`"
        lines = [f"Nothing to embed: {why}."]
    value = {"embedded": done, "waiting": state.unembedded, "space": state.space, "problem": problem}
    return print_result(options, value, lines, 3 if problem else 0)


def add_move(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="the folder where the vault, or its project, was")
    parser.add_argument("new", metavar="NEW", help="the folder where it is now")


def run_move(options: argparse.Namespace) -> int:
    """
    Run it after you moved or renamed the folder of a vault. The history and use of
    each note, feedback, review decisions and sources are known by folder; this
    moves them to the new one. Trust does not move: run `co config trust`.

    example:
      co index move ~/old-project ~/new-project
    """
    moved = move_history(settings_of(options), options.old, options.new)
    lines = [f"history: {folder}" for folder in moved.folders]
    lines += [f"source: {label}" for label in moved.sources]
    lines += [f"left: {label}, because the vault has another source of that name or folder" for label in moved.left]
    return print_result(options, moved, lines)


def add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="apply the safe fixes (to the index, never to notes)")
    parser.add_argument("--report", action="store_true", help="print what a bug report needs, without texts and paths")


def run_doctor(options: argparse.Namespace) -> int:
    """
    examples:
      co doctor
      co doctor --fix
      co doctor --report > report.md
    """
    with open_knowledge_base(options) as kb, ProgressBar("checking") as bar:
        findings = [*kb.doctor(options.fix, bar), *check_clients(kb.settings, kb.root)]
        if options.report:
            print(bug_report(findings, kb.settings, kb.status()))
            return 0
    lines: list[str] = []
    for _, same in groupby(findings, lambda finding: finding.check):
        found = list(same)
        for finding in found[:MOST_SHOWN]:
            lines.append(f"{MARKS['ok' if finding.fixed else finding.level]}  {finding.text}")
            lines += [f"    {'fixed' if finding.fixed else 'fix'}: {finding.fix}"] if finding.fix else []
        lines += _left_out(found)
    broken = any(finding.level == "error" and not finding.fixed for finding in findings)
    return print_result(options, findings, lines, 3 if broken else 0)


def add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="rebuild the index if anything differs; notes stay")
    parser.add_argument("--no-sync", action="store_true", help="report changed files instead of indexing them first")


def run_verify(options: argparse.Namespace) -> int:
    """
    Reads every file again and compares its fields and passages with the index: of
    this vault, your own, your team's, and the folders that were added. The two
    hashes are made of the path and content of every note, one from the files and
    one from the index: equal hashes mean equal content. The files of a team vault
    are compared with git and with the saves that are not committed yet.

      co index verify                 exit code 3 if anything differs
      co index verify --repair        build the index again if anything differs
    """
    repaired = False
    with open_knowledge_base(options) as kb, ProgressBar("comparing") as bar:
        by_model = kb.settings.boundaries_model is not None
        if not options.no_sync:
            kb.sync(bar)
        found = verify(kb.index, bar, by_model)
        if not found.agrees and not options.no_sync and not found.damage:
            kb.sync(bar)  # files may have changed while they were compared
            found = verify(kb.index, bar, by_model)
        if not found.agrees and options.repair:
            kb.rebuild(bar)
            found, repaired = verify(kb.index, bar, by_model), True
        unread = kb.index.unread_entries()
    lines = [f"XX  search.db is damaged: {found.damage}"] if found.damage else []
    lines += [line for check in found.origins for line in _compared_lines(check)]
    lines += [f"!!  {unread_text(unread)}"] if unread else []
    if not found.agrees:
        lines.append("The index differs from the files: `co index verify --repair` rebuilds it.")
    else:
        lines.append("Repaired: index and files agree." if repaired else "Index and files agree.")
    origins = [{**check._asdict(), "there": not check.problem} for check in found.origins]
    result = {"agrees": found.agrees, "repaired": repaired, "damage": found.damage}
    result |= {"unread": unread, "origins": origins}
    return print_result(options, result, lines, 0 if found.agrees else 3)


def _compared_lines(check: OriginCheck) -> list[str]:
    if check.problem:
        return [f"!!  {check.label} is not there now, and was not compared: {check.problem}"]
    counts = f"{count_of(check.files, 'file')} ({size_of(check.bytes)}), {count_of(check.passages, 'passage')}"
    more = ((check.skipped, "not indexed"), (check.missing, "kept though gone"))
    counts += "".join(f", {count:,} {what}" for count, what in more if count)
    sign = "=" if check.of_files == check.of_index else "is not"
    lines = [f"{'XX' if check.differing else 'ok'}  {check.label}: {counts}"]
    lines.append(f"    files {check.of_files[:16]} {sign} index {check.of_index[:16]}")
    return lines + _first([f"    {': '.join(difference)}" for difference in check.differing])


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--poll", action="store_true", help="check all files every two seconds")


def run_watch(options: argparse.Namespace) -> int:
    """
    The index follows half a second after you save, move or delete files. A line is
    printed for each batch of changes:

      12:03:11  2 changed, 1 new: memory:blue-first, article:park, memory:oak

    `co mcp`, `co chat`, `co web` and `co serve` watch by themselves, and
    `co search` checks the files each time. So you need this only for programs
    that read search.db, and to see what changes. Press Ctrl-C to stop.

    examples:
      co index watch
      co index watch --json | jq --unbuffered -r '.added[]?'
      co index watch --poll          on a network drive
    """
    bar = ProgressBar("indexing", unit="files")
    with open_knowledge_base(options) as kb:
        if sys.stderr.isatty():
            print(f"co index watch: {printable(kb.root)} is being watched; press Ctrl-C to stop", file=sys.stderr)

        def show(news: Batch | Notice) -> None:
            bar.done()
            found = _as_object(kb, news)
            line = f"{time.strftime('%H:%M:%S')}  {_as_line(found)}"
            print(json_text({"at": moment_text(time.time()), **found}) if options.json else line, flush=True)

        try:
            Watcher(kb, show, poll=options.poll, progress=bar).run()
        except KeyboardInterrupt:
            return 0  # the normal way to stop
    return 3


def _as_object(kb: LocalKnowledgeBase, news: Batch | Notice) -> dict[str, Any]:
    """Refs by kind of change. Notes that are gone have no ref any more, so their path is shown."""
    if isinstance(news, Notice):
        return {"event": news.event, "text": news.text}
    found: dict[str, list[str]] = {name: [] for name in CHANGES}
    for origin, report in news.reports:
        index = kb.index.of(origin)
        there = {"changed": report.changed, "added": report.added, "moved": [new for _, new in report.moved]}
        for name, paths in there.items():
            found[name] += [index.notes.ref_of(path) or path for path in paths]
        for name, paths in (("removed", report.removed), ("missing", report.kept)):
            found[name] += [os.path.join(origin.label, path) if origin.name else path for path in paths]
    return {"event": "changed", **found, "took_ms": round(news.seconds * 1000, 1)}


def _as_line(found: dict[str, Any]) -> str:
    """The numbers of changes, and the first refs."""
    if "text" in found:
        return printable(found["text"])
    changes: dict[str, list[str]] = {name: found[name] for name in CHANGES if found[name]}
    counts = ", ".join(f"{len(refs):,} {'new' if name == 'added' else name}" for name, refs in changes.items())
    refs = [printable(ref) for refs in changes.values() for ref in refs]
    more = [f"and {len(refs) - MOST_SHOWN:,} more"] if len(refs) > MOST_SHOWN else []
    return f"{counts}: {', '.join([*refs[:MOST_SHOWN], *more])}"
