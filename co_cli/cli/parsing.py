"""The parsers of `co` and of each command: argparse, except that a mistake is one line."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import Any, NoReturn

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
    """argparse, except that a mistake is one line."""

    def error(self, message: str) -> NoReturn:
        choice = re.fullmatch(r"argument (?:.*/)?(\S+): invalid choice: (.+?) \(choose from (.+)\)", message)
        if choice:
            message = f"{choice[1]} is one of {choice[3].replace(chr(39), '')}, not {choice[2]}"
        dashed = message.startswith("unrecognized arguments: -")
        hint = self._meant(message.split()[2]) or "; write -- before words that begin with a dash" if dashed else ""
        line, more = f"{self.prog}: {message}{hint}", f" (`{self.prog} --help` explains)"
        self.exit(2, f"{line}{more if len(line + more) <= WIDTH else ''}\n")

    def _meant(self, unknown: str) -> str:
        """The option that is nearly called so."""
        from difflib import get_close_matches  # for the day when it is wrong

        close = get_close_matches(unknown.partition("=")[0], self._option_string_actions, n=1, cutoff=0.7)
        return f"; did you mean {close[0]}?" if close else ""


def make_parser(name: str, module: Any = None) -> Parser:
    """The parser of one command, with the options that every command has."""
    module = module or import_module(f"co_cli.cli.{COMMANDS[name].module}")
    parser = Parser(
        prog=f"co {name}",
        description=COMMANDS[name].summary[0].upper() + COMMANDS[name].summary[1:] + ".",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    getattr(module, f"add_{COMMANDS[name].builder or name.rpartition(' ')[2]}")(parser)
    everywhere = parser.add_argument_group("everywhere")
    _add_places(everywhere)
    everywhere.add_argument("--json", action="store_true", help="print JSON, for programs")
    everywhere.add_argument("--verbose", action="store_true", help="log details to stderr")
    return parser


def main_parser() -> Parser:
    alone = {name: command.summary for name, command in COMMANDS.items() if " " not in name}
    listed = {**{name: alone.pop(name) for name in FIRST}, **{name: alone.pop(name) for name in SECOND}}
    parts = [list(listed)[: len(FIRST)], list(listed)[len(FIRST) :], list(GROUPS), list(alone)]
    summaries = {**listed, **GROUPS, **alone}
    titles = ("Start here", "Change notes", "More, as in `co index sync`", "Set up and check")
    listing = "\n\n".join(
        f"{title}:\n" + "\n".join(f"  {name:<10}{summaries[name]}" for name in names)
        for title, names in zip(titles, parts, strict=True)
    )
    parser = Parser(
        prog="co",
        usage="co [--vault DIR] [--data-dir DIR] COMMAND ...",
        description=INTRODUCTION,
        epilog=f"{listing}\n\n`co COMMAND --help` explains a command, `co help --all` lists every command.",
        formatter_class=_formatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("-h", "--help", action="store_true", dest="help_wanted", help="show this and exit")
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    _add_places(parser)
    return parser


def group_help(group: str | None) -> str:
    """The commands of one group, or all."""
    names = [name for name in COMMANDS if group is None or name.startswith(f"{group} ")]
    lines = "\n".join(f"  co {name:<19}{COMMANDS[name].summary}" for name in names)
    title = f"{GROUPS[group][0].upper()}{GROUPS[group][1:]}." if group else "Every command."
    return f"{title}\n\n{lines}\n\n`co COMMAND --help` explains a command with examples."


def _formatter(prog: str) -> argparse.HelpFormatter:
    """With a width of its own: argparse would import shutil for every option, to ask for the terminal's."""
    return argparse.RawDescriptionHelpFormatter(prog, width=terminal_width())


def _add_places(group: Any) -> None:
    group.add_argument("--vault", metavar="DIR", help="the folder of notes (else CO_VAULT, the project's, your own)")
    group.add_argument("--data-dir", metavar="DIR", help="where search.db lives (else CO_DATA_DIR, your data folder)")
