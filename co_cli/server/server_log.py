"""What `co serve` writes to stderr: one JSON object a line, or text on a terminal, with a line for each request.

A line about a request has its id, the token's name, the route, the status and the milliseconds, with several vaults
also the vault's host, and never a query, a note, a path or a token. Libraries log here, too, each of their lines with
the id of the request that it is about.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import select
import sys
import threading
import time
from typing import TextIO

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Scope

from co_cli.notes.logbook import REQUEST, as_json, as_text, logger

ID_HEADER = "x-request-id"
SANE_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
"""What another server may have called a request."""
GONE = 499
"""The status of a request whose client did not wait for an answer, as nginx has it."""
OWNER = "(started the server)"
"""Stands for the token of the person who did. No token can have this name."""
LONGEST, PLACES = 4_000, 8
"""Characters of a line, which a pipe takes at once; places at each end of a traceback that would be longer."""
QUIET = ("/livez", "/readyz")
"""Routes that are asked every few seconds: an answer of 200 is logged with `--verbose` only."""

log = logger("server")


class ServerLog(logging.StreamHandler[TextIO]):
    """Stderr, without blocking: if nobody reads the pipe, lines are dropped and counted."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.is_terminal = self.stream.isatty()
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        if _is_full(self.stream.fileno()):
            self._left_out += 1
            return
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            log.warning("%d lines were left out: nobody read them", left_out)
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        if self.is_terminal:
            return as_text(record)
        line = as_json(record)
        if len(line) < LONGEST:
            return line
        entry = json.loads(line)
        trace = entry.get("trace", [])
        return json.dumps(entry | {"trace": [*trace[:PLACES], "...", *trace[-PLACES:]]})

    def handleError(self, record: logging.LogRecord) -> None:
        pass  # a log that fails must not fail a request


def log_to_stderr() -> bool:
    """Write what is logged in this process, also by Python itself, to stderr. Returns whether that is a terminal."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  # it was closed
        return False
    stderr = ServerLog()
    logging.getLogger().addHandler(stderr)
    log.addHandler(stderr)
    log.propagate = False  # co.log has no line for each request
    log.setLevel(min(logging.INFO, log.getEffectiveLevel()))
    logging.captureWarnings(True)
    threading.excepthook = lambda failed: logger().error("a thread failed", exc_info=failed.exc_value)
    return stderr.is_terminal


class LoggedRequest:
    """One request, from its first header to the last byte of its answer."""

    def __init__(self, scope: Scope) -> None:
        self._scope, self._started = scope, time.perf_counter()
        given = Headers(scope=scope).get(ID_HEADER, "")
        self.id = given if SANE_ID.fullmatch(given) else secrets.token_hex(8)
        REQUEST.set(self.id)
        self.status = GONE

    @property
    def route(self) -> str | None:
        """Its template, such as `/api/v1/notes/{ref:any}`; None if it was refused before it came to one."""
        return self._scope["route"].path if "route" in self._scope else None

    @property
    def method(self) -> str | None:
        return self._scope["method"] if self.route else None  # strangers may send any word

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self._started

    def begin_answer(self, start: Message) -> None:
        """Note the status, and tell the client the id."""
        self.status = start["status"]
        MutableHeaders(scope=start)[ID_HEADER] = self.id

    @property
    def who(self) -> str | None:
        """The name of the token; None without a known one."""
        name: str | None = self._scope.get("state", {}).get("token_name")
        return OWNER if name == "" else name

    @property
    def text(self) -> str:
        return f"{self.method} {self.route}" if self.route else "no route"

    def end(self) -> None:
        state = self._scope.get("state", {})
        fields = {
            **({"vault": state["vault"]} if "vault" in state else {}),
            "token": self.who,
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "ms": round(self.seconds * 1000, 1),
        }
        level = logging.DEBUG if self.route in QUIET and self.status == 200 else logging.INFO
        log.log(level, "%s %d", self.text, self.status, extra={"fields": fields})


def _is_full(file: int) -> bool:
    """Whether writing a line would have to wait."""
    if sys.platform == "win32":
        return False
    writable = select.poll()
    writable.register(file, select.POLLOUT)
    return not writable.poll(0)
