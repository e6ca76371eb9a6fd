"""`co index sync`, `rebuild`, `move`, `status`, `doctor`."""

from __future__ import annotations

import argparse

from co_cli.cli.boundaries import boundaries_for
from co_cli.cli.opening import kept_text, open_knowledge_base, print_json
from co_cli.cli.terminal import ProgressBar, Screen, count_of, printable, size_of
from co_cli.service.doctor import unread_text
from co_cli.service.history import move_history
from co_cli.service.searching import learned_weights
from co_cli.settings import load_settings
from co_cli.values import BINARY, Status, SyncReport


def add_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drop-missing", action="store_true", help="forget notes that were kept though they are gone")
    parser.epilog = (
        "Search does this by itself; run it to see what changed,\nand which files could not be read.\n\n"
        "When most of a vault is gone at once, as when its drive is not mounted, its\n"
        "notes stay in the index and are called missing. They come back with their\n"
        "files; if you did delete them, --drop-missing forgets them.\n"
    )
    parser.set_defaults(run=sync)


def sync(options: argparse.Namespace) -> int:
    bar = ProgressBar("indexing")
    with open_knowledge_base(options) as kb, boundaries_for(kb):
        report = kb.sync(bar, drop_missing=options.drop_missing)
        report = report.replaced(kept=tuple(kb.index.missing()))  # also those of earlier times
    bar.done()
    return _report(options, report)


def add_rebuild(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "search.db is derived: this reads every file of the vault into a new one\n"
        "and swaps it in when it is complete. Other vaults in the same search.db\n"
        "come back when they are next used.\n"
    )
    parser.set_defaults(run=rebuild)


def rebuild(options: argparse.Namespace) -> int:
    bar = ProgressBar("indexing")
    with open_knowledge_base(options) as kb, boundaries_for(kb):
        report = kb.rebuild(bar)
    bar.done()
    return _report(options, report)


def add_status(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=status)


def status(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        state = kb.status()
        waiting = kb.index.waiting()
        learned = learned_weights(kb)
    if options.json:
        print_json({**state._asdict(), "waiting": waiting, "learned": learned})
        return 0
    notes = ", ".join(count_of(count, source) for source, count in state.notes.items()) or "none yet"
    behind = f", {count_of(waiting, 'file')} changed since" if waiting else ""
    rows = [
        ("vault", f"{state.vault} ({state.tier})" if state.tier else state.vault),
        ("notes", f"{notes} ({count_of(state.passages, 'passage')}){_gone(state.missing)}"),
        *(("linked", f"{label} ({count_of(notes, 'note')})") for label, notes in state.linked.items()),
        ("index", f"{state.search_db} ({size_of(state.search_db_bytes)})"),
        ("synced", f"{state.synced_at or 'never'}{behind}"),
        ("search", state.backend),
        ("vectors", _vectors(state)),
        *([("weights", _learned(learned))] if learned else []),
        ("cache", _cache(state)),
        ("trash", ", ".join((count_of(state.trashed, "note"), *_trash_in_tiers(state)))),
        *([("odd", unread_text(state.odd))] if state.odd else []),
    ]
    screen = Screen()
    for name, value in rows:
        screen.line(f"{screen.paint(f'{name:<8}', 'dim')}{printable(value)}")
    _list_troubles(screen, state.skipped, state.problems)
    return 0


def _trash_in_tiers(state: Status) -> list[str]:
    return [f"{tier}: {count_of(count, 'note')}" for tier, count in state.trashed_in_tiers.items()]


def _gone(missing: int) -> str:
    if not missing:
        return ""
    return f", {missing:,} of them missing: {'its file is' if missing == 1 else 'their files are'} gone"


def add_reembed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="do not take vectors from the cache")
    parser.epilog = (
        "A new provider or model is noticed by itself, and its vectors are built\n"
        "behind the old ones, which answer until the new ones are complete.\n"
        "This does it now and to the end.\n\n"
        "example:\n  CO_KNOWLEDGE_EMBEDDING_PROVIDER=minilm co index reembed\n"
    )
    parser.set_defaults(run=reembed)


