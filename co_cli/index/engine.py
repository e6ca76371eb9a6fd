"""What a storage engine must offer: the values that cross it, and its read and write transactions.

`index/sqlite/` implements this. Ids of vaults, passages, notes and spaces are the engine's own: they are valid within
one transaction, and nothing outside compares or stores them. Word statistics (how many passages have a term, bm25) are
those of one vault. Text is tokenised by `index/tokens.py` before an engine sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.sources.origin import Origin
from co_cli.values import Filters, Passage

if TYPE_CHECKING:
    from co_cli.notes.note import Note

Term = str
Needle = tuple[Term, ...]
"""Tokens that must follow each other."""


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The words of a query as tokens: any of `terms`, all of `phrases`, none of `excluded`."""

    terms: tuple[Term, ...] = ()
    phrases: tuple[Needle, ...] = ()
    excluded: tuple[Needle, ...] = ()
    prefixes: tuple[Term, ...] = ()
    """Beginnings of words that count like terms: for completion as you type."""

    @property
    def empty(self) -> bool:
        return not (self.terms or self.phrases or self.prefixes)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one search may see: sources of vaults, and filters on their notes."""

    parts: tuple[tuple[int, str], ...]
    """Vault and source, each."""
    filters: Filters = field(default_factory=Filters)

    @property
    def vaults(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(vault for vault, _ in self.parts))


class Counts(NamedTuple):
    """How much is indexed, and when the index last agreed with the files."""

    synced_at: float | None
    notes: int
    passages: int


class WordMatch(NamedTuple):
    """A passage that has some of the words; a higher bm25 is better."""

    passage: int
    note: int
    bm25: float


class Neighbour(NamedTuple):
    """A passage near a query's vector."""

    passage: int
    note: int
    cosine: float


class Named(NamedTuple):
    """A note that is called what was asked for, by its first passage."""

    passage: int
    note: int
    kind: str
    """`title`, `alias`, `slug` or `ref`."""


class StoredPassage(NamedTuple):
    """A passage with what its note says."""

    id: int
    note: int
    vault: int
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
    """Since when its file is gone."""
    heading: str
    first_line: int
    last_line: int
    body: str
    context: str


class StoredNote(NamedTuple):
    """A note as a listing shows it."""

    id: int
    vault: int
    root: str
    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: tuple[str, ...]
    category: str | None
    description: str
    hash: str
    fingerprint: str
    missing: float | None
    valid_until: float | None
    superseded_by: str | None


class NoteFacts(NamedTuple):
    """What signals look at."""

    vault: int
    root: str
    path: str
    ref: str
    fingerprint: str
    created: float
    dated: bool
    """Whether the note says itself when it was created; else `created` is the file's time."""
    tags: tuple[str, ...]
    valid_from: float | None
    valid_until: float | None
    frontmatter: Mapping[str, object]


FULL_STRENGTH = 0.75
"""The share of a validity window during which a note is as strong as one without an end."""


class Standing(NamedTuple):
    """When a note is valid."""

    created: float
    valid_from: float | None
    valid_until: float | None
    superseded_by: str | None
    """The note that had replaced it by then."""

    def strength(self, now: float) -> float:
        """How strongly it holds at a moment: 1 for three quarters of its window, then falling to 0 at its end."""
        if self.problem(now):
            return 0.0
        last, start = self.valid_until, self.created if self.valid_from is None else self.valid_from
        passed = (now - start) / (last - start) if last is not None and last > start else 0.0
        return 1.0 if passed <= FULL_STRENGTH else (1.0 - passed) / (1.0 - FULL_STRENGTH)

    def problem(self, now: float) -> str | None:
        """Why the note is not valid at a moment; None if it is."""
        if self.superseded_by is not None:
            return f"superseded by {self.superseded_by}"
        if self.valid_from is not None and now < self.valid_from:
            return "not valid yet"
        return "no longer valid" if self.valid_until is not None and now >= self.valid_until else None


class Linking(NamedTuple):
    """A link, by the note that has it."""

    note: int
    path: str
    ref: str
    title: str
    target: str


