"""KnowledgeIndex: one vault, or another origin, in search.db: files in, and what can be looked up about them.

What a search reads is in `reader`.
"""

from __future__ import annotations

import os
import time

from co_cli.errors import IndexUnavailableError, VaultError, empty_vault
from co_cli.index.connection import Database, fetch
from co_cli.index.reader import COUNTS, IndexReader
from co_cli.index.vectors import SpaceState, any_waiting, space_state, waiting_by_space
from co_cli.record import Record
from co_cli.sources.origin import VAULT, kind_of
from co_cli.sources.walking import entries_of, folders_of, path_of, place_of, scan_origin, would_list
from co_cli.typed import whole
from co_cli.values import SyncReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from co_cli.embedding.embedders import Embedders
    from co_cli.index.cache import CacheState
    from co_cli.index.likely import Likely
    from co_cli.index.links import Backlink, Link
    from co_cli.index.meaning import Embedded
    from co_cli.index.sync import Hold, Progress
    from co_cli.sources.ignoring import Ignoring
    from co_cli.sources.origin import Origin
    from co_cli.sources.passages import Boundaries
    from co_cli.sources.walking import Scan

SAVE_SECONDS = 5.0
"""How long a save may wait for a slow embedder; the note is written and found by words before that."""

LISTINGS = "select path, listing from folders where vault_id = :vault"

UNLISTED = "select path from unlisted where vault_id = :vault"

BY_SOURCE = """
select source, count(*), sum(passages) from docs where vault_id = :vault group by source order by source
"""

WITH_FIELD = """
select count(*), coalesce(sum(docs.passages), 0) from docs, json_each(docs.frontmatter) as field
where docs.vault_id = :vault and field.key = :name and field.type = 'text'
"""

REF_OF_PATH = "select ref from docs where vault_id = :vault and path = :path"

PATH_OF_REF = "select path from docs where vault_id = :vault and ref = :ref"

PATHS_LIKE = """
select path from docs where vault_id = :vault and path = :key and path_key = ''
union all select path from docs where vault_id = :vault and path_key = :key and path_key <> '' limit 2
"""

ALL_REFS = "select ref, title from docs where vault_id = :vault"

ALL_HASHES = """
select files.path, coalesce(docs.hash, '')
from knowledge_files as files left join docs on docs.vault_id = files.vault_id and docs.path = files.path
where files.vault_id = :vault and files.skipped is null
"""

MISSING = "select path from docs where vault_id = :vault and missing is not null order by path"

MISSING_SINCE = "select ref, missing from docs where vault_id = :vault and path = :path and missing is not null"

LISTED = """
select files.path, coalesce(files.skipped, iif(docs.missing is not null, 'missing', ''))
from knowledge_files as files left join docs on docs.vault_id = files.vault_id and docs.path = files.path
where files.vault_id = :vault
"""

EVERY_FILE = "select path from knowledge_files where vault_id = :vault"

FORGET_LISTINGS = (
    "delete from folders where vault_id = :vault",
    "delete from unlisted where vault_id = :vault",
    "update vaults set synced_at = null where id = :vault",
)

FIELD_VALUES = """
select docs.path, cast(field.value as text)
from docs, json_each(docs.frontmatter) as field
where docs.vault_id = :vault and field.key = :name and field.type = 'text'
order by docs.path
"""

EXACT_TWINS = """
select path from docs where vault_id = :vault and source = :source and fingerprint = :fingerprint limit 5
"""


MOST_COMPARED = 1_000
"""Files that are read to tell what was saved through the index from what changed; more than that are called changed."""


class Meaning(Record):
    """The state of a vault's vectors."""

    spaces: SpaceState
    waiting: dict[int, int]
    cache: CacheState


