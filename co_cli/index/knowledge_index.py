"""KnowledgeIndex: one vault's view of search.db, behind the few verbs that retrieval and the service need.

Files in, candidates and rows out; nothing here decides what a good answer is. A server engine would stand beside it
with the same verbs.
"""

from __future__ import annotations

import os
import time

from co_cli.index.connection import Database, fetch
from co_cli.index.filters import conditions
from co_cli.index.match import WordQuery, read_query
from co_cli.index.spaces import SpaceState, any_waiting, space_state, waiting_by_space
from co_cli.index.vault_database import VaultDatabase, VaultSnapshot
from co_cli.index.vectors import Neighbour, StoredSpace, cosines, ids_text, nearest, prefer_resident
from co_cli.index.words import SharedWords, WordMatch, coverage, find_words, mark_words, rarest_words, shared_words
from co_cli.record import Record
from co_cli.sources.vault import scan_vault
from co_cli.typed import whole
from co_cli.values import Filters, SyncReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from co_cli.embedding.embedders import Embedders
    from co_cli.embedding.space import Vector
    from co_cli.index.cache import CacheState
    from co_cli.index.lexicon import PassageWords, Word, WordFacts
    from co_cli.index.likely import Likely
    from co_cli.index.meaning import Embedded
    from co_cli.index.names import Called
    from co_cli.index.resident import ResidentVectors
    from co_cli.index.sync import Progress
    from co_cli.sources.vault import Scan

SAVE_SECONDS = 5.0
"""How long a save may wait for a slow embedder; the note is written and found by words before that."""

LISTINGS = "select path, listing from folders where vault_id = :vault"
UNLISTED = "select path from unlisted where vault_id = :vault"

COUNTS = "select synced_at, notes, passages from vaults where id = :vault"
BY_SOURCE = "select source, count(*) from docs where vault_id = :vault group by source order by source"

TAGS = "(select group_concat(tag.value, char(10)) from json_each(docs.tags) as tag)"
"""As lines: a cold search does not import json."""

OPEN_PASSAGES = f"""
select passages.id, docs.ref, docs.source, docs.path, docs.title, docs.created, {TAGS}, passages.heading,
    passages.first_line, passages.last_line, passages.body
from passages join docs on docs.id = passages.doc_id
where passages.id in (select value from json_each(:ids))
"""

PASSAGE_COUNTS = "select id, passages from docs where id in (select value from json_each(:ids))"
DATED = "select id, created from docs where id in (select value from json_each(:ids)) and created <> mtime"
PASSAGES_OF = """
select passages.id from docs join passages on passages.doc_id = docs.id
where docs.vault_id = :vault and docs.ref = :ref order by passages.id
"""
DOCS_OF = "select id, doc_id from passages where id in (select value from json_each(:ids))"

LIST_DOCS = f"""
select docs.ref, docs.source, docs.path, docs.title, docs.created, {TAGS}, docs.category, docs.description
from docs where {{filters}} order by docs.created desc, docs.path limit :limit
"""

REF_OF_PATH = "select ref from docs where vault_id = :vault and path = :path"
PATH_OF_REF = "select path from docs where vault_id = :vault and ref = :ref"
PATHS_LIKE = "select path from docs where vault_id = :vault and path_key = :key limit 2"
ALL_REFS = "select ref, title from docs where vault_id = :vault"
ALL_HASHES = """
select files.path, coalesce(docs.hash, '')
from knowledge_files as files left join docs on docs.vault_id = files.vault_id and docs.path = files.path
where files.vault_id = :vault and files.skipped is null
"""
FIELD_VALUES = """
select docs.path, cast(field.value as text)
from docs, json_each(docs.frontmatter) as field
where docs.vault_id = :vault and field.key = :name and field.type = 'text'
order by docs.path
"""
EXACT_TWINS = """
select path from docs where vault_id = :vault and source = :source and fingerprint = :fingerprint limit 5
"""


class StoredPassage(Record):
    """A passage as search.db has it, with what its note says."""

    id: int
    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: tuple[str, ...]
    heading: str
    first_line: int
    last_line: int
    body: str


class DocRow(Record):
    """A note as search.db lists it."""

    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: tuple[str, ...]
    category: str | None
    description: str


class Counts(Record):
    """How much is indexed, and as of when."""

    synced_at: float | None
    notes: int
    passages: int


class Meaning(Record):
    """The state of a vault's vectors."""

    spaces: SpaceState
    waiting: dict[int, int]
    cache: CacheState


