"""Links between the notes of one origin: what a note links to, and which notes link to it or name it.

Links are stored by the name that they give, and resolved when they are read. So a note that is added, removed or moved
changes no other note's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from co_cli.ground.values import OWN_SOURCES, members_of, to_utf8
from co_cli.index.engine import ReadTransaction
from co_cli.index.names import fold_name
from co_cli.index.stored import Scope, StoredNote
from co_cli.index.word_query import WordQuery, needles_of
from co_cli.notes.wikilinks import LinkTargets, link_key

MOST_NAMING = 50
"""Notes that are looked for by each name of an entity."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it is written, and the note that it means, if there is one."""

    target: str
    ref: str | None


@dataclass(frozen=True, slots=True)
class Backlink:
    """A note that links to another."""

    ref: str
    title: str


class Targets:
    """Resolves the links of a vault's notes."""

    def __init__(self, snapshot: ReadTransaction, origin_id: int, targets: Iterable[str]) -> None:
        texts = {text for target in targets for text in (link_key(to_utf8(target)), to_utf8(target).partition("#")[0])}
        names = {name for text in texts if (name := fold_name(text))}
        self._notes = {note.path: note for note in snapshot.find_notes(origin_id, "name", names)}
        self._targets = LinkTargets()
        for note in self._notes.values():
            self._targets.add(note.path, note.title, aliases_of(note))

    def resolve(self, target: str, linking: str) -> StoredNote | None:
        """The note that a link in the note at the path `linking` means."""
        path = self._targets.resolve(to_utf8(target), linking)
        return None if path is None else self._notes[path]


def aliases_of(note: StoredNote) -> list[str]:
    aliases = members_of(note.frontmatter.get("aliases", note.frontmatter.get("alias")))
    return [alias for alias in aliases if isinstance(alias, str)]


def _link_keys(note: StoredNote) -> set[str]:
    """The keys of all links that may mean a note."""
    return {link_key(to_utf8(name)) for name in (note.path, note.title, *aliases_of(note))}


def links_from(
    snapshot: ReadTransaction, origin_id: int, path: str, targets: Sequence[str] | None = None
) -> list[Link]:
    """What a note links to. `targets` are the links of its file, if the index may not know them yet."""
    if targets is None:
        targets = [target for note in snapshot.find_notes(origin_id, "path", [path]) for target in note.links]
    notes = Targets(snapshot, origin_id, targets)
    found = [(target, notes.resolve(target, path)) for target in targets]
    return [Link(target, note.ref if note else None) for target, note in found]


def links_to(snapshot: ReadTransaction, origin_id: int, path: str) -> list[Backlink]:
    """The notes that link to one, each once. A link to itself does not count."""
    keys = {key for note in snapshot.find_notes(origin_id, "path", [path]) for key in _link_keys(note)}
    sources = snapshot.find_notes(origin_id, "link", keys)
    notes = Targets(
        snapshot, origin_id, [target for note in sources for target in note.links if link_key(target) in keys]
    )
    found: list[Backlink] = []
    for linking in sources:
        meant = [notes.resolve(target, linking.path) for target in linking.links if link_key(target) in keys]
        if linking.path != path and any(note is not None and note.path == path for note in meant):
            found.append(Backlink(linking.ref, linking.title))
    return found


def naming(snapshot: ReadTransaction, entity: StoredNote) -> set[int]:
    """The other notes of its vault that have the title or an alias of an entity."""
    scope = Scope(tuple((entity.origin_id, source) for source in OWN_SOURCES))
    phrases = needles_of((entity.title, *aliases_of(entity)), snapshot.languages([entity.origin_id]))
    found = (snapshot.words(scope, WordQuery(phrases=(phrase,)), MOST_NAMING) for phrase in phrases)
    return {match.note for matches in found for match in matches} - {entity.id}


def links_around(snapshot: ReadTransaction, notes: Mapping[int, StoredNote]) -> list[tuple[int, int]]:
    """Links of which one end is among these notes, as pairs of note ids: from, to. Naming an entity links to it."""
    found: set[tuple[int, int]] = set()
    for origin_id in {note.origin_id for note in notes.values()}:
        own = [note for note in notes.values() if note.origin_id == origin_id]
        keys = {key for note in own for key in _link_keys(note)}
        linking = {note.id: note for note in snapshot.find_notes(origin_id, "link", keys)}
        linking |= {note.id: note for note in own}
        targets = Targets(snapshot, origin_id, [target for note in linking.values() for target in note.links])
        for note in linking.values():
            meant = [targets.resolve(target, note.path) for target in note.links]
            found |= {
                (note.id, linked.id)
                for linked in meant
                if linked and linked.id != note.id and {note.id, linked.id} & notes.keys()
            }
        found |= {(other, note.id) for note in own if note.source == "entity" for other in naming(snapshot, note)}
    return sorted(found)
