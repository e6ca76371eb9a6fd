"""Run coroutines from synchronous code, on one event loop in a thread of its own.

Works on a thread whose event loop is already running, and clients keep their connections from one call to the next.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def run_async(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The coroutine's result. The first call starts the thread, which does not keep the process alive."""
    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="co-event-loop", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(coroutine, _loops[0]).result()
