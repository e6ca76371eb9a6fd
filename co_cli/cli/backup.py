"""`co data backup`, `co data restore`: copies of activity.db."""

from __future__ import annotations

import argparse
import os
import time

from co_cli.activity.backup import Copy, back_up, backups, default_place, restore
from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen, count_of, printable, size_of
from co_cli.errors import InvalidInputError
from co_cli.settings import load_settings


def add_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to (default: backups/ in the data folder)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    parser.epilog = (
        "activity.db holds what no file can tell: what was found, opened and judged,\n"
        "and what became of notes. The copy is made while others use it, read again\n"
        "from end to end, and is one file. Notes are files: back them up as such, or\n"
        "keep them in git; search.db comes back from them.\n\n"
        "examples:\n  co data backup\n  co data backup /media/disk/activity.db --overwrite\n"
    )
    parser.set_defaults(run=backup)


def backup(options: argparse.Namespace) -> int:
    data_dir = _data_dir(options)
    path = os.path.abspath(options.file) if options.file else _free(data_dir)
    if os.path.isdir(path):
        raise InvalidInputError(f"{path} is a folder: name the file, such as {os.path.join(path, 'activity.db')}")
    bar = ProgressBar("copying")
    made = back_up(data_dir, path, options.overwrite, bar)
    bar.done()
    if options.json:
        print_json(made._asdict())
    else:
        print(f"{printable(made.path)} ({size_of(made.bytes)}): {_told(made)}, compared and sound")
    return 0


def add_restore_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="the copy; without one, list those there are")
    parser.epilog = (
        "The copy is read from end to end first. What was there is kept as\n"
        "activity.db.<time>; notes and index are not touched.\n\n"
        "examples:\n  co data restore\n"
        "  co data restore ~/.local/share/co-cli/backups/activity-20261115T120000Z.db\n"
    )
    parser.set_defaults(run=restore_backup)


def restore_backup(options: argparse.Namespace) -> int:
    data_dir = _data_dir(options)
    if not options.file:
        return _list(options, data_dir)
    bar = ProgressBar("copying")
    done = restore(data_dir, os.path.abspath(options.file), bar)
    bar.done()
    if options.json:
        print_json({**done.copy._asdict(), "kept": done.kept})
        return 0
    print(f"activity.db is {printable(done.copy.path)} now: {_told(done.copy)}")
    if done.kept:
        print(f"What was there is kept as {printable(done.kept)}")
    return 0


def _list(options: argparse.Namespace, data_dir: str) -> int:
    found = backups(data_dir)
    if options.json:
        print_json([{"path": path, "bytes": os.path.getsize(path)} for path in found])
    elif found:
        screen = Screen()
        for path in found:
            screen.line(f"{printable(path)}  ({size_of(os.path.getsize(path))})")
        screen.line("`co data restore FILE` brings one of them back.")
    else:
        print(f"No backup in {printable(os.path.dirname(default_place(data_dir, 0)))}: `co data backup` makes one.")
    return 0 if found else 1


def _data_dir(options: argparse.Namespace) -> str:
    return load_settings({"vault": options.vault, "data_dir": options.data_dir}).data_dir


def _free(data_dir: str) -> str:
    """Dated; two within a second are told apart by a number."""
    place = default_place(data_dir, time.time())
    stem, number, path = place.removesuffix(".db"), 1, place
    while os.path.lexists(path):
        number += 1
        path = f"{stem}-{number}.db"
    return path


def _told(copy: Copy) -> str:
    searches, documents = copy.rows.get("queries", 0), copy.rows.get("documents", 0)
    searched = f"{searches:,} search{'' if searches == 1 else 'es'}"
    return f"{count_of(documents, 'document')}, {searched}, {count_of(sum(copy.rows.values()), 'row')}"
