"""`co hook`: what coding agents start for each event. The exit code is always 0 (see `cli/app.py`)."""

from __future__ import annotations

import argparse
import sys

from co_cli.hooks.hook_events import CLIENTS, LARGEST
from co_cli.hooks.time_limit import end_after, run_apart

SECONDS, CAPTURE_SECONDS = 2.0, 300
"""For an answer, and for the process that keeps a session in the background."""


def add_hook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", help=", ".join(CLIENTS))
    help = f"give up after this time (default {SECONDS:g}); the client has a limit, too"
    parser.add_argument("--capture", action="store_true", help=argparse.SUPPRESS)  # see hooks/capturing.py
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=help)


def run_hook(options: argparse.Namespace) -> int:
    """
    Coding agents start this for each event, with the event as JSON on standard
    input; `co setup CLIENT` configures them. At the start of a session it prints
    notes marked `loading: always`, with a prompt up to three notes that are about
    it, and only from vaults that you trust. It calls no model, takes at most two
    seconds, and always ends with the exit code 0, so that it never stops a prompt.
    What goes wrong is in co.log.

    example:
      co hook claude-code < event.json
    """
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        print("co hook reads an event from standard input: `co hook --help` explains it", file=sys.stderr)
        return 0

    if options.capture:
        from co_cli.hooks.turn_capture import capture

        end_after(CAPTURE_SECONDS)
        capture(options.client, sys.stdin.buffer.read(LARGEST), options.vault, options.data_dir)
        return 0

    def work() -> str:
        from co_cli.hooks.answering import answer  # everything that a search needs, under the deadline

        return answer(options.client, sys.stdin.buffer.read(LARGEST), options.vault, options.data_dir)

    sys.stdout.write(run_apart(work, options.seconds))
    return 0
