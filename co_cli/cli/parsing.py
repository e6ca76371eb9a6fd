"""The commands of `co`, and the parser of each: argparse, except that a mistake is one line.

A command is a function `run_NAME(options)` that returns the exit code. Its docstring is the end of its help, and
`add_NAME(parser)`, if there is one, adds its options. The module of a command is imported when the command runs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple, NoReturn, TextIO

from co_cli.cli.terminal import printable, terminal_width
from co_cli.ground.paths import shell_line
from co_cli.version import __version__


class Command(NamedTuple):
    """Where a command is implemented, and what it does."""

    module: str
    summary: str
    function: str = ""
    """NAME of `run_NAME` and `add_NAME`, if it is not the last word of the command."""


COMMANDS = {
    "search": Command("search", "search all notes"),
    "remember": Command("notes", "save a memory"),
    "show": Command("notes", "show notes"),
    "open": Command("notes", "open a note's file in its program"),
    "list": Command("notes", "list notes, newest first"),
    "add": Command("sources", "make folders, files and web pages searchable"),
    "chat": Command("chat", "talk with a model that has your notes"),
    "web": Command("web", "search, read and edit your notes in a browser"),
    "edit": Command("notes", "change a note, in your editor or field by field"),
    "forget": Command("notes", "move notes to the trash"),
    "note restore": Command("notes", "restore a note from the trash"),
    "note recall": Command("search", "search memories and entities, and show their full text"),
    "note why": Command("search", "explain why a note was found, or was not"),
    "note history": Command("note_history", "show a note's history"),
    "note tags": Command("search", "list the tags, and how many notes have each"),
    "note article": Command("sources", "copy files, folders or standard input into the vault"),
    "note context": Command("agent_context", "show what an agent is given before its first turn"),
    "note extract": Command("note_extract", "propose memories from conversations"),
    "note review": Command("note_review", "review proposed memories and stale notes one by one"),
    "source add": Command("sources", "make folders, files and web pages searchable"),
    "source list": Command("sources", "list what is searched", "sources"),
    "source refresh": Command("sources", "update the index from folders and web pages"),
    "source remove": Command("sources", "remove a folder or a file from the index"),
    "source tree": Command("sources", "show the files of each source"),
    "index sync": Command("index", "update the index from your files"),
    "index watch": Command("index", "keep the index updated while you work"),
    "index status": Command("index", "show what is indexed"),
    "index rebuild": Command("index", "rebuild the index from your files"),
    "index reembed": Command("index", "compute all vectors again"),
    "index verify": Command("index", "compare the index with your files"),
    "index move": Command("index", "keep a vault's history after you moved it"),
    "skill": Command("skill", "list, find and show skills for agents"),
    "feedback give": Command("ratings", "rate a note as an answer to a question"),
    "feedback tune": Command("ratings", "show what feedback changes in ranking, and apply it"),
    "feedback stats": Command("ratings", "show search statistics"),
    "checkpoint list": Command("checkpoint", "list conversations to continue from"),
    "checkpoint show": Command("checkpoint", "show what a checkpoint is about"),
    "checkpoint remove": Command("checkpoint", "move a checkpoint to the trash"),
    "data import": Command("data", "import notes and chats from other services"),
    "data export": Command("data", "export your notes as Markdown or JSONL"),
    "data backup": Command("data", "back up activity.db (history and feedback)"),
    "data restore": Command("data", "restore activity.db from a backup"),
    "config show": Command("setup", "show every setting and where it comes from", "settings"),
    "config set": Command("setup", "change a setting in the file it belongs in"),
    "config unset": Command("setup", "remove a setting from the file that has it"),
    "config trust": Command("setup", "allow a vault's notes to be added to prompts"),
    "config completion": Command("completion", "print shell completion for bash, zsh or fish"),
    "init": Command("setup", "create a vault here"),
    "demo": Command("setup", "search the sample vault"),
    "mcp": Command("mcp", "serve the vault to MCP clients such as Claude Code"),
    "setup": Command("coding_agents", "give Claude Code and other coding agents access to your notes"),
    "hook": Command("hook", "answer an event of a coding agent"),
    "serve": Command("serve", "serve the vault to a team: API, page and MCP"),
    "token create": Command("serve", "create a token for co serve"),
    "token list": Command("serve", "list the tokens"),
    "token rotate": Command("serve", "replace a token with a new one of the same name"),
    "token revoke": Command("serve", "revoke a token"),
    "token log": Command("serve", "show who created, rotated and revoked tokens"),
    "doctor": Command("index", "check everything, and suggest a fix for each problem"),
    "eval": Command("eval", "measure how well questions are answered"),
}
SERVED = (
    "search", "remember", "show", "list", "edit", "forget",
    "note context", "note recall", "note restore", "note tags",
)  # fmt: skip
"""These work with --server. The others need the files."""
GROUPS = {
    "note": "history, tags, review and more of your notes",
    "source": "folders, files and web pages that are searched",
    "index": "update, watch and check the search index",
    "feedback": "rate answers, and tune the ranking with your ratings",
    "checkpoint": "conversations to continue from",
    "data": "import, export and back up",
    "config": "settings, trust and shell completion",
    "token": "who may use co serve",
}
"""The first words of commands such as `co index sync`."""
MEANT = {
    "find": "search", "query": "search", "ask": "search", "rm": "forget", "delete": "forget", "new": "remember",
    "save": "remember", "ls": "list", "cat": "show", "trash": "list --trash", "settings": "config show",
    "version": "--version", **dict.fromkeys(("undo", "note undo"), "note history REF` or `co note restore REF"),
}  # fmt: skip
"""What people type, and the command that does it."""
LEFT_OUT = {"co note article": "add", "co data export": "--to", "co data import": "obsidian"}
"""The word that people leave out before what they name."""

INTRODUCTION = """\
A memory for agents and people, kept in Markdown files that you own.

  co demo "who decides what ships"       try it on the sample vault
  co init                                create a vault in this project
  co remember "Blue first." --tag deploy
  co search "how do we deploy"
