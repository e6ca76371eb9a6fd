"""Whether a note holds now, as its file and the notes beside it say. What ranks a search asks for many at once."""

from __future__ import annotations

from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.standing import Standing
from co_cli.notes.note import Note
from co_cli.retrieval.validity import strength, why_not


def outdated(note: Note, index: KnowledgeIndex | None, now: float) -> str | None:
    """Why a note does not hold, such as `superseded by memory:new`; None if it does. The index may be older than it."""
    by = index.successor(note.ref, note.superseded_by, now) if index else note.superseded_by
    standing = Standing(now, *note.valid, by)
    return None if strength(standing, now) else why_not(standing, now)
