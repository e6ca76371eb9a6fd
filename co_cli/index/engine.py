"""The storage contract: what a storage engine must guarantee. `index/stored.py` has the values that cross it.

`index/sqlite/` and `index/postgres/` implement it. Word statistics (term counts, bm25) are per origin. Engines index
the tokens of `index/tokens.py` and the names of `index/names.py`, so that all of them agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.ground.summaries import NoteLine
from co_cli.index.stored import (
    CacheState,
    IndexedFile,
    Match,
    Named,
    ReadyVectors,
    Scope,
    SourceCount,
    StoredFile,
    StoredNote,
    StoredOrigin,
    StoredPassage,
    StoredSpace,
    SyncState,
    Validity,
    WaitingPassage,
)
from co_cli.index.word_query import Term, WordQuery
from co_cli.sources.origin import Origin

NoteKey = Literal["id", "ref", "path", "path_key", "fingerprint", "name", "link"]
"""What notes can be looked up by: `path_key` and `name` are folded, `link` is the key of a link target."""
DERIVATION = 29
"""Raise it when the same files would give other rows."""


class ReadTransaction(Protocol):
    """One read transaction: every method sees the same moment, whatever others write meanwhile.

    Unknown ids, names and paths are no error; what they would give is left out of the answer.
    """

    # search
    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[Match]:
        """Passages with any of the terms or prefixes and all of the phrases, best first.

        Phrases look at a passage itself and not at its context. If a few notes fill the list, it has
        only some passages of each, so that other notes are found too.
        """
        ...

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Match]:
        """Passages by cosine, nearest first. Vaults in which another space answers contribute nothing.

        The scan is exact: filters reduce what is scanned, not what is returned.
        """
        ...

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these passages that has a vector."""
        ...

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        """The vectors of these notes' passages, each with its note."""
        ...

    def containing(self, scope: Scope, texts: Sequence[str], limit: int) -> list[int]:
        """Passages in which these texts occur, if only as parts of words; of each origin, the newest first.

        Case does not matter. It reads every passage of the scope.
        """
        ...

    def named(self, scope: Scope, name: str, longer: bool = False) -> list[Named]:
        """Notes with this folded name, and with `longer` those whose name begins with its words.

        None at all if too many share it, such as `Meeting`, because then it identifies none of them.
        """
        ...

    def names_of(self, notes: Sequence[int]) -> list[tuple[int, str, str]]:
        """Each of these notes with each of its folded names, and which that is: title, alias or slug."""
        ...

    def names_like(self, origin_ids: Iterable[int], text: str, limit: int) -> list[int]:
        """Notes whose title, alias or path is like a folded text, best first.

        It begins with the text, a word of it does, or it has the text somewhere; if none does, it has its letters in
        this order.
        """
        ...

    def term_counts(
        self, origin_ids: Iterable[int], terms: Iterable[Term] | None = None, start: str = ""
    ) -> tuple[int, dict[Term, int]]:
        """The number of passages, and how many have each of these terms (by default: every term with this start)."""
        ...

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        """Which of these terms each passage has, not counting its context."""
        ...

    def languages(self, origin_ids: Iterable[int]) -> list[str]:
        """The languages that passages are in, most of them first, besides English and those of which nobody knows."""
        ...

    # notes
    def origin(self, origin: Origin) -> StoredOrigin | None:
        """What is stored of an origin; None if it was never written."""
        ...

    def origins(self) -> list[StoredOrigin]:
        """Everything that was ever indexed here."""
        ...

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        """Notes that pass the filters, newest first; all of them with a limit of -1."""
        ...

    def outline(self, scope: Scope) -> list[NoteLine]:
        """A line for each note that passes the filters, in no order: a tenth of the time that `list_notes` takes."""
        ...

    def find_notes(self, origin_id: int | None, key: NoteKey, values: Collection[object]) -> list[StoredNote]:
        """Notes whose key is among these values, in order of their paths: of one origin, or (for ids) of any.

        By `link`, the notes that link to one of these keys (`notes/wikilinks.py`), at most 2,000.
        """
        ...

    def passages(self, ids: Sequence[int] = (), *, notes: Sequence[int] = ()) -> dict[int, StoredPassage]:
        """Passages by their own ids and by those of their notes, in the order of the text."""
        ...

    def beginnings(self, notes: Sequence[int], limit: int) -> dict[int, list[str]]:
        """The texts of the first passages of these notes, so many of each."""
        ...

    def conversations(self, notes: Sequence[int]) -> set[int]:
        """Those of these notes that are conversations: each of their passages is a hit of its own."""
        ...

    def validities(
        self, notes: Sequence[int], now: float, origin_ids: Collection[int] | None = None
    ) -> dict[int, Validity]:
        """When these notes are valid; empty if no note of their origins ever ends. A caller may know the `origin_ids`.

        A note is superseded once the newer note exists and is valid. Of two that supersede each other, the newer wins.
        """
        ...

    def files(
        self, origin_id: int, paths: Collection[str] | None = None, reported: bool = False
    ) -> dict[str, StoredFile]:
        """The files that a sync looked at, by path: all, these, or those with something to report."""
        ...

    def counts(self, origin_id: int) -> list[SourceCount]:
        """How many notes and passages an origin has, in the order of its sources."""
        ...

    def listings(self, origin_id: int) -> tuple[dict[str, bytes], list[str]]:
        """Each folder's listing as of the last sync, and indexed files that are in none of them."""
        ...

    # vectors
    def is_waiting(self, origin_id: int, more_than: int = 0, space: StoredSpace | None = None) -> bool:
        """Whether a passage waits for a vector, or more than so many. Costs the same, however many there are."""
        ...

    def waiting(
        self, origin_id: int, space: StoredSpace | None = None, limit: int = 0
    ) -> tuple[int, list[WaitingPassage]]:
        """How many passages wait for a vector (in one space, or in any), and the first of them."""
        ...

    def cached(self, space: VectorSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        """Vectors of texts that were embedded before, for any origin; None for a text without meaning."""
        ...

    def cache_state(self) -> CacheState: ...


class WriteTransaction(ReadTransaction, Protocol):
    """One write transaction: all of it happens, or nothing. One writer at a time; others wait."""

    def add_origin(self, origin: Origin) -> int:
        """The id of an origin, which is added if it is new."""
        ...

    def put_files(self, origin_id: int, files: Sequence[IndexedFile], ready: Sequence[ReadyVectors] = ()) -> int:
        """Replace everything known about these files. New passages whose vector is not ready wait for it in each of the
        origin's spaces. Returns how many wait.

        The files count as unlisted until a stored listing has them.
        """
        ...

    def drop_files(self, origin_id: int, paths: Collection[str] | None) -> list[str]:
        """Forget these files with all that belongs to them. Returns the paths of those that were notes.

        None forgets everything in the origin, as if it had never been synced.
        """
        ...

    def finish_sync(self, origin_id: int, state: SyncState) -> list[str]:
        """Store what a sync found. Returns which of the missing files were notes; the others are forgotten."""
        ...

    def begin_space(self, origin_id: int, space: VectorSpace) -> StoredOrigin:
        """Make this the origin's space: at once if it has none or no passage, otherwise by building it.

        Another space that was being built is dropped. Every passage waits for a vector in the new space, which
        replaces the active one when none waits any more and `finish_space` is called.
        """
        ...

    def finish_space(self, origin_ids: Collection[int], space: StoredSpace) -> bool:
        """Let a space that was built replace the active ones, if it is complete in all of these origins."""
        ...

    def keep_floor(self, origin_id: int, space: VectorSpace) -> StoredOrigin:
        """Keep vectors of this space, whatever space answers: they answer where those of another one are missing."""
        ...

    def reembed(self, origin_id: int, space: StoredSpace, forget_cache: bool = False) -> None:
        """Let every passage wait for a new vector; the old ones answer until then."""
        ...

    def put_vectors(
        self, origin_id: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        """Store the vectors of passages that still wait and have not changed. Returns how many that were.

        None says that a text has no meaning in this space: the passage stops waiting and has no vector.
        """
        ...

    def cache(self, space: VectorSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()) -> None:
        """Keep vectors of texts by their hashes, and mark those that were used again. Old entries may be evicted."""
        ...

    def drop_unused_cached(self) -> None:
        """Forget the cached vectors of texts that no passage has now."""
        ...


class Engine(Protocol):
    """One store, shared by threads and processes. It is derived: a store that is damaged is moved aside and rebuilt.

    Raises IndexUnavailableError when the store cannot be used now, IndexDamagedError when it was moved aside.
    """

    path: str
    """Its file, or its address without a password."""

    @property
    def set_aside(self) -> str | None:
        """Where an unusable file was moved, if one was found."""
        ...

    def reading(self) -> AbstractContextManager[ReadTransaction]:
        """A read transaction; inside another one of the same thread, that one."""
        ...

    def writing(self) -> AbstractContextManager[WriteTransaction]: ...

    def rebuild(self, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]) -> None:
        """Fill a new store and put it in place of this one. Readers keep the old one, and the cache is kept.

        Writers wait during `catch_up`, which adds what they stored in the old one meanwhile. It has to be quick.
        """
        ...

    def compact(self) -> None:
        """Tidy up after many changes, in short transactions."""
        ...

    def embedding(self, origin: Origin, wait: float) -> AbstractContextManager[None]:
        """Held by the one machine that makes vectors of an origin. Raises BlockingIOError after so many seconds."""
        ...

    def erase(self) -> str | None:
        """Leave nothing in the store of what was deleted. Returns where something may be left, and how it goes."""
        ...

    def unindexed(self) -> str | None:
        """Why searches are slow: vectors that are too many to compare each, and have no index. `compact` builds it."""
        ...

    def size(self) -> int:
        """Bytes on the disk."""
        ...

    def revision(self) -> object:
        """Another value after every commit of any process; ask for it before you read what should be kept with it."""
        ...

    def problem(self, discard: bool = False) -> str | None:
        """What a full check of the store finds wrong; None if nothing. `discard` moves a damaged store aside."""
        ...

    def close(self) -> None: ...
