"""`co`: run one command, and turn errors into one line and an exit code.

Exit codes: 0 success, 1 nothing found, 2 wrong usage or bad input, 3 something is broken, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from co_cli.cli.parsing import COMMANDS, GROUPS, SERVED, make_parser, print_help, split_command, unknown_command
from co_cli.cli.terminal import logbook, print_message
from co_cli.ground.errors import InvalidInputError, KnowledgeError, SecretError
from co_cli.ground.settings import this_process
from co_cli.index.sqlite.database_files import no_room
from co_cli.notes.files import discard_unfinished

SECRETS = ("_API_KEY", "CO_MCP_TOKEN", "CO_OIDC_SECRET", "CO_TOKEN", "CO_WEBHOOK_SECRET", "PGPASSWORD")
"""How variables end that may be in a file."""
_read_from_files: set[str] = set()
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def run() -> NoReturn:
    """The `co` command. Exits without tearing down the interpreter, which saves half of Python's start time."""
    gc.set_threshold(100_000)  # most commands end before garbage matters
    # numpy starts a thread for each core, which spins for a tenth of a second even if nothing is multiplied
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        code = code or 3
    finally:
        os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if split_command(arguments)[0] != "hook":
        return _run_reporting(arguments)
    # an exit code of 2 makes a coding agent drop the user's prompt, and what is on stderr may be shown for it
    quiet = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    with quiet, contextlib.suppress(SystemExit):
        _run_reporting(arguments)
    return 0


def _run_reporting(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except SecretError as error:  # a model must not be told how to switch the check off
        return _complain(f"{error}, or set CO_SECRETS to redact or allow", error.exit_code)
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
        path = os.fsdecode(error.filename)
        if full := no_room(path, error):
            return _complain(f"it cannot be written: {full}; free some space", 3)
        if error.errno in REFUSED:
            cure = "check the disk and the folder's permissions, or choose another with CO_DATA_DIR or --vault"
            return _complain(f"{path} cannot be used: {error.strerror}; {cure}", 3)
        return _complain(logbook().crashed(error), 3)
    except KeyboardInterrupt:
        discard_unfinished()
        return _complain("stopped; nothing is broken, run it again to finish", 130)
    except Exception as error:
        return _complain(logbook().crashed(error), 3)
    finally:
        this_process.command = None


def _run(arguments: list[str]) -> int:
    name, rest = split_command(arguments)
    if name == "help":
        name, rest = split_command(rest)
        rest.append("--help-all" if name and "--all" in rest else "--help")
    if not name or name in GROUPS:
        asked = not arguments or bool({"-h", "--help", "--help-all", "-V", "--version"} & {*rest})
        print_help(name, rest, sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    if name not in COMMANDS:
        return _complain(unknown_command(name), 2)
    started = time.perf_counter()
    this_process.command, this_process.verbose, this_process.chatty = name, False, False
    this_process.reads_pictures = False
    this_process.vault = this_process.data_dir = this_process.afterwards = None
    parser = make_parser(name)
    # argparse cannot mix options and words after `--`, and without options there is nothing to mix
    plain = name == "config completion" or "--" in rest or not any(word.startswith("-") for word in rest)
    options = parser.parse_args(rest) if plain else parser.parse_intermixed_args(rest)
    if options.server and name not in SERVED:
        return _complain(f"`co {name}` does not work with --server: run it where the vault is", 2)
    this_process.vault, this_process.data_dir, this_process.verbose = options.vault, options.data_dir, options.verbose
    this_process.chatty = this_process.verbose
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a note may hold what the terminal cannot show
    if name != "hook":  # it may have variables of a project
        read_secret_files()
    code: int = options.run(options)
    sys.stdout.flush()
    if this_process.afterwards:
        this_process.afterwards()
    if this_process.chatty:
        fields = {"code": code, "ms": round((time.perf_counter() - started) * 1000, 1)}
        logbook().logger("cli").info(
            "co %s ended with %d after %s ms", name, *fields.values(), extra={"fields": fields}
        )
    return code


def read_secret_files() -> None:
    """Docker and Kubernetes give secrets as files: CO_TOKEN_FILE names the one with what else is in CO_TOKEN.

    A server may read them again.
    """
    for name, file in [*os.environ.items()]:
        variable = name.removesuffix("_FILE")
        is_free = variable in _read_from_files or not os.environ.get(variable)
        if file and variable != name and variable.endswith(SECRETS) and is_free:
            try:
                with open(file, encoding="utf-8") as stream:
                    os.environ[variable] = stream.read().strip()  # not what other programs can see of this process
                _read_from_files.add(variable)
            except (OSError, ValueError) as error:
                if not variable.startswith(("CO_", "PGPASSWORD")):
                    continue  # it may be for another program; who needs the key says that it is missing
                raise InvalidInputError(f"{name}: {file} cannot be read: {error}") from None


def _complain(message: str, code: int) -> int:
    print_message(f"co: {' '.join(message.split())}", sys.stderr)
    return code
