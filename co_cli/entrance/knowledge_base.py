"""KnowledgeBase: the Python entrance. What a vault in a folder and a vault on a server can both do.

`local.py` and `remote.py` implement it. Front ends and tools use it; nothing below does. No logic here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from co_cli.entrance.local import LocalKnowledgeBase, open_local

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Unpack

    from co_cli.entrance.remote import RemoteKnowledgeBase
    from co_cli.ground.hits import SearchResult
    from co_cli.ground.reports import Progress, SyncReport
    from co_cli.ground.saves import ChangeOptions, DraftOptions, Forgotten, Saved
    from co_cli.ground.settings import Settings
    from co_cli.ground.summaries import NoteSummary, Status
    from co_cli.index.filter_table import FilterOptions
    from co_cli.index.links import Backlink, Link
    from co_cli.notes.note import Note
    from co_cli.searching.context import Context
    from co_cli.searching.note_details import NoteView
    from co_cli.searching.requests import SearchOptions


def connect(url: str, token: str | None = None) -> RemoteKnowledgeBase:
    """A vault on the server (`co serve`) at this address. Without a token, the one in CO_TOKEN."""
    from co_cli.entrance.remote import RemoteKnowledgeBase  # a client for HTTP, which a folder does without

    return RemoteKnowledgeBase(url, token)


class KnowledgeBase(AbstractContextManager["KnowledgeBase"], Protocol):
    """A vault and what is searched with it. `open` and `connect` make one, and are no part of what it can do."""

    open = staticmethod(open_local)
    connect = staticmethod(connect)

    @property
    def root(self) -> str:
        """The folder of the vault, or the address of its server."""
        ...

    @property
    def settings(self) -> Settings: ...

    @property
    def local(self) -> LocalKnowledgeBase:
        """For what works only next to the files. Raises InvalidInputError if they are on a server."""
        ...

    @property
    def server(self) -> RemoteKnowledgeBase | None:
        """The server that the vault is on; None if it is in a folder."""
        ...

    @property
    def captures(self) -> bool:
        """Whether conversations are kept here."""
        ...

    def search(
        self, query: str, limit: int = 10, *, track: bool = ..., **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Search notes as they were at the last `sync`."""
        ...

    def track(self, found: SearchResult) -> None:
        """Log a result that was found without `track`."""
        ...

    def sync(self, progress: Progress | None = None, seconds: float | None = None) -> SyncReport:
        """Update the index from the files."""
        ...

    def embed(self, seconds: float | None = None, progress: Progress | None = None) -> bool:
        """Make vectors of what waits for them, for at most this long. Returns whether that was too short."""
        ...

    def catch_up(self) -> None:
        """Notice the sources that others added or removed and, where servers share the vault, what they saved."""
        ...

    def remember(self, content: str, title: str | None = None, **options: Unpack[DraftOptions]) -> Saved:
        """Save a note. It can be found when this returns."""
        ...

    def update(self, ref: str, content: str | None = None, **changes: Unpack[ChangeOptions]) -> Saved:
        """Change a note's text or single fields."""
        ...

    def forget(self, ref: str) -> Forgotten:
        """Move a note to the vault's trash."""
        ...

    def restore(self, ref: str) -> Saved:
        """Move a forgotten note back from the trash."""
        ...

    def note(self, ref: str, track: bool = False) -> Note:
        """Read a note. Raises UnknownRefError with the closest refs. `track` counts it as opened."""
        ...

    def bodies(self, refs: Sequence[str]) -> dict[str, str]:
        """The texts of these notes, without those that are gone."""
        ...

    def notes(
        self, source: str | Sequence[str] | None = None, limit: int | None = None, **filters: Unpack[FilterOptions]
    ) -> list[NoteSummary]:
        """List notes, newest first."""
        ...

    def tags(self, source: str | None = None) -> dict[str, int]:
        """Each tag with its number of notes, the most used first."""
        ...

    def outdated(self, note: Note) -> str | None:
        """Why a note is not valid now; None if it is valid."""
        ...

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        """The links of a note and the links to it."""
        ...

    def view(self, ref: str, note: Note) -> NoteView:
        """Everything about a note, or the lines of it that the ref names."""
        ...

    def status(self) -> Status:
        """Numbers about the vault and its index."""
        ...

    def always_notes(self) -> Context:
        """Notes marked `loading: always`, which every prompt is given."""
        ...

    def matching_notes(self, prompt: str, seen: Collection[str] = ()) -> Context:
        """Notes that are about a prompt and were not `seen`."""
        ...

    def untrusted_vaults(self, degraded: Collection[str] = ()) -> list[str]:
        """Why vaults with notes may not add any to prompts, each with the fix."""
        ...

    def injected(
        self,
        notes: Sequence[Mapping[str, Any]],
        conversation: str | None = None,
        run: str | None = None,
        prompt: str = "",
        given: str = "",
    ) -> None:
        """Record that notes, each with `ref`, `why` and `tokens`, were added to an agent's prompt as `given`."""
        ...

    def cited(self, text: str, conversation: str | None = None, run: str | None = None) -> None:
        """Record the refs in an agent's answer."""
        ...

    def close(self) -> None: ...
