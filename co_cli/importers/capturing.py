"""Keep what is said in a coding agent: new lines of its transcript into turns of a conversation, while it goes on.

A small file in the data folder says how far each transcript was read, so that a long one costs no more than its end.
Without that file, or after a crash, everything is read again, and turns that the conversation has are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import NamedTuple

from co_cli.conversations.capture import KeptSession, KeptTurns, keep_turns
from co_cli.errors import InvalidInputError
from co_cli.importers.items import as_object
from co_cli.importers.sessions import CLIENTS
from co_cli.notes.files import locked, make_folders, read_json, replace
from co_cli.notes.transcripts import merged
from co_cli.paths import open_regular
from co_cli.vault import Vault

FOLDER = "transcripts"
HEAD = 4_096
"""Bytes that tell a transcript from another file at its place."""
WAIT = 30.0
"""Seconds to wait for another process that reads the same transcript."""


class TranscriptPosition(NamedTuple):
    """How many bytes of a transcript were read, and in which session."""

    size: int = 0
    head: str = ""
    session: str = ""
    kept: bool = False
    """Whether the conversation has exactly that, for sure: a process that is killed leaves False."""


def capture_transcript(vault: Vault, client: str, path: str, session: str = "", cwd: str = "") -> KeptTurns | None:
    """Append what was said since the last time. None if nothing was, or if `capture` is off."""
    if client not in CLIENTS:
        raise InvalidInputError(f"the client must be one of {', '.join(CLIENTS)}, not {client!r}")
    if vault.settings.capture == "off":
        return None
    state = state_file(vault.settings.data_dir, path)
    with locked(f"{state}.lock", WAIT):
        before = _read_state(state)
        data, after = _new_lines(path, before)
        found = CLIENTS[client].read([as_object(value) for line in data.splitlines() if (value := _json(line))])
        identity = session or found.id or before.session or os.path.splitext(os.path.basename(path))[0]
        project = os.path.basename((cwd or found.cwd).rstrip("/\\"))
        after = after._replace(session=identity)
        added = None
        if said := merged(found.turns):
            _write_state(state, before._replace(session=identity, kept=False))
            about = KeptSession(identity, CLIENTS[client].name, found.title, project=project, provenance="import")
            # who says "yes" twice has said it twice: turns are compared only if they may be known
            added = keep_turns(vault, about, said, repeated=not after.kept)
        _write_state(state, after._replace(kept=True))
    return added if added and added.added else None


def state_file(data_dir: str, path: str) -> str:
    """Where it is written how far a transcript was read; its folder is made."""
    folder = os.path.join(data_dir, FOLDER)
    make_folders(folder, private=True)
    return os.path.join(folder, f"{_hash(os.path.realpath(path).encode('utf-8', 'surrogateescape'))[:24]}.json")


def _read_state(file: str) -> TranscriptPosition:
    kept = read_json(file)
    same = kept.keys() == set(TranscriptPosition._fields) and all(
        isinstance(kept[name], type(value)) for name, value in TranscriptPosition()._asdict().items()
    )
    return TranscriptPosition(**kept) if same else TranscriptPosition()


def _write_state(file: str, state: TranscriptPosition) -> None:
    replace(file, json.dumps(state._asdict()).encode(), private=True)


def _new_lines(path: str, before: TranscriptPosition) -> tuple[bytes, TranscriptPosition]:
    """The complete lines after those that were read; all of them if this is another file."""
    with open_regular(path, follow=False) as stream:
        grown = os.fstat(stream.fileno()).st_size >= before.size > 0
        if not grown or _hash(stream.read(min(HEAD, before.size))) != before.head:
            before = TranscriptPosition()
        stream.seek(before.size)
        data = stream.read()
        data = data[: data.rfind(b"\n") + 1]
        size = before.size + len(data)
        stream.seek(0)
        return data, before._replace(size=size, head=_hash(stream.read(min(HEAD, size))))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(line: bytes) -> object:
    """None for a line that is damaged: the client writes the next one all the same."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
