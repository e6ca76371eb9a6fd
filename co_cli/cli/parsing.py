"""The parsers of `co` and of each command: argparse, except that a mistake is one line."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from co_cli import __version__
from co_cli.cli.app import COMMANDS, GROUPS
from co_cli.cli.terminal import terminal_width

INTRODUCTION = """\
A memory for agents and people, kept in Markdown files that you own.

  co demo "who decides what ships"       try it on the sample vault
  co init                                make a vault in this project
  co remember "Blue first." --tag deploy
  co search "how do we deploy"
"""
WIDTH = 80
"""Mistakes are shown in one line of a usual terminal."""
FIRST = ("search", "remember", "show", "list", "add", "chat")
SECOND = ("edit", "forget")


class Parser(argparse.ArgumentParser):
    """argparse, except that a mistake is one line, with the option that was probably meant."""

    def __init__(self, **settings: Any) -> None:
        # with a given width: for each option, argparse would import shutil to ask for the terminal's
        def formatter(prog: str) -> argparse.HelpFormatter:
            return argparse.RawDescriptionHelpFormatter(prog, width=terminal_width())

        super().__init__(formatter_class=formatter, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        choice = re.fullmatch(r"argument (?:.*/)?(\S+): invalid choice: (.+?) \(choose from (.+)\)", message)
        if choice:
            message = f"{choice[1]} is one of {choice[3].replace(chr(39), '')}, not {choice[2]}"
        hint = ""
        if message.startswith("unrecognized arguments: -"):
            option = message.split()[2].partition("=")[0]
            close = get_close_matches(option, self._option_string_actions, n=1, cutoff=0.7)
            hint = f"; did you mean {close[0]}?" if close else "; write -- before words that begin with a dash"
        line, more = f"{self.prog}: {message}{hint}", f" (`{self.prog} --help` explains)"
        self.exit(2, f"{line}{more if len(line + more) <= WIDTH else ''}\n")


def make_parser(name: str) -> Parser:
    """The parser of one command, with the options that every command has."""
    command = COMMANDS[name]
    module = import_module(f"co_cli.cli.{command.module}")
    function = command.function or name.rpartition(" ")[2]
    run = getattr(module, f"run_{function}")
    parser = Parser(
        prog=f"co {name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=inspect.getdoc(run),
    )
    if add_options := getattr(module, f"add_{function}", None):
        add_options(parser)
    parser.set_defaults(run=run)
    everywhere = parser.add_argument_group("everywhere")
    _add_places(everywhere)
    everywhere.add_argument("--json", action="store_true", help="print JSON, for programs")
    everywhere.add_argument("--verbose", action="store_true", help="log details to stderr")
    return parser


def print_main_help(arguments: Sequence[str]) -> None:
    """`co --help` or `co --version`."""
    parser = main_parser()
    if parser.parse_args(arguments).version:
        print(f"co {__version__}")
    else:
        parser.print_help()


def main_parser() -> Parser:
    summaries = {name: command.summary for name, command in COMMANDS.items() if " " not in name} | GROUPS
    rest = [name for name in summaries if name not in (*FIRST, *SECOND, *GROUPS)]
    parts = {
        "Start here": FIRST,
        "Change notes": SECOND,
        "More, as in `co index sync`": GROUPS,
        "Set up and check": rest,
    }
    listing = "\n\n".join(
        f"{title}:\n" + "\n".join(f"  {name:<10}{summaries[name]}" for name in names) for title, names in parts.items()
    )
    parser = Parser(
        prog="co",
        usage="co [--vault DIR] [--data-dir DIR] COMMAND ...",
        description=INTRODUCTION,
        epilog=f"{listing}\n\n`co COMMAND --help` explains a command, `co help --all` lists every command.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    _add_places(parser)
    return parser


def group_help(group: str | None) -> str:
    """The commands of one group, or all."""
    names = [name for name in COMMANDS if group is None or name.startswith(f"{group} ")]
    lines = "\n".join(f"  co {name:<19}{COMMANDS[name].summary}" for name in names)
    title = f"{GROUPS[group][0].upper()}{GROUPS[group][1:]}." if group else "Every command."
    return f"{title}\n\n{lines}\n\n`co COMMAND --help` explains a command with examples."


def _add_places(group: Any) -> None:
    group.add_argument("--vault", metavar="DIR", help="the folder of notes (else CO_VAULT, the project's, your own)")
    group.add_argument("--data-dir", metavar="DIR", help="where search.db lives (else CO_DATA_DIR, your data folder)")
