"""Keep what is said in a coding agent: new lines of its transcript into turns of a conversation, while it goes on.

A small file in the data folder says how far each transcript was read, so that a long one costs no more than its end.
Without that file, or after a crash, everything is read again, and turns that the conversation has are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from co_cli.ground.paths import open_regular
from co_cli.importers.items import as_object
from co_cli.importers.sessions import CLIENTS, Transcript
from co_cli.notes.files import locked, make_folders, read_json, replace
from co_cli.notes.transcripts import merged
from co_cli.saving.turns import KeptSession, KeptTurns, keep_turns
from co_cli.vault.vault import Vault

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


def capture_transcript(vault: Vault, client: str, session: str, cwd: str, path: str) -> KeptTurns | None:
    """Append what was said since the last time. None if nothing was, or if `capture` is off."""
    if vault.settings.capture == "off":
        return None
    state = state_file(vault.settings.data_dir, path)
    with locked(f"{state}.lock", WAIT):
        before = _read_state(state)
        data, after = _new_lines(path, before)
        found = CLIENTS[client].read([as_object(value) for line in data.splitlines() if (value := _json(line))])
        session = session or found.id or before.session or os.path.splitext(os.path.basename(path))[0]
        _write_state(state, before._replace(session=session, kept=False))
        # who says "yes" twice has said it twice: turns are compared only if they may be known
        kept = _keep(vault, client, session, cwd, found, repeated=not after.kept)
        _write_state(state, after._replace(session=session, kept=True))
    return kept


def capture_session(
    vault: Vault, client: str, session: str, cwd: str, exported: Mapping[str, object]
) -> KeptTurns | None:
    """The same for a client that hands over the whole conversation every time."""
    if vault.settings.capture == "off":
        return None
    found = CLIENTS[client].read([dict(exported)])
    return _keep(vault, client, session or found.id, cwd, found, repeated=True, whole=True)


def _keep(
    vault: Vault, client: str, session: str, cwd: str, found: Transcript, repeated: bool, whole: bool = False
) -> KeptTurns | None:
    said = merged(found.turns)
    if not said:
        return None
    project = os.path.basename((cwd or found.cwd).rstrip("/\\"))
    about = KeptSession(session, CLIENTS[client].name, found.title, project=project, provenance="import")
    kept = keep_turns(vault, about, said, repeated, whole)
    return kept if kept.added else None


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
