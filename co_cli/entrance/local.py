"""A knowledge base in a folder on this machine. No logic here: each method calls the subject that does the work.

Synchronous and safe to share between threads. What a search does without is imported when it is first used.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from co_cli.activity import Activity, record_refs
from co_cli.embedding.embedders import Embedders
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.ground.hits import SearchResult, is_filtered_out
from co_cli.ground.settings import Settings, load_settings
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.engine import Engine
from co_cli.index.filter_table import FilterOptions
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.files import make_folders
from co_cli.notes.store import NoteStore
from co_cli.searching.answers import explain, search
from co_cli.searching.requests import LARGEST_LIMIT, Options, SearchOptions, check_known, options_of, parse_filters
from co_cli.vault.tiers import is_own_vault, make_vault
from co_cli.vault.vault import (
    Opening,
    embed_vault,
    lists_other_sources,
    open_vault,
    rebuild_index,
    reopen_vault,
    sync_vault,
    waiting_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Unpack

    from co_cli.conversations.checkpoints import Checkpoints
    from co_cli.ground.reports import Progress, SyncReport, Waiting
    from co_cli.ground.saves import ChangeOptions, DraftOptions, Erased, Forgotten, Saved
    from co_cli.ground.summaries import NoteSummary, Status
    from co_cli.index.embed import Embedded
    from co_cli.index.links import Backlink, Link
    from co_cli.notes.note import Note
    from co_cli.retrieval.explain import Explanation
    from co_cli.saving.web_pages import Loader, WebPages
    from co_cli.saving.writer import VaultWriter
    from co_cli.searching.context import Context
    from co_cli.searching.matching_lines import MatchingLines
    from co_cli.searching.note_details import NoteView
    from co_cli.sources.web.fetch import Fetcher
    from co_cli.upkeep.doctor import Finding
    from co_cli.vault.lookup import Lookup
    from co_cli.vault.origins import Origins
    from co_cli.vault.skills import Skill, Skills


class LocalKnowledgeBase(AbstractContextManager["LocalKnowledgeBase"]):
    """A vault, the sources that are searched with it, and their index."""

    def __init__(self, settings: Settings, opening: Opening | None = None) -> None:
        self.vault = open_vault(settings, opening)
        """Another value after sources were added or removed."""
        self._reloading = threading.Lock()

    def close(self) -> None:
        self.vault.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> LocalKnowledgeBase:
        """It is a handle: copies of what holds it share it."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as its settings: another process opens the same vault."""
        opening = replace(self.vault.opening, boundaries=None, on_set_aside=None)
        return LocalKnowledgeBase, (self.settings, opening)

    @property
    def local(self) -> LocalKnowledgeBase:
        """For what works only next to the files."""
        return self

    @property
    def server(self) -> None:
        """There is none."""

    @property
    def settings(self) -> Settings:
        return self.vault.settings

    @property
    def root(self) -> str:
        return self.vault.root

    @property
    def index(self) -> KnowledgeIndex:
        return self.vault.index

    @property
    def engine(self) -> Engine:
        return self.vault.engine

    @property
    def embedders(self) -> Embedders:
        return self.vault.embedders

    @property
    def store(self) -> NoteStore:
        """The files of the vault."""
        return self.vault.store

    @property
    def activity(self) -> Activity:
        """The log of searches, opened notes and versions."""
        return self.vault.activity

    # -- search -----------------------------------------------------------------------------------------------------

    def search(
        self, query: str, limit: int = 10, *, track: bool = False, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Search notes as they were at the last `sync`.

        Options are `sources`, the filters of `FilterOptions` (index/filter_table.py), and of `Options`
        (searching/requests.py) `backend`, `profile`, `weights` such as `{"words": 0.5, "recency": 0.2}`, `words`,
        `meaning`, `min_score`, `prefix`, `read` and `reranker`.
        `track` counts each hit as a recall of its note and logs the query, as far as the settings allow.
        """
        found = search(self.vault, query, options_of(limit, options))
        record_refs(*(hit.ref for hit in found.hits))
        if track:
            self.track(found)
        return found

    def track(self, found: SearchResult) -> None:
        """Log a result that was found without `track`. Front ends do so after showing it.

        If no note passes the filters, nothing was asked of the notes, and nothing is logged.
        """
        if is_filtered_out(found):
            return
        with_skills = any(hit.source == "skill" for hit in found.hits)
        skills = [origin.root for *_, origin in self.skills.folders()] if with_skills else []
        self.activity.searched(found, [origin.root for origin in self.vault.linked], skills)

    def why(self, query: str, ref: str, limit: int = 10, **options: Unpack[SearchOptions]) -> Explanation:
        """Explain a note's rank for a query, or why it was not found. Options are those of `search`."""
        asked, note = options_of(limit, options), self.note(ref)
        if note.source == "skill":
            raise InvalidInputError(f"{note.ref} is a skill: `co skill search` finds skills")
        return explain(self.vault, query, note.ref, note.title, asked)

    def lines(
        self,
        query: str,
        limit: int = LARGEST_LIMIT,
        *,
        around: int = 0,
        track: bool = False,
        **options: Unpack[SearchOptions],
    ) -> MatchingLines:
        """Every line with words of a query, in at most `limit` notes, with `around` lines before and after each.

        Options and `track` are those of `search`. Meaning does not count.
        """
        from co_cli.searching.matching_lines import find_lines  # the lookup of notes, which a search does without

        lines, found = find_lines(self.vault, query, options_of(limit, options), around)
        if track:
            self.track(found)
        return lines

    # -- index ------------------------------------------------------------------------------------------------------

    def sync(
        self, progress: Progress | None = None, seconds: float | None = None, drop_missing: bool = False
    ) -> SyncReport:
        """Update the index from the files. If nothing changed, this only walks the folders.

        `seconds` limits the time for embedding with a slow provider; the next sync continues. If most of the vault is
        gone at once, as when its drive is not mounted, its notes are kept (`report.kept`) until the files are back;
        `drop_missing` removes them.
        """
        return sync_vault(self.vault, progress, seconds, drop_missing)

    def embed(self, seconds: float | None = None, progress: Progress | None = None) -> bool:
        """Make vectors of what waits for them, for at most this long. Returns whether that was too short."""
        return embed_vault(self.vault, seconds, progress)

    def waiting(self) -> Waiting:
        """How many passages wait for a vector, and about how long making those takes."""
        return waiting_vectors(self.vault)

    def catch_up(self) -> None:
        """Notice the sources that other processes added or removed, and write what other servers saved to the files."""
        if lists_other_sources(self.vault):
            self.reload()
        if self.vault.authority:
            self.vault.authority.catch_up()

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Build a new index from the files, and replace the old one when it is complete."""
        return rebuild_index(self.vault, progress)

    def reembed(self, progress: Progress | None = None, fresh: bool = False) -> Embedded | None:
        """Make all vectors again with the chosen provider; `fresh` does not use the cache."""
        return self.index.reembed(progress, fresh)

    def working_index(self) -> KnowledgeIndex | None:
        """The index, or None if it cannot be opened: notes can be read and written without it."""
        return self.vault.working_index()

    # -- notes ------------------------------------------------------------------------------------------------------

    def remember(self, content: str, title: str | None = None, **options: Unpack[DraftOptions]) -> Saved:
        """Save a note. It can be found when this returns.

        Options are the fields of `NoteFields` (ground/saves.py), such as `tags`, `category` and `importance`, and those
        of `DraftOptions`. `fields` are any other frontmatter keys. `tier` chooses the vault to save to: `user`,
        `project` or `team`; None is this one. `supersedes` are notes that this one replaces. `path` is its file in
        the folder of its kind, such as `people/mara.md`, or a folder such as `people/`; a file that exists is not
        overwritten. With a `key` that a save had before, nothing is saved, and the answer is the same.

        If a note has the same text already, ignoring case, white space and punctuation, the outcome is `duplicate` and
        nothing is written. Otherwise a new note is written, and `related` names up to three similar memories;
        `on_related` says whether to name them (`report`), to supersede them (`supersede`) or not to look (`keep`).
        """
        from co_cli.ground.saves import make_draft  # a search does without it

        return self.writer().save(make_draft(content, title, options))

    def update(self, ref: str, content: str | None = None, **changes: Unpack[ChangeOptions]) -> Saved:
        """Change a note's text or single fields; every other byte stays.

        Fields are those of `remember`. An empty one, or None in `fields`, is removed.

        `version` is the `note.version` that the change is based on: if the note has another version by now, nothing is
        written and NoteConflictError is raised. Without it, or with `keep`, replaced text is kept in the trash.

        `path` moves its file, as `remember` takes it. Links that would break are updated, and `detail` says where.
        """
        from co_cli.ground.saves import make_change  # a search does without it

        return self.writer().update(ref, make_change(content, changes))

    def forget(self, ref: str) -> Forgotten:
        """Move a note to the vault's trash."""
        return self.writer().forget(ref)

    def erase(self, ref: str) -> Erased:
        """Remove a note, its copies, and what the data folder has about it, for good."""
        from co_cli.upkeep.erasing import erase_note  # slow to import

        return erase_note(self.vault, ref)

    def restore(self, ref: str) -> Saved:
        """Move a forgotten note back from the trash."""
        return self.writer().restore(ref)

    def note(self, ref: str, track: bool = False) -> Note:
        """Read a note from its file. Raises UnknownRefError with the closest refs. `track` counts it as opened."""
        origin, note = self.lookup().open(ref)
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
        options = Options(sources=source or OWN_SOURCES, filters=filters)
        return self.lookup().summaries(parse_filters(self.vault.linked, options), -1 if limit is None else limit)

    def tags(self, source: str | None = None) -> dict[str, int]:
        """Each tag with its number of notes, the most used first: of everything searched, or of one source."""
        return self.index.notes.tags(parse_filters(self.vault.linked, Options(sources=source)) if source else None)

    def outdated(self, note: Note) -> str | None:
        """Why a note is not valid now, such as `superseded by memory:new`; None if it is valid."""
        return self.lookup().outdated([note])[0]

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """The links of a note and the links to it, resolved by Obsidian's rules.

        `targets` are the `note.links` of a file that may be newer than the index.
        """
        return self.lookup().links(ref, targets)

    def file_of(self, ref: str) -> str:
        """The path of a note's file, which is not read."""
        return self.lookup().file_of(ref)

    def view(self, ref: str, note: Note) -> NoteView:
        """Everything about a note, or the lines of it that the ref names."""
        from co_cli.searching.note_details import view_note  # slow to import

        return view_note(self.vault, ref, note)

    # -- agents -----------------------------------------------------------------------------------------------------

    @property
    def captures(self) -> bool:
        """Whether conversations are kept here."""
        return self.settings.capture != "off"

    def always_notes(self) -> Context:
        """Notes marked `loading: always`, which every prompt is given."""
        from co_cli.searching.context import always_notes  # slow to import

        found = always_notes(self.vault)
        record_refs(*(note.ref for note in found.notes))
        return found

    def matching_notes(self, prompt: str, seen: Collection[str] = ()) -> Context:
        """Notes that are about a prompt and were not `seen`."""
        from co_cli.searching.context import matching_notes  # slow to import

        found = matching_notes(self.vault, prompt, seen)
        record_refs(*(note.ref for note in found.notes))
        return found

    def untrusted_vaults(self, degraded: Collection[str] = ()) -> list[str]:
        """Why vaults with notes may not add any to prompts, each with the fix."""
        from co_cli.searching.context import untrusted_vaults  # slow to import

        return untrusted_vaults(self.vault, degraded)

    def injected(
        self,
        notes: Sequence[Mapping[str, Any]],
        conversation: str | None = None,
        run: str | None = None,
        prompt: str = "",
        given: str = "",
    ) -> None:
        """Record that notes, each with `ref`, `why` and `tokens`, were added to an agent's prompt as `given`."""
        self.activity.injected(notes, conversation, run, prompt, given)

    def cited(self, text: str, conversation: str | None = None, run: str | None = None) -> None:
        """Record the refs in an agent's answer."""
        self.activity.cited(text, conversation, run)

    # -- parts ------------------------------------------------------------------------------------------------------

    def lookup(self) -> Lookup:
        """Finds notes by ref, name or path, in every vault and source."""
        from co_cli.vault.lookup import Lookup  # slow to import

        return Lookup(self.vault)

    def writer(self) -> VaultWriter:
        """Saves, changes, forgets and restores notes."""
        from co_cli.saving.writer import VaultWriter  # slow to import

        return VaultWriter(self.vault)

    @property
    def sources(self) -> Origins:
        """Folders and files that are searched with the vault: add, refresh and remove them."""
        from co_cli.vault.origins import Origins  # slow to import

        return Origins(self.vault, self.reload)

    def web_pages(self, fetcher: Fetcher | None = None, loader: Loader | None = None) -> WebPages:
        """Web pages that are saved as articles: add and refresh them. Without a fetcher, the settings make one."""
        from co_cli.saving.web_pages import WebPages  # slow to import

        return WebPages(self.vault, self.note, fetcher, loader)

    @property
    def skills(self) -> Skills:
        """Skills of the project, of the user and of configured folders, for agents to find and load."""
        from co_cli.vault.skills import Skills  # slow to import

        return Skills(self.vault)

    def search_skills(self, query: str, limit: int = 3) -> tuple[list[tuple[Skill, float]], SearchResult]:
        """Skills for a task with their scores, best first, and the search result."""
        from co_cli.searching.skill_search import search_skills  # slow to import

        return search_skills(self.vault, query, limit)

    @property
    def checkpoints(self) -> Checkpoints:
        """Conversations that were saved to continue from."""
        from co_cli.conversations.checkpoints import Checkpoints  # slow to import

        return Checkpoints(self.vault)

    def status(self) -> Status:
        """Numbers about the vault and its index."""
        from co_cli.upkeep.doctor import status_of  # slow to import

        return status_of(self.vault)

    def doctor(self, fix: bool = False, progress: Progress = lambda done, total: None) -> list[Finding]:
        """Check everything; `fix` applies the safe fixes: to the index, never to notes."""
        from co_cli.upkeep.doctor import examine  # slow to import

        return examine(self.vault, fix, progress)

    def reload(self, settings: Settings | None = None) -> None:
        """Read again which other vaults and folders are searched with this one. Another process may have added some.

        `settings`: others that apply from now on. Those that are used when a vault is opened do not.
        """
        with self._reloading:  # or a request that notices a new source puts the settings back that it began with
            self.vault = reopen_vault(replace(self.vault, settings=settings or self.settings))


def open_local(
    vault: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    *,
    create: bool = False,
    opening: Opening | None = None,
) -> LocalKnowledgeBase:
    """Open a vault; without arguments the one chosen by the settings and the current folder.

    Your own vault is created if it does not exist. Any other must exist, because a missing one may be on a drive
    that is not mounted; `create` creates it.
    """
    if settings is None or vault is not None or data_dir is not None:
        settings = load_settings({"vault": vault and os.fspath(vault), "data_dir": data_dir and os.fspath(data_dir)})
    with suppress(OSError):  # what needs the folder says why it cannot be made
        make_folders(settings.data_dir, private=True)
    if not os.path.exists(settings.vault):
        origin, own = settings.set_by["vault"], is_own_vault(os.path.realpath(settings.vault))
        if create or own or origin in ("default", "project"):
            make_vault(settings.vault, private=own or origin == "default")
    return LocalKnowledgeBase(settings, opening)
