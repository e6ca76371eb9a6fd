"""Notes for the page: read, render, write, forget and restore them; their history, and the files next to them."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, get_type_hints

from pydantic import BaseModel, Field, create_model
from starlette.responses import Response

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, NoteConflictError
from co_cli.ground.saves import Ack, Change, Draft, Forgotten, NoteFields, Saved, SaveKey, SaveReceipt
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import SOURCES, content_hash, plain
from co_cli.index.links import Targets, aliases_of
from co_cli.index.names import fold_name
from co_cli.index.stored import StoredNote
from co_cli.notes.excerpts import excerpt
from co_cli.notes.markdown import plain_snippet
from co_cli.notes.note import Note, own_tags, read_note, version_of
from co_cli.notes.refs import lines_of
from co_cli.notes.store import NoteStore
from co_cli.notes.wikilinks import Attachments, find_links
from co_cli.saving.relocation import retitle_links
from co_cli.saving.writer import require_version
from co_cli.searching.note_details import (
    NearbyNote,
    NoteHistory,
    NoteView,
    VersionDiff,
    backlinks,
    compare_version,
    kept_copies,
    note_history,
    resolved_links,
)
from co_cli.server.access_tokens import team_of
from co_cli.server.filter_models import filters_of, url_filters
from co_cli.server.rendering import PICTURES, RECORDINGS, render
from co_cli.server.routes import CALLER, KEY, ApiError, ErrorAnswer, json_answer, model_of, route
from co_cli.sources.walk import is_listed
from co_cli.vault.tiers import vaults_for_prompts

UNLINKED = set("[]|#^\\/\n")
"""They mean something else in `[[...]]`."""
LARGEST_FILE = 50_000_000
TASK_LINE = re.compile(rb"([ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+\[)[^\]]{1,4}(\](?:\s.*)?)", re.S)
ISOLATED = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
"""A file of the vault that is opened by itself, such as a drawing with a script, runs nothing and loads nothing."""
PUSH_SECONDS = 30.0
LONGEST_KEY = 255
LARGEST_NUMBER = 2**63 - 1
"""That a database takes."""

KEYED = frozenset(field.name for field in fields(Draft))
"""They count in the hash of a save, even without a value."""


class OneNote(BaseModel):
    """A note, by its ref, title, alias or path."""

    ref: str


class SeveralNotes(BaseModel):
    ref: Sequence[str]


class ListNotes(url_filters("filters")):
    """Which notes to list. Filters are as in `co list`."""

    limit: int = Field(20, ge=0, le=LARGEST_NUMBER)
    """0: all."""
    source: Sequence[str] = ()


class Typed(BaseModel):
    """The beginning or a part of a title, an alias or a path; letters may be missing."""

    q: str = ""
    limit: int = Field(20, ge=1, le=100)


class Titled(NamedTuple):
    """A note, by its title."""

    title: str
    ref: str
    kind: str
    path: str
    alias: str | None
    """Of its aliases, the one that is like the text."""
    link: str | None
    """What `[[...]]` takes for it; None if it is not in this vault."""


class ShowNote(OneNote):
    opened: bool = False
    """Count it as opened."""


class Preview(BaseModel):
    """A text that is not saved yet."""

    text: str
    ref: str | None = None
    """The note that it is for, so that links are resolved from there."""


class Acknowledged(BaseModel):
    """A save, and when it is answered."""

    ack: Ack = "indexed"
    """In a team vault, `pushed` waits until the remote has it, up to 30 seconds; the receipt says how far it is."""


def _with_fields(model: type[BaseModel]) -> type[BaseModel]:
    """The model with every field of notes that saves have a name for."""
    named: dict[str, Any] = {name: (hint, None) for name, hint in get_type_hints(NoteFields).items()}
    return create_model(model.__name__, __base__=model, **named)


class NewText(Acknowledged, _with_fields(model_of(Draft, "tier", "key"))):
    """A new note, as `LocalKnowledgeBase.remember` takes it."""


class NewVersion(Acknowledged, OneNote, _with_fields(model_of(Change))):
    """A change of a note, as `LocalKnowledgeBase.update` takes it. What is not given stays as it is.

    If the note has another `version` now, that is a conflict (409), and the answer has the present text.
    """


class OldName(OneNote):
    """A note, and the title that it had."""

    before: str


class LinksUpdated(NamedTuple):
    notes: list[str]
    """The paths of the notes whose links were written anew."""


class OneSave(BaseModel):
    """A save in a team vault, by its number."""

    seq: int = Field(le=LARGEST_NUMBER)


class WholeFile(NamedTuple):
    """The file of a note, with its frontmatter."""

    text: str
    version: str


class NewFile(OneNote):
    """Another text for the whole file of a note, based on a version of it."""

    text: str
    version: str


class OldVersion(OneNote):
    version: str
    """A commit, or the path of a copy in the trash."""


class Linking(OneNote):
    limit: int = Field(10, ge=1, le=1_000)


class NoteFile(OneNote):
    name: str
    """The picture or attachment, as the note names it."""


class Tick(OneNote):
    """A task in a note, by its line in the file, and the version that has it there."""

    line: int = Field(ge=1)
    done: bool
    version: str


class Rendered(NamedTuple):
    """A note as a person reads it."""

    ref: str
    title: str
    html: str
    lines: tuple[int, int] | None
    """The lines that the ref names."""
    provenance: str
    """Who said it."""
    in_prompts: bool
    """Whether you trust its vault, so that its notes may be added to prompts."""
    outdated: str | None
    writable: bool
    """False for notes of linked sources, and with a token that may only read."""
    own_tags: list[str]
    """The tags that can be edited. Others are in the text."""
    version: str
    """Of the file that the lines in the HTML are of."""


class KeptText(NamedTuple):
    """An older text of a note."""

    path: str
    """In the trash."""
    at: str
    """Until when the note had it."""


class Past(NamedTuple):
    """A note's history, and the older texts that were kept."""

    history: NoteHistory
    copies: list[KeptText]


