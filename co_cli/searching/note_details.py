"""Everything about one note that a front end shows: its fields, its links and the links to it, its history."""

from __future__ import annotations

import difflib
import posixpath
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from co_cli.activity.query_log import LoggedQuestion, questions_about
from co_cli.activity.versions import EDITING
from co_cli.ground.errors import (
    ActivityUnavailableError,
    GitError,
    IndexUnavailableError,
    InvalidInputError,
    KnowledgeError,
    UnknownRefError,
)
from co_cli.ground.hits import Filters, Hit
from co_cli.ground.values import OWN_SOURCES, fields_of, moment_text
from co_cli.index.links import Backlink, Link, aliases_of
from co_cli.index.names import fold_name
from co_cli.index.stored import StoredNote
from co_cli.index.tokens import tokens
from co_cli.notes.encoding import decode
from co_cli.notes.excerpts import excerpt
from co_cli.notes.git import LOG_SECONDS, WITH_DROPPED, repository_around
from co_cli.notes.markdown import Heading
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ENDINGS, lines_of, path_of, source_ref, without_lines
from co_cli.notes.store import NoteStore
from co_cli.notes.wikilinks import Attachments, find_links, link_key
from co_cli.searching.answers import search
from co_cli.searching.requests import Options
from co_cli.vault.history import NoteChange, history_of
from co_cli.vault.lookup import Lookup, file_of, outdated
from co_cli.vault.vault import Vault

