"""KnowledgeBase: everything a door can ask for, in plain Python. Settings become objects here and nowhere else.

Synchronous and safe to share between threads. What is slow to import (parsing, writing, checking) is imported by the
first call that needs it, so that a search of a vault in which nothing changed starts like grep.
"""

from __future__ import annotations

import os
import time

from co_cli.embedding.embedders import Embedders
from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.index.connection import Database
from co_cli.index.extension import vector_extension
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.profiles import profile_named, read_weights
from co_cli.service.searching import answer, search_files, search_index
from co_cli.settings import Settings, load_settings
from co_cli.sources.vault import require_vault
from co_cli.typed import whole
from co_cli.values import SOURCES, Filters, Forgotten, NoteSummary, Saved, SearchResult, Source, Status, SyncReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from co_cli.index.meaning import Embedded
    from co_cli.notes.note import Note
    from co_cli.notes.store import NoteStore
    from co_cli.retrieval.profiles import Profile
    from co_cli.retrieval.reranker import Reranker
    from co_cli.service.checkup import Finding
    from co_cli.service.explaining import Explanation
    from co_cli.service.importing import Imported
    from co_cli.service.web_pages import PageReceipt, WebPages
    from co_cli.sources.fetching import Fetcher

    Progress = Callable[[int, int], None]

BACKENDS = ("grep", "fts5", "hybrid")
LARGEST_LIMIT = 1_000
FAR_AWAY = 1e12
"""Seconds: 30,000 years."""