class KnowledgeIndex(IndexReader):
    """A reader that also brings search.db up to the files."""

    def __init__(
        self,
        database: Database,
        root: str | Origin,
        exclude: Sequence[str] = (),
        max_note_bytes: int = 2_000_000,
        embedders: Embedders | None = None,
    ) -> None:
        super().__init__(database, root)
        self.fresh_as_of: float | None = None
        """When this process last saw the index agree with the files."""
        self.unread: list[str] = []
        """Files and folders that the last sync of this process could not read."""
        self.told: Callable[[KnowledgeIndex, SyncReport, bool], None] | None = None
        """Hears what changed in the index: by a sync, or (True) by a save or a removal of ours."""
        self.boundaries: Boundaries | None = None
        """Who proposes where a sync cuts documents, if anybody does. It may take its time, so a search has none."""
        self._exclude, self._limit, self._embedders = exclude, max_note_bytes, embedders

    # -- files in ---------------------------------------------------------------------------------------------------

    def sync(
        self, progress: Progress | None = None, seconds: float | None = None, hold: Hold | None = None
    ) -> SyncReport:
        """Make the index agree with the files, then embed what waits. Costs one walk when nothing changed.

        `seconds` bounds the time spent on building a space that is slow to embed; the next sync goes on with it.
        `hold` names files that are not read now, because somebody is writing them. A search.db that turns out to be
        damaged is set aside, and a new one is filled.
        """
        try:
            return self._sync(progress, seconds, hold)
        except Exception as error:
            if not self._was_damaged(error):
                raise
        return self._sync(progress, seconds, hold)

    def _was_damaged(self, error: Exception) -> bool:
        from co_cli.index.damage import damage_behind  # for the day when it happens

        return damage_behind(self.rows.database, error) is not None

    def _sync(self, progress: Progress | None, seconds: float | None, hold: Hold | None) -> SyncReport:
        started = time.time()
        with self.rows.reading() as (connection, vault):
            stored: dict[str, bytes] = dict(connection.execute(LISTINGS, {"vault": vault}))
            unlisted = [path for (path,) in connection.execute(UNLISTED, {"vault": vault})]
            synced_at, *_ = connection.execute(COUNTS, {"vault": vault}).get or (None, 0, 0)
        scan = scan_origin(self.origin, self._exclude, stored)
        if scan.unfinished and self.origin.kind == "vault" and not self.origin.tier:
            self._sweep(scan.unfinished)
        skipped, problems = self.rows.reported()
        again = self._skipped_by_another_limit(skipped)
        same = stored == scan.listings and not unlisted and not again and synced_at is not None
        report = None if same else self._catch_up(scan, stored, unlisted, again, synced_at is not None, progress, hold)
        if report is None:
            report = SyncReport([], [], [], [], scan.notes - len(skipped), sorted([*skipped, *scan.odd]), problems)
        self.fresh_as_of = started
        self.unread = [path for path, reason in report.skipped if "cannot be read" in reason]
        if self.told and report.touched:
            self.told(self, report, False)
        self.embed(progress, seconds)
        return report

    def _skipped_by_another_limit(self, skipped: Sequence[tuple[str, str]]) -> list[str]:
        """Files that were too large for a setting that is another one now."""
        kind = kind_of(self.origin)
        found = [(path, reason) for path, reason in skipped if "(setting knowledge_max_note_bytes)" in reason]
        return [path for path, why in found if f" {kind.largest(place_of(path)[1], self._limit):,} (" not in why]

    def _sweep(self, folders: Sequence[str]) -> None:
        """Remove what killed writers left in the vault; what is younger than an hour may still be somebody's."""
        from co_cli.notes.files import sweep_temporary

        for folder in set(folders):
            try:
                sweep_temporary(os.path.join(self.root, folder))
            except OSError:
                continue  # a vault that can only be read

    def _catch_up(
        self,
        scan: Scan,
        stored: dict[str, bytes],
        unlisted: list[str],
        again: list[str],
        synced: bool,
        progress: Progress | None,
        hold: Hold | None,
    ) -> SyncReport | None:
        """Index what changed; None if it turns out that nothing did."""
        # comparing, parsing and writing: a search of a vault in which nothing changed needs none of it
        from co_cli.index.changes import compare
        from co_cli.index.sync import LARGE, sync_files

        changes = compare(stored, scan.listings, unlisted, scan.unread)
        if again:
            changes = changes._replace(look=sorted({*changes.look, *again} - {*changes.gone}))
        if changes.none and synced:
            return None
        work = (self.rows, scan, changes, self._limit, progress, hold, self.boundaries, synced)
        if len(changes.look) < LARGE:
            return sync_files(*work)
        from co_cli.index.second_process import embedding_beside  # few syncs are so large

        with embedding_beside(self.rows, self._embedders):
            return sync_files(*work)

    def files(self) -> list[str]:
        """Every file that a sync would look at, by a walk now."""
        listings = scan_origin(self.origin, self._exclude).listings
        return sorted(path_of(folder, name) for folder, listing in listings.items() for name in entries_of(listing))

    @property
    def limit(self) -> int:
        """How many bytes a note may have."""
        return self._limit

    def folders(self) -> tuple[list[str], Ignoring | None]:
        """Every folder that a sync looks into, as it stands in the file system, and what it leaves out."""
        return folders_of(self.origin, self._exclude)

    def index_file(self, path: str, embed: bool = True) -> None:
        """Index one file now, whatever the listings say. One that cannot be read is left to the next sync."""
        from co_cli.index.building import begin_with
        from co_cli.index.rows import put_file
        from co_cli.index.sync import Unreadable, read_file

        try:
            file = read_file(self.origin, path, self._limit, None)
        except Unreadable:
            return
        try:
            with self.rows.writing() as (connection, vault):
                put_file(connection, vault, file)
                if self._embedders is not None:
                    begin_with(self.rows, self._embedders, connection, vault)
        except IndexUnavailableError:
            return  # the file is written, whatever becomes of search.db: the next sync brings it in
        if self.told:
            self.told(self, SyncReport([], [path], [], [], 0, [], []), True)
        if embed:
            self.embed_saved()

    def remove_stale(self, paths: Sequence[str]) -> list[str]:
        """Forget those of these files that are no longer there. Returns the notes that were forgotten."""
        from co_cli.index.rows import drop_file

        paths = [path for path in paths if whole(path) == path]  # a name that is not UTF-8 never got in
        try:
            with self.rows.writing() as (connection, vault):
                gone = [path for path in paths if not os.path.lexists(os.path.join(self.root, path))]
                dropped = [path for path in gone if drop_file(connection, vault, path)]
        except IndexUnavailableError:
            return []  # the files are gone: the next sync takes them out
        if self.told and dropped:
            self.told(self, SyncReport([], [], [], dropped, 0, [], []), True)
        return dropped

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Read every file of this vault into a new search.db and swap it in; other vaults follow when they are used.

        What no file gives back is carried over: notes whose file is gone, and origins that are not there now.
        """
        from co_cli.index.carrying import carry_notes

        reports: list[SyncReport] = []
        self._require_files()

        def fill(fresh: Database) -> None:
            for origin in self.beside:
                try:
                    self.of(origin, fresh).sync(progress)
                except VaultError:
                    continue  # not there now, as on a drive that is not mounted: its notes are carried over
            reports.append(self.of(self.origin, fresh).sync(progress))
            if os.path.exists(self.rows.database.path) and carry_notes(self.rows.database.path, fresh):
                for origin in self.beside:
                    self.of(origin, fresh).embed(progress)

        self.rows.database.rebuild(fill)
        self.sync()  # what was saved into the old file meanwhile
        return reports[0]

    def _require_files(self) -> None:
        from co_cli.index.vanishing import is_bare

        try:
            notes = self.counts().notes
        except IndexUnavailableError:
            return  # a damaged index is made anew, whatever it held
        if notes and is_bare(self.root):
            raise VaultError(empty_vault(self.root, notes))

    def missing(self) -> list[str]:
        """Notes that are kept although their file is gone."""
        return [path for (path,) in self._select(MISSING)]

    def missing_since(self, path: str) -> tuple[str, float] | None:
        """The ref of a note that is kept although its file is gone, and when that was noticed."""
        rows: Any = self._select(MISSING_SINCE, path=path)
        return next(iter(rows), None)

    def drop_missing(self) -> list[str]:
        """Forget the notes whose file is gone."""
        from co_cli.index.rows import drop_file

        with self.rows.writing() as (connection, vault):
            gone = [row[0] for row in fetch(connection, MISSING, {"vault": vault})]
            dropped = [path for path in gone if drop_file(connection, vault, path)]
        if self.told and dropped and self.origin.kind == VAULT:  # of others it was told when they went missing
            self.told(self, SyncReport([], [], [], dropped, 0, [], []), False)
        return dropped

    def drop_all(self) -> int:
        """Forget everything of this origin. Returns how many notes that were."""
        from co_cli.index.rows import drop_file
        from co_cli.index.sync import give_back

        with self.rows.writing() as (connection, vault):
            paths = [row[0] for row in fetch(connection, EVERY_FILE, {"vault": vault})]
            dropped = sum(drop_file(connection, vault, path) for path in paths)
            for statement in FORGET_LISTINGS:
                connection.execute(statement, {"vault": vault})
        give_back(self.rows)
        return dropped

    def of(self, origin: Origin, database: Database | None = None) -> KnowledgeIndex:
        """The index of an origin beside this one, or this one in another search.db."""
        exclude = [] if origin.tier else list(self._exclude)  # other people's vaults have rows of their own choosing
        # a vault in a folder is searched as the vault it is, and what we keep for ourselves is no document
        for ours in (self.root, os.path.realpath(os.path.dirname(self.rows.database.path))):
            if origin != self.origin and ours.startswith(origin.root.rstrip(os.sep) + os.sep):
                exclude.append("/" + os.path.relpath(ours, origin.root).replace(os.sep, "/") + "/")
        index = KnowledgeIndex(database or self.rows.database, origin, exclude, self._limit, self._embedders)
        index.boundaries = self.boundaries
        index.told = None if database else self.told  # one that is made anew has nothing new to tell
        return index

    def embed_saved(self) -> None:
        """Give what was just saved its vectors, if that does not take long."""
        try:
            self.embed(seconds=SAVE_SECONDS)
        except IndexUnavailableError:
            return  # the next sync makes them

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

    # -- one origin, looked up -------------------------------------------------------------------------------------

    def meaning(self) -> Meaning:
        """The state of vectors and cache, in numbers."""
        with self.rows.reading() as (connection, vault):
            from co_cli.index.cache import cache_state

            return Meaning(space_state(connection, vault), waiting_by_space(connection, vault), cache_state(connection))

    def by_source(self) -> dict[str, int]:
        return {source: int(notes) for source, notes, _ in self._select(BY_SOURCE)}

    def passages_by_source(self) -> dict[str, int]:
        return {source: int(passages) for source, _, passages in self._select(BY_SOURCE)}

    def with_field(self, name: str) -> tuple[int, int]:
        """How many notes have this field in their frontmatter, as a text, and how many passages those have."""
        [(notes, passages)] = self._select(WITH_FIELD, name=name)
        return int(notes), int(passages)

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them."""
        return self.rows.reported()

    def waiting(self) -> int:
        """How many files changed, came or went and are not in the index so; what was saved through it is."""
        from co_cli.index.changes import touched
        from co_cli.index.integrity import differs

        with self.rows.reading() as (connection, vault):
            stored: dict[str, bytes] = dict(connection.execute(LISTINGS, {"vault": vault}))
            unlisted = [path for (path,) in connection.execute(UNLISTED, {"vault": vault})]
        scan = scan_origin(self.origin, self._exclude, stored)
        look, gone = touched(stored, scan.listings, unlisted)
        known = self.hashes() if look or gone else {}
        if len(look) <= MOST_COMPARED:
            look = [path for path in look if path not in known or differs(self.root, path, known[path])]
        return len(look) + sum(path in known for path in gone)

    def listed(self) -> list[tuple[str, str]]:
        """Every file, and what is to be said about it: why it is not indexed, that it is missing, or nothing."""
        return [*((path, said) for path, said in self._select(LISTED)), *self.odd()]

    def opens(self, path: str) -> bool:
        """Is this a file that a sync would look at? Nothing else may be opened by a ref."""
        return would_list(self.origin, path, self._exclude)

    def odd(self) -> list[tuple[str, str]]:
        """What lies there and cannot be read at all, such as links: by a walk, for no row tells of it."""
        try:
            return scan_origin(self.origin, self._exclude).odd
        except VaultError:
            return []

    def unread_entries(self) -> list[tuple[str, str]]:
        """The same and more, for who wonders: also links to folders, and names that are no text."""
        from co_cli.sources.odd import odd_entries

        try:
            return odd_entries(self.origin, self._exclude)
        except VaultError:
            return []

    def hashes(self) -> dict[str, str]:
        """Every note that should be indexed, and the hash of what it was indexed with; none if its row is lost."""
        rows: Any = self._select(ALL_HASHES)
        return dict(rows)

    def path_of(self, ref: str) -> str | None:
        return next((path for (path,) in self._select(PATH_OF_REF, ref=ref)), None)

    def ref_of(self, path: str) -> str | None:
        return next((ref for (ref,) in self._select(REF_OF_PATH, path=path)), None)

    def links(self, path: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """What a note of this origin links to, and which of its notes link to it.

        `targets` are the links of its file, for who has read it: the index may not know it yet, or as it was.
        """
        from co_cli.index.links import links_from, links_to  # who looks at one note, not who searches

        if whole(path) != path:
            return [], []  # a name that is not UTF-8 never got in
        with self.rows.reading() as (connection, vault):
            return links_from(connection, vault, path, targets), links_to(connection, vault, path)

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
