"""The audit of `co serve`: a line for each request about notes, and each that was refused. Never a text or a query."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple, cast

from pydantic import BaseModel, Field

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.notes.files import open_private
from co_cli.notes.logbook import logger
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import route

log = logger("server")
MOST_WAITING, MOST_READ = 10_000_000, 20_000_000
"""Bytes that wait while the file cannot be written; bytes at its end that are read for an answer."""
MOST_ENTRIES = 10_000


class AuditEntry(NamedTuple):
    """A request, when it had been answered."""

    at: str
    vault: str
    who: str | None
    """The name of the token or the person; None without a known one."""
    action: str
    """The route, such as `GET /api/v1/notes/{ref:any}`, or the tool that an agent called."""
    notes: Sequence[str]
    """Refs of the notes that were found, opened or changed, or that a refused request named."""
    address: str
    allowed: bool
    status: int
    request: str
    """Its id in the log."""


class Audit:
    """Appends lines to a file, which is opened for each: it may be renamed or cut meanwhile, as logrotate does."""

    def __init__(self, path: str) -> None:
        """Raises InvalidInputError if the file cannot be written."""
        self._path, self._waiting, self.problem = path, b"", ""
        self.flush()
        if self.problem:
            raise InvalidInputError(self.problem)

    def write(self, entry: AuditEntry) -> None:
        self._waiting += json.dumps(entry._asdict(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what waits. What cannot be written waits on, and the server is not ready."""
        before, self.problem = self.problem, ""
        try:
            file = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                while self._waiting:
                    self._waiting = self._waiting[os.write(file, self._waiting) :]
            finally:
                os.close(file)
        except OSError as error:
            self.problem = f"audit: {self._path} cannot be written: {error.strerror}"
            self._waiting = self._waiting[-MOST_WAITING:]
            if not before:
                log.error("%s", self.problem)


class ReadAudit(BaseModel):
    """Which entries of the audit to list."""

    who: str | None = None
    note: str | None = None
    """A ref."""
    allowed: bool | None = None
    limit: int = Field(100, ge=1, le=MOST_ENTRIES)


@route("GET", "/audit", role="admin")
def list_audit(kb: LocalKnowledgeBase, asked: ReadAudit) -> list[AuditEntry]:
    """List who asked this server for what, newest first: the end of the file that `co serve --audit` writes."""
    path = kb.settings.audit
    if path is None:
        raise InvalidInputError("this server writes no audit: start it with `co serve --audit FILE`")
    vault = AccessTokens.of(kb.vault).vault
    found: list[AuditEntry] = []
    for line in reversed(_last_lines(path)):
        try:
            entry = AuditEntry(**json.loads(line))
        except (TypeError, ValueError):  # cut when the file was rotated, or of another version
            continue
        is_asked_for = (
            entry.vault == vault
            and asked.who in (None, entry.who)
            and (asked.note is None or asked.note in entry.notes)
            and asked.allowed in (None, entry.allowed)
        )
        if is_asked_for:
            found.append(entry)
        if len(found) == asked.limit:
            break
    return found


def _last_lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
            return file.read().splitlines()
    except FileNotFoundError:  # it was just rotated
        return cast("list[bytes]", [])