@route("GET", "/notes")
def list_notes(kb: LocalKnowledgeBase, asked: ListNotes) -> list[NoteSummary]:
    """List notes, newest first."""
    return kb.notes(asked.source or SOURCES, asked.limit or None, **filters_of(asked))


@route("GET", "/notes/{ref:path}")
def show_note(kb: LocalKnowledgeBase, asked: ShowNote) -> NoteView:
    """Show a note."""
    return kb.view(asked.ref, kb.note(asked.ref, track=asked.opened))


@route("GET", "/titles")
def find_titles(kb: LocalKnowledgeBase, asked: Typed) -> list[Titled]:
    """Find notes by their titles, aliases and paths as they are typed, best first; the newest for an empty text."""
    with kb.engine.reading() as snapshot:
        notes, stored = kb.index.notes.titled(asked.q, asked.limit), snapshot.origin(kb.index.origin)
        own = [note for note in notes if stored and note.origin_id == stored.id]
        links = _links_for(Targets(snapshot, stored.id, [note.title for note in own]), own) if stored else {}
    typed = fold_name(asked.q)
    return [
        Titled(note.title, note.ref, note.source, note.path, _alias_like(note, typed), links.get(note.id))
        for note in notes
    ]


def _alias_like(note: StoredNote, typed: str) -> str | None:
    if typed in fold_name(note.title):
        return None
    return next((alias for alias in aliases_of(note) if typed in fold_name(alias)), None)


def _links_for(targets: Targets, notes: Sequence[StoredNote]) -> dict[int, str]:
    """The title where it means this note and no other, else the path."""
    found: dict[int, str] = {}
    for note in notes:
        meant = None if set(note.title) & UNLINKED else targets.resolve(note.title, "")
        found[note.id] = note.title if meant and meant.path == note.path else note.path.removesuffix(".md")
    return found


@route("POST", "/links")
def update_links(kb: LocalKnowledgeBase, asked: OldName) -> LinksUpdated:
    """Let links that name a note by an earlier title use its present one. They work without that, too."""
    note = kb.lookup().open_own(asked.ref, "changed")
    with kb.engine.reading() as snapshot:
        stored, found = snapshot.origin(kb.index.origin), kb.index.notes.find("path", note.path)
        links = _links_for(Targets(snapshot, stored.id, [note.title]), found) if stored else {}
    link = next(iter(links.values()), note.path.removesuffix(".md"))
    return LinksUpdated(retitle_links(kb.vault, kb.store, note, asked.before, link))


