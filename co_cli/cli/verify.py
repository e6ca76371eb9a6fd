"""`co index verify`: does the index hold what the files say, all of it?"""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import ProgressBar, Screen, count_of, printable, size_of
from co_cli.service.doctor import unread_text
from co_cli.service.verifying import Part, Verified, verify

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
    parser.add_argument(
        "--repair", action="store_true", help="build the index again if anything differs; notes are never changed"
    )
    parser.add_argument("--no-sync", action="store_true", help="do not index changed files first: they differ then")
    parser.epilog = EPILOG
    parser.set_defaults(run=run_verify)


def run_verify(options: argparse.Namespace) -> int:
    bar = ProgressBar("comparing")
    with open_knowledge_base(options) as kb:
        found = verify(kb, bar, sync=not options.no_sync, repair=options.repair)
    bar.done()
    if options.json:
        print_json(as_object(found))
    else:
        show(found)
    return 3 if found.drifted else 0


def as_object(found: Verified) -> dict[str, object]:
    parts = [
        {
            "label": part.label,
            "path": part.path,
            "there": part.compared is not None,
            "problem": part.problem,
            **({} if part.compared is None else part.compared._asdict()),
            "differing": [one._asdict() for one in part.compared.differing] if part.compared else [],
        }
        for part in found.parts
    ]
    return {
        "agrees": not found.drifted,
        "repaired": found.repaired,
        "damage": found.damage,
        "odd": [list(one) for one in found.odd],
        "origins": parts,
    }


def show(found: Verified) -> None:
    screen = Screen()
    if found.damage:
        _line(screen, "XX", f"search.db is damaged: {found.damage}")
    for part in found.parts:
        _show_part(screen, part)
    if found.odd:
        _line(screen, "!!", unread_text(found.odd))
    if found.drifted:
        screen.line("The index differs from the files: `co index verify --repair` builds it again.")
    else:
        screen.line("Repaired: index and files agree." if found.repaired else "Index and files agree.")


def _show_part(screen: Screen, part: Part) -> None:
    compared = part.compared
    if compared is None:
        _line(screen, "!!", f"{part.label} is not there now, and was not compared: {part.problem}")
        return
    counts = f"{count_of(compared.files, 'file')} ({size_of(compared.bytes)}), {count_of(compared.passages, 'passage')}"
    more = (
        (compared.skipped, "not indexed"),
        (compared.missing, "kept though gone"),
    )
    counts += "".join(f", {count:,} {what}" for count, what in more if count)
    _line(screen, "XX" if part.drifted else "ok", f"{part.label}: {counts}")
    sign = "=" if compared.of_files == compared.of_index else "is not"
    screen.line(f"    files {compared.of_files[:16]} {sign} index {compared.of_index[:16]}")
    for one in compared.differing[:SHOWN]:
        screen.line(f"    {printable(': '.join(text for text in one if text))}")
    if len(compared.differing) > SHOWN:
        screen.line(f"    and {len(compared.differing) - SHOWN:,} more (--json lists them)")


def _line(screen: Screen, mark: str, text: str) -> None:
    styles = {"ok": "green", "!!": "yellow", "XX": "red"}
    screen.line(f"{screen.paint(mark, styles[mark])}  {printable(text)}")
