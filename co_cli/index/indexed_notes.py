"""What is stored of one origin, and of those searched with it: look-ups, and what a search needs to know.

`KnowledgeIndex` holds one of these; retrieval needs nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from co_cli.embedding.embedders import Embedders, can_use
from co_cli.embedding.space import VectorSpace
from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.hits import Filters, UseCount
from co_cli.ground.values import to_utf8
from co_cli.index.changes import hides_text, reported
from co_cli.index.engine import Engine, NoteKey, ReadTransaction
from co_cli.index.links import Backlink, Link, links_from, links_to
from co_cli.index.names import fold_name
from co_cli.index.stored import CacheState, Scope, SourceCount, StoredNote, StoredOrigin, StoredPassage, StoredSpace
from co_cli.index.tokens import fold
from co_cli.sources.origin import Origin, adapter_of

T = TypeVar("T")
Place = tuple[str, str]
"""The root and the path of a note."""
UseCounts = Callable[[Collection[Place]], Mapping[Place, UseCount]]
FEW = 20
"""Passages that may lack a vector of the space that answers: notes that were just edited."""


class Tiers(NamedTuple):
    """Several vaults in one search: the tier of this one, and the weight of each tier, 0 to 1."""

    own: str
    values: Mapping[str, float]


@dataclass(slots=True)
class LastSeen:
    """What this process saw at its last sync and search. An index that takes the place of another goes on with it."""

    fresh_as_of: float | None = None
    """When the index agreed with the files."""
    unread: dict[Origin, Sequence[str]] = field(default_factory=dict[Origin, "Sequence[str]"])
    """Files and folders that could not be read, here and in linked sources."""
    unsynced: IndexUnavailableError | None = None
    """Why the index could not be updated, such as a full disk."""
    space: VectorSpace | None = None
    """The space that answered last, most likely the one that answers now."""


class View(NamedTuple):
    """What a search sees of an index, within one transaction."""

    scope: Scope
    space: StoredSpace | None
    """The space whose vectors answer; None if there are none yet."""
    synced_at: float | None
    is_synced: bool
    """Whether this origin itself was ever synced."""
    notes: int
    passages: int
    prefixes: Mapping[int, str]
    """The prefix of refs from other tiers' vaults."""
    tiers: Mapping[int, float]
    """The weight of each vault, where several tiers are searched together."""
    away: Collection[int] = ()
    """Linked sources whose folder is not there: all their files are missing."""
    outdated: Sequence[str] = ()
    """Linked sources that are not there, or most of whose files are gone, each with what to do about it."""