@route("GET", "/bodies")
def show_bodies(kb: LocalKnowledgeBase, asked: SeveralNotes) -> dict[str, str]:
    """Show the texts of several notes, without those that are gone."""
    return kb.bodies(asked.ref)


@route("GET", "/rendered/{ref:path}")
def show_rendered(kb: LocalKnowledgeBase, asked: OneNote) -> Rendered:
    """Show a note as HTML."""
    origin, note = kb.lookup().open(asked.ref)
    allowed, _ = vaults_for_prompts(kb.settings, kb.root, kb.index.linked)
    return Rendered(
        ref=note.ref,
        title=note.title,
        html=render(note, _targets(kb, note.ref, note)),
        lines=_named_lines(asked.ref, note),
        provenance=note.provenance,
        in_prompts=origin.root in allowed,
        outdated=kb.outdated(note),
        writable=CALLER.get().may("write") and (origin == kb.index.origin or bool(origin.tier)),
        own_tags=own_tags(note),
        version=note.version,
    )


def _named_lines(ref: str, note: Note) -> tuple[int, int] | None:
    with contextlib.suppress(InvalidInputError):  # the note is shorter by now: it is shown from its beginning
        shown = excerpt(ref, note)
        return (shown.first, shown.last) if lines_of(ref) else None
    return None


@route("POST", "/rendered", role="read")
def preview(kb: LocalKnowledgeBase, asked: Preview) -> dict[str, str]:
    """Show a text as HTML before it is saved."""
    note = kb.note(asked.ref) if asked.ref else read_note("memories/new.md", b"")
    note = replace(note, body=asked.text, links=find_links(asked.text), sections=None)
    return {"html": render(note, _targets(kb, asked.ref, note))}


@route("POST", "/notes", keyed=True)
def save_note(kb: LocalKnowledgeBase, asked: NewText) -> Saved:
    """Save a new note."""
    key = _save_key(asked)
    return _acknowledge(kb, asked, kb.remember, key=key)


@route("PUT", "/notes/{ref:path}")
def change_note(kb: LocalKnowledgeBase, asked: NewVersion) -> Saved:
    """Change a note."""
    try:
        return _acknowledge(kb, asked, kb.update)
    except NoteConflictError as error:
        error.present = kb.note(asked.ref).body
        raise


@route("GET", "/whole/{ref:path}")
def show_whole(kb: LocalKnowledgeBase, asked: OneNote) -> WholeFile:
    """Show the whole file of a note, to repair its frontmatter."""
    data = _whole_file(kb, asked.ref)[1]
    return WholeFile(data.decode(), version_of(data))


@route("PUT", "/whole/{ref:path}")
def repair_note(kb: LocalKnowledgeBase, asked: NewFile) -> dict[str, str]:
    """Replace the whole file of a note."""
    path, data = _whole_file(kb, asked.ref)
    require_version(asked.ref, data, asked.version)
    text = asked.text.replace("\r\n", "\n")
    kb.writer().rewrite(path, (text.replace("\n", "\r\n") if b"\r\n" in data else text).encode(), data)
    return {"ref": kb.note(path).ref}


@route("PUT", "/tasks/{ref:path}")
def tick_task(kb: LocalKnowledgeBase, asked: Tick) -> dict[str, str]:
    """Tick a task of a note, or untick it: its line changes and nothing else."""
    origin, path = kb.lookup().locate(asked.ref)
    if origin != kb.index.origin and not origin.tier:
        raise InvalidInputError(f"{asked.ref} cannot be changed here: it belongs to a linked source")
    data = NoteStore(origin.root).read(path)
    require_version(asked.ref, data, asked.version)
    lines = data.split(b"\n")
    task = TASK_LINE.fullmatch(lines[asked.line - 1]) if asked.line <= len(lines) else None
    if task is None:
        raise InvalidInputError(f"line {asked.line} of {asked.ref} is not a task such as `- [ ] water the plants`")
    lines[asked.line - 1] = task[1] + (b"x" if asked.done else b" ") + task[2]
    changed = b"\n".join(lines)
    kb.writer().rewrite(asked.ref, changed, data)
    return {"version": version_of(changed)}


@route("GET", "/saves/{seq}")
def show_save(kb: LocalKnowledgeBase, asked: OneSave) -> SaveReceipt:
    """Show whether a save in a team vault is committed and pushed."""
    team = team_of(kb.vault)
    if team is None:
        raise InvalidInputError("this is not a team vault: a save is complete when it is answered")
    return team.receipt(asked.seq)


