"""`co index move`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.service.adopting import Left, left_behind


def add_adopt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="where this vault, or its project, was before; without it, list")
    parser.epilog = (
        "What is known of a vault beyond its files is kept by its folder: the history and\n"
        "use of each note, feedback, what a review decided, and sources beside it. When\n"
        "you moved or renamed the folder, this brings all of it to the new place. Trust\n"
        "is not brought along: `co config trust` says it again.\n\n"
        "examples:\n  co index move\n  co index move ~/old-project\n"
    )
    parser.set_defaults(run=run_adopt)


def run_adopt(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        sync_first(kb, "fts5")
        if options.folder is None:
            return _list(left_behind(kb), options.json)
        adopted = kb.adopt(options.folder)
        root = kb.root
        if adopted.sources:
            kb.sync()
    if options.json:
        print_json({**adopted._asdict(), "to": root})
        return 0
    brought = [f"the history of {count_of(adopted.documents, 'document')}"] if adopted.documents else []
    brought += [f"{count_of(len(adopted.sources), 'source')} ({', '.join(adopted.sources)})"] if adopted.sources else []
    print(printable(f"brought along from {adopted.vault}: {' and '.join(brought) or 'nothing that is not here'}"))
    if adopted.left:
        print(printable(f"left there, for this vault has others of that name or place: {', '.join(adopted.left)}"))
    return 0


def _list(found: list[Left], as_json: bool) -> int:
    if as_json:
        print_json([one._asdict() for one in found])
        return 0 if found else 1
    screen = Screen()
    for one in found:
        about = [f"{one.alike:,} of {count_of(one.documents, 'document')} the same here"] if one.documents else []
        about += [count_of(one.sources, "source")] if one.sources else []
        screen.line(f"{screen.paint(printable(one.vault), 'cyan')}  {', '.join(about)}")
    if found:
        screen.line("If this vault stood there before: `co index move FOLDER`")
    else:
        screen.line("No vault whose folder is gone shares a note with this one, or has sources.")
    return 0 if found else 1