class IndexedNotes:
    """The notes of one origin as they were at its last sync. Safe to share between threads."""

    def __init__(
        self,
        engine: Engine,
        origin: Origin,
        embedders: Embedders,
        linked: Sequence[Origin] = (),
        tiers: Tiers | None = None,
        use_counts: UseCounts | None = None,
        seen: LastSeen | None = None,
        floor_only: bool = False,
    ) -> None:
        """`floor_only`: vectors of the floor answer, whatever others there are."""
        self.engine, self.origin, self.root, self.embedders = engine, origin, origin.root, embedders
        self.linked, self.tiers, self._use_counts = tuple(linked), tiers, use_counts
        self.seen, self._floor_only = seen or LastSeen(), floor_only

    def on_floor(self) -> IndexedNotes:
        """The same notes, compared by the model that is always at hand."""
        return IndexedNotes(
            self.engine, self.origin, self.embedders, self.linked, self.tiers, self._use_counts, floor_only=True
        )

    # -- this origin alone ---------------------------------------------------------------------------------------------

    def works(self) -> bool:
        """Whether the index can be opened."""
        with suppress(IndexUnavailableError):
            self.state()
            return True
        return False

    def state(self) -> StoredOrigin:
        """How much is indexed, when it was synced, and the spaces that this environment can use."""
        with self.engine.reading() as snapshot:
            return (snapshot.origin(self.origin) or StoredOrigin(0, self.origin)).seen(can_use)

    def counts(self) -> list[SourceCount]:
        """How much is indexed, by source."""
        return self.read(lambda snapshot, origin_id: snapshot.counts(origin_id), [])

    def cache_state(self) -> CacheState:
        with self.engine.reading() as snapshot:
            return snapshot.cache_state()

    def find(self, key: NoteKey, *values: str) -> list[StoredNote]:
        """Notes by one of their keys."""
        wanted = [value for value in values if to_utf8(value) == value]
        return self.read(lambda snapshot, origin_id: snapshot.find_notes(origin_id, key, wanted), [])

    def all(self) -> list[StoredNote]:
        """Every note, newest first."""
        sources = adapter_of(self.origin).sources
        return self.read(
            lambda snapshot, origin_id: snapshot.list_notes(Scope(tuple((origin_id, source) for source in sources))), []
        )

    def ref_of(self, path: str) -> str | None:
        return next((note.ref for note in self.find("path", path)), None)

    def taken(self, path: str) -> bool:
        """Whether this path is a note, or one that some file system takes for the same."""
        return bool(self.find("path_key", fold(path)))

    def exact_twins(self, source: str, fingerprint: str) -> list[str]:
        return [note.path for note in self.find("fingerprint", fingerprint) if note.source == source]

    def missing(self) -> list[str]:
        """Notes that are kept although their file is gone."""
        return sorted(note.path for note in self.all() if note.missing is not None)

    def hashes(self) -> dict[str, str]:
        """Every note that should be indexed, with the hash of what it was indexed with."""
        files = self.read(lambda snapshot, origin_id: snapshot.files(origin_id), {})
        return {path: file.hash for path, file in files.items() if file.skipped is None}

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them."""
        return reported(self.read(lambda snapshot, origin_id: snapshot.files(origin_id, reported=True), {}))

    def field_values(self, name: str) -> dict[str, str]:
        """Every note whose frontmatter has this field as a text, and its value."""
        notes = sorted(self.all(), key=lambda note: note.path)
        return {note.path: value for note in notes if isinstance(value := note.frontmatter.get(name), str)}

    def links(self, path: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """What a note links to, and which notes link to it.

        `targets` are the links of its file, for a caller who has just read it.
        """
        unknown: list[Link] = [Link(target, None) for target in targets or ()]
        if to_utf8(path) != path:
            return unknown, []
        return self.read(
            lambda snapshot, origin_id: (
                links_from(snapshot, origin_id, path, targets),
                links_to(snapshot, origin_id, path),
            ),
            (unknown, []),
        )

    # -- with those searched together ----------------------------------------------------------------------------------

    def view(self, snapshot: ReadTransaction, filters: Filters) -> View:
        """What a search with these filters sees."""
        every = self._origins(snapshot)
        own = next((stored for stored in every if stored.origin == self.origin), None)
        origins = [stored for stored in every if not filters.roots or stored.origin.root in filters.roots]
        parts = [
            (row.id, source)
            for row in origins
            for source in adapter_of(row.origin).sources
            if not filters.sources or source in filters.sources or row.origin.label in filters.sources
        ]
        scope = Scope(tuple(parts), filters)
        seen = [row for row in origins if row.id in scope.origins]
        space = self._answering(snapshot, own, seen) if own else None
        synced = seen if own is None or own.id in scope.origins else [own]
        linked = [row for row in seen if row.origin != self.origin and row.notes]
        away = {row.id for row in linked if not os.path.lexists(row.origin.path)}
        return View(
            scope=scope,
            space=space,
            synced_at=max((row.synced_at for row in synced if row.synced_at is not None), default=None),
            is_synced=own is not None and own.synced_at is not None,
            notes=sum(row.notes for row in seen),
            passages=sum(row.passages for row in seen),
            prefixes={row.id: f"{row.origin.tier}:" for row in origins if row.origin.tier},
            tiers=self._tier_values(origins),
            away=away,
            outdated=[_missing_text(row, row.id in away) for row in linked if row.missing or row.id in away],
        )

    def unsearched(self, scope: Scope) -> list[str]:
        """Files that a search should have covered, and whose text is not in the index."""
        found: list[str] = []
        with self.engine.reading() as snapshot:
            for stored in self._origins(snapshot):
                if stored.id not in scope.origins:
                    continue
                files = snapshot.files(stored.id, reported=True)
                paths = [path for path, file in files.items() if hides_text(file.skipped)]
                paths = dict.fromkeys((*paths, *self.seen.unread.get(stored.origin, ())))
                found += [name_in(stored.origin, path, self.origin) for path in paths]
        return found

    def uses(self, notes: Mapping[int, StoredNote | StoredPassage]) -> Mapping[int, UseCount]:
        """How these notes were used and rated."""
        if self._use_counts is None:
            return {}
        places = {(note.root, note.path): number for number, note in notes.items()}
        return {places[place]: count for place, count in self._use_counts(places).items()}

    def docs(self, filters: Filters | None = None, limit: int = -1) -> list[StoredNote]:
        """Notes, newest first."""
        with self.engine.reading() as snapshot:
            view = self.view(snapshot, filters or Filters())
            notes = snapshot.list_notes(view.scope, limit)
        notes = [note._replace(missing=note.missing or 0.0) if note.origin_id in view.away else note for note in notes]
        return [note._replace(ref=view.prefixes.get(note.origin_id, "") + note.ref) for note in notes]

    def titled(self, text: str, limit: int) -> list[StoredNote]:
        """Notes whose title, alias or path is like a text that is being typed, best first; the newest for no text."""
        name = fold_name(text)
        if not name:
            return self.docs(limit=limit)
        with self.engine.reading() as snapshot:
            view = self.view(snapshot, Filters())
            best = snapshot.names_like(view.scope.origins, name, limit)
            found = sorted(snapshot.find_notes(None, "id", best), key=lambda note: best.index(note.id))
        return [note._replace(ref=view.prefixes.get(note.origin_id, "") + note.ref) for note in found]

    def tags(self, filters: Filters | None = None) -> dict[str, int]:
        """Every tag and how many notes have it, the most used first."""
        counted = Counter(tag for note in self.docs(filters) for tag in note.tags)
        return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))

    def successors(self, named: Mapping[str, str | None], now: float) -> dict[str, str | None]:
        """The notes that had replaced these refs by then; `named` are the ones that their files name."""
        tiers, by_tier = {origin.tier for origin in self.linked}, dict[str, dict[str, str]]()
        for ref in named:
            tier, _, rest = ref.partition(":")
            tier, inside = (tier, rest) if tier in tiers else ("", ref)
            by_tier.setdefault(tier, {})[to_utf8(inside)] = ref
        stored: dict[str, tuple[str, StoredNote]] = {}
        with self.engine.reading() as snapshot:
            for row in self._origins(snapshot):
                refs = by_tier.get(row.origin.tier, {})
                for note in snapshot.find_notes(row.id, "ref", list(refs)) if refs else ():
                    stored.setdefault(refs[note.ref], (row.origin.tier, note))
            validities = snapshot.validities([note.id for _, note in stored.values()], now) if stored else {}
        found = dict(named)
        for ref, (tier, note) in stored.items():
            newer = validities[note.id].superseded_by if note.id in validities else None
            if newer:
                found[ref] = f"{tier}:{newer}" if tier else newer
            elif note.superseded_by:
                found[ref] = None
        return found

    # -- inside --------------------------------------------------------------------------------------------------------

    def read(self, read: Callable[[ReadTransaction, int], T], nothing: T) -> T:
        """What can be read of this origin; `nothing` if it was never synced."""
        with self.engine.reading() as snapshot:
            stored = snapshot.origin(self.origin)
            return nothing if stored is None else read(snapshot, stored.id)

    def _answering(
        self, snapshot: ReadTransaction, own: StoredOrigin, seen: Sequence[StoredOrigin]
    ) -> StoredSpace | None:
        """The active space; or the floor, if many passages lack a vector of it and no language is lost with it."""
        active, floor = own.active, own.floor
        if self._floor_only and floor:
            return floor
        if active is None or floor is None or active == floor:
            return active
        if all(row.active == active and not snapshot.is_waiting(row.id, FEW, active) for row in seen):
            return active
        languages = snapshot.languages([row.id for row in seen])
        loses = any(active.space.knows(language) and not floor.space.knows(language) for language in languages)
        return active if loses or any(row.floor != floor for row in seen) else floor

    def _origins(self, snapshot: ReadTransaction) -> list[StoredOrigin]:
        """This origin and those searched with it, as far as they were ever synced."""
        found = [stored for origin in (self.origin, *self.linked) if (stored := snapshot.origin(origin))]
        return list({stored.id: stored.seen(can_use) for stored in found}.values())

    def _tier_values(self, origins: Sequence[StoredOrigin]) -> dict[int, float]:
        if self.tiers is None:
            return {}
        values, least = self.tiers.values, min(self.tiers.values.values(), default=0.0)
        own = {self.origin: self.tiers.own}
        return {stored.id: values.get(stored.origin.tier or own.get(stored.origin, ""), least) for stored in origins}


def name_in(origin: Origin, path: str, own: Origin) -> str:
    """A file as a person would look for it; the source itself for no path."""
    return path if origin == own else f"{origin.label}/{path}" if path else origin.label


def _missing_text(stored: StoredOrigin, away: bool) -> str:
    """What is wrong with a linked source whose files are gone, and the fix."""
    origin = stored.origin
    if away:
        fix = "" if origin.tier else f", or `co source remove {origin.label}`"
        return f"{origin.label} is answered from what was indexed: {origin.path} is not there; mount or restore it{fix}"
    drop = f"co --vault {origin.root} index sync" if origin.tier else f"co source refresh {origin.label}"
    count = "1 file is" if stored.missing == 1 else f"{stored.missing:,} files are"
    return (
        f"{origin.label} is answered from what was indexed: {count} gone; `{drop} --drop-missing` if you deleted them"
    )