@route("DELETE", "/notes/{ref:path}")
def forget_note(kb: LocalKnowledgeBase, asked: OneNote) -> Forgotten:
    """Move a note to the trash."""
    return kb.forget(asked.ref)


@route("POST", "/restored")
def restore_note(kb: LocalKnowledgeBase, asked: OneNote) -> Saved:
    """Move a forgotten note back from the trash."""
    return kb.restore(asked.ref)


@route("GET", "/history/{ref:path}")
def show_history(kb: LocalKnowledgeBase, asked: OneNote) -> Past:
    """Show when a note was changed, how often it was found and opened, and which older texts there are."""
    copies = [KeptText(path, NoteStore.trashed_at(path)[0]) for path in kept_copies(kb.vault, asked.ref)]
    return Past(note_history(kb.vault, asked.ref, limit=50), copies)


@route("GET", "/backlinks/{ref:path}")
def list_backlinks(kb: LocalKnowledgeBase, asked: Linking) -> list[NearbyNote]:
    """List the first notes that link to a note, each with the sentence that does."""
    found = backlinks(kb.vault, asked.ref, kb.note(asked.ref), asked.limit)
    return [replace(linking, line=plain_snippet(linking.line)[0]) for linking in found]


@route("GET", "/versions/{ref:path}")
def compare(kb: LocalKnowledgeBase, asked: OldVersion) -> VersionDiff:
    """Compare a note with an older text of it."""
    return compare_version(kb.vault, asked.ref, asked.version)


@route("GET", "/files/{ref:path}")
def read_file(kb: LocalKnowledgeBase, asked: NoteFile) -> Response:
    """Read a picture or an attachment of a note, from the folder that the note is in and nowhere else."""
    origin, path = kb.lookup().locate(asked.ref)
    store = NoteStore(origin.root, largest=LARGEST_FILE)
    file = None if origin.only else Attachments(store.root).find(asked.name, path)
    if file is None or not is_listed(store.root, file := file.replace(os.sep, "/"), None):
        return json_answer(ErrorAnswer(ApiError("unknown_file", f"{asked.ref} has no file {asked.name!r}")), 404)
    kind = (PICTURES | RECORDINGS).get(os.path.splitext(file)[1].lower(), "application/octet-stream")
    return Response(store.read(file), media_type=kind, headers=ISOLATED)


def _acknowledge(kb: LocalKnowledgeBase, asked: Acknowledged, save: Callable[..., Saved], **more: object) -> Saved:
    saved = save(**{name: value for name, value in asked if name != "ack"}, **more)
    team = team_of(kb.vault)
    if team is None or saved.seq is None:
        return saved
    return replace(saved, receipt=team.wait_pushed(saved.seq, PUSH_SECONDS if asked.ack == "pushed" else 0))


def _save_key(asked: BaseModel) -> SaveKey | None:
    """The client's key for this save. The same key of another token is another one."""
    given = KEY.get().strip().removeprefix('"').removesuffix('"')
    if len(given) > LONGEST_KEY:
        raise InvalidInputError(f"an Idempotency-Key has at most {LONGEST_KEY} characters: send a UUID")
    # a field that is not sent does not count: a new one in the table changes no key
    sent = {name: value for name, value in asked.model_dump().items() if value is not None or name in KEYED}
    hashes = [f"{CALLER.get().name}\n{given}", json.dumps(plain(sent), sort_keys=True)]
    return SaveKey(*(content_hash(text.encode()) for text in hashes)) if given else None


def _whole_file(kb: LocalKnowledgeBase, ref: str) -> tuple[str, bytes]:
    """The full path of a note of this vault, and what is in its file."""
    path = kb.lookup().open_own(ref, "changed").path
    data = kb.store.read(path)
    try:
        data.decode()
    except UnicodeDecodeError:
        raise InvalidInputError(f"{ref} is not valid UTF-8: save it as UTF-8 in an editor") from None
    return kb.store.absolute(path), data


def _targets(kb: LocalKnowledgeBase, ref: str | None, note: Note) -> dict[str, str | None]:
    """The note that each link means."""
    return {link.target: link.ref for link in resolved_links(kb.vault, ref, note)[0]}
