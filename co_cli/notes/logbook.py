"""co.log: what our own commands log, as one JSON object per line in the data folder. Size-limited.

Everything goes through `logging`, under the name `co_cli`. A program that uses the library decides itself what to do
with it; only a `co` command or server (`settings.this_process`) writes the file, and with `--verbose` to stderr.
Notes and queries are never logged: what an error quotes is shortened, and secrets are masked. `ServerLog` writes the
same lines to the stderr of a server.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
import traceback
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from logging.handlers import RotatingFileHandler
from typing import Any

from co_cli.ground.errors import KnowledgeError
from co_cli.ground.settings import load_settings, this_process
from co_cli.ground.values import INVISIBLE
from co_cli.notes.files import locked, make_folders, open_private
from co_cli.notes.secrets import redact

MAX_BYTES = 1_000_000
BACKUPS = 2
MAX_MESSAGE = 500
LONG_QUOTE = re.compile(r"""(['"`])(?:(?!\1).){41,}?\1""", re.DOTALL)
REQUEST: ContextVar[str] = ContextVar("request", default="")
"""The id of the request that is being answered: every line that is logged meanwhile has it."""


class CommandLog(RotatingFileHandler):
    """co.log of the command that runs now. The file is open only under a lock, as several processes may rotate it."""

    def __init__(self, max_bytes: int = MAX_BYTES, backups: int = BACKUPS) -> None:
        super().__init__("co.log", maxBytes=max_bytes, backupCount=backups, encoding="utf-8", delay=True)

    def emit(self, record: logging.LogRecord) -> None:
        if this_process.command is None:
            return
        shown = logging.getLogger().handlers  # a server shows everything in its own way
        if this_process.verbose and not shown and sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
            print(f"co: {record.levelname.lower()}: {_one_line(record.getMessage())}", file=sys.stderr)
        path, level = destination()
        if path is None or record.levelno < level:
            return
        self.baseFilename = path
        with suppress(OSError):  # a log that fails must not fail the command
            make_folders(os.path.dirname(path), private=True)
            with locked(f"{path}.lock"):
                super().emit(record)
                if self.stream:
                    self.stream.close()
                    self.stream = None

    def format(self, record: logging.LogRecord) -> str:
        return as_json(record)

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=open_private)


_log = CommandLog()


def logger(name: str = "") -> logging.Logger:
    """Our logger, or one below it. In a process of ours it writes to co.log."""
    ours = logging.getLogger("co_cli")
    if this_process.command is not None:
        ours.addHandler(_log)
        ours.setLevel(logging.DEBUG if this_process.verbose else destination()[1])
    return logging.getLogger(f"co_cli.{name}") if name else ours


def destination() -> tuple[str | None, int]:
    """The log file of this process, None if there is none, and its lowest level."""
    try:
        settings = load_settings({"vault": this_process.vault, "data_dir": this_process.data_dir})
    except KnowledgeError:
        return None, logging.WARNING
    path = None if settings.log_level == "off" else os.path.join(settings.data_dir, "co.log")
    return path, getattr(logging, settings.log_level.upper(), logging.CRITICAL)  # for `off`


def in_log() -> str:
    """`; the traceback is in PATH`, to add to a message; empty without a log."""
    path, level = destination() if this_process.command is not None else (None, 0)
    return f"; the traceback is in {path}" if path and level <= logging.ERROR and os.path.isfile(path) else ""


def crashed(error: BaseException) -> str:
    """Log an unexpected error and return the one line to show."""
    if this_process.verbose:
        traceback.print_exception(error)
    logger().error("unexpected error", exc_info=error)
    return f"unexpected {_summary(error)}{in_log() or '; --verbose shows the traceback'}"


def as_json(record: logging.LogRecord) -> str:
    """One line. Of a traceback only the places, because its values may be somebody's notes."""
    entry: dict[str, object] = {
        "at": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "from": record.name,
        "command": this_process.command,
        "pid": os.getpid(),
        "text": _one_line(record.getMessage()),
        **({"request": REQUEST.get()} if REQUEST.get() else {}),
        **getattr(record, "fields", {}),
    }
    if record.exc_info and record.exc_info[1] is not None:
        entry["error"], entry["trace"] = _summary(record.exc_info[1]), _trace(record.exc_info[1])
    return json.dumps(entry, default=str)


def as_text(record: logging.LogRecord) -> str:
    """The same for a person in a terminal."""
    fields = getattr(record, "fields", {})
    level = f"{record.levelname.lower()}: " if record.levelno > logging.INFO else ""
    about = "".join(f" {name}={fields[name]}" for name in ("ms", "token") if fields.get(name) is not None)
    error = record.exc_info and record.exc_info[1]
    lines = [f": {_summary(error)}", *(f"\n  {place}" for place in _trace(error))] if error else []
    return f"co {this_process.command}: {level}{_one_line(record.getMessage())}{about}{''.join(lines)}"


def _summary(error: BaseException) -> str:
    return f"{type(error).__name__}: {_one_line(str(error))}".removesuffix(": ")


def _trace(error: BaseException) -> list[str]:
    """Where it was raised, outermost first, after the same for its cause or for the members of a group."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    members = getattr(error, "exceptions", ())[:5]
    lines: list[str] = []
    for other in (*members, cause) if cause else members:
        lines += [*_trace(other), f"raised {_summary(other)}"]
    return lines + [
        f"{place.filename}:{place.lineno} in {place.name}" for place in traceback.extract_tb(error.__traceback__)
    ]


@lru_cache  # looking for secrets takes half a millisecond, and an access log repeats itself
def _one_line(text: str) -> str:
    """Without secrets and long quotes: an error may quote a whole note."""
    text = " ".join(text.split())
    text = redact(LONG_QUOTE.sub(lambda found: f"{found[1]}… ({len(found[0]) - 2} characters){found[1]}", text))
    text = re.sub(INVISIBLE, "", text)  # it may quote a name, and --verbose prints it
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
