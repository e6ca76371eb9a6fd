"""Run coroutines from synchronous code, on one event loop in a thread of its own.

Works on a thread whose event loop is already running, and clients keep their connections from one call to the next.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")

_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def run_async(coroutine: Coroutine[Any, Any, Result], seconds: float | None = None) -> Result:
    """The coroutine's result. Raises TimeoutError after these seconds.

    The first call starts the thread, which does not keep the process alive.
    """
    import asyncio  # 40 ms, which a search without a server does not need

    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="co-event-loop", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, seconds), _loops[0]).result()
