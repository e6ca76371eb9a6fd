"""KnowledgeBase: the Python API of co-cli. Every front end uses it.

Synchronous and safe to share between threads. Settings become objects here and nowhere else. Modules that a
search does without are imported when they are first used.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from co_cli.activity import Activity
from co_cli.activity.statistics import use_counts
from co_cli.embedding.embedders import Embedders, reader_named
from co_cli.errors import IndexUnavailableError, InvalidInputError, KnowledgeError, SettingsError, VaultError
from co_cli.index.engines import engine_of
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.files import make_folders
from co_cli.notes.store import NoteStore
from co_cli.retrieval.explain import Explanation, explain_note
from co_cli.searching.requests import (
    FilterOptions,
    Options,
    SearchOptions,
    check_known,
    find,
    read_filters,
    read_request,
    search_configured,
)
from co_cli.settings import Settings, load_settings
from co_cli.sources.origin import IGNORE_FILE, VAULT, Origin, added_sources
from co_cli.sources.walk import LARGEST_IGNORE_FILE, require_vault
from co_cli.values import (
    OWN_SOURCES,
    Change,
    Draft,
    Forgotten,
    NoteSummary,
    OnRelated,
    OwnSource,
    Progress,
    Saved,
    SearchResult,
    Status,
    SyncReport,
)
from co_cli.vaults import is_own_vault, make_vault, other_tiers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self, Unpack

    from co_cli.conversations.checkpoints import Checkpoints
    from co_cli.embedding.reader import PassageReader
    from co_cli.git import Repository
    from co_cli.index.embed import Embedded
    from co_cli.index.links import Backlink, Link
    from co_cli.linked.origins import Origins
    from co_cli.linked.skills import Skills
    from co_cli.linked.web_pages import Loader, WebPages
    from co_cli.notes.note import Note
    from co_cli.saving.lookup import Lookup
    from co_cli.saving.writer import VaultWriter
    from co_cli.sources.web.fetch import Fetcher
    from co_cli.team.team_vault import TeamVault
    from co_cli.upkeep.doctor import Finding


class KnowledgeBase:
    """A vault, the sources that are searched with it, and their index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = require_vault(settings.vault)
        git_dir = os.path.join(self.root, ".git")
        shared = settings.engine != "sqlite" and os.path.isdir(git_dir)
        repository: Repository | None = None
        if shared:
            from co_cli.git import Repository  # starts processes, which a search does without

            repository = Repository(self.root, {IGNORE_FILE: LARGEST_IGNORE_FILE}, GIT_DIR=git_dir)
        self.engine = engine_of(settings, {self.root: repository.name} if repository else {})
        self.embedders = Embedders(
            settings.knowledge_embedding_provider,
            settings.knowledge_embedding_model,
            settings.knowledge_embedding_host,
            settings.data_dir,
        )
        self.index = KnowledgeIndex(
            self.engine,
            Origin(VAULT, self.root),
            embedders=self.embedders,
            exclude=settings.knowledge_exclude,
            max_note_bytes=settings.knowledge_max_note_bytes,
        )
        self.team: TeamVault | None = None
        """The git repository that is the truth, and the other servers of this vault."""
        if repository:
            from co_cli.team.team_vault import TeamVault  # PostgreSQL's packages are an extra

            self.team = self.index.truth = TeamVault(self.index, repository)
        self.front_end = "python"
        """Recorded in the query log."""
        self.short_lived = False
        """Whether the process ends soon, as a command does. Then activity is only written to a spool file."""
        self.read_seconds: float | None = settings.knowledge_reader_ms / 1000
        """What reading may take in a search; None: as long as it takes."""
        self.sources_problem: str | None = None
        """Why sources.toml, or the settings of a linked source, cannot be read; then it is not searched."""
        self.source_vaults: tuple[str, ...] = (self.root,)
        """The vaults whose sources are searched: this one, and your own where that is searched with it."""
        self._other_settings: dict[str, Settings] = {}
        self.unsynced: IndexUnavailableError | None = None
        """Why the last sync could not write, such as a full disk."""
        self.index.limits_of = self._limits_of
        self.load_linked_sources()
        self.index.on_change = lambda index, report, saved: self.activity.indexed(index, report, saved)
        self.index.search_configured = partial(search_configured, self)
        self.index.use_counts = partial(use_counts, settings.data_dir, settings.count_use == "on")

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        *,
        create: bool = False,
    ) -> KnowledgeBase:
        """Open a vault; without arguments the one chosen by the settings and the current folder.

        Your own vault is created if it does not exist. Any other must exist, because a missing one may be on a drive
        that is not mounted; `create` creates it.
        """
        if settings is None or vault is not None or data_dir is not None:
            settings = load_settings(
                {"vault": vault and os.fspath(vault), "data_dir": data_dir and os.fspath(data_dir)}
            )
        with suppress(OSError):  # what needs the folder says why it cannot be made
            make_folders(settings.data_dir, private=True)
        if not os.path.exists(settings.vault):
            origin, own = settings.origins["vault"], is_own_vault(os.path.realpath(settings.vault))
            if create or own or origin in ("default", "project"):
                make_vault(settings.vault, private=own or origin == "default")
        return cls(settings)

    @staticmethod
    def connect(url: str, token: str | None = None) -> KnowledgeBase:
        """A vault on the server (`co serve`) at this address. Without a token, the one in CO_TOKEN.

        It has search, note, notes, remember, update, forget, restore, tags, links and status.
        """
        from co_cli.remote import ServerKnowledgeBase  # slow to import

        return ServerKnowledgeBase(url, token)

    def close(self) -> None:
        if "activity" in self.__dict__:
            self.activity.close()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> KnowledgeBase:
        """It is a handle: copies of what holds it share it."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as its settings: another process opens the same vault."""
        return KnowledgeBase, (self.settings,)

    # -- search -----------------------------------------------------------------------------------------------------

    def search(
        self, query: str, limit: int = 10, *, track: bool = False, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Search notes as they were at the last `sync`.

        Options are the fields of `Options` (searching/requests.py): the filters `sources`, `tags`, `any_tag`,
        `category`, `since`, `until` and `fields`; `as_of`, to search what existed and was valid then; `outdated`, to
        include notes that are superseded or not valid now; `backend`, `profile`, `weights` such as
        `{"words": 0.5, "recency": 0.2}`, `words`, `meaning`, `min_score`, `prefix`, `read` and `reranker`.
        `track` counts each hit as a recall of its note and logs the query, as far as the settings allow.
        """
        check_known(options, SearchOptions)
        request = read_request(self, query, Options(limit=limit, **options))
        problem: str | None = None
        found: SearchResult | None = None
        if "skill" in request.filters.sources:
            found, _ = self.skills.search_sources(request)
        elif request.filters.as_of is not None:
            from co_cli.saving.history import search_as_of  # slow to import

            found, problem = search_as_of(self, request)
        if found is None:
            found = find(self.index, request, self.unsynced)
        if problem:
            found = found._replace(degraded=[*found.degraded, problem])
        if self.sources_problem:
            problem = f"linked sources were not searched: {self.sources_problem}"
            state = "inconclusive" if found.state == "absent" else found.state
            found = found._replace(degraded=[*found.degraded, problem], state=state)
        found = found._replace(meta={**found.meta, "returned": len(found.hits)})
        if track:
            self.track(found)
        return found

    def track(self, found: SearchResult) -> None:
        """Log a result that was found without `track`. Front ends do so after showing it."""
        with_skills = any(hit.source == "skill" for hit in found.hits)
        skills = [origin.root for *_, origin in self.skills.folders()] if with_skills else []
        self.activity.searched(found, [origin.root for origin in self.index.linked], skills)

    def why(self, query: str, ref: str, limit: int = 10, **options: Unpack[SearchOptions]) -> Explanation:
        """Explain a note's rank for a query, or why it was not found. Options are those of `search`."""
        check_known(options, SearchOptions)
        request = read_request(self, query, Options(limit=limit, **options))
        if request.backend == "grep":
            raise InvalidInputError("grep does not rank: ask with the backend fts5 or hybrid")
        note = self.note(ref)
        if note.source == "skill":
            raise InvalidInputError(f"{note.ref} is a skill: `co skill search` finds skills")
        return explain_note(self.index, request, note.ref, note.title)

    # -- index ------------------------------------------------------------------------------------------------------

    def sync(
        self, progress: Progress | None = None, seconds: float | None = None, drop_missing: bool = False
    ) -> SyncReport:
        """Update the index from the files. If nothing changed, this only walks the folders.

        `seconds` limits the time for embedding with a slow provider; the next sync continues. If most of the vault is
        gone at once, as when its drive is not mounted, its notes are kept (`report.kept`) until the files are back;
        `drop_missing` removes them.
        """
        try:
            report = self.sync_origin(self.index.origin, progress, seconds)
        except IndexUnavailableError as error:
            self.unsynced = error
            raise
        self.unsynced = None
        if drop_missing:
            report = report.replaced(removed=[*report.removed, *self.index.drop_missing()], kept=())
        linked: list[tuple[str, SyncReport]] = []
        for origin in self.index.linked:
            try:
                linked.append((origin.label, self.sync_origin(origin, progress, seconds)))
            except VaultError as error:  # not there now; its notes stay in the index
                self.index.unread[origin] = [""] if os.path.lexists(origin.path) else []
                notes = self.index.of(origin).state().notes
                linked.append((origin.label, SyncReport(unchanged=notes, skipped=[(origin.path, str(error))])))
        return report.replaced(linked=tuple(linked)) if linked else report

    def sync_origin(self, origin: Origin, progress: Progress | None = None, seconds: float | None = None) -> SyncReport:
        """Sync the vault alone, or one linked source. Raises VaultError if its folder does not exist."""
        if self.team and origin == self.index.origin:
            return self.team.sync(progress, seconds)
        return self.index.of(origin).sync(progress=progress, seconds=seconds)

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Build a new index from the files, and replace the old one when it is complete."""
        if self.team:
            self.team.repair()
        return self.index.rebuild(progress)

    def reembed(self, progress: Progress | None = None, fresh: bool = False) -> Embedded | None:
        """Make all vectors again with the chosen provider; `fresh` does not use the cache."""
        return self.index.reembed(progress, fresh)

    def working_index(self) -> KnowledgeIndex | None:
        """The index, or None if it cannot be opened: notes can be read and written without it."""
        return self.index if self.index.works() else None

    # -- notes ------------------------------------------------------------------------------------------------------

    def remember(
        self,
        content: str,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        provenance: str = "user",
        *,
        source: OwnSource = "memory",
        fields: Mapping[str, object] | None = None,
        tier: str | None = None,
        supersedes: str | Sequence[str] = (),
        on_related: OnRelated = "report",
        path: str | None = None,
    ) -> Saved:
        """Save a note. It can be found when this returns.

        `fields` are any other frontmatter keys, such as `importance`. `tier` chooses the vault to save to: `user`,
        `project` or `team`; None is this one. `supersedes` are notes that this one replaces. `path` is its file in
        the folder of its kind, such as `people/mara.md`, or a folder such as `people/`; a file that exists is not
        overwritten.

        If a note has the same text already, ignoring case, white space and punctuation, the outcome is `duplicate` and
        nothing is written. Otherwise a new note is written, and `related` names up to three similar memories;
        `on_related` says whether to name them (`report`), to supersede them (`supersede`) or not to look (`keep`).
        """
        draft = Draft(content, title, tags, category, provenance, source, fields, tier, supersedes, on_related, path)
        return self.writer.save(draft)

    def update(
        self,
        ref: str,
        content: str | None = None,
        *,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        fields: Mapping[str, object] | None = None,
        version: str | None = None,
    ) -> Saved:
        """Change a note's text or single fields; every other byte stays. None in `fields` removes a field.

        `version` is the `note.version` that the change is based on: if the note has another version by now, nothing is
        written and NoteConflictError is raised. Without it, a text that is replaced is kept in the trash.
        """
        return self.writer.update(ref, Change(content, title, tags, category, fields, version))

    def forget(self, ref: str) -> Forgotten:
        """Move a note to the vault's trash."""
        return self.writer.forget(ref)

    def restore(self, ref: str) -> Saved:
        """Move a forgotten note back from the trash."""
        return self.writer.restore(ref)

    def note(self, ref: str, track: bool = False) -> Note:
        """Read a note from its file. Raises UnknownRefError with the closest refs. `track` counts it as opened."""
        origin, note = self.lookup.open(ref)
        if track:
            self.activity.opened(os.path.join(origin.root, *note.path.split("/")), origin.root)
        return note

    def bodies(self, refs: Sequence[str]) -> dict[str, str]:
        """The texts of these notes, without those that are gone."""
        found: dict[str, str] = {}
        for ref in refs:
            with suppress(KnowledgeError):
                found[ref] = self.note(ref).body
        return found

    def notes(
        self, source: str | Sequence[str] | None = None, limit: int | None = None, **filters: Unpack[FilterOptions]
    ) -> list[NoteSummary]:
        """List notes, newest first: those of the vault, or these sources. Filters are those of `search`."""
        if limit is not None and limit < 1:
            raise InvalidInputError(f"limit must be at least 1, not {limit}")
        check_known(filters, FilterOptions)
        options = Options(sources=source or OWN_SOURCES, **filters)
        return self.lookup.summaries(read_filters(self.index.linked, options), -1 if limit is None else limit)

    def tags(self, source: str | None = None) -> dict[str, int]:
        """Each tag with its number of notes, the most used first: of everything searched, or of one source."""
        return self.index.tags(read_filters(self.index.linked, Options(sources=source)) if source else None)

    def outdated(self, note: Note) -> str | None:
        """Why a note is not valid now, such as `superseded by memory:new`; None if it is valid."""
        from co_cli.saving.lookup import outdated as why_outdated  # slow to import

        return why_outdated(note, self.working_index())

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """The links of a note and the links to it, resolved by Obsidian's rules.

        `targets` are the `note.links` of a file that may be newer than the index.
        """
        return self.lookup.links(ref, targets)

    def file_of(self, ref: str) -> str:
        """The path of a note's file, which is not read."""
        origin, path = self.lookup.locate(ref)
        return os.path.join(origin.root, *path.split("/"))

    # -- parts ------------------------------------------------------------------------------------------------------

    @property
    def store(self) -> NoteStore:
        """The files of the vault."""
        limits = self.settings.knowledge_max_note_bytes, self.settings.secrets
        if self.team:
            return self.team.store(*limits)
        return NoteStore(self.root, self._count_indexed, *limits)

    @property
    def lookup(self) -> Lookup:
        """Finds notes by ref, name or path, in every vault and source."""
        from co_cli.saving.lookup import Lookup  # slow to import

        return Lookup(self)

    @property
    def writer(self) -> VaultWriter:
        """Saves, changes, forgets and restores notes."""
        from co_cli.saving.writer import VaultWriter  # slow to import

        return VaultWriter(self)

    @property
    def sources(self) -> Origins:
        """Folders and files that are searched with the vault: add, refresh and remove them."""
        from co_cli.linked.origins import Origins  # slow to import

        return Origins(self)

    def web_pages(self, fetcher: Fetcher | None = None, loader: Loader | None = None) -> WebPages:
        """Web pages that are saved as articles: add and refresh them. Without a fetcher, the settings make one."""
        from co_cli.linked.web_pages import WebPages  # slow to import

        return WebPages(self, fetcher, loader)

    @cached_property
    def reader(self) -> PassageReader | None:
        """The model that reads the first results, loaded when it is first used; None if the settings say so."""
        return reader_named(self.settings.knowledge_reader)

    @cached_property
    def skills(self) -> Skills:
        """Skills of the project, of the user and of configured folders, for agents to find and load."""
        from co_cli.linked.skills import Skills  # slow to import

        return Skills(self)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Conversations that were saved to continue from."""
        from co_cli.conversations.checkpoints import Checkpoints  # slow to import

        return Checkpoints(self)

    @cached_property
    def activity(self) -> Activity:
        """The log of searches, opened notes and versions (activity.db), created when there is something to write."""
        activity = Activity(self.settings, self.root, self.front_end, self.short_lived)
        activity.on_set_aside = self.engine.on_set_aside
        return activity

    def status(self) -> Status:
        """Numbers about the vault and its index."""
        from co_cli.upkeep.doctor import status_of  # slow to import

        return status_of(self)

    def doctor(self, fix: bool = False) -> list[Finding]:
        """Check everything; `fix` applies the safe fixes: to the index, never to notes."""
        from co_cli.upkeep.doctor import examine  # slow to import

        return examine(self, fix)

    def load_linked_sources(self) -> None:
        """Read which other vaults and folders are searched with this one. Another process may have added some."""
        linked: list[Origin] = []
        self.index.tiers = self.sources_problem = None
        if self.settings.team_vault or self.settings.origins["vault"] == "project":  # else there are no tiers
            self.index.tiers, linked = other_tiers(self.settings, self.root)
        self.source_vaults = (self.root, *(origin.root for origin in linked if origin.tier == "user"))
        try:
            for entry in added_sources(self.settings.data_dir, self.source_vaults):
                label = entry.origin.label
                if any(label == origin.label for origin in linked):
                    rule = "`co source remove` one of them, and add it again with another --name"
                    self.sources_problem = f"{entry.origin.path} is called {label}, as a source of this vault: {rule}"
                elif entry.origin.kind != "skill":  # skills have a search of their own
                    linked.append(entry.origin)
        except SettingsError as error:
            self.sources_problem = str(error)
        self.index.linked = [origin for origin in linked if self._has_settings(origin)]

    def settings_of(self, root: str) -> Settings:
        """The settings of a folder that is searched with the vault: those of the project it is in, else the user's.

        This vault's project has no say there. Raises SettingsError.
        """
        if root == self.root:
            return self.settings
        if root not in self._other_settings:
            flags = {"vault": root, "data_dir": self.settings.data_dir}
            self._other_settings[root] = load_settings(flags)
        return self._other_settings[root]

    def _has_settings(self, origin: Origin) -> bool:
        try:
            return bool(self.settings_of(origin.root))
        except SettingsError as error:
            self.sources_problem = str(error)
            return False

    def _limits_of(self, origin: Origin) -> tuple[Sequence[str], int]:
        settings = self.settings_of(origin.root)
        return settings.knowledge_exclude, settings.knowledge_max_note_bytes

    def _count_indexed(self) -> int:
        """How many notes the index has of this vault; 0 if it cannot be opened."""
        index = self.working_index()
        return index.state().notes if index else 0
