"""`co note context`: what an agent is given for a task before its first turn, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from co_cli.cli.opening import at_least_1, open_anywhere_synced, print_result
from co_cli.cli.terminal import printable
from co_cli.ground.values import fields_of
from co_cli.searching.context import WorkingSet


def add_context(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", nargs="*", help="the agent's first prompt; without one, only notes that are always added"
    )
    tokens = "maximum tokens of notes (setting context_tokens, default 1,000)"
    parser.add_argument("--tokens", type=at_least_1, metavar="N", help=tokens)


def run_context(options: argparse.Namespace) -> int:
    """
    Prints the instructions, the notes as the model reads them, the reason for each,
    what it costs in tokens, and what was left out for lack of room: what an agent
    with the capability Knowledge gets. `co chat` adds tools for skills if there are
    any. No language model is called, and nothing is written.

    examples:
      co note context "plan the next deploy"
      co note context --json
    """
    from co_cli.agent.capability import working_set  # imports pydantic-ai

    with open_anywhere_synced(options) as kb:
        given = working_set(kb, " ".join(options.task).strip(), options.tokens)
        for problem in kb.untrusted_vaults(given.report["degraded"]):
            print(f"co: {printable(problem)}", file=sys.stderr)
    return print_result(options, fields_of(given), _lines(given))


def _lines(given: WorkingSet) -> Iterator[str]:
    report = given.report
    yield f"INSTRUCTIONS, about {given.instructions_tokens:,} tokens"
    yield from (*given.instructions.splitlines(), "")
    yield f"{len(given.tools)} TOOLS, about {sum(given.tools.values()):,} tokens"
    yield from (", ".join(given.tools), "")
    yield f"NOTES in the user's turn, about {given.knowledge_tokens:,} of {report['budget']:,} tokens"
    yield from (given.knowledge or "none").splitlines()
    for heading, notes in (("why", report["injected"]), ("left out for lack of room", report["cut"])):
        yield from ["", heading] if notes else []
        for note in notes:
            evidence = f", evidence {note['evidence']:.2f}" if note["evidence"] is not None else ""
            yield f"  {note['ref']}: {note['reason']}{evidence}; about {note['tokens']:,} tokens"
    yield from (f"warning: {problem}" for problem in (*report["warnings"], *report["degraded"]))