class StoredFile(NamedTuple):
    """A file that a sync looked at."""

    hash: str
    skipped: str | None
    problem: str | None


class IndexedFile(NamedTuple):
    """A file as a sync read it: a note with its passages, or the reason why it is not indexed."""

    path: str
    hash: str
    mtime: float
    note: Note | None
    passages: Sequence[Passage]
    skipped: str | None = None


class StoredSpace(NamedTuple):
    """A vector space and its id."""

    id: int
    space: VectorSpace

    @property
    def packed(self) -> bool:
        """Whether its vectors are stored as int8. Only the embedded model's are: they lose nothing by it."""
        return self.space.provider == "static"


class SpaceState(NamedTuple):
    """The space that answers in a vault, and the one that is being built to replace it."""

    active: StoredSpace | None = None
    building: StoredSpace | None = None


class WaitingPassage(NamedTuple):
    """A passage that needs a vector. `state` changes when the passage does."""

    id: int
    source: str
    text: str
    state: tuple[str, str, int]


class CacheState(NamedTuple):
    """How full the embedding cache is, and how often it helped."""

    entries: int
    bytes: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float | None:
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


class View(NamedTuple):
    """What a search sees of an index, within one transaction."""

    scope: Scope
    space: StoredSpace | None
    """The vectors that answer; None: there are none yet."""
    counts: Counts
    prefixes: Mapping[int, str]
    """What comes before the refs of other people's vaults."""
    tiers: Mapping[int, float]
    """How much each vault counts, where several people's are searched together."""
    unready: Sequence[str] = ()
    """Sources whose vectors are of another model."""


