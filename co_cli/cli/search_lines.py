"""`co search --lines` and `--vimgrep`: every matching line, as ripgrep prints it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from co_cli.cli.opening import filters_of, open_anywhere_synced, print_json
from co_cli.cli.terminal import Screen, count_of, paged, printable
from co_cli.ground.errors import InvalidInputError
from co_cli.searching.requests import LARGEST_LIMIT

if TYPE_CHECKING:
    from typing import Any

    from co_cli.searching.matching_lines import MatchingFile, MatchingLine, MatchingLines


def show_lines(options: argparse.Namespace, query: str, ranking: Mapping[str, Any]) -> int:
    """Answer `co search` with lines. `ranking` is what it says about ranking, as a search takes it."""
    if options.server:
        raise InvalidInputError("--lines: the files are on the server; `co show REF` prints a note of it")
    if options.paths or options.null:
        raise InvalidInputError("--lines and --paths: choose one, the lines or only the files that have them")
    with open_anywhere_synced(options, options.backend) as kb:
        limit, around = options.limit or LARGEST_LIMIT, options.around or 0
        chosen = {"limit": limit, "around": around, "sources": options.source}
        found = kb.local.lines(query, **chosen, track=True, **ranking, **filters_of(options))
    screen = Screen()
    if options.json:
        print_json(found)
    elif options.vimgrep:
        _print_places(found)
    else:
        with paged():
            _print_lines(screen, found)
    remarks = [*found.understood, *(f"note: {reason}" for reason in found.degraded)]
    if found.state != "found" and screen.interactive and not options.json:
        remarks.insert(0, f"Nothing found: no line of {count_of(found.searched.notes, 'note')} matches.")
    for remark in remarks if not options.json else ():
        print(printable(remark), file=sys.stderr)
    return 0 if found.state == "found" else 1


def _print_lines(screen: Screen, found: MatchingLines) -> None:
    """On a terminal each file once above its lines; in a pipe its path in each of them."""
    has_others = any(not line.marks for file in found.files for line in file.lines)
    for place, file in enumerate(found.files):
        if screen.interactive:
            screen.line() if place else None
            screen.line(screen.paint(printable(file.path), "cyan"))
        elif place and has_others:
            screen.line("--")
        _print_file(screen, file, has_others)


def _print_file(screen: Screen, file: MatchingFile, has_others: bool) -> None:
    for place, line in enumerate(file.lines):
        if has_others and place and file.lines[place - 1].number + 1 < line.number:
            screen.line("--")
        sign = ":" if line.marks else "-"
        path = "" if screen.interactive else f"{file.path}{sign}"
        screen.line(f"{path}{screen.paint(str(line.number), 'green')}{sign}{_marked(screen, line)}")


def _marked(screen: Screen, line: MatchingLine) -> str:
    escape = printable if screen.interactive else str
    text, place = "", 0
    for first, last in line.marks:
        text += escape(line.text[place:first]) + screen.paint(escape(line.text[first:last]), "bold", "red")
        place = last
    return text + escape(line.text[place:])


def _print_places(found: MatchingLines) -> None:
    """A line for each match. Editors count columns in bytes, from 1."""
    escape = printable if sys.stdout.isatty() else str
    for file in found.files:
        for line in file.lines:
            for first, _ in line.marks:
                column = len(line.text[:first].encode("utf-8", "replace")) + 1
                print(f"{escape(file.path)}:{line.number}:{column}:{escape(line.text)}")
