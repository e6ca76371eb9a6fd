"""`co data backup`, `co data restore`: copies of activity.db."""

from __future__ import annotations

import argparse
import os
import time

from co_cli.activity.backup import FOLDER, Copy, back_up, backups, default_path, restore
from co_cli.cli.opening import print_json
from co_cli.cli.terminal import count_of, printable, size_of
from co_cli.errors import InvalidInputError
from co_cli.settings import Settings, load_settings


def add_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to (default: backups/ in the data folder)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    parser.epilog = (
        "activity.db holds what no file can tell: what was found, opened and judged, and\n"
        "the history of notes. The copy is made while others use it, checked from end to\n"
        "end, and is one file. Notes are files: back them up as such, or keep them in\n"
        "git; search.db is built again from them.\n\n"
        "examples:\n  co data backup\n  co data backup /media/disk/activity.db --overwrite\n"
    )
    parser.set_defaults(run=backup)


def backup(options: argparse.Namespace) -> int:
    settings = _settings(options)
    path = os.path.abspath(options.file) if options.file else default_path(settings.data_dir, time.time())
    if os.path.isdir(path):
        raise InvalidInputError(f"{path} is a folder: name the file, such as {os.path.join(path, 'activity.db')}")
    made = back_up(settings, path, options.overwrite)
    if options.json:
        print_json(made._asdict())
    else:
        print(f"{printable(made.path)} ({size_of(made.bytes)}): {_contents(made)}, checked and sound")
    return 0


def add_restore_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="the copy; without one, list those there are")
    parser.epilog = (
        "The copy is checked from end to end first. What was there is kept as\n"
        "activity.db.<time>; notes and index are not touched.\n\n"
        "examples:\n  co data restore\n"
        "  co data restore ~/.local/share/co-cli/backups/activity-20261115T120000Z.db\n"
    )
    parser.set_defaults(run=restore_backup)


def restore_backup(options: argparse.Namespace) -> int:
    data_dir = _settings(options).data_dir
    if not options.file:
        return _list(options, data_dir)
    restored = restore(data_dir, os.path.abspath(options.file))
    if options.json:
        print_json({**restored.copy._asdict(), "kept": restored.kept})
        return 0
    print(f"activity.db is {printable(restored.copy.path)} now: {_contents(restored.copy)}")
    if restored.kept:
        print(f"What was there is kept as {printable(restored.kept)}")
    return 0


def _list(options: argparse.Namespace, data_dir: str) -> int:
    found = backups(data_dir)
    if options.json:
        print_json([{"path": path, "bytes": os.path.getsize(path)} for path in found])
    elif found:
        for path in found:
            print(f"{printable(path)}  ({size_of(os.path.getsize(path))})")
        print("`co data restore FILE` restores one of them.")
    else:
        print(f"No backup in {printable(os.path.join(data_dir, FOLDER))}: `co data backup` makes one.")
    return 0 if found else 1


def _settings(options: argparse.Namespace) -> Settings:
    return load_settings({"vault": options.vault, "data_dir": options.data_dir})


def _contents(copy: Copy) -> str:
    searches, documents = copy.rows.get("searches", 0), copy.rows.get("documents", 0)
    searched = f"{searches:,} search{'' if searches == 1 else 'es'}"
    return f"{count_of(documents, 'document')}, {searched}, {count_of(sum(copy.rows.values()), 'row')}"
