"""Turn file changes into server-sent events for open pages. One watcher for all pages."""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

from starlette.requests import HTTPConnection, Request
from starlette.responses import StreamingResponse

from co_cli.activity.database import FILE_NAME
from co_cli.activity.events import SPOOL
from co_cli.activity.feed import read_latest
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import IndexUnavailableError, KnowledgeError
from co_cli.notes.files import stamp_of
from co_cli.notes.logbook import logger
from co_cli.notes.refs import source_ref
from co_cli.searching.freshness import Batch, Notice, Watcher
from co_cli.sources.origin import Origin

log = logger("server")
MOST_REFS = 200
"""Changes named in one event; of more, pages only hear that there are many."""
QUIET_SECONDS = 15.0
"""How often a quiet stream sends a comment, so that a page that is gone is noticed."""
LONGEST_QUEUE = 100
"""Events that may wait for a page that does not read. Then its stream ends, and the page connects and loads again."""


ACTIVITY_SECONDS = 1.0
"""How often it is looked whether something was recorded."""


def revision_of(kb: LocalKnowledgeBase) -> str:
    """Another text after every change of the index."""
    try:
        return json.dumps(kb.engine.revision())
    except IndexUnavailableError:
        return ""  # what is asked for next says so


class Events:
    """The pages that listen. `publish` may be called from any thread."""

    def __init__(self, kb: LocalKnowledgeBase, is_known: Callable[[HTTPConnection], Awaitable[bool]]) -> None:
        """`is_known` says whether the token of a request is still valid."""
        self._kb, self._is_known = kb, is_known
        self._loop: asyncio.AbstractEventLoop | None = None
        self._following: asyncio.Task[None] | None = None
        self.listening: set[asyncio.Queue[str | None]] = set()
        self._watcher = Watcher(kb, self._tell, files=True, progress=self._note_progress)
        self.synced, self.progress = self._watcher.synced, (0, 0)
        """Whether everything was indexed since the start; until then, how many files are, and of how many."""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watcher.start()
        self._following = self._loop.create_task(self._follow_activity())

    def stop_streams(self) -> None:
        """End all streams; the server waits for them."""
        for queue in self.listening:
            queue.put_nowait(None)

    def close(self) -> None:
        if self._loop and self._following:
            self._loop.call_soon_threadsafe(self._following.cancel)
        self._watcher.close()

    async def _follow_activity(self) -> None:
        """Tell pages that agents did something: what any process records goes through two small files.

        Other vaults may have the same, so it is read whether it is about this one.
        """
        files = [os.path.join(self._kb.settings.data_dir, name) for name in (SPOOL, f"{FILE_NAME}-wal", FILE_NAME)]
        before, known = [*map(stamp_of, files)], await asyncio.to_thread(self._latest)
        while True:
            await asyncio.sleep(ACTIVITY_SECONDS)
            now = [*map(stamp_of, files)] if self.listening else before
            if now != before:
                before, known_before, known = now, known, await asyncio.to_thread(self._latest)
                if known != known_before:
                    self.publish("activity", {})

    def _latest(self) -> object:
        try:
            with self._kb.activity.written().reading() as connection:
                return read_latest(connection, self._kb.root)
        except KnowledgeError:  # pages that ask say why
            return object()

    async def stream(self, request: Request) -> StreamingResponse:
        return StreamingResponse(self._lines(request), media_type="text/event-stream")

    async def _lines(self, request: Request) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.listening.add(queue)
        try:
            yield f": connected {await asyncio.to_thread(revision_of, self._kb)}\n\n"
            while True:
                try:
                    line = await asyncio.wait_for(queue.get(), QUIET_SECONDS)
                except TimeoutError:
                    line = ": quiet\n\n"
                if line is None or not await self._may_listen(request):  # the server stops, or the token was revoked
                    return
                yield line
        finally:
            self.listening.discard(queue)

    async def _may_listen(self, request: Request) -> bool:
        try:
            return await self._is_known(request)
        except IndexUnavailableError:  # the tokens are in a database that is away: the page asks again
            return False

    def publish(self, event: str, data: object) -> None:
        line = f"event: {event}\ndata: {json.dumps(data)}\n\n"
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, line)

    def _send(self, line: str) -> None:
        for queue in self.listening:
            if queue.qsize() <= LONGEST_QUEUE:
                queue.put_nowait(line if queue.qsize() < LONGEST_QUEUE else None)

    def _note_progress(self, done: int, total: int) -> None:
        self.progress = (done, total)

    def _tell(self, news: Batch | Notice) -> None:
        if isinstance(news, Notice):
            if news.event == "failed":
                log.warning("%s", news.text)
            self.publish("notice", {"kind": news.event, "text": news.text})
        elif self.listening:
            places = self._places(news)
            many = sum(map(len, places.values())) > MOST_REFS
            refs = set[str]() if many else {ref for place in places.items() for ref in self._refs(*place)}
            self.publish("changed", {"refs": sorted(refs), "many": many})

    def _places(self, news: Batch) -> Mapping[Origin, set[str]]:
        """The paths of what changed."""
        places: defaultdict[Origin, set[str]] = defaultdict(set)
        for origin, report in news.reports:
            paths = [*report.added, *report.changed, *report.removed, *(path for pair in report.moved for path in pair)]
            places[origin].update(paths)
        for file in news.files:
            for origin in (self._kb.index.origin, *self._kb.index.linked):
                if file.startswith(os.path.join(origin.root, "")) and not os.path.isdir(file):
                    places[origin].add(os.path.relpath(file, origin.root).replace(os.sep, "/"))
        return places

    def _refs(self, origin: Origin, paths: Collection[str]) -> list[str]:
        known = {note.path: note.ref for note in self._kb.index.of(origin).notes.find("path", *paths)}
        return [known.get(path) or (f"{origin.label}/{path}" if origin.name else source_ref(path)) for path in paths]
