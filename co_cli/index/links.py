"""Links between the notes of one origin: what a note links to, and which notes link to it.

Stored by the name that a link gives; which note that means is decided when somebody asks, so that a note that comes,
goes or moves changes no other note's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from co_cli.index.engine import Reader
from co_cli.index.names import fold_name
from co_cli.notes.wikilinks import link_key, resolve_link
from co_cli.values import to_utf8


class Link(NamedTuple):
    """A link as it is written, and the note that it means, if that is there."""

    target: str
    ref: str | None


class Backlink(NamedTuple):
    """A note that links to another."""

    ref: str
    title: str


class Places:
    """Which notes of a vault a link may mean."""

    def __init__(self, reader: Reader, vault: int, targets: Iterable[str]) -> None:
        keys = {link_key(to_utf8(target)) for target in targets}
        names = {name for key in keys if (name := fold_name(key))}
        self._by_key: dict[str, dict[str, tuple[int, str]]] = {}
        for note, path, ref in reader.namesakes(vault, names):
            if link_key(path) in keys:
                self._by_key.setdefault(link_key(path), {})[path] = note, ref

    def meant(self, target: str, linking: str) -> tuple[int, str, str] | None:
        """The note that a link in the note at `linking` means: its id, path and ref."""
        places = self._by_key.get(link_key(to_utf8(target)), {})
        path = resolve_link(target, linking, list(places))
        return None if path is None else (places[path][0], path, places[path][1])


def links_from(reader: Reader, vault: int, path: str, targets: Sequence[str] | None = None) -> list[Link]:
    """What a note links to. `targets` are the links of its file, if the index may not know them yet."""
    if targets is None:
        notes = reader.find_notes(vault, "path", [path])
        targets = reader.link_targets([note.id for note in notes]).get(notes[0].id, []) if notes else []
    places = Places(reader, vault, targets)
    found = [(target, places.meant(target, path)) for target in targets]
    return [Link(target, meant[2] if meant else None) for target, meant in found]


def links_to(reader: Reader, vault: int, path: str) -> list[Backlink]:
    """The notes that link to one, each once. A link to itself does not count."""
    places = Places(reader, vault, [path])
    found: dict[str, Backlink] = {}
    for link in reader.linking(vault, {link_key(path)}):
        meant = places.meant(link.target, link.path)
        if link.path != path and meant is not None and meant[1] == path:
            found.setdefault(link.path, Backlink(link.ref, link.title))
    return list(found.values())


def links_around(reader: Reader, notes: dict[int, tuple[int, str]]) -> list[tuple[int, int]]:
    """Links of which one end is among these notes (each with its vault and path), as pairs of notes: from, to."""
    found: set[tuple[int, int]] = set()
    by_vault: dict[int, dict[int, str]] = {}
    for note, (vault, path) in notes.items():
        by_vault.setdefault(vault, {})[note] = path
    outgoing = reader.link_targets(list(notes))
    for vault, paths in by_vault.items():
        links = [(note, path, target) for note, path in paths.items() for target in outgoing.get(note, ())]
        keys = {link_key(path) for path in paths.values()}
        links += [(link.note, link.path, link.target) for link in reader.linking(vault, keys)]
        places = Places(reader, vault, [target for _, _, target in links])
        for note, path, target in links:
            meant = places.meant(target, path)
            if meant is not None and meant[0] != note:
                found.add((note, meant[0]))
    return sorted(found)