class KnowledgeBase:
    """A vault and its index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = require_vault(settings.vault)
        self.database = Database(os.path.join(settings.data_dir, "search.db"), vector_extension())
        self.embedders = Embedders(settings.embedding_provider, settings.embedding_model, settings.embedding_host)
        self.index = KnowledgeIndex(self.database, self.root, settings.exclude, settings.max_note_bytes, self.embedders)

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
    ) -> KnowledgeBase:
        """Open a vault; without arguments the one that settings and the current folder point at.

        Your own vault is made when it is not there yet; any other must exist.
        """
        if settings is None or vault is not None or data_dir is not None:
            flags = {"vault": vault and os.fspath(vault), "data_dir": data_dir and os.fspath(data_dir)}
            settings = load_settings(flags)
        if settings.origins["vault"] in ("default", "project") and not os.path.exists(settings.vault):
            os.makedirs(settings.vault)
        return cls(settings)

    def close(self) -> None:
        self.database.close()

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
        any_tag: bool = False,
        fields: dict[str, str] | None = None,
        profile: str | None = None,
        weights: Mapping[str, float] | None = None,
        reranker: Reranker | None = None,
    ) -> SearchResult:
        """Look for notes. Sees files changed since the last `sync` only after the next one.

        `profile` names a way to rank (`default`, `exact`, `meaning`, `spec`); `weights` are those of `words` and
        `meaning` for this query. `reranker` is asked last for the order of the first twenty, for ten seconds at most.
        """
        started = time.perf_counter()
        chosen = self._backend(backend, limit)
        filters = self._filters(sources, tags, any_tag, category, since, until, fields)
        way, balance = self._way(profile, weights)
        reason: IndexUnavailableError | None = None
        if chosen != "grep":
            try:
                embedders = self.embedders if chosen == "hybrid" else None
                with self.index.snapshot():  # everything one search reads is of one moment
                    finding = search_index(self.index, embedders, query, filters, limit, balance, way, reranker)
                return answer(query, finding, started)
            except IndexUnavailableError as error:
                reason = error
        found = search_files(
            self.root, query, filters, limit, self.settings.exclude, self.settings.max_note_bytes, reason
        )
        return answer(query, found, started)

    def why(
        self,
        query: str,
        ref: str,
        limit: int = 10,
        sources: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        since: str | float | None = None,
        until: str | float | None = None,
        backend: str | None = None,
        *,
        any_tag: bool = False,
        fields: dict[str, str] | None = None,
        profile: str | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Explanation:
        """Why a note is where it is in the answer to a query, or why it is not in it."""
        from co_cli.service.explaining import explain

        chosen = self._backend(backend, limit)
        if chosen == "grep":
            raise InvalidInputError("grep finds what has the words as they stand; ask why of fts5 or hybrid")
        filters = self._filters(sources, tags, any_tag, category, since, until, fields)
        way, balance = self._way(profile, weights)
        note = self.note(ref)
        embedders = self.embedders if chosen == "hybrid" else None
        with self.index.snapshot():
            return explain(self.index, embedders, query, note.ref, note.title, filters, limit, balance, way)

    def _backend(self, backend: str | None, limit: int) -> str:
        if not 1 <= limit <= LARGEST_LIMIT:
            raise InvalidInputError(f"limit is between 1 and {LARGEST_LIMIT}, not {limit}")
        chosen = backend or self.settings.search_backend
        if chosen not in BACKENDS:
            raise InvalidInputError(f"the backend is one of {', '.join(BACKENDS)}, not {chosen!r}")
        return chosen

    def _way(self, profile: str | None, weights: Mapping[str, float] | None) -> tuple[Profile, Weights | None]:
        """The profile, and how it weighs words and meaning; None leaves that to the space."""
        way = profile_named(profile or self.settings.profile)
        return way, read_weights(weights) or way.weights or self._weights()

    # -- files into the index ---------------------------------------------------------------------------------------

    def sync(self, progress: Progress | None = None, seconds: float | None = None) -> SyncReport:
        """Make the index agree with the files; one walk of the vault when nothing changed.

        `seconds` bounds the time for embedding with a slow provider; what is left waits for the next sync.
        """
        return self.index.sync(progress, seconds)

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
        source: Source = "memory",
        fields: dict[str, object] | None = None,
    ) -> Saved:
        """Save a note, or join the one that says nearly the same. It can be found when this returns.

        `fields` are any other frontmatter keys, such as `importance`.
        """
        from co_cli.service.saving import Draft, save

        if source not in SOURCES:
            raise InvalidInputError(f"a source is memory or article, not {source!r}")
        draft = Draft(content, source, title, tags, category, provenance, fields)
        size, limit = len(draft.content.encode()), self.settings.max_note_bytes
        if size > limit:
            raise InvalidInputError(f"{size:,} bytes are too long for a note; the limit is {limit:,} (max_note_bytes)")
        return save(self.store, self._working_index(), draft, self.settings.duplicate_threshold)

    def import_articles(self, paths: Sequence[str], progress: Progress | None = None) -> list[Imported]:
        """Copy files, or every text of a folder, into the vault as articles, byte for byte."""
        from co_cli.service.importing import import_files

        wanted = [paths] if isinstance(paths, str) else [os.fspath(path) for path in paths]
        return import_files(self.store, self.index, wanted, self.settings.max_note_bytes, progress)

    def add_page(
        self,
        url: str,
        on_conflict: str = "skip",
        *,
        tags: Sequence[str] | None = None,
        fetcher: Fetcher | None = None,
    ) -> PageReceipt:
        """Fetch a web page and keep it as an article. One that is kept already is skipped, overwritten or an error."""
        return self._web_pages(fetcher).add(url, on_conflict, tags)

    def refresh(
        self,
        refs: Sequence[str] | None = None,
        on_conflict: str = "skip",
        *,
        each: Callable[[PageReceipt], None] | None = None,
        progress: Progress | None = None,
        fetcher: Fetcher | None = None,
    ) -> list[PageReceipt]:
        """Fetch web pages again: these (refs or addresses), or all that are kept. `each` hears of every one at once."""
        pages = self._web_pages(fetcher)
        refs = [refs] if isinstance(refs, str) else refs
        paths = pages.paths() if refs is None else list(dict.fromkeys(self._page_path(pages, ref) for ref in refs))
        return pages.refresh(paths, on_conflict, each, progress)

    def update(
        self,
        ref: str,
        content: str | None = None,
        *,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        fields: dict[str, object] | None = None,
    ) -> Saved:
        """Change a note's body or single fields; every other byte stays. None in `fields` takes a field away."""
        from co_cli.service.saving import change, clean_tags

        if content is not None and not content.strip():
            raise InvalidInputError("the new text is empty: nothing was changed; `co forget` takes a note away")
        content = whole(content) if content is not None else None
        wanted: dict[str, object] = dict(fields or {})
        for name, value in (("title", title), ("category", category)):
            if value is not None:
                wanted[name] = value or None
        if tags is not None:
            wanted["tags"] = clean_tags(tags) or None
        note = self.note(ref)
        with self.store.lock():
            data = self.store.read(note.path)
            changed = change(self.store, note.path, data, content, wanted)
        index = self._working_index()
        if index:
            index.index_file(note.path)
        path = self.store.absolute(note.path)
        return Saved(self.note(path).ref, path, "updated" if changed else "unchanged")

    def note(self, ref: str) -> Note:
        """The note a ref names, read from its file. Raises UnknownRefError with the closest refs."""
        from co_cli.notes.note import NotTextError, read_note
        from co_cli.service.resolving import resolve

        path = resolve(ref, self.store, self._working_index())
        try:
            return read_note(path, self.store.read(path))
        except NotTextError as error:
            raise InvalidInputError(f"{path} is no note: {error}") from None

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
        """Notes, newest first."""
        from co_cli.notes.moments import moment_text

        if limit is not None and limit < 1:
            raise InvalidInputError(f"limit is at least 1, not {limit}")
        filters = self._filters([source] if source else None, tags, any_tag, category, since, until, fields)
        rows = self.index.docs(filters, -1 if limit is None else limit)
        return [
            NoteSummary(
                row.ref,
                row.source,
                self.store.absolute(row.path),
                row.title,
                row.tags,
                row.category,
                moment_text(row.created),
                row.description,
            )
            for row in rows
        ]

    def forget(self, ref: str) -> Forgotten:
        """Move a note to the vault's trash."""
        note = self.note(ref)
        with self.store.lock():
            kept = self.store.trash(note.path)
        index = self._working_index()
        if index:
            index.remove_stale([note.path])
        return Forgotten(note.ref, note.path, kept)

    def restore(self, ref: str) -> Saved:
        """Bring a forgotten note back from the trash."""
        from co_cli.notes.note import read_note
        from co_cli.service.resolving import resolve_trashed

        path = resolve_trashed(ref, self.store)
        with self.store.lock():
            self.store.restore(path)
        index = self._working_index()
        if index:
            index.index_file(path)
        note = read_note(path, self.store.read(path))
        return Saved(note.ref, self.store.absolute(path), "restored")

    # -- the state of things ----------------------------------------------------------------------------------------

    def status(self) -> Status:
        """Numbers about the vault and its index."""
        from co_cli.notes.moments import moment_text

        counts, meaning = self.index.counts(), self.index.meaning()
        by_meaning = self.embedders.space is not None
        active, building = (meaning.spaces.active, meaning.spaces.building) if by_meaning else (None, None)
        skipped, problems = self.index.reported()
        return Status(
            vault=self.root,
            search_db=self.database.path,
            search_db_bytes=os.path.getsize(self.database.path),
            backend=self.settings.search_backend,
            notes=self.index.by_source(),
            passages=counts.passages,
            synced_at=moment_text(counts.synced_at) if counts.synced_at else None,
            skipped=skipped,
            problems=problems,
            trashed=len(self.store.trashed()),
            space=active.space.key if active else None,
            building=building.space.key if building else None,
            unembedded=max(meaning.waiting.values(), default=0) if by_meaning else 0,
            cache_entries=meaning.cache.entries,
            cache_bytes=meaning.cache.bytes,
            cache_hit_rate=meaning.cache.hit_rate,
        )

    def doctor(self, fix: bool = False) -> list[Finding]:
        """Check everything that can be checked; with `fix`, apply the cures that cannot do harm."""
        from co_cli.service.checkup import examine

        return examine(self, fix)

    @property
    def store(self) -> NoteStore:
        from co_cli.notes.store import NoteStore

        return NoteStore(self.root)

    def _web_pages(self, fetcher: Fetcher | None) -> WebPages:
        from co_cli.service.web_pages import WebPages, make_fetcher

        return WebPages(self.store, self.index, fetcher or make_fetcher(self.settings), self.settings.max_note_bytes)

    def _page_path(self, pages: WebPages, ref: str) -> str:
        from co_cli.sources.fetching_url import looks_like_url, read_url

        if looks_like_url(ref):
            url = read_url(ref)
            path = pages.find(url)
            if path is None:
                raise InvalidInputError(f"{url} is not kept here: `co add {url}` fetches it")
            return path
        note = self.note(ref)
        if not note.metadata.get("source_url"):
            raise InvalidInputError(f"{note.ref} has no source_url: there is nothing to fetch")
        return note.path

    def _working_index(self) -> KnowledgeIndex | None:
        """The index, or None when it cannot be opened: notes are written and read all the same."""
        try:
            self.index.counts()
        except IndexUnavailableError:
            return None
        return self.index

    def _weights(self) -> Weights | None:
        """As the settings say; None leaves it to the space. One alone gives the other what is left of 1."""
        meaning, words = self.settings.hybrid_vector_weight, self.settings.hybrid_text_weight
        if meaning is None and words is None:
            return None
        if meaning is None or words is None:
            meaning, words = (1 - (words or 0), words) if meaning is None else (meaning, 1 - meaning)
        return Weights(meaning, words or 0.0)

    @staticmethod
    def _filters(
        sources: Sequence[str] | None,
        tags: Sequence[str] | None,
        any_tag: bool,
        category: str | None,
        since: str | float | None,
        until: str | float | None,
        fields: dict[str, str] | None,
    ) -> Filters:
        sources = (sources,) if isinstance(sources, str) else tuple(sources or ())
        for source in sources:
            if source not in SOURCES:
                raise InvalidInputError(f"a source is memory or article, not {source!r}")
        return Filters(
            sources=sources,
            tags=(tags,) if isinstance(tags, str) else tuple(tags or ()),
            any_tag=any_tag,
            category=category,
            since=_moment("since", since),
            until=_moment("until", until, end=True),
            fields=tuple((key, _field_text(value)) for key, value in (fields or {}).items()),
        )


def _field_text(value: object) -> str:
    """As frontmatter would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(name: str, value: object, end: bool = False) -> float | None:
    """`until 2026-03-01` includes that day."""
    if value is None or (isinstance(value, int | float) and abs(value) < FAR_AWAY):
        return None if value is None else float(value)
    from co_cli.notes.moments import read_moment, read_since

    moment = read_since(value, time.time()) if isinstance(value, str) else read_moment(value)
    if moment is None:
        raise InvalidInputError(f"{name} is a date such as 2026-03-01, `yesterday` or `7d`, not {value!r}")
    whole_day = end and isinstance(value, str) and moment % 86_400 == 0 and ":" not in value
    return moment + 86_399.999 if whole_day else moment
