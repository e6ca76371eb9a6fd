"""`co hook`: what coding agents start for each event. The exit code is always 0 (see `cli/app.py`)."""

from __future__ import annotations

import argparse
import os
import sys
import time

from co_cli.hooks.answering import answer, record_late
from co_cli.hooks.environment import MARKER
from co_cli.hooks.hook_events import CLIENTS, LARGEST, read_event
from co_cli.hooks.time_limit import end_after, leave_behind, read_within, run_apart

SECONDS, CAPTURE_SECONDS = 2.0, 300
"""For an answer, and for the process that keeps a session in the background."""


def add_hook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", help=", ".join(CLIENTS))
    help = f"give up after this time (default {SECONDS:g}); the client has a limit, too"
    parser.add_argument("--capture", action="store_true", help=argparse.SUPPRESS)  # see hooks/turn_capture.py
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=help)


def run_hook(options: argparse.Namespace) -> int:
    """
    Coding agents start this for each event, with the event as JSON on standard
    input; `co setup CLIENT` configures them. At the start of a session it prints
    notes marked `loading: always`, with a prompt up to three notes that are about
    it, and only from vaults that you trust. It calls no model, takes at most two
    seconds, and always ends with the exit code 0, so that it never stops a prompt.
    co.log has errors, and prompts for which the time was too short.

    example:
      co hook claude-code < event.json
    """
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        print("co hook reads an event from standard input: `co hook --help` explains it", file=sys.stderr)
        return 0

    client, places = options.client, (options.vault, options.data_dir)
    if options.capture:
        from co_cli.hooks.turn_capture import capture

        end_after(CAPTURE_SECONDS)
        capture(client, sys.stdin.buffer.read(LARGEST), *places)
        return 0

    deadline = time.monotonic() + options.seconds
    data = read_within(sys.stdin.buffer, LARGEST, deadline)
    event = None if os.environ.get(MARKER) else read_event(client, data)
    if event is None:
        return 0
    text = run_apart(lambda: answer(event, data, *places), deadline)
    sys.stdout.write(text or "")
    if text is None:
        leave_behind(lambda: record_late(event, options.seconds, *places))
    return 0
