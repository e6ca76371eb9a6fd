"""`co`: find the command, build only its parser, run it, and turn errors into one line and an exit code.

A command is a function `run_NAME(options)` that returns the exit code. Its docstring is the end of its help, and
`add_NAME(parser)`, if there is one, adds its options. The module of a command is imported when the command runs.

Exit codes: 0 success, 1 nothing found, 2 wrong usage or bad input, 3 something is broken, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from co_cli.cli.terminal import printable
from co_cli.errors import KnowledgeError
from co_cli.index.sqlite.database_files import no_room
from co_cli.notes.files import discard_unfinished
from co_cli.settings import this_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class Command(NamedTuple):
    """Where a command is implemented, and what it does."""

    module: str
    summary: str
    function: str = ""
    """NAME of `run_NAME` and `add_NAME`, if it is not the last word of the command."""


COMMANDS = {
    "search": Command("search", "search all notes"),
    "remember": Command("notes", "save a memory"),
    "show": Command("notes", "show one note"),
    "list": Command("notes", "list notes, newest first"),
    "add": Command("sources", "make folders, files and web pages searchable"),
    "chat": Command("chat", "talk with a model that has your notes"),
    "edit": Command("notes", "change a note, in your editor or field by field"),
    "forget": Command("notes", "move a note to the trash"),
    "note restore": Command("notes", "restore a note from the trash"),
    "note recall": Command("search", "search memories and show their full text"),
    "note why": Command("search", "explain why a note was found, or was not"),
    "note history": Command("history", "show a note's history"),
    "note tags": Command("search", "list the tags, and how many notes have each"),
    "note article": Command("sources", "copy files, folders or standard input into the vault"),
    "note context": Command("context", "show what an agent is given before its first turn"),
    "note review": Command("review", "review stale notes one by one"),
    "source add": Command("sources", "make folders, files and web pages searchable"),
    "source list": Command("sources", "list what is searched", "sources"),
    "source refresh": Command("sources", "update the index from folders and web pages"),
    "source remove": Command("sources", "remove a folder or a file from the index"),
    "source tree": Command("sources", "show the files of each source"),
    "index sync": Command("index", "update the index from your files"),
    "index watch": Command("index", "keep the index updated while you work"),
    "index status": Command("index", "show what is indexed, in numbers"),
    "index rebuild": Command("index", "rebuild the index from your files"),
    "index reembed": Command("index", "compute all vectors again"),
    "index verify": Command("index", "compare the index with your files"),
    "index move": Command("index", "keep a vault's history after you moved it"),
    "skill": Command("skill", "list, find and show skills for agents"),
    "feedback give": Command("feedback", "rate a note as an answer to a question"),
    "feedback tune": Command("feedback", "show what feedback changes in ranking, and apply it"),
    "feedback stats": Command("stats", "show search statistics"),
    "data import": Command("data", "import notes and chats from other services"),
    "data export": Command("data", "export your notes as Markdown or JSONL"),
    "data backup": Command("data", "back up activity.db (history and feedback)"),
    "data restore": Command("data", "restore activity.db from a backup"),
    "config show": Command("setup", "show every setting and where it came from", "settings"),
    "config trust": Command("setup", "allow a vault's notes to be added to prompts"),
    "config completion": Command("completion", "print shell completion for bash, zsh or fish"),
    "init": Command("setup", "create a vault here"),
    "demo": Command("setup", "search the sample vault"),
    "mcp": Command("mcp", "serve the vault to MCP clients such as Claude Code"),
    "doctor": Command("index", "check everything, and name a fix for each problem"),
    "eval": Command("eval", "measure how well questions are answered"),
}
GROUPS = {
    "note": "history, tags, review and more of your notes",
    "source": "folders, files and web pages that are searched",
    "index": "update, watch and check the search index",
    "feedback": "rate answers, and tune the ranking with your ratings",
    "data": "import, export and back up",
    "config": "settings, trust and shell completion",
}
"""The first words of commands such as `co index sync`."""
MEANT = {
    "find": "search", "query": "search", "ask": "search", "rm": "forget", "delete": "forget", "new": "remember",
    "save": "remember", "ls": "list", "cat": "show", "open": "show", "trash": "list --trash", "settings": "config show",
}  # fmt: skip
"""What people type, and the command that does it."""

PLAIN = ("search", "note recall")
"""Commands that run without argparse when no option is given, because importing it takes half of Python's start."""


def run() -> NoReturn:
    """The `co` command. Exits without tearing down the interpreter, which saves half of Python's start time."""
    code = main(last=True)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        code = code or 3
    finally:
        os._exit(code)


