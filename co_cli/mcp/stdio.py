"""The door over standard input and output, as clients start it. Ends with its client, or when asked to by a signal."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from co_cli.mcp.mending import Mended
from co_cli.mcp.server import McpDoor

GRACE = 5.0
"""Seconds that calls have to finish after a signal; a save takes a hundredth of one."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve_stdio(door: McpDoor, ready: Callable[[], None]) -> None:
    """Answer one client until it hangs up. `ready` is called just before the first message is read."""
    log_to_stderr()
    with door.watching():
        anyio.run(_serve, door, ready)


def log_to_stderr() -> None:
    """Standard output belongs to the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="co mcp: %(message)s")


async def _serve(door: McpDoor, ready: Callable[[], None]) -> None:
    try:
        async with anyio.create_task_group() as tasks:
            if os.name == "nt":
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # Windows has no signals that a loop could wait for
            else:
                await tasks.start(_leave_when_asked, door)
            async with stdio_server() as (reading, writing):
                ready()
                await door.server.run(Mended(reading), writing, door.server.create_initialization_options())
            tasks.cancel_scope.cancel()
    except* OSError as lost:  # the client closed our output: it is gone, and what was begun has been finished
        logging.getLogger(__name__).debug("the client is gone: %r", lost)


async def _leave_when_asked(door: McpDoor, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Leave at once, but not in the middle of a call.

    A thread waits in a read of standard input that cannot be interrupted, so leaving means leaving the process.
    """
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        task_status.started()
        async for _ in signals:
            await door.drained(GRACE)
            await anyio.sleep(0.02)  # the last answer is on its way to the pipe
            await anyio.to_thread.run_sync(door.toolbox.freshener.close)
            door.kb.close()
            os._exit(0)
