"""KnowledgeBase: everything a door can ask for, in plain Python. Settings become objects here and nowhere else.

Synchronous and safe to share between threads. What is slow to import (parsing, writing, checking) is imported by the
first call that needs it, so that a search of a vault in which nothing changed starts like grep.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.embedding.embedders import Embedders
from co_cli.errors import IndexUnavailableError, InvalidInputError, SettingsError, VaultError
from co_cli.index.sqlite.engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.service.searching import Options, find, read_filters, read_request
from co_cli.settings import Settings, load_settings
from co_cli.sources.origin import VAULT, Origin, added_origins
from co_cli.sources.walk import require_vault
from co_cli.values import (
    OWN_SOURCES,
    Change,
    Draft,
    Forgotten,
    NoteSummary,
    OnRelated,
    OwnSource,
    Saved,
    SearchResult,
    Status,
    SyncReport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from co_cli.activity import Activity
    from co_cli.importers.articles import Imported
    from co_cli.index.embed import Embedded
    from co_cli.index.links import Backlink, Link
    from co_cli.notes.note import Note
    from co_cli.notes.store import NoteStore
    from co_cli.retrieval.explain import Explanation
    from co_cli.retrieval.pipeline import SearchRequest
    from co_cli.service.doctor import Finding
    from co_cli.service.lookup import Lookup
    from co_cli.service.origins import Origins
    from co_cli.service.skills import Skills
    from co_cli.service.web_pages import Loader, WebPages
    from co_cli.service.writer import Writer
    from co_cli.sources.web.fetch import Fetcher

    Progress = Callable[[int, int], None]


class KnowledgeBase:
    """A vault and its index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = require_vault(settings.vault)
        self.engine = SqliteEngine.at(os.path.join(settings.data_dir, "search.db"))
        self.embedders = Embedders(
            settings.knowledge_embedding_provider, settings.knowledge_embedding_model, settings.knowledge_embedding_host
        )
        self.index = KnowledgeIndex(
            self.engine,
            Origin(VAULT, self.root),
            embedders=self.embedders,
            exclude=settings.knowledge_exclude,
            max_note_bytes=settings.knowledge_max_note_bytes,
        )
        self.trouble_beside: str | None = None
        """Why it is not known what stands beside the vault: the list of it cannot be read."""
        self.look_beside()
        self._skills: Skills | None = None
        self.index.on_change = self._record
        self.index.use_counts = self._use_counts
        self.door, self.brief = "python", False
        """Who asks, for the query log; and whether the process ends soon, so that it leaves a second database alone."""
        self._activity: Activity | None = None
        self.unsynced: IndexUnavailableError | None = None
        """Why the last sync could not write, such as a full disk."""

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        *,
        create: bool = False,
    ) -> KnowledgeBase:
        """Open a vault; without arguments the one that settings and the current folder point at.

        Your own vault is made when it is not there yet; any other must exist, unless `create` says to make it: what is
        missing may only be on a drive that is not mounted.
        """
        if settings is None or vault is not None or data_dir is not None:
            flags = {"vault": vault and os.fspath(vault), "data_dir": data_dir and os.fspath(data_dir)}
            settings = load_settings(flags)
        if settings.origins["vault"] in ("default", "project") and not os.path.exists(settings.vault):
            from co_cli.notes.files import make_folders  # once in the life of a vault

            make_folders(settings.vault)
        if create and not os.path.exists(settings.vault):
            from co_cli.service.vaults import make_vault

            make_vault(settings.vault)
        return cls(settings)

    def close(self) -> None:
        if self._activity is not None:
            self._activity.close()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- search -----------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int = 10,
        sources: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        since: str | float | None = None,
        until: str | float | None = None,
        backend: str | None = None,
        *,
        track: bool = False,
        **options: Any,
    ) -> SearchResult:
        """Look for notes. Sees files changed since the last `sync` only after the next one.

        Further options: `any_tag`, `fields`, `as_of`, `outdated`, `profile`, `weights`, `words`, `meaning`,
        `min_score`, `prefix` and `reranker` (see `Options` in service/searching.py). Notes that were superseded, or are
        not valid now, are left out; `outdated` finds them too, and `as_of` asks what was there and valid then.
        `weights` replace those of the profile, such as `{"words": 0.5, "recency": 0.2}`. `track` counts each hit as a
        recall of its note and logs the search, as the settings allow.
        """
        told = {"sources": sources, "tags": tags, "category": category, "since": since, "until": until}
        request = read_request(self, query, Options(limit=limit, backend=backend, **told, **options))
        if "skill" in request.filters.sources:  # skills are found only by those who ask for them
            return self._tracked(self.skills.search_sources(request), track)
        found, problem = self._found(request)
        if problem:
            found = found._replace(degraded=[*found.degraded, problem])
        if self.trouble_beside:
            text = f"only the vault was searched: {self.trouble_beside}"
            state = "inconclusive" if found.state == "absent" else found.state
            found = found._replace(degraded=[*found.degraded, text], state=state)
        return self._tracked(found, track)

    def _found(self, request: SearchRequest) -> tuple[SearchResult, str | None]:
        """The answer of now or, with `as_of`, of then; and what could not be looked at."""
        found, problem = None, None
        if request.filters.as_of is not None:
            from co_cli.service.git import search_as_of  # subprocess, which few searches need

            found, problem = search_as_of(self, request)
        return found or find(self, self.index, request, self.unsynced)[0], problem

    def track(self, found: SearchResult) -> None:
        """Log an answer that was searched for without `track`: a front end does so when it has shown it."""
        self.activity.searched(found, [origin.root for origin in self.index.beside])

    def _tracked(self, found: SearchResult, track: bool) -> SearchResult:
        if track:
            self.track(found)
        return found

    def why(self, query: str, ref: str, limit: int = 10, **options: Any) -> Explanation:
        """Why a note is where it is in the answer to a query, or why it is not in it. Options are those of `search`."""
        from co_cli.service.explaining import explain_note

        request = read_request(self, query, Options(limit=limit, **options))
        if request.backend == "grep":
            raise InvalidInputError("grep finds what has the words as they are; ask why of fts5 or hybrid")
        note = self.note(ref)
        if note.source == "skill":
            raise InvalidInputError(f"{note.ref} is found by `co skill search`; why is for notes")
        return explain_note(self.index, request, note.ref, note.title)

    # -- files into the index ---------------------------------------------------------------------------------------

    def sync(
        self,
        progress: Progress | None = None,
        seconds: float | None = None,
        drop_missing: bool = False,
    ) -> SyncReport:
        """Make the index agree with the files; one walk of the vault when nothing changed.

        `seconds` bounds the time for embedding with a slow provider; what is left waits for the next sync.
        When most of the vault is gone at once, as when it is not mounted, its notes are kept (`report.kept`) until they
        are back; `drop_missing` forgets them.
        """
        try:
            report = self.sync_origin(self.index.origin, progress, seconds)
        except IndexUnavailableError as error:
            self.unsynced = error
            raise
        self.unsynced = None
        if drop_missing:
            report = report.replaced(removed=[*report.removed, *self.index.drop_missing()], kept=())
        beside = [(origin.label, self._sync_beside(origin, progress, seconds)) for origin in self.index.beside]
        return report.replaced(beside=tuple(beside)) if beside else report

    def sync_origin(
        self,
        origin: Origin,
        progress: Progress | None = None,
        seconds: float | None = None,
    ) -> SyncReport:
        """The vault alone, or one origin beside it. Raises VaultError if it is not there."""
        index = self.index if origin == self.index.origin else self.index.of(origin)
        report = index.sync(progress=progress, seconds=seconds)
        if report.removed:
            from co_cli.service.origins import mark_excluded

            report = mark_excluded(report, origin.root)
        return report

    def _sync_beside(self, origin: Origin, progress: Progress | None, seconds: float | None) -> SyncReport:
        """One that is not there now, as on a drive that is not mounted, keeps its rows."""
        try:
            return self.sync_origin(origin, progress, seconds)
        except VaultError as error:
            self.index.unread.append(origin.label)
            kept = self.index.of(origin).counts().notes
            return SyncReport(unchanged=kept, skipped=[(origin.path, str(error))])

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Make the index anew from the files and swap it in."""
        return self.index.rebuild(progress)

    def reembed(self, progress: Progress | None = None, fresh: bool = False) -> Embedded | None:
        """Give every passage its vector anew, with the provider that the settings choose; `fresh` skips the cache."""
        return self.index.reembed(progress, fresh)

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
        on_related: OnRelated = "tell",
    ) -> Saved:
        """Save a note. It can be found when this returns.

        `fields` are any other frontmatter keys, such as `importance`. `tier` chooses the vault to save to: `user`,
        `project` or `team`; None is this one. `supersedes` are notes that this one replaces.

        If a note has the same text already, ignoring case, white space and punctuation, the outcome is `duplicate` and
        nothing is written. Otherwise a new note is written, and `related` names up to three similar memories;
        `on_related` says whether to name them (`tell`), to supersede them (`supersede`) or not to look (`keep`).
        """
        draft = Draft(content, title, tags, category, provenance, source, fields, tier, supersedes, on_related)
        return self.writer.save(draft)

    def import_articles(self, paths: Sequence[str], progress: Progress | None = None) -> list[Imported]:
        """Copy files, or every text of a folder, into the vault as articles, byte for byte."""
        from co_cli.importers.articles import import_articles  # imports zip and JSON readers

        return import_articles(self, [paths] if isinstance(paths, str) else list(map(os.fspath, paths)), progress)

    def web_pages(self, fetcher: Fetcher | None = None, loader: Loader | None = None) -> WebPages:
        """Web pages that are kept as articles. Without a fetcher, the settings make one."""
        from co_cli.service.web_pages import WebPages  # imports httpcore and lxml

        return WebPages(self, fetcher, loader)

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
        """Bring a forgotten note back from the trash."""
        return self.writer.restore(ref)

    def note(self, ref: str, track: bool = False) -> Note:
        """The note a ref names, read from its file. Raises UnknownRefError with the closest refs.

        `track` counts that it was opened.
        """
        origin, note = self.lookup.open(ref)
        if track:
            beside = [one.root for one in self.index.beside]
            self.activity.opened(os.path.join(origin.root, *note.path.split("/")), beside)
        return note

    def outdated(self, note: Note) -> str | None:
        """Why a note is not valid now, such as `superseded by memory:new`; None if it is valid."""
        return self.lookup.outdated(note)

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """The links of a note and the links to it, resolved by Obsidian's rules.

        `targets` are the `note.links` of a file that may be newer than the index.
        """
        return self.lookup.links(ref, targets)

    def file_of(self, ref: str) -> str:
        """The path of a note's file, which is not read."""
        origin, path = self.lookup.locate(ref)
        return os.path.join(origin.root, *path.split("/"))

    def notes(
        self,
        source: str | None = None,
        tags: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        any_tag: bool = False,
        category: str | None = None,
        since: str | float | None = None,
        until: str | float | None = None,
        fields: dict[str, str] | None = None,
    ) -> list[NoteSummary]:
        """Notes, newest first: of the vault, or of a source that is named."""
        from co_cli.values import moment_text

        if limit is not None and limit < 1:
            raise InvalidInputError(f"limit is at least 1, not {limit}")
        sources = [source] if source else OWN_SOURCES  # a folder has many files, and somebody else's
        options = Options(
            sources=sources, tags=tags, any_tag=any_tag, category=category, since=since, until=until, fields=fields
        )
        rows = self.index.docs(read_filters(self.index.beside, options), -1 if limit is None else limit)
        return [
            NoteSummary(
                row.ref,
                row.source,
                os.path.join(row.root, *row.path.split("/")),
                row.title,
                row.tags,
                row.category,
                moment_text(row.created),
                row.description,
                row.missing is not None,
            )
            for row in rows
        ]

    def tags(self, source: str | None = None) -> dict[str, int]:
        """Every tag and how many notes have it, the most used first: of all that is searched, or of one source."""
        return self.index.tags(read_filters(self.index.beside, Options(sources=source)) if source else None)

    # -- what is read in place ---------------------------------------------------------------------------------------

    @property
    def origins(self) -> Origins:
        """Folders and files beside the vault that are searched with it."""
        from co_cli.service.origins import Origins

        return Origins(self)

    @property
    def skills(self) -> Skills:
        """Skills of the project, of the user and of configured folders, for agents to find and load."""
        if self._skills is None:
            from co_cli.service.skills import Skills

            self._skills = Skills(self)
        return self._skills

    @skills.setter
    def skills(self, skills: Skills) -> None:
        self._skills = skills

    def look_beside(self) -> None:
        """See which other vaults and folders are searched with this one: another process may have added one.

        Skills are many, and have a search of their own.
        """
        beside: list[Origin] = []
        self.index.tiers = self.trouble_beside = None
        if self.settings.team_vault or self.settings.origins["vault"] == "project":  # else there is no other vault
            from co_cli.service.tiers import tiers_beside

            self.index.tiers, beside = tiers_beside(self.settings, self.root)
        try:
            added = added_origins(self.settings.data_dir, self.root)
            beside = [*beside, *(origin for origin in added if origin.kind != "skill")]
        except SettingsError as error:  # a mistake in sources.toml must not stop everything
            self.trouble_beside = str(error)
        self.index.beside = beside

    # -- the state of things ----------------------------------------------------------------------------------------

    def status(self) -> Status:
        """Numbers about the vault and its index."""
        from co_cli.service.overview import status_of

        return status_of(self)

    def doctor(self, fix: bool = False) -> list[Finding]:
        """Check everything that can be checked; with `fix`, apply the cures that cannot do harm."""
        from co_cli.service.doctor import examine

        return examine(self, fix)

    @property
    def activity(self) -> Activity:
        """What happens in this vault, written down in activity.db; made when there is something to write."""
        if self._activity is None:
            from co_cli.activity import Activity

            self._activity = Activity(self.settings, self.root, self.door, self.brief)
            self._activity.on_set_aside = self.engine.database.on_set_aside
        return self._activity

    @property
    def set_aside(self) -> str | None:
        """Where an unusable search.db was moved by this process, if one was found."""
        return self.engine.database.set_aside

    def _record(self, index: KnowledgeIndex, report: SyncReport, saved: bool) -> None:
        """The index changed. A sync that changed nothing does not come here."""
        self.activity.indexed(index, report, saved)

    def _use_counts(self, places: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[int, int]]:
        from co_cli.activity.statistics import use_counts  # only where use has weight

        return use_counts(self.settings.data_dir, places)

    @property
    def store(self) -> NoteStore:
        from co_cli.notes.store import NoteStore

        return NoteStore(self.root, self._indexed, self.settings.knowledge_max_note_bytes, self.settings.secrets)

    @property
    def lookup(self) -> Lookup:
        """Finds notes by ref, name or path, in every vault and source."""
        from co_cli.service.lookup import Lookup

        return Lookup(self)

    @property
    def writer(self) -> Writer:
        """Saves, changes, forgets and restores notes."""
        from co_cli.service.writer import Writer

        return Writer(self)

    def _indexed(self) -> int:
        """How many notes the index has of this vault; 0 if it cannot be opened."""
        index = self.working_index()
        return index.counts().notes if index else 0

    def working_index(self) -> KnowledgeIndex | None:
        """The index, or None if it cannot be opened: notes can be read and written without it."""
        return self.index if self.index.works() else None
