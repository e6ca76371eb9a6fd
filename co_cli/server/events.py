"""Turn file changes into server-sent events for open pages. One watcher for all pages."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import HTTPConnection, Request
from starlette.responses import StreamingResponse

from co_cli.errors import IndexUnavailableError
from co_cli.local import LocalKnowledgeBase
from co_cli.notes.refs import source_ref
from co_cli.searching.freshness import Batch, Notice, Watcher
from co_cli.sources.origin import Origin

MOST_REFS = 200
"""Changes named in one event; of more, pages only hear that there are many."""
QUIET_SECONDS = 15.0
"""How often a quiet stream sends a comment, so that a page that is gone is noticed."""
LONGEST_QUEUE = 100
"""Events that may wait for a page that does not read. Then its stream ends, and the page connects and loads again."""


class Events:
    """The pages that listen. `publish` may be called from any thread."""

    def __init__(self, kb: LocalKnowledgeBase, is_known: Callable[[HTTPConnection], Awaitable[bool]]) -> None:
        """`is_known` says whether the token of a request is still valid."""
        self._kb, self._is_known = kb, is_known
        self._loop: asyncio.AbstractEventLoop | None = None
        self.listening: set[asyncio.Queue[str | None]] = set()
        self._watcher = Watcher(kb, self._tell, files=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watcher.start()

    def stop_streams(self) -> None:
        """End all streams; the server waits for them."""
        for queue in self.listening:
            queue.put_nowait(None)

    def close(self) -> None:
        self._watcher.close()

    async def stream(self, request: Request) -> StreamingResponse:
        return StreamingResponse(self._lines(request), media_type="text/event-stream")

    async def _lines(self, request: Request) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.listening.add(queue)
        try:
            yield ": connected\n\n"
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

    def _tell(self, news: Batch | Notice) -> None:
        if isinstance(news, Notice):
            self.publish("notice", {"kind": news.event, "text": news.text})
        else:
            places = self._places(news)
            many = len(places) > MOST_REFS
            refs = [] if many else sorted({self._ref(*place) for place in places})
            self.publish("changed", {"refs": refs, "many": many})

    def _places(self, news: Batch) -> set[tuple[Origin, str]]:
        places: set[tuple[Origin, str]] = set()
        for origin, report in news.reports:
            paths = [*report.added, *report.changed, *report.removed, *(path for pair in report.moved for path in pair)]
            places.update((origin, path) for path in paths)
        for file in news.files:
            for origin in (self._kb.index.origin, *self._kb.index.linked):
                if file.startswith(os.path.join(origin.root, "")) and not os.path.isdir(file):
                    places.add((origin, os.path.relpath(file, origin.root).replace(os.sep, "/")))
        return places

    def _ref(self, origin: Origin, path: str) -> str:
        known = self._kb.index.of(origin).notes.ref_of(path)
        return known or (f"{origin.label}/{path}" if origin.name else source_ref(path))
