"""Activity: records what happens in a vault. Recording never raises, and a search opens no database for it.

Searches, opened notes and citations are appended to the spool, a small file. Changes of the index are written to
activity.db at once, together with the spool; a process that ends soon (`brief`) does that when it closes, after it has
printed its answer. What cannot be written is counted, not raised: no search and no save fails because of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import (
    FULL,
    LONGEST_TEXT,
    SPOOL,
    AgentTurn,
    Cited,
    Event,
    Head,
    Indexed,
    Opened,
    Spooled,
    append,
    find_refs,
    masked,
    place_of,
    search_event,
)
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import SearchResult
from co_cli.ground.reports import SyncReport
from co_cli.ground.settings import Settings
from co_cli.ground.values import to_utf8
from co_cli.index.indexed_notes import IndexedNotes
from co_cli.notes.refs import without_lines
from co_cli.notes.secrets import redact_random

acting: ContextVar[str] = ContextVar("acting", default="")
"""Who acts in this context instead of the front end itself, such as `web:mara` for a token of `co serve`."""
request_record: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)
"""What the request of this context did, where a server writes an audit."""


@dataclass(slots=True)
class RequestRecord:
    """What one request of a server did. Threads that work for it may add to it."""

    tool: str = ""
    refused: bool = False
    notes: dict[str, None] = field(default_factory=dict[str, None])
    """Refs of those that were found, opened or changed, in order."""


def record_refs(*refs: str) -> None:
    """Record for the audit that these notes, or lines of them, were found, opened or changed."""
    if record := request_record.get():
        record.notes.update(dict.fromkeys(map(without_lines, refs)))


class Activity(AbstractContextManager["Activity"]):
    """What happens in one vault. Safe to share between threads."""

    def __init__(
        self,
        settings: Settings,
        root: str,
        front_end: str = "python",
        brief: bool = False,
        on_set_aside: Callable[[str], None] | None = None,
    ) -> None:
        """`on_set_aside` is called once with a message when a damaged activity.db was moved aside."""
        self.data_dir, self.root, self.front_end, self.brief = settings.data_dir, root, front_end, brief
        self.query_log, self.count_use = settings.query_log, settings.count_use == "on"
        self.clock: Callable[[], float] = time.time
        self.dropped = 0
        """Events that could not be written."""
        self.problem: str | None = None
        """Why, the last time."""
        self._on_set_aside = on_set_aside
        self._kept: list[Event] = []
        self._database: ActivityDatabase | None = None

    @property
    def actor(self) -> str:
        """What is recorded: who acts in this context, else the front end."""
        return acting.get() or self.front_end

    @property
    def database(self) -> ActivityDatabase:
        """activity.db, which may not have the latest events yet."""
        if self._database is None:
            self._database = ActivityDatabase(self.data_dir, self._on_set_aside)
        return self._database

    def written(self) -> ActivityDatabase:
        """activity.db with everything that was recorded so far. Raises ActivityUnavailableError."""
        self.write([])
        self.database.read_spool()
        return self.database

    def __exit__(self, *error: object) -> None:
        self.close()

    def searched(self, found: SearchResult, sources: Sequence[str] = (), skills: Sequence[str] = ()) -> None:
        """An answer was given: log the search and count each hit that is shown as a recall of its note.

        `sources` are the folders that were searched along with the vault, `skills` those with skills.
        """
        event = search_event(found, (self.root, *sources), skills, self.query_log, self.count_use)
        if event is not None:
            self._append(event._replace(at=self.clock(), front_end=self.actor))

    def opened(self, file: str, root: str | None = None) -> None:
        """Somebody opened a document to read it. `root` is its folder, if it is not the vault's."""
        if self.count_use:
            root, path = place_of(file, (root or self.root,))
            self._append(Opened(root, self.clock(), path))

    def injected(
        self,
        notes: Sequence[Mapping[str, Any]],
        conversation: str | None = None,
        run: str | None = None,
        prompt: str = "",
        given: str = "",
        late: float | None = None,
    ) -> None:
        """Notes, each with `ref`, `why` and `tokens`, were added to an agent's prompt, as the text `given`.

        A prompt for which there were none is logged, too, if the log has texts, or if it took too long to look:
        nobody waited for it any longer after `late` seconds.
        """
        if (self.query_log == "on" and prompt) or ((notes or late) and self.query_log != "off"):
            named = tuple((to_utf8(note["ref"]), str(note["why"]), int(note["tokens"])) for note in notes)
            turn = AgentTurn(self.root, self.clock(), self.actor, conversation, run, len(named))
            turn = turn._replace(tokens=sum(tokens for *_, tokens in named), late=late)
            if self.query_log == "on":
                asked = to_utf8(redact_random(masked(prompt)))[:LONGEST_TEXT] or None
                turn = turn._replace(injected=named, prompt=asked, given=to_utf8(masked(given)) or None)
            self._append(turn)

    def cited(self, text: str, conversation: str | None = None, run: str | None = None) -> None:
        """An agent answered. Notes that it names were useful, if a search found them shortly before."""
        refs = find_refs(text)
        if self.count_use:
            self._append(Cited(self.root, self.clock(), refs))
        if refs and self.query_log == "on":
            cited = tuple(to_utf8(masked(ref)) for ref in refs)
            self._append(AgentTurn(self.root, self.clock(), self.actor, conversation, run, injected=(), cited=cited))

    def indexed(self, notes: IndexedNotes, report: SyncReport, saved: bool = False) -> None:
        """A sync or, with `saved`, a save changed the index. A sync that changed nothing records nothing."""
        if not report.touched:
            return
        paths = [*report.added, *report.changed, *(path for _, path in report.moved)]
        try:
            heads = heads_of(notes, paths)
        except KnowledgeError as error:
            self.drop(1, error)
            return
        event = Indexed(notes.root, self.clock(), heads, report.moved, report.removed, self.actor if saved else None)
        if self.brief:
            self._kept.append(event)
        else:  # not through the list, which threads would share
            self.write([event])

    def write(self, events: Sequence[Event]) -> None:
        """Write the spool, what was kept, and these events to activity.db. What fails is dropped and counted."""
        kept, self._kept = self._kept, []
        error = self.database.write([*kept, *events])
        if error is not None:
            self.drop(len(kept) + len(events), error)

    def flush(self) -> bool:
        """Write everything to activity.db. False if that fails; searches then stay in the spool."""
        self.problem = None
        self.write([])
        return self.problem is None

    def close(self) -> None:
        """Write what is left and close activity.db."""
        if self._kept or (not self.brief and os.path.exists(os.path.join(self.data_dir, SPOOL))):
            self.write([])
        if self._database is not None:
            self._database.close()
            self._database = None

    def drop(self, count: int, error: BaseException) -> None:
        """Count what was lost, and remember why."""
        self.dropped += count
        self.problem = str(error)

    def _append(self, event: Spooled) -> None:
        try:
            if append(self.data_dir, event) >= FULL:
                self.write([])
        except OSError as error:
            self.drop(1, error)


def heads_of(notes: IndexedNotes, paths: Sequence[str]) -> list[Head]:
    """These documents as the index has them, with the size of the file now."""
    found = notes.find("path", *paths)
    return [Head(note.path, note.hash, note.title, _size(os.path.join(notes.root, note.path))) for note in found]


def _size(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except OSError:
        return None