"""
WIDTH = 80
"""Mistakes are shown in one line of a usual terminal."""
FIRST = ("search", "remember", "show", "list", "add", "chat", "web", "setup")
SECOND = ("edit", "forget")
UNLISTED = ("open", "eval", "token", "checkpoint", "hook")
"""Only `co help --all` lists these: a first look at `co` shows at most twenty names."""


class Parser(argparse.ArgumentParser):
    """argparse, except that a mistake is one line, with the option that was probably meant."""

    def __init__(self, **settings: Any) -> None:
        # with a given width: for each option, argparse would import shutil to ask for the terminal's
        def formatter(prog: str) -> argparse.HelpFormatter:
            return argparse.RawDescriptionHelpFormatter(prog, width=terminal_width())

        super().__init__(formatter_class=formatter, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (?:[^:]*/)?(\S+): ", r"\1 ", message)
        message = re.sub(r"^(\S+) invalid (?:int|float) value:", r"\1 must be a number, not", message)
        message = re.sub(r"^(\S+) expected .*", r"\1 needs a value", message)
        message = re.sub(r"^(\S+) not allowed with argument (?:[^:]*/)?(\S+)", r"\1 and \2 cannot be combined", message)
        message = re.sub(r"^the following arguments are required: ", "missing ", message)
        choice = re.fullmatch(r"(\S+) invalid choice: (.+?) \(choose from (.+)\)", message)
        if choice:
            message = f"{choice[1]} must be one of {choice[3].replace(chr(39), '')}, not {choice[2]}"
            if word := LEFT_OUT.get(self.prog):
                message = f"the command is `{self.prog} {word} {shell_line(choice[2][1:-1])}` ({message})"
        hint = ""
        if message.startswith("unrecognized arguments: -"):
            option = message.split()[2].partition("=")[0]
            from difflib import get_close_matches  # only for a mistake

            close = get_close_matches(option, self._option_string_actions, n=1, cutoff=0.7)
            hint = f"; did you mean {close[0]}?" if close else "; write -- before words that begin with a dash"
        line, more = printable(f"{self.prog}: {message}{hint}"), f" (`{self.prog} --help` explains)"
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
        epilog=cleandoc(run.__doc__ or ""),
    )
    if add_options := getattr(module, f"add_{function}", None):
        add_options(parser)
    parser.set_defaults(run=run)
    everywhere = parser.add_argument_group("everywhere")
    _add_places(everywhere, served=name in SERVED)
    everywhere.add_argument("--json", action="store_true", help="print JSON, for programs")
    everywhere.add_argument("--verbose", action="store_true", help="log details to stderr")
    return parser


def split_command(words: list[str]) -> tuple[str, list[str]]:
    """The name of the command, and the other words: without a verb the name of a group, without a command nothing."""
    name, rest, place = "", list(words), 0
    while place < len(rest) and (not name or name in GROUPS):
        if rest[place].startswith("-"):
            place += 2 if rest[place] in ("--vault", "--data-dir", "--server") else 1
        else:
            name = f"{name} {rest.pop(place)}".lstrip()
    return name, rest


def unknown_command(name: str) -> str:
    """A message with the command that was probably meant."""
    from difflib import get_close_matches  # only for a mistake

    first, _, verb = name.partition(" ")
    close = [MEANT[name]] if name in MEANT else [known for known in COMMANDS if known.endswith(f" {verb or first}")]
    group = f" {first}" if verb else ""
    verbs = [known.partition(" ")[2] for known in COMMANDS if verb and known.startswith(f"{first} ")]
    near = get_close_matches(verb if verbs else name, verbs or COMMANDS, n=1, cutoff=0.7)
    close = close or [f"{group} {found}".lstrip() if verbs else found for found in near]
    hint = f"did you mean `co {close[0]}`?" if close else f"`co{group} --help` lists the commands"
    return f"unknown command {name!r}: {hint}"


def print_help(group: str, options: list[str], stream: TextIO) -> None:
    """`co`, `co --help`, `co --version`, `co help --all` and `co help index`."""
    if group or "--all" in options:
        print(group_help(group), file=stream)
    elif not options:  # the first look, which fits a small terminal
        more = "`co COMMAND --help` explains a command, `co --help` lists more."
        print(INTRODUCTION, _listing("Start here", FIRST), f"\n{more}", sep="\n", file=stream)
    elif (given := main_parser().parse_args(options)).version:
        print("\n".join(_about_program()) if given.verbose else f"co {__version__}", file=stream)
    else:
        main_parser().print_help(stream)


def _about_program() -> list[str]:
    from co_cli.upkeep.about import about_program  # reads the metadata of every package

    return about_program()


def _listing(title: str, names: Iterable[str]) -> str:
    summaries = {name: command.summary for name, command in COMMANDS.items()} | GROUPS
    return f"{title}:\n" + "\n".join(f"  {name:<10}{summaries[name]}" for name in names)


def main_parser() -> Parser:
    rest = [name for name in COMMANDS if " " not in name and name not in (*FIRST, *SECOND, *UNLISTED)]
    parts = {
        "Start here": FIRST,
        "Change notes": SECOND,
        "More, as in `co index sync`": [name for name in GROUPS if name not in UNLISTED],
        "Agents, servers and setup": rest,
    }
    listing = "\n\n".join(_listing(title, names) for title, names in parts.items())
    parser = Parser(
        prog="co",
        usage="co [--vault DIR] [--data-dir DIR] [--server URL] COMMAND ...",
        description=INTRODUCTION,
        epilog=f"{listing}\n\n`co COMMAND --help` explains a command, `co help --all` lists every command.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    parser.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    parser.add_argument("--verbose", action="store_true", help="with --version: also those of Python and packages")
    _add_places(parser)
    return parser


def group_help(group: str) -> str:
    """The commands of one group, or all."""
    names = [name for name in COMMANDS if not group or name.startswith(f"{group} ")]
    lines = "\n".join(f"  co {name:<19}{COMMANDS[name].summary}" for name in names)
    title = f"{GROUPS[group][0].upper()}{GROUPS[group][1:]}." if group else "Every command."
    return f"{title}\n\n{lines}\n\n`co COMMAND --help` explains a command with examples."


def _add_places(group: Any, served: bool = True) -> None:
    group.add_argument("--vault", metavar="DIR", help="the folder of notes (else CO_VAULT, the project's, your own)")
    group.add_argument("--data-dir", metavar="DIR", help="where search.db lives (else CO_DATA_DIR, your data folder)")
    server = "a `co serve` instead of a folder; the token is in CO_TOKEN"
    group.add_argument("--server", metavar="URL", help=server if served else argparse.SUPPRESS)
