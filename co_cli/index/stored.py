"""The values that cross the storage contract: what is stored about notes, passages, files, origins and vectors.

Ids of origins, notes, passages and spaces belong to the engine: they are valid within one transaction, and callers
neither compare nor store them across transactions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from co_cli.embedding.space import ENCODER, LANGUAGES, Vector, VectorSpace
from co_cli.embedding.static import SPACE as STATIC
from co_cli.ground.hits import Filters, Passage
from co_cli.notes.dates import edge_for
from co_cli.sources.origin import Origin

if TYPE_CHECKING:
    from co_cli.notes.note import Note


@dataclass(frozen=True, slots=True)
class Scope:
    """What one search may see: sources of origins, and filters on their notes."""

    parts: tuple[tuple[int, str], ...]
    """Pairs of origin and source."""
    filters: Filters = field(default_factory=Filters)
    only: Collection[int] | None = None
    """The only passages that it may see; None: all."""
    without: Collection[int] | None = None
    """Passages that it may not see."""

    @property
    def origins(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(origin_id for origin_id, _ in self.parts))


class Match(NamedTuple):
    """A passage that was found, with its bm25 or its cosine; more is better."""

    passage: int
    note: int
    score: float


class Named(NamedTuple):
    """A note with the name that was asked for, by its first passage."""

    passage: int
    note: int
    kind: str
    """`title`, `alias`, `slug`, `path` or `ref`."""
    share: float = 1.0
    """How much of the name was asked for: `tomasz` is half of `Tomasz Wójcik`."""


class StoredPassage(NamedTuple):
    """A passage, with what its note says."""

    id: int
    note: int
    origin_id: int
    ref: str
    source: str
    path: str
    root: str
    title: str
    created: float
    tags: tuple[str, ...]
    aliases: str
    category: str | None
    missing: float | None
    """When its file was found to be gone."""
    heading: str
    first_line: int
    last_line: int
    body: str
    around: str
    properties: str = ""
    """The fields of its note's frontmatter, a line for each, with the name before the value."""
    language: str = ""
    """The code of its language; empty if nobody knows."""

    @property
    def searched_text(self) -> str:
        about = (*self.tags, self.aliases, self.path, self.properties)
        return "\n".join((self.title, self.heading, self.body, *about))


class StoredNote(NamedTuple):
    """A note without its text."""

    id: int
    origin_id: int
    root: str
    ref: str
    source: str
    path: str
    title: str
    created: float
    dated: bool
    """Whether the note says itself when it was created; otherwise `created` is the file's time."""
    tags: tuple[str, ...]
    category: str | None
    description: str
    hash: str
    fingerprint: str
    missing: float | None
    """When its file was found to be gone."""
    valid_from: float | None
    valid_until: float | None
    superseded_by: str | None
    frontmatter_json: str
    links_json: str

    @property
    def frontmatter(self) -> dict[str, Any]:
        return json.loads(self.frontmatter_json)

    @property
    def links(self) -> list[str]:
        """Link targets, as they are written in the note."""
        return [str(target) for target in json.loads(self.links_json)]


FULL_STRENGTH = 0.75
"""The share of a validity window during which a note is as strong as one without an end."""


EXPIRED = "no longer valid"


class Validity(NamedTuple):
    """When a note is valid."""

    created: float
    valid_from: float | None
    valid_until: float | None
    superseded_by: str | None
    """The note that had replaced it by then."""

    def strength(self, now: float) -> float:
        """1 for three quarters of its validity window, then falling to 0 at its end."""
        if self.problem(now):
            return 0.0
        last, start = self.valid_until, self.created if self.valid_from is None else self.valid_from
        passed = (now - start) / (last - start) if last is not None and last > start else 0.0
        return 1.0 if passed <= FULL_STRENGTH else (1.0 - passed) / (1.0 - FULL_STRENGTH)

    def problem(self, now: float) -> str | None:
        """Why the note is not valid at a moment; None if it is."""
        if self.superseded_by is not None:
            return f"superseded by {self.superseded_by}"
        if self.valid_from is not None and self.valid_from > edge_for(self.valid_from, now):
            return "not valid yet"
        ended = self.valid_until is not None and self.valid_until <= edge_for(self.valid_until, now)
        return EXPIRED if ended else None


class StoredFile(NamedTuple):
    """A file that a sync looked at."""

    hash: str
    skipped: str | None
    """Why it is not indexed; None if it is."""
    problem: str | None
    """What is wrong with it although it is indexed."""


class IndexedFile(NamedTuple):
    """A file as a sync read it: a note with its passages, or the reason why it is not indexed."""

    path: str
    hash: str
    mtime: float
    note: Note | None
    passages: Sequence[Passage]
    skipped: str | None = None


class SyncState(NamedTuple):
    """What a finished sync stores about an origin, besides the files that it wrote."""

    at: float
    listings: Mapping[str, bytes | None]
    """Folders' listings to store, or to drop (None)."""
    unlisted: Mapping[str, bool]
    """Indexed files that no stored listing has: to add (True), or to remove (False)."""
    times: Mapping[str, float]
    """Modification times of files whose content is known. They are no longer missing."""
    missing: Collection[str]
    """Files that are gone and whose notes are kept."""


class StoredSpace(NamedTuple):
    """A vector space and its id."""

    id: int
    space: VectorSpace

    @property
    def packed(self) -> bool:
        """Whether its vectors are stored as int8. Those of local models with 256 numbers lose nothing by it."""
        return self.space.provider in (STATIC.provider, ENCODER.provider, LANGUAGES.provider)


class StoredOrigin(NamedTuple):
    """The vault or another origin, how much of it is indexed, and when the index last agreed with its files."""

    id: int
    origin: Origin
    synced_at: float | None = None
    notes: int = 0
    passages: int = 0
    active: StoredSpace | None = None
    """The space that answers."""
    building: StoredSpace | None = None
    """The space that is being built to replace it."""
    floor: StoredSpace | None = None
    """A space that is always kept, and answers where vectors of the active one are missing or cannot be used."""
    missing: int = 0
    """Notes that are kept although their files are gone."""

    @property
    def spaces(self) -> list[StoredSpace]:
        """Those in which passages have vectors, or wait for them."""
        return list({space.id: space for space in (self.floor, self.active, self.building) if space}.values())

    def has_space(self, space: VectorSpace) -> bool:
        """Whether it has vectors of this space, or is getting them."""
        return space.key in [known.space.key for known in self.spaces]

    def seen(self, can_use: Callable[[VectorSpace], bool]) -> StoredOrigin:
        """As an environment sees it that can use some spaces only."""
        if self.active is None or can_use(self.active.space):
            return self
        return self._replace(active=self.floor, building=None)


class SourceCount(NamedTuple):
    """How much there is of one source."""

    source: str
    notes: int
    passages: int
    missing: int
    """Notes whose file is gone."""


class WaitingPassage(NamedTuple):
    """A passage that needs a vector. `state` changes when the passage does."""

    id: int
    source: str
    text: str
    state: tuple[str, str, int]
    language: str = ""
    note: int = 0


class ReadyVectors(NamedTuple):
    """Vectors of texts that were embedded before their passages are stored, by the hashes of the texts."""

    space: VectorSpace
    vectors: Mapping[bytes, Vector | None]


def text_hash(text: str) -> bytes:
    """The key of a text in the embedding cache."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class CacheState(NamedTuple):
    """How full the embedding cache is, and how often it helped."""

    entries: int
    bytes: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float | None:
        total = self.hits + self.misses
        return self.hits / total if total else None
