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
    "source list": Command("sources", "list what is searched", "sources"),
    "source refresh": Command("sources", "update the index from folders and web pages"),
    "source remove": Command("sources", "remove a folder or a file from the index"),
    "source tree": Command("sources", "show the files of each source"),
    "source skipped": Command("sources", "list what is not searched, by reason"),
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
ALIASES = {"source add": "add"}
LEFT_OUT = {"co note article": "add", "co data export": "--to", "co data import": "obsidian"}
"""The word that people leave out before what they name."""

INTRODUCTION = """\
A memory for agents and people, kept in Markdown files that you own.

  co demo "who decides what ships"       try it on the sample vault
  co init                                create a vault in this project
  co remember "Blue first." --tag deploy
  co search "how do we deploy"
"""
EXPLAIN = "`co COMMAND --help` explains a command, `co help --all` lists all of them."
EVERYWHERE = "everywhere"
"""The title of the group of options that every command has."""
WIDTH = 80
"""Mistakes are shown in one line of a usual terminal."""
FIRST = ("search", "remember", "show", "list", "add", "edit", "forget", "chat", "web", "setup")
"""What most people use. `co help --all` lists the rest."""


class Parser(argparse.ArgumentParser):
    """argparse, except that a mistake is one line, with the option that was probably meant."""

    def __init__(self, **settings: Any) -> None:
        # with a given width: for each option, argparse would import shutil to ask for the terminal's
        def formatter(prog: str) -> argparse.HelpFormatter:
            return argparse.RawDescriptionHelpFormatter(prog, width=terminal_width())

        super().__init__(formatter_class=formatter, allow_abbrev=False, **settings)
        self._positionals.title = "arguments"

    def format_usage(self) -> str:
        needed = [action for action in self._actions if not action.option_strings or action.required]
        formatter = argparse.HelpFormatter(f"{self.prog} [options]", width=terminal_width())
        formatter.add_usage(None, needed, ())
        return formatter.format_help()

    def format_help(self, everything: bool = False) -> str:
        """With the options that most people use; with `everything` also those in groups, by subject."""
        usual = (self._positionals, self._optionals)
        groups = [group for group in self._action_groups if group not in usual and group.title != EVERYWHERE]
        formatter = self._get_formatter()
        formatter.add_usage((self.usage or self.format_usage()[7:]).strip(), (), ())
        formatter.add_text(self.description)
        for group in (*usual, *(groups if everything else ())):
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)  # pyright: ignore[reportPrivateUsage]
            formatter.end_section()
        formatter.add_text(self.epilog)
        more = sum(len(group._group_actions) for group in groups)  # pyright: ignore[reportPrivateUsage]
        if more and not everything:
            formatter.add_text(f"`{self.prog} --help-all` shows {more} more options.")
        if len(groups) + 2 < len(self._action_groups):
            formatter.add_text("`co help --all` explains what every command takes: --vault, --json and others.")
        return formatter.format_help()

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


class HelpAll(argparse.Action):
    """`--help-all`."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> NoReturn:
        assert isinstance(parser, Parser)
        print(parser.format_help(everything=True), end="")
        parser.exit()


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
        add_help=False,
    )
    if add_options := getattr(module, f"add_{function}", None):
        add_options(parser)
    parser.set_defaults(run=run)
    _add_everywhere(parser.add_argument_group(EVERYWHERE), served=name in SERVED)
    return parser


def split_command(words: list[str]) -> tuple[str, list[str]]:
    """The name of the command, and the other words: without a verb the name of a group, without a command nothing."""
    name, rest, place = "", list(words), 0
    while place < len(rest) and (not name or name in GROUPS):
        if rest[place].startswith("-"):
            place += 2 if rest[place] in ("--vault", "--data-dir", "--server") else 1
        else:
            name = f"{name} {rest.pop(place)}".lstrip()
    return ALIASES.get(name, name), rest


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
    if group:
        print(f"{_listing(group)}\n\n{EXPLAIN}", file=stream)
    elif {"--all", "--help-all"} & {*options}:
        print(_everything(), file=stream)
    elif (given := main_parser().parse_args([word for word in options if word not in ("-h", "--help")])).version:
        print("\n".join(_about_program()) if given.verbose else f"co {__version__}", file=stream)
    else:  # fits a small terminal
        commands = "\n".join(f"  {name:<10}{COMMANDS[name].summary}" for name in FIRST)
        print(f"{INTRODUCTION}\nStart here:\n{commands}\n\n{EXPLAIN}", file=stream)


def _about_program() -> list[str]:
    from co_cli.upkeep.about import about_program  # reads the metadata of every package

    return about_program()


def _everything() -> str:
    """All commands by subject, and the options that every command has."""
    parts = [_listing("", FIRST), *map(_listing, GROUPS)]
    rest = [name for name in COMMANDS if " " not in name and name not in FIRST]
    parts += [
        _listing("agents, servers and setup", rest),
        main_parser().format_help(everything=True).partition("\n\n")[2],
    ]
    return "\n\n".join(parts).rstrip()


def _listing(group: str, names: Iterable[str] = ()) -> str:
    """The commands of a group, or these."""
    title = GROUPS.get(group, group) or "What most people use"
    names = names or [name for name in COMMANDS if name.startswith(f"{group} ")]
    lines = "\n".join(f"  co {name:<19}{COMMANDS[name].summary}" for name in names)
    return f"{title[0].upper()}{title[1:]}:\n{lines}"


def main_parser() -> Parser:
    """The options that every command has, and those of `co` alone."""
    parser = Parser(prog="co", usage="co COMMAND [options]", add_help=False)
    parser.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    _add_everywhere(parser.add_argument_group("options of every command"))
    return parser


def _add_everywhere(group: Any, served: bool = True) -> None:
    group.add_argument("--vault", metavar="DIR", help="the folder of notes (else CO_VAULT, the project's, your own)")
    group.add_argument("--data-dir", metavar="DIR", help="where search.db lives (else CO_DATA_DIR, your data folder)")
    server = "a `co serve` instead of a folder; the token is in CO_TOKEN"
    group.add_argument("--server", metavar="URL", help=server if served else argparse.SUPPRESS)
    group.add_argument("--json", action="store_true", help="print JSON, for programs")
    group.add_argument("--verbose", action="store_true", help="log details to stderr; with --version: more versions")
    group.add_argument("-h", "--help", action="help", help="explain a command, with the options that most people use")
    group.add_argument("--help-all", action=HelpAll, nargs=0, help="explain a command, with all its options")
