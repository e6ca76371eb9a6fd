"""The log of the doors: one JSON object a line in `co.log` in the data folder, bounded, never on standard output.

Everything goes through Python's `logging`, under the name `co_cli`. A program that uses the library decides itself what
becomes of it; only in a process that one of our doors began (`places.this_process`) is it written to the file, and with
`--verbose` to standard error. No note and no query is ever logged; what an error quotes is cut short, and what looks
like a key is masked. Each line is appended under a lock that the rotation holds too: no process tears or loses one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from types import TracebackType

from co_cli.errors import KnowledgeError
from co_cli.places import this_process, user_data_dir

FILE_NAME = "co.log"
LARGEST = 1_000_000
"""Bytes of the file; then it becomes `co.log.1`, that `co.log.2`, and the oldest goes."""
KEPT = 2
LONGEST = 500
"""Characters of a message."""
QUOTED = re.compile(r"""(['"`])(?:(?!\1).){41,}?\1""", re.DOTALL)
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class LogFile:
    """One log, shared by processes."""

    def __init__(self, path: str, largest: int = LARGEST, kept: int = KEPT) -> None:
        self.path, self._largest, self._kept = path, largest, kept

    def write(self, line: bytes) -> bool:
        """Append a line, after a rotation if it would not fit. False if that is not possible: nothing fails for it."""
        from co_cli.notes.files import locked

        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with locked(f"{self.path}.lock"):
                self._rotate(len(line))
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
                handle = os.open(self.path, flags, 0o600)
                try:
                    return os.write(handle, line) == len(line)
                finally:
                    os.close(handle)
        except OSError:
            return False

    def _rotate(self, more: int) -> None:
        """Nobody has the file open but under the lock, so that Windows lets it be renamed."""
        try:
            if os.stat(self.path).st_size + more <= self._largest:
                return
        except FileNotFoundError:
            return
        for number in range(self._kept, 0, -1):
            newer = self.path if number == 1 else f"{self.path}.{number - 1}"
            if os.path.exists(newer):
                os.replace(newer, f"{self.path}.{number}")


class Doorkeeper(logging.Handler):
    """Writes what the doors of this process have to say. Where to is looked up for each line: tests run many doors."""

    def emit(self, record: logging.LogRecord) -> None:
        if this_process.command is None:
            return
        try:
            self.put(record)
        except Exception:  # a log that fails must not fail what it tells of
            return

    def put(self, record: logging.LogRecord) -> bool:
        """True if it stands in the file."""
        path, level = place()
        if this_process.verbose and sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
            print(f"co: {record.levelname.lower()}: {_plain(record.getMessage())}", file=sys.stderr)
        return path is not None and record.levelno >= level and LogFile(path).write(line_of(record))


_keeper = Doorkeeper()


def logger(name: str = "") -> logging.Logger:
    """Our logger, or one below it, heard by the log file where one of our doors began the process."""
    ours = logging.getLogger("co_cli")
    if this_process.command is not None:
        if _keeper not in ours.handlers:
            ours.addHandler(_keeper)
        ours.setLevel(logging.DEBUG if this_process.verbose else place()[1])
    return logging.getLogger(f"co_cli.{name}") if name else ours


def place() -> tuple[str | None, int]:
    """The log file of this process, None if there is none; and from which level on it is written."""
    from co_cli.settings import load_settings

    name, folder = "warning", this_process.data_dir
    try:
        settings = load_settings({"vault": this_process.vault, "data_dir": this_process.data_dir})
        name, folder = settings.log_level, settings.data_dir
    except KnowledgeError:  # of the settings: what is wrong with them is what is to be logged
        try:
            folder = folder or os.environ.get("CO_DATA_DIR") or user_data_dir(os.environ)
        except KnowledgeError:
            folder = None
    path = os.path.join(folder, FILE_NAME) if folder and name != "off" else None
    return path, LEVELS.get(name, logging.CRITICAL)


def in_log() -> str:
    """`; the traceback is in PATH`, to be added to a message, where there is a log."""
    path, level = place() if this_process.command is not None else (None, 0)
    return f"; the traceback is in {path}" if path is not None and level <= logging.ERROR else ""


def crashed(error: BaseException) -> str:
    """Log an error that nobody expected. Returns the one line that a person reads."""
    record = logging.LogRecord("co_cli", logging.ERROR, "", 0, "unexpected error", (), None)
    record.exc_info = (type(error), error, error.__traceback__)
    path, level = place()
    told = f"unexpected {_told(error)}"
    if this_process.verbose:
        import traceback

        traceback.print_exception(error)
    if path is not None and level <= logging.ERROR and LogFile(path).write(line_of(record)):
        return f"{told}; the traceback is in {path}"
    return f"{told}; --verbose shows the traceback"


def line_of(record: logging.LogRecord) -> bytes:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    entry: dict[str, object] = {
        "at": f"{seconds}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "from": record.name,
        "command": this_process.command,
        "pid": os.getpid(),
        "text": _plain(record.getMessage()),
    }
    fields: object = getattr(record, "fields", None)
    if isinstance(fields, dict):
        entry.update(fields)  # pyright: ignore[reportUnknownArgumentType]
    if record.exc_info and record.exc_info[1] is not None:
        entry["error"], entry["trace"] = _told(record.exc_info[1]), _trace(record.exc_info[1])
    return json.dumps(entry, ensure_ascii=True, default=str).encode() + b"\n"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {_plain(str(error))}".removesuffix(": ")


def _trace(error: BaseException) -> list[str]:
    """Where it was raised, outermost first, and before it the same of what caused it. Places only, no values."""
    lines: list[str] = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        lines.append(f"{code.co_filename}:{step.tb_lineno} in {code.co_name}")
        step = step.tb_next
    several: tuple[BaseException, ...] = getattr(error, "exceptions", ())  # a task group has failed in several places
    for one in several[:5]:
        lines += [f"one of them: {_told(one)}", *_trace(one)]
    before: BaseException | None = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return lines if before is None else [*_trace(before), f"then: {_told(error)}", *lines]


def _plain(text: str) -> str:
    """One line, without keys, and without what somebody wrote: an error may quote a whole note."""
    from co_cli.notes.secrets import redact

    text = QUOTED.sub(lambda found: f"{found[1]}… ({len(found[0]) - 2} characters){found[1]}", " ".join(text.split()))
    text = redact(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