class Reader(Protocol):
    """One read transaction: everything is of one moment."""

    # search
    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[WordMatch]:
        """Passages that have any of the terms, best first, with each phrase and no excluded word."""
        ...

    def term_counts(self, vaults: Iterable[int], terms: Iterable[Term]) -> tuple[int, dict[Term, int]]:
        """How many passages there are, and how many of them have each term."""
        ...

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        """Which of these terms each passage has in its own words, its context left out."""
        ...

    def word_count(self, vault: int) -> int:
        """How many passages the word index has."""
        ...

    def vocabulary(self, vaults: Iterable[int]) -> set[Term]:
        """Every term."""
        ...

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Neighbour]:
        """Passages by cosine, nearest first."""
        ...

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these passages that has a vector."""
        ...

    def named(self, scope: Scope, name: str) -> list[Named]:
        """Notes of this name, folded as `index/names.py` does."""
        ...

    def passages(self, ids: Sequence[int]) -> dict[int, StoredPassage]: ...

    def passages_of(self, vault: int, ref: str | None = None) -> Iterator[StoredPassage]:
        """The passages of one note, or of all notes of a vault, in order."""
        ...

    def facts(self, notes: Sequence[int]) -> dict[int, NoteFacts]: ...

    def standings(self, notes: Sequence[int], now: float) -> dict[int, Standing]:
        """When these notes are valid; empty if no note of their vaults ever ends."""
        ...

    # notes
    def vault(self, origin: Origin) -> int | None:
        """The id of a vault, or of another origin; None if it was never written."""
        ...

    def origins(self) -> dict[int, Origin]:
        """Everything that was ever indexed here."""
        ...

    def counts(self, vaults: Iterable[int]) -> Counts: ...

    def count_sources(self, vault: int) -> dict[str, Counts]:
        """How much each source of a vault has."""
        ...

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        """Notes, newest first."""
        ...

    def find_notes(self, vault: int, key: str, values: Collection[str]) -> list[StoredNote]:
        """Notes by `ref`, `path`, `path_key` or `fingerprint`."""
        ...

    def frontmatter(self, vault: int) -> dict[str, dict[str, object]]:
        """Each note's frontmatter, by its path."""
        ...

    def tags(self, scope: Scope) -> dict[str, int]:
        """Every tag and how many notes have it, the most used first."""
        ...

    def link_targets(self, notes: Sequence[int]) -> dict[int, list[str]]:
        """What these notes link to, as it is written."""
        ...

    def linking(self, vault: int, keys: Collection[str]) -> list[Linking]:
        """Links to something of one of these names (`link_key`)."""
        ...

    def namesakes(self, vault: int, names: Collection[str]) -> list[tuple[int, str, str]]:
        """Notes that are called one of these names: id, path, ref."""
        ...

    def files(self, vault: int, paths: Collection[str] | None = None, reported: bool = False) -> dict[str, StoredFile]:
        """The files that a sync looked at: all, these, or those with something to report."""
        ...

    def listings(self, vault: int) -> tuple[dict[str, bytes], list[str]]:
        """Each folder's listing as of the last sync, and indexed files that are in none of them."""
        ...

    # vectors
    def spaces(self, vault: int) -> SpaceState: ...

    def find_space(self, space: VectorSpace) -> StoredSpace | None: ...

    def waiting(self, vault: int, space: StoredSpace, limit: int) -> list[WaitingPassage]:
        """Passages that need a vector."""
        ...

    def without_vector(self, vault: int, space: StoredSpace) -> list[WaitingPassage]:
        """Passages that have no vector and do not wait for one: texts without meaning, unless something was lost."""
        ...

    def waiting_count(self, vault: int, space: StoredSpace | None = None) -> int: ...

    def cached(self, space: StoredSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        """Vectors of texts that were embedded before; None for a text without meaning."""
        ...

    def cache_state(self) -> CacheState: ...


class Writer(Reader, Protocol):
    """One write transaction: all of it happens, or nothing."""

    def add_vault(self, origin: Origin) -> int: ...

    def put_files(self, vault: int, files: Sequence[IndexedFile]) -> None:
        """Replace what is known of these files. They count as unlisted until a listing has them."""
        ...

    def drop_files(self, vault: int, paths: Collection[str]) -> list[str]:
        """Forget these files. Returns those that were notes."""
        ...

    def set_missing(self, vault: int, paths: Collection[str], since: float | None) -> list[str]:
        """Mark notes whose file is gone, or is back. Returns those that were notes."""
        ...

    def set_times(self, vault: int, times: Mapping[str, float]) -> None:
        """The files' modification times, where nothing else changed."""
        ...

    def set_listings(self, vault: int, listings: Mapping[str, bytes | None], unlisted: Mapping[str, bool]) -> None:
        """Store or drop folders' listings, and add or remove unlisted files."""
        ...

    def set_synced(self, vault: int, moment: float | None) -> None: ...

    def drop_vault(self, vault: int) -> int:
        """Forget everything of a vault. Returns how many notes it had."""
        ...

    def add_space(self, space: VectorSpace) -> StoredSpace: ...

    def begin_space(self, vault: int, space: VectorSpace) -> SpaceState:
        """Make this the vault's space: at once if it has none, else as the one that is being built."""
        ...

    def finish_space(self, vault: int, space: StoredSpace) -> bool:
        """Let a complete space take over. False if passages still wait, or another process dropped it."""
        ...

    def reembed(self, vault: int, space: StoredSpace, forget_cache: bool = False) -> None:
        """Let every passage wait for a new vector; the old ones answer until then."""
        ...

    def put_vectors(
        self, vault: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        """Store vectors of passages that still wait and have not changed. Returns how many."""
        ...

    def cache(self, space: StoredSpace, fresh: Mapping[bytes, Vector | None], used: Iterable[bytes] = ()) -> None:
        """Keep vectors of texts, and mark those that were used again."""
        ...


class Engine(Protocol):
    """One store, shared by threads and processes."""

    path: str

    def reading(self) -> AbstractContextManager[Reader]:
        """A read transaction; inside another one of the same thread, that one."""
        ...

    def writing(self) -> AbstractContextManager[Writer]: ...

    def rebuild(self, fill: Callable[[Engine], None]) -> None:
        """Fill a new store and put it in place of this one; readers keep the old one until then."""
        ...

    def compact(self) -> None:
        """Tidy up after many changes."""
        ...

    def problem(self) -> str | None:
        """What a full check of the store finds wrong; None if nothing."""
        ...

    def discard(self, problem: str) -> None:
        """Move a damaged store aside; the next transaction makes a new one."""
        ...

    def close(self) -> None: ...
