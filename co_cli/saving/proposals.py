"""Decide about facets: save each as a memory, an entity or a rating, dismiss it, or take a decision back."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from co_cli.activity import extracted
from co_cli.activity.extracted import FacetRow
from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteMissingError, UnknownRefError
from co_cli.ground.hits import Filters
from co_cli.ground.saves import Draft, Saved
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.names import fold_name
from co_cli.notes.note import Note
from co_cli.notes.refs import source_ref
from co_cli.saving.judged_hits import rate
from co_cli.saving.writer import VaultWriter
from co_cli.vault.lookup import Lookup, open_note, outdated
from co_cli.vault.vault import Vault, sync_vault


def proposals(vault: Vault) -> list[FacetRow]:
    """What waits for a decision, oldest first, from conversations that are still there."""
    if not os.path.exists(vault.activity.database.path):
        return []
    with vault.activity.database.reading() as connection:
        found = extracted.facets(connection, vault.root, "proposed")
    return [facet for facet in found if vault.store.exists(facet.path)]


def accept(vault: Vault, id: str, text: str | None = None) -> Saved:
    """Save a proposal as a memory, or as the entity of a person who has none; with another `text`, if one is given."""
    facet = _facet(vault, id, "proposed")
    return _save(vault, facet._replace(text=text.strip()) if text and text.strip() else facet)


def dismiss(vault: Vault, id: str) -> None:
    _facet(vault, id, "proposed")
    _decide(vault, id, "dismissed")


def take_back(vault: Vault, id: str) -> None:
    """Undo a decision: what was saved goes to the trash, and the facet is a proposal again."""
    facet = _facet(vault, id)
    if facet.state == "saved":
        sync_vault(vault, seconds=0)
        for note in _saved_notes(vault, id):  # not by its ref: the file may have been moved
            VaultWriter(vault).forget(note.ref)
    _decide(vault, id, "proposed", facet.detail.get("known"))


def saved_as(vault: Vault, note: Note) -> FacetRow:
    """The facet that became this note."""
    with vault.activity.written().reading() as connection:
        found = extracted.facets(connection, vault.root, "saved", str(note.metadata.get("facet")))
    if not found:
        problem = f"{note.ref} was not saved from a conversation here"
        raise InvalidInputError(f"{problem}: `co forget` moves any note to the trash")
    return found[0]


def source_of_facet(facet: FacetRow) -> str:
    """`conversation:mooring#L10-18`."""
    return f"{source_ref(facet.path)}#L{facet.first_line}-{facet.last_line}"


def save_waiting(vault: Vault) -> list[str]:
    """Write the memories that were decided on, and those that a killed process did not get to.

    Returns a line for each that cannot be written now: it goes on waiting.
    """
    with vault.activity.written().reading() as connection:
        waiting = extracted.facets(connection, vault.root, "waiting")
    unsaved: list[str] = []
    for facet in waiting:
        try:
            if facet.kind == "feedback":
                _rate(vault, facet)
                _decide(vault, facet.id, "noted")
            else:
                _save(vault, facet)
        except KnowledgeError as error:
            unsaved.append(f"{facet.text} ({error})")
    return unsaved


def entities_named(vault: Vault, name: str | None) -> list[Note]:
    """The valid entities of this name, without those whose file is missing now."""
    named = vault.index.notes.find("name", fold_name(name)) if name else []
    notes = [open_note(vault, entity.ref) for entity in named if entity.source == "entity" and entity.missing is None]
    return [note for note, why in zip(notes, outdated(notes, vault.working_index()), strict=True) if why is None]


def _saved_notes(vault: Vault, id: str) -> list[NoteSummary]:
    """What a facet was saved as."""
    return Lookup(vault).summaries(Filters(OWN_SOURCES, fields=(("facet", id),)))


def _save(vault: Vault, facet: FacetRow) -> Saved:
    """Write a memory, or the entity of a person who has none, or whose entity it replaces.

    Memories about a person need no entry in the entity: it shows the notes that have its name.
    """
    written = _saved_notes(vault, facet.id)
    if written:  # by a process that was killed before it noted that
        _decide(vault, facet.id, "saved", written[0].ref)
        return Saved(written[0].ref, written[0].path, "duplicate")
    detail = facet.detail
    fields = {name: detail[name] for name in ("valid_from", "valid_until", "confidence", "speaker") if name in detail}
    fields |= {"source": source_of_facet(facet), "facet": facet.id}
    replaced: list[str] = []
    if detail["relation"] in ("changed", "contradicts") and "known" in detail:
        try:
            replaced.append(open_note(vault, detail["known"]).ref)
        except NoteMissingError:
            raise  # once its drive is mounted, it must not count as valid
        except UnknownRefError:
            pass  # forgotten meanwhile: then there is nothing to supersede
    if "name" in detail and replaced == [entity.ref for entity in entities_named(vault, detail["name"])]:
        about: dict[str, Any] = {"title": detail["name"], "source": "entity", "fields": {"type": "person", **fields}}
    else:
        about = {"category": facet.kind, "fields": fields}
    draft = Draft(facet.text, provenance="agent", supersedes=replaced, on_related="keep", **about)
    saved = VaultWriter(vault).save(draft)
    _decide(vault, facet.id, "known" if saved.outcome == "duplicate" else "saved", saved.ref)
    return saved


def _rate(vault: Vault, facet: FacetRow) -> None:
    """Raise or lower the notes that were given for the answer that the feedback is about."""
    for ref in facet.detail["given"]:
        with contextlib.suppress(UnknownRefError):
            rate(vault, ref, facet.detail["feeling"] == "praise", facet.detail.get("question"), "heard")


def _facet(vault: Vault, id: str, state: str | None = None) -> FacetRow:
    with vault.activity.written().reading() as connection:
        found = extracted.facets(connection, vault.root, state, id)
    if not found:
        raise InvalidInputError("this proposal was decided already: run the review again")
    return found[0]


def _decide(vault: Vault, id: str, state: str, ref: str | None = None) -> None:
    with vault.activity.database.writing() as connection:
        extracted.set_state(connection, id, state, ref)
