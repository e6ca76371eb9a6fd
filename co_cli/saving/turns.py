"""Keep conversations: turns in, one Markdown file for each session out.

Turns are only ever appended, and secrets are masked before anything is written. Where the setting `capture` is `off`,
or the conversation is private, nobody calls this.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from uuid import uuid4

from co_cli.activity import extracted
from co_cli.ground.errors import ActivityUnavailableError, IndexUnavailableError, InvalidInputError, KnowledgeError
from co_cli.ground.hits import Filters
from co_cli.ground.values import DAY, moment_text
from co_cli.notes.editing import render_note, set_fields
from co_cli.notes.note import read_note
from co_cli.notes.refs import FOLDERS, path_of, source_ref, without_lines
from co_cli.notes.secrets import redact
from co_cli.notes.subjects import title_from
from co_cli.notes.transcripts import ERASED, SpokenTurn, nested, participants, read_turns, render_turns
from co_cli.saving.writer import VaultWriter
from co_cli.vault.vault import Vault

LONGEST_ID = 200
UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?![a-z]+\b|\d+\b)[0-9a-z]{16,}", re.IGNORECASE)
"""In an id that no two conversations share: a UUID, or a long run of letters and digits. Models invent `session-1`."""


class KeptSession(NamedTuple):
    """Which conversation turns belong to."""

    id: str
    agent: str = ""
    """The program or agent that took part."""
    title: str = ""
    """If empty, it is made from the first turn."""
    user: str = ""
    """The name of the user among the speakers, if it is not `User`."""
    project: str = ""
    """The name of the folder that it is about."""
    provenance: str = "agent"
    """`import` for what another program wrote down: no memory is saved from it without a decision."""


class KeptTurns(NamedTuple):
    """Where turns were written, and how many were new."""

    ref: str
    added: int


def keep_turns(
    vault: Vault, session: KeptSession, turns: Sequence[SpokenTurn], repeated: bool = False, whole: bool = False
) -> KeptTurns:
    """Append turns to the file of their session.

    `repeated`: an agent hands them in. They may begin with turns that the file has already, the id may be the ref of
    the file, and one that the agent may have invented continues a file only if the turns do. `whole`: they are all
    turns of the session, from the first one.
    """
    said = [turn._replace(text=redact(turn.text.strip())) for turn in turns if turn.text.strip()]
    store = vault.store
    with store.lock():
        named = _session_of(vault, session.id) if repeated else None
        session = session._replace(id=named or session.id or uuid4().hex) if repeated else session
        paths = _files_of(vault, session.id)
        path = paths[-1] if paths else None
        before = store.read(path) if path else b""
        if path and repeated:
            files = paths if whole else [path]
            known = [turn for file in files for turn in read_turns(read_note(file, store.read(file)).body)]
            unsaid = _unsaid(known, said, whole)
            if said and len(unsaid) == len(said) and not (named or UNIQUE.search(session.id)):
                session, path, before = session._replace(id=uuid4().hex), None, b""
            said = unsaid
        if path and not said:
            return KeptTurns(source_ref(path), 0)
        if not said:
            raise InvalidInputError("the turns have no text: nothing was kept")
        data = _appended(before, said)
        if not path or len(data) > vault.settings.knowledge_max_note_bytes:  # a second file of the same session
            vault.require_room()
            title = redact(session.title.strip() or title_from(said[0].text))
            path, created = store.create(FOLDERS["conversation"], title, _new_file(session, title, said)), True
        else:
            store.replace(path, data, based_on=before)
            created = False
        index = vault.working_index()
        with contextlib.suppress(IndexUnavailableError):  # the next sync does it
            if index:
                index.index_file(None, path, embed=False)  # before others look for the file of this session
    if index:
        index.embed_saved()
    if created:
        with contextlib.suppress(ActivityUnavailableError, IndexUnavailableError):  # the turns are kept all the same
            with vault.activity.database.writing() as connection:
                extracted.begin(connection, vault.root, path)
            expire(vault, time.time())
    return KeptTurns(source_ref(path), len(said))


def expire(vault: Vault, now: float) -> list[str]:
    """Move conversations that are older than `capture_days` to the trash; return their refs.

    Imported and pinned ones stay, and so do those that a memory names as its source or that wait for a decision.
    """
    last = now - vault.settings.capture_days * DAY
    if not vault.settings.capture_days or vault.working_index() is None:
        return []
    needed = {without_lines(value) for value in vault.index.notes.field_values("source").values()}
    with vault.activity.database.writing() as connection:
        captured = extracted.captured(connection, vault.root)
        for state in ("waiting", "proposed"):
            needed |= {source_ref(facet.path) for facet in extracted.facets(connection, vault.root, state)}
    gone: list[str] = []
    for note in vault.index.notes.all():
        old = note.source == "conversation" and note.path in captured and note.created < last
        pinned = note.frontmatter.get("decay_protected") is True
        if old and not pinned and note.ref not in needed and _last_said(vault, note.path, note.created) < last:
            with contextlib.suppress(KnowledgeError):  # somebody else was faster
                gone.append(VaultWriter(vault).forget(note.ref).ref)
    return gone


def _last_said(vault: Vault, path: str, created: float) -> float:
    turns = read_turns(read_note(path, vault.store.read(path)).body)
    return max((turn.at for turn in turns if turn.at is not None), default=created)


def _session_of(vault: Vault, ref: str) -> str | None:
    """The id of the conversation with this ref; None if it is another ref."""
    path = path_of(ref) if ref.startswith("conversation:") else None
    if path is None or not vault.store.exists(path):
        return None
    return str(read_note(path, vault.store.read(path)).metadata.get("session") or "") or None


def _files_of(vault: Vault, session: str) -> list[str]:
    """The files with turns of a session, the latest last."""
    if not session.strip():
        raise InvalidInputError("a conversation needs an id: the same for all turns of one session")
    if len(session) > LONGEST_ID:
        raise InvalidInputError(f"the id of a conversation has at most {LONGEST_ID} characters")
    if vault.working_index() is None:
        return []
    filters = Filters(("conversation",), fields=(("session", session),), roots=(vault.root,))
    found = sorted(vault.index.notes.docs(filters), key=lambda note: (note.created, note.id))
    return [note.path for note in found if vault.store.exists(note.path)]


def _unsaid(known: Sequence[SpokenTurn], turns: list[SpokenTurn], whole: bool) -> list[SpokenTurn]:
    """Those that are not known: after a beginning that is the end of what is known, or, of all turns, any.

    Some clients take turns back. The file keeps them, so what is said instead comes after them.
    """
    keys = [(turn.speaker, " ".join(turn.text.split())) for turn in known]
    new = [(turn.speaker, " ".join(nested(turn.text).split())) for turn in turns]
    if not whole:
        shared = next((count for count in range(min(len(keys), len(new)), 0, -1) if keys[-count:] == new[:count]), 0)
        return turns[shared:]
    unsaid: list[SpokenTurn] = []
    for change, start, end, first, last in SequenceMatcher(None, keys, new, autojunk=False).get_opcodes():
        erased = {number for number, key in enumerate(keys[start:end]) if key[1] == ERASED}
        if change != "equal":
            unsaid += (turn for number, turn in enumerate(turns[first:last]) if number not in erased)
    return unsaid


def _appended(before: bytes, said: Sequence[SpokenTurn]) -> bytes:
    text = before.decode("utf-8", "surrogateescape").rstrip("\n")
    if before:
        note = read_note("conversations/x.md", before)
        people = participants([*read_turns(note.body), *said])
        text = set_fields(text, {"participants": people}) if note.metadata.get("participants") != people else text
    return f"{text}\n\n{render_turns(said)}".encode("utf-8", "surrogateescape")


def _new_file(session: KeptSession, title: str, said: Sequence[SpokenTurn]) -> bytes:
    started = next((turn.at for turn in said if turn.at is not None), time.time())
    fields: dict[str, object] = {
        "title": title,
        "kind": "conversation",
        "created": moment_text(started),
        "provenance": session.provenance,
        "agent": redact(session.agent) or None,
        "user": redact(session.user) or None,
        "project": redact(session.project) or None,
        "session": session.id,
        "participants": participants(said),
    }
    return render_note({key: value for key, value in fields.items() if value}, render_turns(said)).encode()
