"""Read no more of a service's answer than vectors can take: for the clients of httpx, and of httpx2, that others made.

An answer is not unpacked either: a few kilobytes can hold gigabytes. How long all of it may take is for the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from co_cli.errors import EmbeddingError

MOST_BYTES = 32_000_000
"""64 texts with 4,096 numbers of 20 digits each are 5 MB."""


class TooMuchError(EmbeddingError):
    """An answer that is larger than it can be, or packed though nobody asked for that."""


def bound(client: Any, most: int | None = None) -> None:
    """Make an asynchronous client of httpx refuse what is too large, by its hooks: they count behind a proxy too."""
    limit = most or MOST_BYTES

    async def ask_plainly(request: Any) -> None:
        request.headers["accept-encoding"] = "identity"

    async def count(response: Any) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("", "identity"):
            raise TooMuchError(f"the answer is packed ({packed[:20]}), though nobody asked for that")
        length = response.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise TooMuchError(f"the answer has more than {limit:,} bytes")
        response.stream = _counted(response.stream, limit)

    hooks = client.event_hooks
    client.event_hooks = {
        "request": [*hooks.get("request", []), ask_plainly],
        "response": [*hooks.get("response", []), count],
    }


def _counted(stream: Any, limit: int) -> Any:
    base: Any = next(kind for kind in type(stream).__mro__ if kind.__name__ == "AsyncByteStream")

    class Counted(base):
        """The same bytes, as long as they are few enough."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            came = 0
            async for block in stream:
                came += len(block)
                if came > limit:
                    raise TooMuchError(f"the answer has more than {limit:,} bytes")
                yield block

        async def aclose(self) -> None:
            await stream.aclose()

    return Counted()