class KnowledgeIndex:
    """One vault in search.db."""

    def __init__(
        self,
        database: Database,
        root: str,
        exclude: Sequence[str] = (),
        max_note_bytes: int = 2_000_000,
        embedders: Embedders | None = None,
    ) -> None:
        self.root = root
        self.fresh_as_of: float | None = None
        """When this process last saw the index agree with the files."""
        self.unread: list[str] = []
        """Files and folders that the last sync of this process could not read."""
        self.rows = VaultDatabase(database, root)
        self._exclude, self._limit = exclude, max_note_bytes
        self._embedders = embedders
        self._resident: ResidentVectors | None = None
        self._searches = 0

    # -- files in ---------------------------------------------------------------------------------------------------

    def sync(self, progress: Progress | None = None, seconds: float | None = None) -> SyncReport:
        """Make the index agree with the files, then embed what waits. Costs one walk when nothing changed.

        `seconds` bounds the time spent on building a space that is slow to embed; the next sync goes on with it.
        """
        started = time.time()
        with self.rows.reading() as (connection, vault):
            stored: dict[str, bytes] = dict(connection.execute(LISTINGS, {"vault": vault}))
            unlisted = [path for (path,) in connection.execute(UNLISTED, {"vault": vault})]
            synced_at, notes, _ = connection.execute(COUNTS, {"vault": vault}).get or (None, 0, 0)
        scan = scan_vault(self.root, self._exclude, stored)
        same = stored == scan.listings and not unlisted and synced_at is not None
        report = None if same else self._catch_up(scan, stored, unlisted, synced_at is not None, progress)
        if report is None:
            skipped, problems = self.rows.reported()
            report = SyncReport([], [], [], [], notes, sorted([*skipped, *scan.odd]), problems)
        self.fresh_as_of = started
        self.unread = [path for path, reason in report.skipped if "cannot be read" in reason]
        self.embed(progress, seconds)
        return report

    def _catch_up(
        self, scan: Scan, stored: dict[str, bytes], unlisted: list[str], synced: bool, progress: Progress | None
    ) -> SyncReport | None:
        """Index what changed; None if it turns out that nothing did."""
        # comparing, parsing and writing: a search of a vault in which nothing changed needs none of it
        from co_cli.index.changes import compare
        from co_cli.index.sync import sync_files

        changes = compare(stored, scan.listings, unlisted, scan.unread)
        if changes.none and synced:
            return None
        return sync_files(self.rows, scan, changes, self._limit, progress)

    def index_file(self, path: str, embed: bool = True) -> None:
        """Index one file now, whatever the listings say. One that cannot be read is left to the next sync."""
        from co_cli.index.rows import put_file
        from co_cli.index.sync import Unreadable, read_file

        try:
            file = read_file(self.root, path, self._limit, None)
        except Unreadable:
            return
        with self.rows.writing() as (connection, vault):
            put_file(connection, vault, file)
        if embed:
            self.embed_saved()

    def remove_stale(self, paths: Sequence[str]) -> list[str]:
        """Forget those of these files that are no longer there. Returns the notes that were forgotten."""
        from co_cli.index.rows import drop_file

        paths = [path for path in paths if whole(path) == path]  # a name that is not UTF-8 never got in
        with self.rows.writing() as (connection, vault):
            gone = [path for path in paths if not os.path.lexists(os.path.join(self.root, path))]
            return [path for path in gone if drop_file(connection, vault, path)]

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Read every file of this vault into a new search.db and swap it in; other vaults follow when they are used."""
        reports: list[SyncReport] = []

        def fill(fresh: Database) -> None:
            index = KnowledgeIndex(fresh, self.root, self._exclude, self._limit, self._embedders)
            reports.append(index.sync(progress))

        self.rows.database.rebuild(fill)
        self.sync()  # what was saved into the old file meanwhile
        return reports[0]

    def embed_saved(self) -> None:
        """Give what was just saved its vectors, if that does not take long."""
        self.embed(seconds=SAVE_SECONDS)

    def reembed(self, progress: Progress | None = None, fresh: bool = False) -> Embedded | None:
        """Embed every passage again in the space that the settings choose; `fresh` does without the cache."""
        state = self.spaces()
        chosen = self._embedders.space if self._embedders else None
        for space in (state.active, state.building):
            if space and chosen and space.space.key == chosen.key:
                from co_cli.index.meaning import embed_again

                embed_again(self.rows, space, fresh)
        return self.embed(progress)

    def embed(self, progress: Progress | None = None, seconds: float | None = None) -> Embedded | None:
        """Give waiting passages their vectors, and build the space that the settings choose behind the active one.

        None if there is nothing to do. Never raises for want of an embedder: what waits goes on waiting.
        """
        target = self._embedders.space if self._embedders else None
        with self.rows.reading() as (connection, vault):
            state = space_state(connection, vault)
            waits = any_waiting(connection, vault)
        answers = state.active is not None and target is not None and state.active.space.key == target.key
        if self._embedders is None or target is None or (answers and not state.building and not waits):
            return None
        from co_cli.index.building import embed_vault

        return embed_vault(self.rows, self._embedders, state, progress, seconds)

    # -- candidates and rows out ------------------------------------------------------------------------------------

    def search(
        self, query: str | WordQuery, filters: Filters | None = None, limit: int = 100, relaxed: bool = False
    ) -> list[WordMatch]:
        """Passages that have the words, best first: all of the words, or with `relaxed` any of them."""
        text = query if isinstance(query, str) else ""
        parsed = read_query(query) if isinstance(query, str) else query
        with self.rows.reading() as (connection, vault):
            return find_words(connection, vault, parsed, text, filters or Filters(), limit, relaxed)

    def called(self, query: str, filters: Filters | None = None) -> list[Called]:
        """Notes whose title, alias, slug or ref is what was typed."""
        from co_cli.index.names import find_called  # not every profile asks

        with self.rows.reading() as (connection, vault):
            return find_called(connection, vault, whole(query), filters or Filters())

    def nearest(
        self,
        space: StoredSpace,
        query: Vector,
        filters: Filters | None = None,
        limit: int = 100,
        at_least: float = -1.0,
    ) -> list[Neighbour]:
        """Passages nearest to a query's vector, best first.

        `at_least` is a cosine that `limit` of them are known to reach: it changes nothing but the time.
        """
        self._searches += 1
        if self._resident is None and prefer_resident(self._searches):
            from co_cli.index.resident import ResidentVectors

            self._resident = ResidentVectors()
        with self.rows.reading() as (connection, vault):
            return nearest(connection, space, vault, query, filters or Filters(), limit, self._resident, at_least)

    def coverage(self, query: WordQuery, matches: list[WordMatch]) -> float:
        """How much of what was asked for the best of these matches have, 0 to 1."""
        with self.rows.reading() as (connection, _):
            return coverage(connection, query, matches)

    def cosines(self, space: StoredSpace, query: Vector, passage_ids: Sequence[int]) -> dict[int, float]:
        """The exact cosine of each of these passages that has a vector."""
        with self.rows.reading() as (connection, _):
            return cosines(connection, space, query, passage_ids)

    def facts(self, words: Sequence[str]) -> dict[str, WordFacts]:
        """What is known of the words of a question: stem, rarity, and their code in the embedded model."""
        from co_cli.index.lexicon import facts_of  # grep and a search by words alone do without

        with self.rows.reading() as (connection, _):
            return facts_of(connection, words)

    def words_of(self, passage_ids: Sequence[int]) -> tuple[dict[int, PassageWords], dict[str, Word]]:
        """These passages word by word, and what is known of each word in them."""
        from co_cli.index.lexicon import words_of_passages

        with self.rows.reading() as (connection, _):
            return words_of_passages(connection, ids_text(passage_ids))

    def spaces(self) -> SpaceState:
        """Which space answers, and which one is being built."""
        with self.rows.reading() as (connection, vault):
            return space_state(connection, vault)

    def meaning(self) -> Meaning:
        """The state of vectors and cache, in numbers."""
        with self.rows.reading() as (connection, vault):
            from co_cli.index.cache import cache_state

            return Meaning(space_state(connection, vault), waiting_by_space(connection, vault), cache_state(connection))

    def snapshot(self) -> VaultSnapshot:
        """Whatever this thread reads until the end is of one moment: no rebuild and no sync comes between."""
        return self.rows.snapshot()

    def passages(self, ids: Sequence[int]) -> list[StoredPassage]:
        """These passages, in the order asked for; one that vanished meanwhile is left out."""
        with self.rows.reading() as (connection, _):
            rows = fetch(connection, OPEN_PASSAGES, {"ids": ids_text(ids)})
        found = {row[0]: StoredPassage._make((*row[:6], _tags(row[6]), *row[7:])) for row in rows}
        return [found[number] for number in ids if number in found]

    def marked(self, query: WordQuery, ids: Sequence[int]) -> dict[int, str]:
        """Snippets of these passages, the matched words between the characters 2 and 3."""
        with self.rows.reading() as (connection, _):
            return mark_words(connection, query, list(ids))

    def docs_of(self, passage_ids: Sequence[int]) -> dict[int, int]:
        """Which note each of these passages is of."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, DOCS_OF, {"ids": ids_text(passage_ids)}))

    def passage_counts(self, doc_ids: Sequence[int]) -> dict[int, int]:
        """How many passages each of these notes is cut into."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, PASSAGE_COUNTS, {"ids": ids_text(doc_ids)}))

    def dated(self, doc_ids: Sequence[int]) -> dict[int, float]:
        """When these notes came to be, those that say it themselves."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, DATED, {"ids": ids_text(doc_ids)}))

    def passages_of(self, ref: str) -> list[int]:
        """The passages of a note."""
        return [int(number) for (number,) in self._select(PASSAGES_OF, ref=ref)]

    def shared_words(self, query: WordQuery, passage_ids: Sequence[int]) -> SharedWords:
        """What these passages have of a query, and what they lack."""
        with self.rows.reading() as (connection, _):
            return shared_words(connection, query, ids_text(passage_ids))

    def counts(self) -> Counts:
        with self.rows.reading() as (connection, vault):
            rows = fetch(connection, COUNTS, {"vault": vault})
        return Counts(*rows[0]) if rows else Counts(None, 0, 0)

    def by_source(self) -> dict[str, int]:
        return {source: int(count) for source, count in self._select(BY_SOURCE)}

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them."""
        return self.rows.reported()

    def waiting(self) -> int:
        """How many files changed, came or went since the last sync."""
        from co_cli.index.changes import waiting_files

        with self.rows.reading() as (connection, vault):
            stored: dict[str, bytes] = dict(connection.execute(LISTINGS, {"vault": vault}))
            unlisted = [path for (path,) in connection.execute(UNLISTED, {"vault": vault})]
        scan = scan_vault(self.root, self._exclude, stored)
        return waiting_files(stored, scan.listings, unlisted)

    def hashes(self) -> dict[str, str]:
        """Every note that should be indexed, and the hash of what it was indexed with; none if its row is lost."""
        rows: Any = self._select(ALL_HASHES)
        return dict(rows)

    def docs(self, filters: Filters | None = None, limit: int = -1) -> list[DocRow]:
        """Notes, newest first."""
        with self.rows.reading() as (connection, vault):
            where, values = conditions(filters or Filters(), vault)
            rows = fetch(connection, LIST_DOCS.format(filters=where), {**values, "limit": limit})
        return [DocRow._make((*row[:5], _tags(row[5]), *row[6:])) for row in rows]

    def path_of(self, ref: str) -> str | None:
        return next((path for (path,) in self._select(PATH_OF_REF, ref=ref)), None)

    def ref_of(self, path: str) -> str | None:
        return next((ref for (ref,) in self._select(REF_OF_PATH, path=path)), None)

    def paths_like(self, path: str) -> list[str]:
        """Notes whose path differs only in case or normalisation."""
        from co_cli.notes.refs import name_key

        return [found for (found,) in self._select(PATHS_LIKE, key=name_key(path))]

    def titles(self) -> dict[str, str]:
        """Every ref and its title, to suggest the closest ones."""
        rows: Any = self._select(ALL_REFS)
        return dict(rows)

    def taken(self, path: str) -> bool:
        """Is this path, or one that some file system holds for the same, a note already?"""
        return bool(self.paths_like(path))

    def field_values(self, name: str) -> dict[str, str]:
        """Every note whose frontmatter has this field as a text, and what it says there."""
        rows: Any = self._select(FIELD_VALUES, name=name)
        return dict(rows)

    def exact_twins(self, source: str, fingerprint: str) -> list[str]:
        return [path for (path,) in self._select(EXACT_TWINS, source=source, fingerprint=fingerprint)]

    def likely(self, source: str, text: str, limit: int) -> list[Likely] | None:
        """Passages that may say the same as a text; None if nothing in it is rare enough to tell."""
        from co_cli.index.likely import find_likely  # only who saves asks

        with self.rows.reading() as (connection, vault):
            return find_likely(connection, vault, source, text, limit)

    def rarest(self, text: str, limit: int) -> list[str]:
        """Those words of a text that the fewest passages have: enough to find a near twin among 100,000 notes."""
        with self.rows.reading() as (connection, _):
            return rarest_words(connection, text, limit)

    def _select(self, statement: str, **values: str) -> list[tuple[str, ...]]:
        with self.rows.reading() as (connection, vault):
            return fetch(connection, statement, {"vault": vault, **values})


def _tags(lines: str | None) -> tuple[str, ...]:
    return tuple(lines.split("\n")) if lines else ()
