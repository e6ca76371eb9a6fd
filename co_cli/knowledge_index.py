"""KnowledgeIndex: one vault, or another folder, in search.db: update it from files and search it.

Everything in search.db comes from the files. A damaged or foreign file is moved aside, one of another version is
replaced, and the next sync fills the new one.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from co_cli.embedding.embedders import Embedders, can_use
from co_cli.ground.errors import (
    IndexDamagedError,
    IndexUnavailableError,
    InvalidInputError,
    KnowledgeError,
    NoteFileError,
    VaultError,
    empty_vault,
)
from co_cli.ground.hits import Filters, Hit
from co_cli.ground.paths import is_inside
from co_cli.ground.reports import Progress, SyncReport
from co_cli.ground.settings import this_process
from co_cli.ground.values import to_utf8
from co_cli.index.authority import VaultAuthority
from co_cli.index.changes import compare, reported
from co_cli.index.embed import Embedded, OriginEmbedding, embed_text, is_guest
from co_cli.index.engine import Engine
from co_cli.index.indexed_notes import FEW, IndexedNotes, LastSeen, Tiers, UseCounts
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.index.stored import IndexedFile, ReadyVectors, StoredFile
from co_cli.notes.files import is_empty_folder, sweep_temporary
from co_cli.notes.store import NoteStore, hash_of_file
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.request import SearchRequest
from co_cli.sources.documents.formats import can_read_pictures, is_unread_picture
from co_cli.sources.origin import VAULT, Origin, adapter_of
from co_cli.sources.walk import left_out, odd_entries, place_of, scan_origin, would_list

if TYPE_CHECKING:
    from co_cli.sources.passages import Boundaries  # parsers, which a search does without

SAVE_SECONDS = 5.0
"""How long a save may wait for a slow embedder; the note is written and found by words before that."""
MOST_COMPARED = 1_000
"""If more files look changed, they are not read to find out which of them `co` wrote itself."""
TOO_LARGE = " bytes; the limit"
"""In the reason for a skipped file."""


@dataclass(frozen=True, slots=True)
class IndexSetup:
    """What an index works with besides its own folder. If it changes, another index is made."""

    linked: Sequence[Origin] = ()
    """Other folders and vaults that are searched together with this one; each is synced separately."""
    tiers: Tiers | None = None
    """None if this is the only vault."""
    use_counts: UseCounts | None = None
    """How notes, given by root and path, were used and rated."""
    limits_of: Callable[[Origin], tuple[Sequence[str], int]] | None = None
    """What is excluded from another origin and the largest note there; None: the same as here."""
    on_change: Callable[[IndexedNotes, SyncReport, bool], None] | None = None
    """Called after a sync that changed something, or (True) after a save or a removal through the index."""
    configured: Callable[[SearchRequest], SearchRequest] | None = None
    """Gives a request the backend and the weights of the settings; None: it has the defaults."""
    boundaries: Boundaries | None = None
    """A model that proposes passage boundaries, if there is one."""
    authority: VaultAuthority | None = None
    """None: the files themselves are the truth."""


class KnowledgeIndex:
    """One vault in one search.db; it may be searched together with others. Safe to share between threads."""

    def __init__(
        self,
        db_path: str | os.PathLike[str] | Engine,
        knowledge_dir: str | os.PathLike[str] | Origin,
        *,
        embedders: Embedders | None = None,
        exclude: Sequence[str] = (),
        max_note_bytes: int = 2_000_000,
        setup: IndexSetup | None = None,
        seen: LastSeen | None = None,
    ) -> None:
        """Without `embedders`, the embedded model makes the vectors."""
        is_path = isinstance(knowledge_dir, str | os.PathLike)
        self.engine = SqliteEngine.at(os.fspath(db_path)) if isinstance(db_path, str | os.PathLike) else db_path
        self.origin = Origin(VAULT, os.path.realpath(knowledge_dir)) if is_path else knowledge_dir
        self.root, self.embedders = self.origin.root, embedders or Embedders("static")
        self.exclude, self.limit = exclude, max_note_bytes
        self.setup, self.seen = setup or IndexSetup(), seen or LastSeen()
        ours = self.setup
        self.notes = IndexedNotes(
            self.engine, self.origin, self.embedders, ours.linked, ours.tiers, ours.use_counts, self.seen
        )
        """What is stored: look-ups."""

    @property
    def linked(self) -> Sequence[Origin]:
        """Other folders and vaults that are searched together with this one."""
        return self.notes.linked

    # -- update from files ---------------------------------------------------------------------------------------------

    def sync(
        self, source: str | None = None, *, progress: Progress | None = None, seconds: float | None = None
    ) -> SyncReport:
        """Update the index from the files: all notes, or those of one source.

        If nothing changed this costs one walk. `seconds` bounds the time for vectors; the next sync continues. With 0,
        only those of the floor are made: `embed_waiting` is for later.
        """
        self._check_source(source)
        try:
            report = self._sync_again_if_damaged(source, progress)
        except IndexUnavailableError as error:
            self.seen.unsynced = error
            raise
        self.seen.unsynced = None
        if self.setup.on_change and report.touched:
            self.setup.on_change(self.notes, report, False)
        if seconds != 0:
            self.embed_waiting(progress, seconds)
        else:
            self.embed_written()
        return report

    def _sync_again_if_damaged(self, source: str | None, progress: Progress | None) -> SyncReport:
        try:
            return self._sync_locked(source, progress)
        except Exception as error:
            if self.damage_behind(error) is None:
                raise
            return self._sync_locked(source, progress)

    def _sync_locked(self, source: str | None, progress: Progress | None) -> SyncReport:
        with self.setup.authority.lock() if self.setup.authority else nullcontext():
            return self._sync_files(source, progress)

    def _sync_files(self, source: str | None, progress: Progress | None) -> SyncReport:
        started = time.time()
        with self.engine.reading():
            stored, unlisted = self.notes.read(lambda snapshot, vault: snapshot.listings(vault), ({}, []))
            files = self.notes.read(lambda snapshot, vault: snapshot.files(vault, reported=True), {})
            synced = self.notes.state().synced_at is not None
        scan = scan_origin(self.origin, self.exclude)
        if self.origin.source == VAULT and not self.origin.tier:
            self._sweep({os.path.join(self.root, folder) for folder in scan.unfinished})
        again = [path for path, file in files.items() if self._is_readable_now(path, file)]
        skipped, problems = reported(files)
        report = SyncReport(
            unchanged=scan.notes - len(skipped), skipped=sorted([*skipped, *scan.odd]), problems=problems
        )
        if stored != scan.listings or unlisted or again or not synced:
            try:
                changes = compare(stored, scan.listings, unlisted, scan.unread)
            except (ValueError, struct.error):  # a damaged listing: read every file again
                self.drop_all()
                return self._sync_files(source, progress)
            changes = changes._replace(look=sorted({*changes.look, *again} - {*changes.gone}))
            if not changes.none or not synced:
                from co_cli.index.sync import SyncOptions, sync_files  # parsers, which an unchanged vault does not need

                # where servers share the vault, others wait until the files are read
                embed = None if self.setup.authority else self.embed_written
                options = SyncOptions(self.limit, source, progress, self.setup.boundaries, embed)
                report = sync_files(self.engine, self.origin, scan, changes, options)
        self.seen.fresh_as_of = started
        self.seen.unread[self.origin] = [path for path, reason in report.skipped if "cannot be read" in reason]
        return report

    def index_file(
        self, source: str | None, path: str | os.PathLike[str], embed: bool = True, ready: Sequence[ReadyVectors] = ()
    ) -> bool:
        """Index one file now. The note must be of this source, if any.

        `ready`: vectors that were made ahead. Returns whether something waited for a vector.
        """
        from co_cli.index.sync import Unreadable, read_file  # parsers

        self._check_source(source)
        inside = self._inside(os.fspath(path))
        try:
            file = read_file(self.origin, inside, self.limit)
        except Unreadable as error:
            raise NoteFileError(f"{inside} {error}") from None
        if file.note is not None and source is not None and file.note.source != source:
            raise InvalidInputError(f"{inside} is of the source {file.note.source}, not {source!r}")
        with self.engine.writing() as writer:
            waits = writer.put_files(writer.add_origin(self.origin), [file], ready)
        self._saved(SyncReport(changed=[inside]))
        if embed:
            self.embed_saved()
        return waits > 0

    def index_files(self, paths: Collection[str]) -> None:
        """Index these files of the vault now, and look at no others. Each must be a file that a sync would look at."""
        from co_cli.index.sync import Unreadable, read_file  # parsers

        files: list[IndexedFile] = []
        for path in map(self._inside, paths):
            try:
                files.append(read_file(self.origin, path, self.limit))
            except Unreadable as error:
                raise NoteFileError(f"{path} {error}") from None
        if not files:
            return
        with self.engine.writing() as writer:
            writer.put_files(writer.add_origin(self.origin), files)
        self.embed_written()
        if self.setup.on_change:
            self.setup.on_change(self.notes, SyncReport(changed=[file.path for file in files]), False)

    def _saved(self, report: SyncReport) -> None:
        """Say that a save or a removal changed the index: if other servers wait for it, when they do no longer."""
        on_change, authority = self.setup.on_change, self.setup.authority
        if on_change and authority:
            authority.afterwards(lambda: on_change(self.notes, report, True))
        elif on_change:
            on_change(self.notes, report, True)

    def remove_stale(self, source: str, current_paths: Collection[str | os.PathLike[str]]) -> int:
        """Forget the notes of a source whose paths are not among these. Returns how many.

        Raises InvalidInputError if there are paths, and none of them is such a note: they are of another folder.
        """
        self._check_source(source)
        if isinstance(current_paths, str):
            raise InvalidInputError("current_paths must be a list of paths, not one path")
        current = {self._inside(os.fspath(path)) for path in current_paths}
        known = {note.path for note in self.notes.all() if note.source == source}
        if known and current and not known & current:
            seen = f"there is {min(known)}, and the paths have {min(current)}"
            raise InvalidInputError(f"none of the paths is a note of the source {source} ({seen}): nothing was removed")
        return len(self.forget_files(known - current))

    def forget_files(self, paths: Collection[str]) -> list[str]:
        """Take these files out of the index, whether they are there or not. Returns those that were notes."""
        paths = [path for path in paths if to_utf8(path) == path]  # a name that is not UTF-8 never got in
        try:
            known = {note.path for note in self.notes.find("path", *paths)}
            paths = [path if path in known else self._inside(path) for path in paths]
            with self.engine.writing() as writer:
                dropped = writer.drop_files(writer.add_origin(self.origin), paths)
        except IndexUnavailableError:
            return []  # the next sync takes them out
        if dropped:
            self._saved(SyncReport(removed=dropped))
        return dropped

    def drop_missing(self) -> list[str]:
        """Forget the notes whose file is gone."""
        with self.engine.writing() as writer:
            dropped = writer.drop_files(writer.add_origin(self.origin), self.notes.missing())
        if self.setup.on_change and dropped:
            self.setup.on_change(self.notes, SyncReport(removed=dropped), False)
        return dropped

    def drop_all(self) -> int:
        """Forget everything of this origin. Returns how many notes that were."""
        with self.engine.writing() as writer:
            dropped = writer.drop_files(writer.add_origin(self.origin), None)
        self.engine.compact()
        return len(dropped)

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Read every file into a new search.db and swap it in; vaults that are not open now follow when they are."""
        notes = self.notes.state().notes if self.notes.works() else 0
        if notes and is_empty_folder(self.root):
            raise VaultError(empty_vault(self.root, notes))
        first: dict[Origin, SyncReport] = {}
        late: dict[Origin, SyncReport] = {}

        def read(fresh: Engine, reports: dict[Origin, SyncReport]) -> None:
            if self.setup.authority:
                self.setup.authority.catch_up()
            for origin in (*self.linked, self.origin):
                index = self.of(origin, fresh)
                with suppress(VaultError) if origin != self.origin else nullcontext():
                    if reports is first:
                        reports[origin] = index.sync(progress=progress)
                    else:  # writers wait: no time for models
                        reports[origin] = index.within(IndexSetup()).sync(seconds=0)

        self.engine.rebuild(lambda fresh: read(fresh, first), lambda fresh: read(fresh, late))
        for origin, report in late.items():
            if self.setup.on_change and report.touched:
                self.setup.on_change(self.of(origin).notes, report, False)
        self.sync()  # what waits for a slow model
        return first[self.origin]

    def of(self, origin: Origin, engine: Engine | None = None) -> KnowledgeIndex:
        """The index of an origin by itself, in this store or in another one."""
        if origin == self.origin and engine is None:
            return self
        ours = self.setup
        excluded, limit = ours.limits_of(origin) if ours.limits_of else (self.exclude, self.limit)
        exclude = list(excluded)
        # a vault inside a folder is searched as the vault it is, and our own data folder is no document
        vaults = (self.root, *(linked.root for linked in self.linked if linked.tier))
        for place in (*vaults, os.path.realpath(os.path.dirname(self.engine.path))):
            if origin != self.origin and place != origin.root and is_inside(place, origin.root):
                exclude.append("/" + os.path.relpath(place, origin.root).replace(os.sep, "/") + "/")
        setup = IndexSetup(
            limits_of=ours.limits_of,
            boundaries=ours.boundaries,
            configured=ours.configured,
            on_change=None if engine else ours.on_change,
        )
        return KnowledgeIndex(
            engine or self.engine,
            origin,
            embedders=self.embedders,
            exclude=exclude,
            max_note_bytes=limit,
            setup=setup,
            seen=LastSeen(unread=self.seen.unread),
        )

    def within(self, setup: IndexSetup) -> KnowledgeIndex:
        """The same index with another setup."""
        return KnowledgeIndex(
            self.engine,
            self.origin,
            embedders=self.embedders,
            exclude=self.exclude,
            max_note_bytes=self.limit,
            setup=setup,
            seen=self.seen,
        )

    # -- search --------------------------------------------------------------------------------------------------------

    def search(
        self, query: str, source: str | None = None, tags: Sequence[str] | None = None, limit: int = 10
    ) -> list[Hit]:
        """The best notes for a query, as they were when the index was last synced.

        The index of a KnowledgeBase uses the backend and the weights of its settings. No reader reads the first hits.
        """
        self._check_source(source)
        if limit < 1:
            raise InvalidInputError(f"limit must be at least 1, not {limit}")
        wanted = (tags,) if isinstance(tags, str) else tuple(tags or ())
        filters = Filters(sources=(source,) if source else (), tags=wanted)
        request = SearchRequest(query, limit, filters)
        if self.setup.configured:
            request = self.setup.configured(request)
        if request.backend == "grep":
            from co_cli.retrieval.file_search import search_files  # parsers, which a search of the index does not need

            return search_files(self.places(), request).hits
        return search(self.notes, request)[0].hits

    def places(self) -> list[tuple[Origin, Sequence[str], int]]:
        """This folder and those searched with it, each with what is excluded there and the largest note."""
        return [(index.origin, index.exclude, index.limit) for index in map(self.of, (self.origin, *self.linked))]

    def embed(self, text: str) -> list[float]:
        """The vector of a text, through the embedding cache. Zeros for a text without any known word."""
        space = self.embedders.space
        embedder = self.embedders.of(space) if space else None
        if embedder is None:
            raise InvalidInputError("there is no embedder: set knowledge_embedding_provider to a provider")
        vector = embed_text(self.engine, embedder, text)
        dimensions = embedder.space.dimensions
        return [0.0] * dimensions if vector is None else list(struct.unpack(f"<{dimensions}f", vector))

    # -- vectors -------------------------------------------------------------------------------------------------------

    def embed_waiting(
        self, progress: Progress | None = None, seconds: float | None = None, together: Sequence[Origin] = ()
    ) -> Embedded | None:
        """Give waiting passages their vectors, and build the space that the settings choose.

        None if there is nothing to do. An embedder that does not answer is no error: passages keep waiting. A new
        space answers when it is complete here and in the origins of `together`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        return OriginEmbedding(self.engine, self.origin, self.embedders, deadline, progress, together).run()

    def embed_written(self) -> None:
        """Give what a sync has just written the vectors of the embedded model, which take hardly any time."""
        OriginEmbedding(self.engine, self.origin, self.embedders, compacts=False, models="floor").run()

    def waits(self, more_than: int = 0) -> bool:
        """Whether `embed_waiting` has something to do, or more than this many passages. Always costs the same."""
        target = self.embedders.space
        with self.engine.reading() as snapshot:
            known = snapshot.origin(self.origin)
            if target is None or known is None or not known.notes:
                return False
            if not known.has_space(target) and not is_guest(known, self.embedders):
                return known.notes > more_than
            usable = [space for space in known.spaces if can_use(space.space)]
            if known.building in usable and not more_than:
                return True  # what is complete here may have to take over
            return any(snapshot.is_waiting(known.id, more_than, space) for space in usable)

    def unembedded(self) -> int:
        """How many passages have no vector yet of the model that the settings choose."""
        target = self.embedders.space
        with self.engine.reading() as snapshot:
            known = snapshot.origin(self.origin)
            if target is None or known is None or is_guest(known, self.embedders):
                return 0
            built = next((space for space in known.spaces if space.space.key == target.key), None)
            return snapshot.waiting(known.id, built)[0] if built else known.passages

    def embed_saved(self) -> None:
        """Give what was just saved its vectors, if that does not take long; else whoever embeds what waits does."""
        deadline = time.monotonic() + SAVE_SECONDS
        with suppress(IndexUnavailableError):
            models = "floor" if self.waits(FEW) else "loaded"
            OriginEmbedding(
                self.engine, self.origin, self.embedders, deadline, together=self.linked, models=models
            ).run()

    def reembed(self, progress: Progress | None = None, fresh: bool = False) -> Embedded | None:
        """Embed every passage again in the space that the settings choose; `fresh` ignores the cache."""
        chosen = self.embedders.space
        with self.engine.writing() as writer:
            stored = writer.origin(self.origin)
            for space in (stored.active, stored.building) if stored else ():
                if stored and space and chosen and space.space.key == chosen.key:
                    writer.reembed(stored.id, space, fresh)
        return self.embed_waiting(progress)

    # -- files ---------------------------------------------------------------------------------------------------------

    def listed(self) -> list[tuple[str, str]]:
        """Every file with a remark: why it is not indexed, `missing`, or nothing. Folders are those left out."""
        files = self.notes.read(lambda snapshot, vault: snapshot.files(vault), {})
        missing = set(self.notes.missing())
        said = [(path, file.skipped or ("missing" if path in missing else "")) for path, file in files.items()]
        with suppress(VaultError):
            said += left_out(self.origin, self.exclude)
        return [*said, *self.odd()]

    def waiting(self) -> int:
        """How many files were changed, added or removed since they were indexed."""
        if self.setup.authority:
            return len(self.setup.authority.differences())
        stored, unlisted = self.notes.read(lambda snapshot, vault: snapshot.listings(vault), ({}, []))
        changes = compare(stored, scan_origin(self.origin, self.exclude).listings, unlisted, recheck=False)
        look, gone = changes.look, changes.gone
        known = self.notes.hashes() if look or gone else {}
        if len(look) <= MOST_COMPARED:
            look = [
                path for path in look if path not in known or known[path] != hash_of_file(os.path.join(self.root, path))
            ]
        return len(look) + sum(path in known for path in gone)

    def files(self) -> list[str]:
        """Every file that a sync would look at, by a walk now."""
        return scan_origin(self.origin, self.exclude).paths

    def opens(self, path: str) -> bool:
        """Whether a sync would look at this file. Nothing else may be opened by a ref."""
        return bool(self.opened([path]))

    def opened(self, paths: Iterable[str]) -> list[str]:
        """Those of these paths that a sync would look at."""
        return would_list(self.origin, paths, self.exclude)

    def odd(self) -> list[tuple[str, str]]:
        """What is there and cannot be read at all, such as links, and files without permission."""
        with suppress(VaultError):
            scan = scan_origin(self.origin, self.exclude)
            known = self.notes.read(lambda snapshot, vault: snapshot.files(vault), {})
            new = [path for path in scan.paths if path not in known]
            unread = [path for path in new if not os.access(os.path.join(self.root, path), os.R_OK)]
            return [*scan.odd, *((path, "cannot be read: no permission") for path in unread)]
        return []

    def unread_entries(self) -> list[tuple[str, str]]:
        """What is there and never read because of what it is: links, also to folders, and names that are not text."""
        with suppress(VaultError):
            return odd_entries(self.origin, self.exclude)
        return []

    def damage_behind(self, error: Exception) -> IndexUnavailableError | None:
        """Whether an unexpected error comes from a damaged search.db, which is then moved aside."""
        if isinstance(error, IndexDamagedError):
            return error
        if isinstance(error, KnowledgeError | OSError):
            return None
        problem = self.engine.problem(discard=True)
        return IndexDamagedError(f"{self.engine.path} was damaged ({problem})") if problem else None

    def close(self) -> None:
        self.engine.close()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _check_source(self, source: str | None) -> None:
        known = adapter_of(self.origin).sources
        if source is not None and source not in known:
            raise InvalidInputError(f"a source must be one of {', '.join(known)}, not {source!r}")

    def _inside(self, path: str) -> str:
        """A path as the index has it, from one that is absolute, or relative to the vault or the current folder."""
        if not os.path.isabs(path) and not os.path.lexists(os.path.join(self.root, path)):
            here = os.path.realpath(path)
            path = here if os.path.exists(here) and is_inside(here, self.root) else path
        if os.path.isabs(path):
            real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if not is_inside(real, self.root):
                raise InvalidInputError(f"{path} is not inside {self.root}")
            path = os.path.relpath(real, self.root)
        inside = path.replace(os.sep, "/")
        if not inside or ".." in inside.split("/"):
            raise InvalidInputError(f"{path!r} is not a path inside {self.root}")
        return inside

    def _is_readable_now(self, path: str, file: StoredFile) -> bool:
        """Whether a file was skipped for a limit that changed since, for a parser that is installed now, or as a
        picture and this process reads them."""
        skipped = file.skipped
        if this_process.reads_pictures and is_unread_picture(path, skipped, file.problem):
            return can_read_pictures()
        if skipped is None:
            return False
        adapter, name = adapter_of(self.origin), place_of(path)[1]
        if skipped.startswith("needs the extra"):
            return adapter.unread(name) is None
        return TOO_LARGE in skipped and not skipped.endswith(adapter.limit_text(name, self.limit))

    def _sweep(self, folders: Collection[str]) -> None:
        """Remove temporary files of killed writers, next to search.db and in these folders of the vault."""
        with suppress(OSError, KnowledgeError):  # a vault that can only be read
            sweep_temporary(os.path.dirname(self.engine.path))
            (self.setup.authority.store() if self.setup.authority else NoteStore(self.root)).sweep(folders)