def main(arguments: Sequence[str] | None = None, last: bool = False) -> int:
    """Run one command. `last`: the process ends with it."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(arguments, last)
    except KnowledgeError as error:
        return _complain(str(error), error.exit_code)
    except BrokenPipeError:
        # the reader of a pipe went away, as `head` does: not an error, but Python must not try to flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            sys.stdout = None  # type: ignore[assignment]  # it cannot be flushed at the end either
            return _complain(f"the output cannot be written: {error.strerror}", 3)
        full = no_room(os.fsdecode(error.filename), error)
        return _complain(f"it cannot be written: {full}; free some space" if full else _crashed(error), 3)
    except KeyboardInterrupt:
        discard_unfinished()
        return _complain("stopped; nothing is broken, run it again to finish", 130)
    except Exception as error:
        return _complain(_crashed(error), 3)
    finally:
        this_process.command = None


def _run(arguments: list[str], last: bool = False) -> int:
    place = command_place(arguments)
    if place is None:
        return _help(arguments, code=0 if not arguments or {"-h", "--help", "--version"} & {*arguments} else 2)
    name, rest = arguments[place], [*arguments[:place], *arguments[place + 1 :]]
    if name == "help":
        return _help(rest)
    if name in GROUPS:
        verb = command_place(rest[place:])
        if verb is None:
            return _help([name], code=0 if {"-h", "--help"} & {*rest} else 2)
        name = f"{name} {rest.pop(place + verb)}"
    if name not in COMMANDS:
        return _complain(_unknown_command(name), 2)
    started = time.perf_counter()
    this_process.command, this_process.verbose, this_process.chatty = name, False, False
    this_process.vault = this_process.data_dir = None
    quick = name in PLAIN and rest and not any(argument.startswith("-") for argument in rest)
    if quick:
        gc.disable()  # the process ends before garbage matters
        module = _import("co_cli.cli.search")
        options = module.PlainQuery(getattr(module, f"run_{name.rpartition(' ')[2]}"), rest, last)
    else:
        parser = _import("co_cli.cli.parsing").make_parser(name)
        plain = name == "config completion" or "--" in rest  # argparse cannot mix options and words then
        options = parser.parse_args(rest) if plain else parser.parse_intermixed_args(rest)
    this_process.vault, this_process.data_dir, this_process.verbose = options.vault, options.data_dir, options.verbose
    this_process.chatty = this_process.verbose
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the parent process closed it
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a note may hold what the terminal cannot show
    code: int = options.run(options)
    sys.stdout.flush()
    if this_process.chatty:
        fields = {"code": code, "ms": round((time.perf_counter() - started) * 1000, 1)}
        log = _import("co_cli.logbook").logger("cli")
        log.info("co %s ended with %d after %s ms", name, *fields.values(), extra={"fields": fields})
    return code


def _crashed(error: Exception) -> str:
    return _import("co_cli.logbook").crashed(error)


def _import(name: str) -> Any:
    """Import a module when it is needed. (importlib.import_module would import warnings.)"""
    __import__(name)
    return sys.modules[name]


def command_place(arguments: list[str]) -> int | None:
    """The position of the command, after any options before it."""
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        if argument in ("--vault", "--data-dir"):
            place += 2
        elif argument.startswith("-"):
            place += 1
        else:
            return place
    return None


def _help(words: list[str], code: int = 0) -> int:
    """`co`, `co --version`, `co help`, `co help --all`, `co help index` and `co help index sync`."""
    parsing = _import("co_cli.cli.parsing")
    names = [] if code else [word for word in words if not word.startswith("-")]
    if "--all" in words:
        print(parsing.group_help(None))
    elif words in ([group] for group in GROUPS):
        print(parsing.group_help(words[0]), file=sys.stderr if code else sys.stdout)
    elif not names:
        parsing.print_main_help(words)
    else:
        return _run([*names[: 2 if names[0] in GROUPS else 1], "--help"])
    return code


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    first, _, verb = name.partition(" ")
    close = [known for known in COMMANDS if known.endswith(f" {verb or first}")]
    if first in MEANT and not verb:
        close = [MEANT[first]]
    elif not close and verb:
        verbs = [known.partition(" ")[2] for known in COMMANDS if known.startswith(f"{first} ")]
        close = [f"{first} {near}" for near in get_close_matches(verb, verbs, n=1)]
    elif not close:
        close = get_close_matches(name, COMMANDS, n=1)
    group = f" {first}" if verb else ""
    hint = f"did you mean `co {close[0]}`?" if close else f"`co{group} --help` lists the commands"
    return f"unknown command {name!r}: {hint}"


def _complain(message: str, code: int) -> int:
    print(f"co: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code
