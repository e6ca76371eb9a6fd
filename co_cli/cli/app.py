"""`co`: find the command, build only its parser, run it, and turn errors into one line and an exit code.

0 done, 1 nothing found, 2 wrong usage or bad input, 3 something is broken, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from co_cli.cli.terminal import printable
from co_cli.errors import KnowledgeError
from co_cli.places import this_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class Command(NamedTuple):
    """Where a command lives and what it does, in a few words."""

    module: str
    summary: str
    group: str


COMMANDS = {
    "search": Command("search", "search all notes", "Find"),
    "recall": Command("search", "search memories and show them whole", "Find"),
    "why": Command("why", "say why a note was found, or was not", "Find"),
    "list": Command("notes", "list notes, newest first", "Find"),
    "tags": Command("narrowing", "list the tags, and how many notes have each", "Find"),
    "show": Command("notes", "show one note", "Find"),
    "history": Command("history", "show what became of a note", "Find"),
    "feedback": Command("feedback", "say whether a note was the answer", "Find"),
    "remember": Command("notes", "save a memory", "Write"),
    "edit": Command("notes", "change a note, in your editor or field by field", "Write"),
    "forget": Command("notes", "move a note to the trash", "Write"),
    "restore": Command("notes", "bring a forgotten note back", "Write"),
    "article": Command("article", "add articles from files, folders or standard input", "Write"),
    "import": Command("exchange", "bring in notes and chats from other services", "Write"),
    "export": Command("exchange", "give the notes out as Markdown or JSONL", "Write"),
    "add": Command("sources", "make folders, files and web pages searchable", "Sources"),
    "sources": Command("sources", "list what is searched", "Sources"),
    "refresh": Command("sources", "look at folders and web pages again", "Sources"),
    "remove": Command("sources", "take a folder or a file out of the index", "Sources"),
    "tree": Command("sources", "show the files of each source", "Sources"),
    "skills": Command("skills", "list, find and show skills for agents", "Sources"),
    "chat": Command("chat", "talk with a model that has your notes", "Talk"),
    "init": Command("setup", "make a vault here", "Set up"),
    "trust": Command("trust", "let a project's or a team's notes come beside a prompt", "Set up"),
    "adopt": Command("adopt", "bring along what is known of a vault that was moved", "Set up"),
    "demo": Command("setup", "search the sample vault", "Set up"),
    "settings": Command("setup", "show every setting and where it came from", "Set up"),
    "mcp": Command("mcp", "serve the vault to MCP clients such as Claude Code", "Set up"),
    "completion": Command("completion", "print shell completion for bash, zsh or fish", "Set up"),
    "sync": Command("index", "bring the index up to the files", "Look after"),
    "watch": Command("watch", "keep the index up to the files while you work", "Look after"),
    "rebuild": Command("index", "make the index anew from the files", "Look after"),
    "reembed": Command("index", "make the vectors anew, as a new model needs", "Look after"),
    "status": Command("index", "show what is there, in numbers", "Look after"),
    "doctor": Command("index", "check everything and name a cure for each finding", "Look after"),
    "verify": Command("verify", "prove that the index holds what the files say", "Look after"),
    "backup": Command("backup", "copy activity.db, which no file brings back", "Look after"),
    "restore-backup": Command("backup", "bring a copy of activity.db back", "Look after"),
    "review": Command("review", "find what went stale, and decide about each with a key", "Look after"),
    "context": Command("context", "show what an agent is given before its first turn", "Talk"),
    "stats": Command("stats", "show what is asked for, and what is found", "Look after"),
    "tune": Command("tune", "show what feedback teaches about ranking, and apply it", "Look after"),
    "eval": Command("eval", "measure how well questions are answered", "Look after"),
}

PLAIN = ("search", "recall")
"""Commands whose arguments need no parser when none of them is an option: argparse costs half a Python start."""


def run() -> NoReturn:
    """The `co` command: `main`, and out, without taking the interpreter apart, which costs half a Python start."""
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
    """One command. `last` says that the process ends with it."""
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
        if error.filename is not None:
            return _complain(_no_room(error) or _crashed(error), 3)
        sys.stdout = None  # type: ignore[assignment]  # it cannot be flushed at the end either
        return _complain(f"the output cannot be written: {error.strerror}", 3)
    except KeyboardInterrupt:
        from co_cli.notes.files import discard_unfinished

        discard_unfinished()
        return _complain("stopped; what was done so far is kept", 130)
    except Exception as error:
        return _complain(_crashed(error), 3)
    finally:
        this_process.command = None


def _run(arguments: list[str], last: bool = False) -> int:
    place = command_place(arguments)
    if place is None:
        from co_cli.cli.parsing import main_parser

        parser = main_parser()
        options = parser.parse_args(arguments)
        if options.version:
            from co_cli import __version__

            print(f"co {__version__}")
            return 0
        parser.print_help()
        return 0 if not arguments or options.help_wanted else 2
    name = arguments[place]
    if name == "help":
        return _run([*arguments[place + 1 :][:1], "--help"])
    if name not in COMMANDS:
        return _complain(_unknown_command(name), 2)
    started = time.perf_counter()
    this_process.command, this_process.verbose, this_process.chatty = name, False, False
    this_process.vault = this_process.data_dir = None
    rest = [*arguments[:place], *arguments[place + 1 :]]
    quick = name in PLAIN and rest and not any(argument.startswith("-") for argument in rest)
    if quick:
        gc.disable()  # it ends before garbage matters
    module = _import(f"co_cli.cli.{COMMANDS[name].module}")
    if quick:
        options = module.PlainQuery(getattr(module, name), rest)
        options.last = last
    else:
        from co_cli.cli.parsing import make_parser

        parser = make_parser(name, module)
        plain = name == "completion" or "--" in rest  # argparse cannot mix options and words then
        options = parser.parse_args(rest) if plain else parser.parse_intermixed_args(rest)
    this_process.vault, this_process.data_dir, this_process.verbose = options.vault, options.data_dir, options.verbose
    this_process.chatty = this_process.verbose
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - somebody closed it, and wants no output
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a note may hold what the terminal cannot show
    code: int = options.run(options)
    sys.stdout.flush()
    if this_process.chatty:
        _ended(name, code, started)
    return code


def _no_room(error: OSError) -> str | None:
    """A full disk is nobody's bug."""
    from co_cli.index.sqlite.files import no_room

    full = no_room(os.fsdecode(error.filename), error)
    return full and f"it cannot be written: {full}; free some space"


def _crashed(error: Exception) -> str:
    from co_cli.logbook import crashed  # slow to import, and hardly ever needed

    return crashed(error)


def _ended(name: str, code: int, started: float) -> None:
    from co_cli.logbook import logger

    took = round((time.perf_counter() - started) * 1000, 1)
    fields = {"code": code, "ms": took}
    logger("cli").info("co %s ended with %d after %s ms", name, code, took, extra={"fields": fields})


def _import(name: str) -> Any:
    """As importlib would, which imports warnings."""
    __import__(name)
    return sys.modules[name]


def command_place(arguments: list[str]) -> int | None:
    """Where the command stands behind the options that may precede it."""
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


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean `co {close[0]}`?" if close else "`co --help` lists them"
    return f"unknown command {name!r}: {hint}"


def _complain(message: str, code: int) -> int:
    print(f"co: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code
