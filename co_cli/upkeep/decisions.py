"""Decide about a finding of a review: accept a proposal, forget a note, supersede it by the newer one, or keep it; and
take that back.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from co_cli.conversations.proposals import accept, dismiss, take_back
from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.new_note import one_or_list
from co_cli.notes.note import version_of
from co_cli.upkeep.review import Dismissals
from co_cli.upkeep.review_checks import ReviewItem

Action = Literal["accept", "forget", "supersede", "keep"]


class Decision(NamedTuple):
    """What was done, and what it takes to undo it."""

    item: ReviewItem
    action: Action
    paths: tuple[str, ...]
    """The files of its notes."""
    text: str
    trash: str = ""
    """Where a forgotten note is."""
    before: bytes = b""
    """The newer of two notes, as it was before it superseded the older one."""
    version: str = ""
    """And its version since."""


def require_unchanged(kb: KnowledgeBase, item: ReviewItem, seen: dict[str, str]) -> None:
    """Raise NoteConflictError if a note is not the one that was shown. `seen` are the hashes from then, by path."""
    for ref in item.refs:
        note = kb.note(ref)
        if not seen.get(note.path, "").startswith(note.version):
            raise NoteConflictError(f"{ref} was changed since: nothing was done; run the review again")


def decide(kb: KnowledgeBase, item: ReviewItem, action: Action, now: float) -> Decision:
    if action[0] not in item.actions:
        raise InvalidInputError(f"{action} is not possible for a finding of the kind {item.kind}")
    if item.kind == "proposed":
        return _decide_proposal(kb, item, action)
    paths = tuple(kb.note(ref).path for ref in item.refs)
    if action == "keep":
        Dismissals(kb.settings.data_dir, kb.root).add(item.key, now)
        return Decision(item, action, paths, "kept; you will not be asked again")
    older, newer = item.refs[0], item.refs[-1]
    if action == "forget":
        trash = kb.forget(older).trash
        return Decision(item, action, paths, f"forgotten {older}; `co note restore {older}` restores it", trash)
    note = kb.note(newer)
    before = kb.store.read(note.path)
    kb.update(newer, fields={"supersedes": one_or_list([*note.supersedes, older])}, version=note.version)
    text = f"{newer} supersedes {older}; the file of the older one stays"
    return Decision(item, action, paths, text, before=before, version=kb.note(newer).version)


def _decide_proposal(kb: KnowledgeBase, item: ReviewItem, action: Action) -> Decision:
    if action == "keep":
        dismiss(kb, item.key)
        return Decision(item, action, (), "dismissed; it will not be proposed again")
    saved = accept(kb, item.key)
    return Decision(item, action, (kb.note(saved.ref).path,), saved.summary)


def undo(kb: KnowledgeBase, decision: Decision) -> None:
    """Restore the note, its text or the question. What others have written to the note meanwhile stays."""
    older, newer = decision.item.refs[0], decision.item.refs[-1]
    if decision.item.kind == "proposed":
        take_back(kb, decision.item.key)
    elif decision.action == "keep":
        Dismissals(kb.settings.data_dir, kb.root).remove(decision.item.key)
    elif decision.action == "forget":
        kb.restore(decision.trash)
    else:
        note = kb.note(newer)
        data = kb.store.read(note.path)
        if version_of(data) == decision.version:
            kb.writer.rewrite(kb.file_of(newer), decision.before, data)
            return
        left = [ref for ref in note.supersedes if ref != older]
        kb.update(newer, fields={"supersedes": one_or_list(left) or None}, version=note.version)
