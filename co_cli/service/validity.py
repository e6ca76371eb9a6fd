"""Whether a note is valid now, as its file and the other notes say."""

from __future__ import annotations

from co_cli.index.engine import Standing
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.note import Note


def outdated(note: Note, index: KnowledgeIndex | None, now: float) -> str | None:
    """Why a note is not valid, such as `superseded by memory:new`; None if it is. The index may be older than it."""
    by = index.successor(note.ref, note.superseded_by, now) if index else note.superseded_by
    return Standing(now, *note.valid, by).problem(now)
