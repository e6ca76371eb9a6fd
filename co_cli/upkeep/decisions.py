"""Decide about a finding of a review: accept a proposal, combine memories, forget a note, supersede it by the newer
one, or keep it; and take that back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Literal, NamedTuple

from co_cli.ground.errors import InvalidInputError, NoteConflictError
from co_cli.ground.saves import Change, Draft
from co_cli.ground.values import to_utf8
from co_cli.notes.new_note import one_or_list
from co_cli.notes.note import version_of
from co_cli.notes.sync_copies import versions_in
from co_cli.saving.proposals import accept, dismiss, take_back
from co_cli.saving.writer import VaultWriter
from co_cli.upkeep.review import Dismissals
from co_cli.upkeep.review_checks import ReviewItem, with_versions
from co_cli.vault.lookup import file_of, open_note
from co_cli.vault.vault import Vault

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
    saved: str = ""
    """The article that was made of several memories."""


def require_unchanged(vault: Vault, item: ReviewItem, seen: dict[str, str]) -> None:
    """Raise NoteConflictError if a note is not the one that was shown. `seen` are the hashes from then, by path."""
    for ref in item.refs:
        note = open_note(vault, ref)
        if not seen.get(note.path, "").startswith(note.version):
            raise NoteConflictError(f"{ref} was changed since: nothing was done; run the review again")


def decide(vault: Vault, item: ReviewItem, action: Action, now: float, text: str | None = None) -> Decision:
    """`text` is what an accepted proposal or article says instead."""
    if action not in item.actions:
        raise InvalidInputError(f"{action} is not possible for a finding of the kind {item.kind}")
    if item.kind == "proposed":
        return _decide_proposal(vault, item, action, text)
    if action == "keep" and not item.keeping_acts:
        return dismiss_all(vault, [item], now)[0]
    if item.is_version:
        return _decide_version(vault, item, action, text)
    if item.kind == "combine":
        return _combine(vault, item, text)
    paths = tuple(open_note(vault, ref).path for ref in item.refs)
    older, newer = item.refs[0], item.refs[-1]
    if action == "forget":
        trash = VaultWriter(vault).forget(older).trash
        return Decision(item, action, paths, f"forgotten {older}; `co note restore {older}` restores it", trash)
    note = open_note(vault, newer)
    before = vault.store.read(note.path)
    fields = {"supersedes": one_or_list([*note.supersedes, older])}
    VaultWriter(vault).update(newer, Change(fields=fields, version=note.version))
    text = f"{newer} supersedes {older}; the file of the older one stays"
    return Decision(item, action, paths, text, before=before, version=open_note(vault, newer).version)


def dismiss_all(vault: Vault, items: Sequence[ReviewItem], now: float) -> list[Decision]:
    """Keep many notes as they are, in one write. Proposals are decided one by one."""
    Dismissals(vault.settings.data_dir, vault.root).add(now, *(item.key for item in items))
    return [Decision(item, "keep", (), "kept; you will not be asked again") for item in items]


def _decide_proposal(vault: Vault, item: ReviewItem, action: Action, text: str | None) -> Decision:
    if action == "keep":
        for key in (item.key, *item.same):
            dismiss(vault, key)
        return Decision(item, action, (), "dismissed; it will not be proposed again")
    saved = accept(vault, item.key, text)
    for key in item.same:
        dismiss(vault, key)
    return Decision(item, action, (open_note(vault, saved.ref).path,), saved.summary)


def _decide_version(vault: Vault, item: ReviewItem, action: Action, text: str | None) -> Decision:
    """Two versions of a note: take the other one, or a merged text, keep this one, or make two notes of them."""
    ref, path, copy = item.refs[0], open_note(vault, item.refs[0]).path, item.copy
    writes, before = action == "accept" or not copy, vault.store.read(path)
    both, version = _both_versions(vault, item, before), ""
    ours, theirs = (side.decode("utf-8", "replace") for side in both)
    if theirs != item.proposed or (writes and ours != item.replaced):
        changed = copy if ours == item.replaced else ref
        raise NoteConflictError(f"{changed} was changed since: nothing was done; run the review again")
    if action == "keep":
        vault.require_room()
        stem, ending = os.path.splitext(path)
        new = next(name for n in count(2) if not vault.store.exists(name := f"{stem}-version-{n}{ending}"))
        with vault.store.lock():
            if not vault.store.move(copy, new):
                raise NoteConflictError(f"{new} exists: nothing was done; run the review again")
        return Decision(item, action, (new,), f"both are kept; the other version is now {new}", trash=new)
    if writes:
        merged = text if action == "accept" else None
        if merged and "\ufffd" in merged and (ours.encode(), theirs.encode()) != both:
            raise InvalidInputError(
                "a version is not UTF-8, and the merged text would lose letters of it: save both as UTF-8 first"
            )
        data = to_utf8(merged).encode() if merged else both[action == "accept"]
        if versions_in(data.decode("utf-8", "replace")):
            raise InvalidInputError("the text has conflict markers (<<<<<<<): merge what is between them")
        version = version_of(data)
        if data != before:
            with vault.store.lock():
                vault.store.keep(path, before)
            VaultWriter(vault).rewrite(file_of(vault, ref), data, before)
    if item.refs[1:]:
        kept = VaultWriter(vault).forget(item.refs[1]).trash
    else:
        with vault.store.lock():
            kept = vault.store.trash(copy) if copy else ""
    told = "keeps its version" if action == "forget" else "has the merged text" if text else "has the other version"
    told = f"{ref} {told}; {'what was replaced' if writes else 'the other one'} is in the trash"
    return Decision(item, action, (path, copy) if item.refs[1:] else (path,), told, kept, before, version)


def look_again(vault: Vault, item: ReviewItem) -> ReviewItem:
    """A finding about two versions of a note, with what they say now."""
    both = _both_versions(vault, item, vault.store.read(open_note(vault, item.refs[0]).path))
    return with_versions(item, *(side.decode("utf-8", "replace") for side in both))


def _both_versions(vault: Vault, item: ReviewItem, data: bytes) -> tuple[bytes, bytes]:
    if item.copy:
        return data, vault.store.read(item.copy)
    text = data.decode("utf-8", "surrogateescape")
    ours, theirs = versions_in(text) or (text, text)
    return ours.encode("utf-8", "surrogateescape"), theirs.encode("utf-8", "surrogateescape")


def _undo_version(vault: Vault, decision: Decision) -> None:
    path, copy = decision.paths[0], decision.item.copy
    if decision.action == "keep":
        with vault.store.lock():
            if not vault.store.move(path, copy):
                raise NoteConflictError(f"{copy} exists again: nothing was undone")
        return
    data = vault.store.read(path)
    if decision.version and version_of(data) != decision.version:
        raise NoteConflictError(f"{path} was changed since: nothing was undone; `co list --trash` has the other text")
    if decision.version and data != decision.before:
        VaultWriter(vault).rewrite(file_of(vault, decision.item.refs[0]), decision.before, data)
    if decision.item.refs[1:]:
        VaultWriter(vault).restore(decision.trash)
    elif decision.trash:
        with vault.store.lock():
            vault.store.restore(decision.trash, copy)


def _combine(vault: Vault, item: ReviewItem, text: str | None) -> Decision:
    """Save the article, which supersedes its memories. Their files stay as they are."""
    notes = [open_note(vault, ref) for ref in item.refs]
    times = Counter(tag for note in notes for tag in note.tags)
    said = {note.provenance for note in notes}
    draft = Draft(
        text if text and text.strip() else item.proposed,
        item.title,
        tags=[tag for tag, count in times.items() if 2 * count >= len(notes)],
        provenance=said.pop() if len(said) == 1 else "agent",
        source="article",
        supersedes=item.refs,
        on_related="keep",
    )
    saved = VaultWriter(vault).save(draft)
    told = f"{saved.summary}; it supersedes {len(notes)} memories, and `co forget {saved.ref}` brings them back"
    return Decision(item, "accept", (open_note(vault, saved.ref).path,), told, saved=saved.ref)


def ask_again(vault: Vault, dismissed: Sequence[Decision]) -> None:
    """Undo `dismiss_all`."""
    Dismissals(vault.settings.data_dir, vault.root).remove(*(decision.item.key for decision in dismissed))


def undo(vault: Vault, decision: Decision) -> None:
    """Restore the note, its text or the question. What others have written to the note meanwhile stays."""
    older, newer = decision.item.refs[0], decision.item.refs[-1]
    if decision.item.kind == "proposed":
        for key in (decision.item.key, *decision.item.same):
            take_back(vault, key)
    elif decision.action == "keep" and not decision.item.keeping_acts:
        ask_again(vault, [decision])
    elif decision.item.is_version:
        _undo_version(vault, decision)
    elif decision.saved:
        VaultWriter(vault).forget(decision.saved)
    elif decision.action == "forget":
        VaultWriter(vault).restore(decision.trash)
    else:
        note = open_note(vault, newer)
        data = vault.store.read(note.path)
        if version_of(data) == decision.version:
            VaultWriter(vault).rewrite(file_of(vault, newer), decision.before, data)
            return
        left = [ref for ref in note.supersedes if ref != older]
        change = Change(fields={"supersedes": one_or_list(left) or None}, version=note.version)
        VaultWriter(vault).update(newer, change)
