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
from co_cli.settings import this_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class Command(NamedTuple):
    """Where a command is implemented, and what it does."""

    module: str
    summary: str
    builder: str = ""
    """The suffix of the module's `add_` function, if it is not the last word of the command."""


COMMANDS = {
    "search": Command("search", "search all notes"),
    "remember": Command("notes", "save a memory"),
    "show": Command("notes", "show one note"),
    "list": Command("notes", "list notes, newest first"),
    "add": Command("sources", "make folders, files and web pages searchable"),
    "chat": Command("chat", "talk with a model that has your notes"),
    "edit": Command("notes", "change a note, in your editor or field by field"),
    "forget": Command("notes", "move a note to the trash"),
    "note restore": Command("notes", "bring a forgotten note back"),
    "note recall": Command("search", "search memories and show them whole"),
    "note why": Command("why", "explain why a note was found, or was not"),
    "note history": Command("history", "show a note's history"),
    "note tags": Command("narrowing", "list the tags, and how many notes have each"),
    "note article": Command("article", "add articles from files, folders or standard input"),
    "note context": Command("context", "show what an agent is given before its first turn"),
    "note review": Command("review", "review stale notes one by one"),
    "source add": Command("sources", "make folders, files and web pages searchable"),
    "source list": Command("sources", "list what is searched", "sources"),
    "source refresh": Command("sources", "look at folders and web pages again"),
    "source remove": Command("sources", "take a folder or a file out of the index"),
    "source tree": Command("sources", "show the files of each source"),
    "index sync": Command("index", "update the index from your files"),
    "index watch": Command("watch", "keep the index updated while you work"),
    "index status": Command("index", "show what is indexed, in numbers"),
    "index rebuild": Command("index", "build the index again from your files"),
    "index reembed": Command("index", "make all vectors again"),
    "index verify": Command("verify", "compare the index with your files"),
    "index move": Command("index", "keep a vault's history after you moved it"),
    "skill": Command("skill", "list, find and show skills for agents"),
    "feedback give": Command("feedback", "say whether a note was the answer", "feedback"),
    "feedback tune": Command("feedback", "show what feedback teaches about ranking, and apply it"),
    "feedback stats": Command("stats", "show what is asked, and what is found"),
    "data import": Command("exchange", "bring in notes and chats from other services"),
    "data export": Command("exchange", "write your notes as Markdown or JSONL"),
    "data backup": Command("backup", "back up activity.db (history and feedback)"),
    "data restore": Command("backup", "bring a copy of activity.db back", "restore_backup"),
    "config show": Command("setup", "show every setting and where it came from", "settings"),
    "config trust": Command("trust", "allow a vault's notes to be added to prompts"),
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
    "feedback": "teach search which notes were the answer",
    "data": "import, export and back up",
    "config": "settings, trust and shell completion",
}
"""Commands of two words, such as `co index sync`, by their first."""
MEANT = {
    "find": "search", "query": "search", "ask": "search", "rm": "forget", "delete": "forget", "new": "remember",
    "save": "remember", "ls": "list", "cat": "show", "open": "show", "trash": "list --trash", "settings": "config show",
}  # fmt: skip
"""What people type, and the command that does it."""

PLAIN = ("search", "note recall")
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
        gc.disable()  # it ends before garbage matters
    module = _import(f"co_cli.cli.{COMMANDS[name].module}")
    if quick:
        options = module.PlainQuery(getattr(module, name.rpartition(" ")[2]), rest)
        options.last = last
    else:
        from co_cli.cli.parsing import make_parser

        parser = make_parser(name, module)
        plain = name == "config completion" or "--" in rest  # argparse cannot mix options and words then
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


def _help(words: list[str], code: int = 0) -> int:
    """`co help`, `co help --all`, `co help index` and `co help index sync`."""
    from co_cli.cli.parsing import group_help, main_parser

    asked = [word for word in words if not word.startswith("-")]
    if "--all" in words:
        print(group_help(None))
    elif not asked:
        main_parser().print_help()
    elif asked in ([group] for group in GROUPS):
        print(group_help(asked[0]), file=sys.stderr if code else sys.stdout)
    else:
        return _run([*asked[:2], "--help"] if asked[0] in GROUPS else [asked[0], "--help"])
    return code


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    first, _, verb = name.partition(" ")
    same_verb = [known for known in COMMANDS if known.endswith(f" {verb or first}")]
    close = [MEANT[first]] if first in MEANT and not verb else same_verb or get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean `co {close[0]}`?" if close else "`co --help` lists the commands"
    return f"unknown command {name!r}: {hint}"


def _complain(message: str, code: int) -> int:
    print(f"co: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code
