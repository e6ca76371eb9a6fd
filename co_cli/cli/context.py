"""`co note context`: what an agent would be given for a task, before its first turn, and why."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, printable
from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import OWN_SOURCES, Filters

REASONS = {
    "always": "it is marked `loading: always`",
    "contextual": "it is marked `loading: contextual` and has to do with the task",
    "recalled": "a memory that has strongly to do with the task",
}


def add_context(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", nargs="*", help="the first thing that the agent is asked; without one, what is always there"
    )
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="room for notes (setting context_tokens, default 1,000)"
    )
    parser.epilog = (
        "Prints the instructions, the notes as the model reads them, the reason of each,\n"
        "what it costs in tokens, and what was left out for lack of room. It is asked of\n"
        "the agent itself, so it is exactly what `co chat` and any agent with the\n"
        "capability Knowledge get. No model is asked, and nothing is written.\n\n"
        'examples:\n  co note context "plan the next deploy"\n  co note context --json\n'
    )
    parser.set_defaults(run=context)


def context(options: argparse.Namespace) -> int:
    from co_cli.agent.working_set import working_set  # imports pydantic-ai
    from co_cli.service.trusting import unasked_from, why_waiting

    if options.tokens is not None and options.tokens < 1:
        raise InvalidInputError(f"--tokens is at least 1, not {options.tokens}")
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        given = working_set(kb, " ".join(options.task).strip(), options.tokens)
        for root in unasked_from(kb.settings, kb.root, kb.index.beside)[1]:
            if _has_notes(kb, root):
                print(f"co: {printable(why_waiting(kb.settings.data_dir, root))}", file=sys.stderr)
    if options.json:
        print_json({**given._asdict(), "report": _with_reasons(given.report)})
        return 0
    screen = Screen()
    report = given.report
    screen.line(screen.paint(f"instructions, about {given.instructions_tokens:,} tokens", "bold"))
    screen.wrapped(given.instructions)
    screen.line()
    tools = sum(given.tools.values())
    screen.line(screen.paint(f"{len(given.tools)} tools, about {tools:,} tokens", "bold"))
    screen.wrapped(", ".join(given.tools))
    screen.line()
    room = f"about {given.knowledge_tokens:,} of {report['budget']:,} tokens"
    screen.line(screen.paint(f"notes in the user's turn, {room}", "bold"))
    for line in given.knowledge.splitlines() or ["none"]:
        screen.wrapped(printable(line)) if line else screen.line()
    _explain(screen, "why", report["injected"])
    _explain(screen, "left out for lack of room", report["cut"])
    for problem in (*report.get("warnings", ()), *report["degraded"]):
        screen.line()
        screen.wrapped(f"warning: {printable(problem)}", style="yellow")
    return 0


def _has_notes(kb: KnowledgeBase, root: str) -> bool:
    try:
        return bool(kb.index.docs(Filters(OWN_SOURCES, roots=(root,)), 1))
    except IndexUnavailableError:
        return True  # the report says what is wrong with the index


def _explain(screen: Screen, heading: str, notes: list[dict[str, Any]]) -> None:
    if not notes:
        return
    screen.line()
    screen.line(screen.paint(heading, "bold"))
    for note in notes:
        evidence = f", evidence {note['evidence']:.2f}" if note["evidence"] is not None else ""
        told = f"{note['ref']}: {REASONS[note['why']]}{evidence}; about {note['tokens']:,} tokens"
        screen.wrapped(printable(told), "  ")


def _with_reasons(report: dict[str, Any]) -> dict[str, Any]:
    explained = {
        name: [{**note, "reason": REASONS[note["why"]]} for note in report[name]] for name in ("injected", "cut")
    }
    return {"warnings": [], **report, **explained}
