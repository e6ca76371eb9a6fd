"""Decide about facets: save each as a memory, an entity or a rating, dismiss it, or take a decision back."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from co_cli.activity import extracted
from co_cli.activity.extracted import FacetRow
from co_cli.errors import InvalidInputError, KnowledgeError, NoteMissingError, UnknownRefError
from co_cli.index.names import fold_name
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note
from co_cli.notes.refs import source_ref
from co_cli.upkeep.feedback import judge
from co_cli.values import Saved


def proposals(kb: KnowledgeBase) -> list[FacetRow]:
    """What waits for a decision, oldest first, from conversations that are still there."""
    if not os.path.exists(kb.activity.database.path):
        return []
    with kb.activity.database.reading() as connection:
        found = extracted.facets(connection, kb.root, "proposed")
    return [facet for facet in found if kb.store.exists(facet.path)]


def accept(kb: KnowledgeBase, id: str) -> Saved:
    """Save a proposal as a memory, or as the entity of a person who has none."""
    return _save(kb, _facet(kb, id, "proposed"))


def dismiss(kb: KnowledgeBase, id: str) -> None:
    _facet(kb, id, "proposed")
    _decide(kb, id, "dismissed")


def take_back(kb: KnowledgeBase, id: str) -> None:
    """Undo a decision: what was saved goes to the trash, and the facet is a proposal again."""
    facet = _facet(kb, id)
    if facet.state == "saved":
        kb.sync()
        for note in kb.notes(fields={"facet": id}):  # not by its ref: the file may have been moved
            kb.forget(note.ref)
    _decide(kb, id, "proposed", facet.detail.get("known"))


def saved_as(kb: KnowledgeBase, note: Note) -> FacetRow:
    """The facet that became this note."""
    with kb.activity.written().reading() as connection:
        found = extracted.facets(connection, kb.root, "saved", str(note.metadata.get("facet")))
    if not found:
        problem = f"{note.ref} was not saved from a conversation here"
        raise InvalidInputError(f"{problem}: `co forget` moves any note to the trash")
    return found[0]


def source_of_facet(facet: FacetRow) -> str:
    """`conversation:mooring#L10-18`."""
    return f"{source_ref(facet.path)}#L{facet.first_line}-{facet.last_line}"


def save_waiting(kb: KnowledgeBase) -> list[str]:
    """Write the memories that were decided on, and those that a killed process did not get to.

    Returns a line for each that cannot be written now: it goes on waiting.
    """
    with kb.activity.written().reading() as connection:
        waiting = extracted.facets(connection, kb.root, "waiting")
    unsaved: list[str] = []
    for facet in waiting:
        try:
            if facet.kind == "feedback":
                _rate(kb, facet)
                _decide(kb, facet.id, "noted")
            else:
                _save(kb, facet)
        except KnowledgeError as error:
            unsaved.append(f"{facet.text} ({error})")
    return unsaved


def entities_named(kb: KnowledgeBase, name: str | None) -> list[Note]:
    """The valid entities of this name, without those whose file is missing now."""
    named = kb.index.own_notes("name", fold_name(name)) if name else []
    notes = [kb.note(one.ref) for one in named if one.source == "entity" and one.missing is None]
    return [note for note in notes if not kb.outdated(note)]


def _save(kb: KnowledgeBase, facet: FacetRow) -> Saved:
    """Write a memory, or the entity of a person who has none, or whose entity it replaces.

    Memories about a person need no entry in the entity: it shows the notes that have its name.
    """
    written = kb.notes(fields={"facet": facet.id})
    if written:  # by a process that was killed before it noted that
        _decide(kb, facet.id, "saved", written[0].ref)
        return Saved(written[0].ref, written[0].path, "duplicate")
    detail = facet.detail
    fields = {name: detail[name] for name in ("valid_from", "valid_until", "confidence", "speaker") if name in detail}
    fields |= {"source": source_of_facet(facet), "facet": facet.id}
    replaced: list[str] = []
    if detail["relation"] in ("changed", "contradicts") and "known" in detail:
        try:
            replaced.append(kb.note(detail["known"]).ref)
        except NoteMissingError:
            raise  # once its drive is mounted, it must not count as valid
        except UnknownRefError:
            pass  # forgotten meanwhile: then there is nothing to supersede
    if "name" in detail and replaced == [one.ref for one in entities_named(kb, detail["name"])]:
        about: dict[str, Any] = {"title": detail["name"], "source": "entity", "fields": {"type": "person", **fields}}
    else:
        about = {"category": facet.kind, "fields": fields}
    saved = kb.remember(facet.text, provenance="agent", supersedes=replaced, on_related="keep", **about)
    _decide(kb, facet.id, "known" if saved.outcome == "duplicate" else "saved", saved.ref)
    return saved


def _rate(kb: KnowledgeBase, facet: FacetRow) -> None:
    """Raise or lower the notes that were given for the answer that the feedback is about."""
    for ref in facet.detail["given"]:
        with contextlib.suppress(UnknownRefError):
            judge(kb, ref, facet.detail["feeling"] == "praise", facet.detail.get("question"), "heard")


def _facet(kb: KnowledgeBase, id: str, state: str | None = None) -> FacetRow:
    with kb.activity.written().reading() as connection:
        found = extracted.facets(connection, kb.root, state, id)
    if not found:
        raise InvalidInputError("this proposal was decided already: run the review again")
    return found[0]


def _decide(kb: KnowledgeBase, id: str, state: str, ref: str | None = None) -> None:
    with kb.activity.database.writing() as connection:
        extracted.set_state(connection, id, state, ref)