def reembed(options: argparse.Namespace) -> int:
    bar = ProgressBar("embedding")
    with open_knowledge_base(options) as kb:
        kb.sync(bar, seconds=0)  # notes first: what is slow to embed is embedded once, by the next line
        result = kb.reembed(bar, options.fresh)
        bar.done()
        state = kb.status()
    if options.json:
        print_json(
            {
                "embedded": result.done if result else 0,
                "waiting": state.unembedded,
                "space": state.space,
                "problem": result.problem if result else None,
            }
        )
    elif result is None:
        reason = "the vault is empty" if kb.embedders.space else "the embedding provider is `none`"
        print(f"Nothing to embed: {reason}.")
    else:
        print(f"{count_of(result.done, 'passage')} embedded; answering with {printable(_vectors(state))}")
        if result.problem:
            print(f"stopped: {printable(result.problem)}")
    return 3 if result and result.problem else 0


def _vectors(state: Status) -> str:
    if state.space is None:
        return "none: search goes by words"
    waiting = f", {count_of(state.unembedded, 'passage')} waiting" if state.unembedded else ""
    return f"{state.space}{f', building {state.building}' if state.building else ''}{waiting}"


def _learned(weights: dict[str, float]) -> str:
    return f"meaning {weights['meaning']:.2f}, words {weights['words']:.2f}, learned from feedback (`co feedback tune`)"


def _cache(state: Status) -> str:
    rate = "" if state.cache_hit_rate is None else f", {state.cache_hit_rate:.0%} of look-ups found"
    return f"{count_of(state.cache_entries, 'vector')} ({size_of(state.cache_bytes)}){rate}"


def add_move(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="the folder where the vault, or its project, was")
    parser.add_argument("new", metavar="NEW", help="the folder where it is now")
    parser.epilog = (
        "Run it after you moved or renamed the folder of a vault. The history and use of\n"
        "each note, feedback, review decisions and sources are known by folder; this\n"
        "carries them to the new one. Trust is not carried along: run `co config trust`.\n\n"
        "example:\n  co index move ~/old-project ~/new-project\n"
    )
    parser.set_defaults(run=move)


def move(options: argparse.Namespace) -> int:
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir})
    moved = move_history(settings, options.old, options.new)
    if options.json:
        print_json(moved._asdict())
        return 0
    for folder in moved.folders:
        print(f"history: {printable(folder)}")
    for label in moved.sources:
        print(f"source: {printable(label)}")
    for label in moved.left:
        print(f"left: {printable(label)}, because the vault has another source of that name or folder")
    return 0


def add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fix", action="store_true", help="apply the cures that cannot do harm (the index, never notes)"
    )
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        findings = kb.doctor(options.fix)
    broken = any(finding.level == "error" and not finding.fixed for finding in findings)
    if options.json:
        print_json([finding._asdict() for finding in findings])
        return 3 if broken else 0
    screen = Screen()
    styles = {"ok": ("ok", "green"), "warning": ("!!", "yellow"), "error": ("XX", "red")}
    for finding in findings:
        mark, style = ("ok", "green") if finding.fixed else styles[finding.level]
        screen.line(f"{screen.paint(mark, style)}  {printable(finding.text)}")
        if finding.cure:
            screen.line(f"    {'fixed' if finding.fixed else 'cure'}: {printable(finding.cure)}")
    return 3 if broken else 0


def _report(options: argparse.Namespace, report: SyncReport) -> int:
    if options.json:
        linked = {label: vars(one) for label, one in report.linked}
        print_json({**vars(report), "linked": linked})
        return 0
    screen = Screen()
    if report.kept:
        screen.wrapped(kept_text(len(report.kept)), style="yellow")
    screen.line(_counted(report) or "The vault is empty.")
    _list_troubles(screen, report.skipped, report.problems)
    for label, one in report.linked:
        screen.line(f"{screen.paint(printable(label), 'cyan')}  {_counted(one, linked=True) or 'no texts there'}")
        _list_troubles(screen, [(path, reason) for path, reason in one.skipped if reason != BINARY], one.problems)
    return 0


def _counted(report: SyncReport, linked: bool = False) -> str:
    """What is gone from a folder that is read in place is missing; from the vault it was removed."""
    gone = [(len(report.gone), "missing"), (len(report.excluded), "left out")]
    counts = (
        (len(report.added), "added"),
        (len(report.changed), "changed"),
        (len(report.moved), "moved"),
        *(gone if linked else [(len(report.removed), "removed")]),
        (report.unchanged, "unchanged"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def _list_troubles(screen: Screen, skipped: list[tuple[str, str]], problems: list[tuple[str, str]]) -> None:
    for path, reason in skipped:
        screen.line(f"{screen.paint('skipped', 'yellow')}  {printable(path)}: {printable(reason)}")
    for path, problem in problems:
        screen.line(
            f"{screen.paint('problem', 'yellow')}  {printable(path)}: {printable(problem)} (indexed all the same)"
        )
