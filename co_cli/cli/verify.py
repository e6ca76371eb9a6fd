"""`co index verify`: compare the index with the files, and rebuild it if that is asked for."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import ProgressBar, Screen, count_of, printable, size_of
from co_cli.index.verify import Compared, verify
from co_cli.service.doctor import unread_text

SHOWN = 20
EPILOG = """\
Reads every file again and compares its fields and passages with the index: for
the vault, your own and your team's, and the folders searched with it. The two
hashes are made of the path and content of every note, one from the files and
one from the index: equal hashes mean equal content.

  co index verify                 exit code 3 if anything differs
  co index verify --repair        build the index again if anything differs
"""


def add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="rebuild the index if anything differs; notes stay")
    parser.add_argument("--no-sync", action="store_true", help="report changed files instead of indexing them first")
    parser.epilog = EPILOG
    parser.set_defaults(run=run_verify)


def run_verify(options: argparse.Namespace) -> int:
    bar, repaired = ProgressBar("comparing"), False
    with open_knowledge_base(options) as kb:
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
    bar.done()
    if options.json:
        origins = [
            {
                **one._asdict(),
                "there": not one.problem,
                "differing": [difference._asdict() for difference in one.differing],
            }
            for one in found.origins
        ]
        result = {"agrees": found.agrees, "repaired": repaired, "damage": found.damage, "odd": unread}
        print_json({**result, "origins": origins})
        return 0 if found.agrees else 3
    screen = Screen()
    if found.damage:
        _line(screen, "XX", f"search.db is damaged: {found.damage}")
    for one in found.origins:
        _show(screen, one)
    if unread:
        _line(screen, "!!", unread_text(unread))
    if not found.agrees:
        screen.line("The index differs from the files: `co index verify --repair` builds it again.")
    else:
        screen.line("Repaired: index and files agree." if repaired else "Index and files agree.")
    return 0 if found.agrees else 3


def _show(screen: Screen, one: Compared) -> None:
    if one.problem:
        _line(screen, "!!", f"{one.label} is not there now, and was not compared: {one.problem}")
        return
    counts = f"{count_of(one.files, 'file')} ({size_of(one.bytes)}), {count_of(one.passages, 'passage')}"
    more = ((one.skipped, "not indexed"), (one.missing, "kept though gone"))
    counts += "".join(f", {count:,} {what}" for count, what in more if count)
    _line(screen, "XX" if one.differing else "ok", f"{one.label}: {counts}")
    sign = "=" if one.of_files == one.of_index else "is not"
    screen.line(f"    files {one.of_files[:16]} {sign} index {one.of_index[:16]}")
    for difference in one.differing[:SHOWN]:
        screen.line(f"    {printable(': '.join(difference))}")
    if len(one.differing) > SHOWN:
        screen.line(f"    and {len(one.differing) - SHOWN:,} more (--json lists them)")


def _line(screen: Screen, mark: str, text: str) -> None:
    styles = {"ok": "green", "!!": "yellow", "XX": "red"}
    screen.line(f"{screen.paint(mark, styles[mark])}  {printable(text)}")