MOST_MENTIONS = 20
NEARBY = 10
"""Notes of each group around a note that are named."""

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[^\W\d_a-z]|[\[(*_\"'“])|(?<=[。！？])")
DONE = {"create": "created", "change": "updated", "remove": "removed"}


@dataclass(frozen=True, slots=True)
class NoteLink:
    """A link of a note."""

    ref: str | None
    """The note that it means, if there is one."""
    target: str
    """As it is written."""
    there: bool
    """Whether the note or file exists."""


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note as `co show --json` prints it."""

    path: str
    """The file."""
    ref: str
    source: str
    title: str
    body: str
    body_line: int
    metadata: dict[str, object]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    links: list[NoteLink]
    description: str
    category: str | None
    created: str | None
    updated: str | None
    problem: str | None
    sections: tuple[Heading, ...] | None
    version: str
    outdated: str | None
    """Why it is not valid now."""
    linked_from: list[Backlink]
    mentions: list[Hit]
    """Of an entity: the notes that name it, with what they say there."""


@dataclass(frozen=True, slots=True)
class NearbyNote:
    """A note near another."""

    ref: str
    title: str
    line: str = ""
    """Of a note that links to it: the sentence with the link."""


@dataclass(frozen=True, slots=True)
class NearbyNotes:
    """The first of them, and how many more there are."""

    notes: list[NearbyNote]
    more: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The notes around one."""

    links: NearbyNotes
    linked_from: NearbyNotes
    entities: NearbyNotes
    """That it names and does not link to."""
    folder: NearbyNotes
    """Of its folder, newest first, that are not among the others."""


@dataclass(frozen=True, slots=True)
class NoteHistory:
    """The history of a note, which may be gone, as `co note history --json` prints it."""

    ref: str
    title: str
    path: str
    hash: str | None
    updated: str | None
    gone: str | None
    recalled: str | None
    opened: str | None
    recalls: int
    opens: int
    changes: list[NoteChange]
    """Newest first."""
    left_out: list[str]
    """Why something is missing."""
    questions: list[LoggedQuestion]
    """Those that had it among their first five results, newest first."""


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """An older text of a note, and what changed since."""

    text: str
    """The file as it was."""
    body: str
    """Its text, without the frontmatter."""
    diff: list[str]
    """Lines of a unified diff of the text, without the frontmatter, from then to now."""


def view_note(vault: Vault, ref: str, note: Note) -> NoteView:
    """The note, or the lines of it that the ref names."""
    links, linked_from = links_of(vault, ref, note)
    fields: dict[str, Any] = fields_of(note) | {
        "path": file_of(vault, ref),
        "body": "\n".join(excerpt(ref, note).lines) if lines_of(ref) else note.body,
        "links": links,
        "created": None if note.created is None else moment_text(note.created),
        "updated": None if note.updated is None else moment_text(note.updated),
    }
    why, mentions = outdated([note], vault.working_index())[0], mentions_of(vault, note)
    return NoteView(**fields, outdated=why, linked_from=linked_from, mentions=mentions)


def mentions_of(vault: Vault, note: Note, sources: Sequence[str] = OWN_SOURCES) -> list[Hit]:
    """Other notes that have the title or an alias of an entity, best first; none if it is not an entity.

    By a name that another valid entity has, too, notes about that one would be found.
    """
    names = [name.replace('"', " ") for name in (note.title, *note.aliases)] if note.source == "entity" else []
    found: dict[str, Hit] = {}
    for name in names:
        if _other_entities(vault, name, note.ref):
            continue
        named = search(vault, f'"{name}"', Options(MOST_MENTIONS, sources, backend="fts5"))
        for hit in named.hits:
            found.setdefault(without_lines(hit.ref), hit)
    return [hit for ref, hit in found.items() if ref != note.ref]


def _other_entities(vault: Vault, name: str, ref: str) -> list[StoredNote]:
    with vault.engine.reading() as snapshot:
        scope = vault.index.notes.view(snapshot, Filters(sources=("entity",))).scope
        named = {found.note for found in snapshot.named(scope, fold_name(name)) if found.share == 1.0}
        others = [entity for entity in snapshot.find_notes(None, "id", [*named]) if entity.ref != ref]
    newer = vault.index.notes.successors({entity.ref: entity.superseded_by for entity in others}, time.time())
    return [entity for entity in others if not newer[entity.ref]]


def notes_around(vault: Vault, ref: str, note: Note) -> Surroundings:
    """What a note links to and what links to it, the entities that it names, and the notes of its folder.

    Raises IndexUnavailableError.
    """
    lookup = Lookup(vault)
    origin, path = lookup.locate(ref)
    index = vault.index.of(origin).notes
    own = (origin.root, path)
    links, linked_from = lookup.links(ref, note.links)
    prefix = f"{origin.tier}:" if origin.tier else ""
    linked = [link.ref.removeprefix(prefix) for link in links if link.ref]
    titles = {found.ref: found.title for found in index.find("ref", *linked) if found.path != path}
    known = [NearbyNote(prefix + name, titles[name]) for name in dict.fromkeys(linked) if name in titles]
    linking = _linking(lookup, linked_from[:NEARBY], note)
    said = f" {' '.join(tokens(f'{note.title} {note.body}'))} "
    everyone = vault.index.notes.docs(Filters(sources=("entity",)))
    named = [_nearby(entity) for entity in everyone if (entity.root, entity.path) != own and _is_named(entity, said)]
    folder = posixpath.dirname(path)
    below = index.docs(Filters(roots=(origin.root,), paths=(f"{folder}/",) if folder else ()))
    beside = [_nearby(other) for other in below if posixpath.dirname(other.path) == folder and other.path != path]
    named = [entity for entity in named if entity not in known]
    elsewhere = {other.ref for other in (*known, *linked_from, *named)}
    return Surroundings(
        _first(known),
        NearbyNotes(linking, len(linked_from) - len(linking)),
        _first(named),
        _first([other for other in beside if other.ref not in elsewhere]),
    )


def backlinks(vault: Vault, ref: str, note: Note, limit: int) -> list[NearbyNote]:
    """The first notes that link to a note, each with the sentence that does."""
    lookup = Lookup(vault)
    return _linking(lookup, lookup.links(ref, note.links)[1][:limit], note)


def _linking(lookup: Lookup, links: Sequence[Backlink], note: Note) -> list[NearbyNote]:
    return [NearbyNote(link.ref, link.title, _linking_sentence(lookup, link.ref, note)) for link in links]


def _first(notes: list[NearbyNote]) -> NearbyNotes:
    return NearbyNotes(notes[:NEARBY], max(len(notes) - NEARBY, 0))


def _nearby(note: StoredNote) -> NearbyNote:
    return NearbyNote(note.ref, note.title)


def _is_named(entity: StoredNote, said: str) -> bool:
    """Whether these words, each between spaces, have the title or an alias of an entity."""
    names = (" ".join(tokens(name)) for name in (entity.title, *aliases_of(entity)))
    return any(name and f" {name} " in said for name in names)


def _linking_sentence(lookup: Lookup, ref: str, note: Note) -> str:
    """The first sentence of a note with a link that may mean another note; its line if a link has the full stop."""
    keys = {link_key(name) for name in (note.path, note.title, *note.aliases)}
    with suppress(KnowledgeError):  # its file is gone, or cannot be read
        for line in lookup.open(ref)[1].body.split("\n"):
            for text in (*SENTENCE_END.split(line), line) if "[" in line else ():
                if any(link_key(target) in keys for target in find_links(text)):
                    return text.strip()
    return ""


def links_of(vault: Vault, ref: str, note: Note) -> tuple[list[NoteLink], list[Backlink]]:
    """The links of the file as it is now, and the links to it, if there is an index."""
    links, backlinks = resolved_links(vault, ref, note)
    file = file_of(vault, ref)
    files = Attachments(file[: len(file) - len(note.path)])

    def exists(link: Link) -> bool:
        target = link.target.partition("#")[0]
        return link.ref is not None or any(files.has(target + ending, note.path) for ending in ("", *ENDINGS))

    return [NoteLink(link.ref, link.target, exists(link)) for link in links], backlinks


def resolved_links(vault: Vault, ref: str | None, note: Note) -> tuple[list[Link], list[Backlink]]:
    """The same without looking for files. Without a ref, of a note that is not saved yet."""
    try:
        return Lookup(vault).links(ref, note.links) if ref else vault.index.notes.links(note.path, note.links)
    except IndexUnavailableError:
        return [Link(target, None) for target in note.links], []


def note_history(vault: Vault, ref: str, limit: int) -> NoteHistory:
    """When a note was created, changed, moved or removed, and how it was used. Raises UnknownRefError."""
    index, lost = vault.index, None
    try:
        origin, note = Lookup(vault).open(ref)
        index, path = vault.index.of(origin), note.path
        ref, title = note.ref, note.title
    except UnknownRefError as error:
        asked = without_lines(error.ref.strip())
        path, lost = path_of(asked) or asked, error
        ref, title = source_ref(path), ""
    found = history_of(vault.activity, index, path, limit)
    if vault.authority and index is vault.index:
        found = found._replace(changes=_with_saves(found.changes, vault.authority.history(found.path, limit))[:limit])
    if lost is not None and not found.changes:
        raise lost
    if lost is not None and found.head:
        ref, title = index.notes.ref_of(found.path) or source_ref(found.path), found.head.title
    names = [ref, *(source_ref(change.before) for change in found.changes if change.before and index is vault.index)]
    head: dict[str, Any] = found.head._asdict() if found.head else {}
    moments = ("updated", "gone", "recalled", "opened")
    return NoteHistory(
        ref=ref,
        title=title,
        path=found.path,
        hash=head.get("hash"),
        **{name: None if head.get(name) is None else moment_text(head[name]) for name in moments},
        recalls=head.get("recalls", 0),
        opens=head.get("opens", 0),
        changes=found.changes,
        left_out=found.problems,
        questions=_questions(vault, names, limit),
    )


def _questions(vault: Vault, refs: Sequence[str], limit: int) -> list[LoggedQuestion]:
    try:
        with vault.activity.written().reading() as connection:
            return questions_about(connection, vault.root, refs, limit)
    except ActivityUnavailableError:  # `left_out` says so
        return []


def _with_saves(changes: list[NoteChange], saves: Sequence[tuple[Any, ...]]) -> list[NoteChange]:
    """Who saved each version in a team vault, and those that other servers saved: the last of one editing session."""
    left, found = [*changes], list[NoteChange]()
    hashes = {change.hash for change in changes}
    for (moment, who, action, version, receipt), later in zip(saves, [None, *saves], strict=False):
        goes_on = later and later[0] - moment < EDITING and later[1:3] == (who, "change")
        if goes_on and action == "change" and version not in hashes:
            continue
        at, what = moment_text(moment), DONE[action]
        known = (
            change
            for change in left
            if change.source == "activity" and (change.hash == version if version else change.what == what)
        )
        saved = next(known, NoteChange(at, "team", what, version))
        left = [other for other in left if other is not saved]
        found.append(saved._replace(at=at, what=what, author=who, receipt=receipt))
    return sorted([*found, *left], key=lambda change: change.at, reverse=True)


def kept_copies(vault: Vault, ref: str) -> list[str]:
    """The paths of older texts of a note that are in the trash, newest first."""
    origin, path = Lookup(vault).locate(ref)
    return [kept for kept, home in NoteStore(origin.root).trashed() if home == path]


def compare_version(vault: Vault, ref: str, version: str) -> VersionDiff:
    """A note as a git commit or a copy in the trash has it, and what changed since."""
    origin, path = Lookup(vault).locate(ref)
    store = NoteStore(origin.root)
    if version in kept_copies(vault, ref):
        then = store.read(version)
    elif re.fullmatch(r"[0-9a-f]{40,64}", version):
        then = _committed(origin.root, path, version)
    else:
        raise InvalidInputError(f"{version!r} is neither a commit nor a copy of {ref} in the trash")
    before, after = (read_note(path, data).body for data in (then, store.read(path)))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "then", "now", lineterm="")
    return VersionDiff(decode(then)[0], before, list(lines))


def _committed(root: str, path: str, commit: str) -> bytes:
    """A file as one of its commits has it, under the name that it had then."""
    try:
        repository = repository_around(root)
        if repository is None:
            raise GitError("it is in no repository")
        asked = ("log", "--follow", "--name-only", "--format=%x1e%H", *WITH_DROPPED, "--", path)
        log = repository.run(*asked, seconds=LOG_SECONDS).stdout
        blocks = [block.split("\n") for block in log.decode("utf-8", "replace").split("\x1e")]
        name = next((lines[2] for lines in blocks if lines[0] == commit and len(lines) > 2), None)
        if name is None:
            raise InvalidInputError(f"{commit[:10]} did not change {path}")
        return repository.run("cat-file", "blob", f"{commit}:{name}", seconds=LOG_SECONDS).stdout
    except GitError as error:
        raise InvalidInputError(f"{path} cannot be read from {commit[:10]}: {error}") from None
