"""`co consolidate`: a model proposes one memory in place of several; you see the diff and decide."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from co_cli.cli.keys import read_key
from co_cli.cli.opening import print_json, sync_first
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.consolidating import Proposal, accept, proposals
from co_cli.settings import load_settings
from co_cli.values import Saved, masked_text


def add_consolidate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--model", metavar="NAME", help="ollama:qwen3, openai:gpt-5, ... (setting model, CO_MODEL)"
    )
    parser.add_argument(
        "-n", "--limit", type=int, default=10, metavar="N", help="at most so many proposals (default 10)"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="accept all that are not refused")
    parser.add_argument("--dry-run", action="store_true", help="only show, in a terminal too")
    parser.epilog = (
        "Memories that say nearly the same are given to a model, which writes one in\n"
        "their place. A proposal that lost more than a quarter of the facts, or has a\n"
        "number or a name that no source has, is refused. In a terminal you accept (y)\n"
        "or skip (n) each; elsewhere nothing is written without --yes. The new note\n"
        "supersedes its sources; they stay as files.\n\n"
        "examples:\n  co consolidate --model ollama:qwen3\n  co consolidate --dry-run\n  co consolidate --yes --json\n"
    )
    parser.set_defaults(run=consolidate)


def consolidate(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise InvalidInputError(f"--limit is at least 1, not {options.limit}")
    if options.yes and options.dry_run:
        raise InvalidInputError("--yes writes and --dry-run does not: choose one")
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir, "model": options.model})
    if settings.model is None:
        from co_cli.chat.models import HOW_TO_GET_ONE

        sys.stderr.write(HOW_TO_GET_ONE.replace("co chat", "co consolidate"))
        return 2
    with KnowledgeBase.open(settings=settings) as kb:
        sync_first(kb)
        return _go_through(options, kb, settings.model)


def _go_through(options: argparse.Namespace, kb: KnowledgeBase, model: str) -> int:
    screen = Screen()
    asking = screen.interactive and sys.stdin is not None and sys.stdin.isatty()
    asking = asking and not (options.yes or options.dry_run or options.json)
    done: list[dict[str, object]] = []
    for number, proposal in enumerate(_proposed(kb, model, options.limit), 1):
        if not options.json:
            _show(screen, number, proposal)
        saved: Saved | None = None
        if proposal.refused is None and asking:
            key = read_key("[y] accept  [n] skip  [q] quit", "ynq")
            if key == "q":
                break
            saved = accept(kb, proposal) if key == "y" else None
        elif proposal.refused is None and options.yes:
            saved = accept(kb, proposal)
        if saved is not None and not options.json:
            masked = f" ({masked_text(saved.masked)})" if saved.masked else ""
            told = f"created {saved.ref}, which supersedes {', '.join(proposal.refs)}{masked}"
            screen.line(printable(told))
        done.append({**proposal._asdict(), "saved": saved and saved.ref, "masked": saved.masked if saved else 0})
    if options.json:
        print_json(done)
    elif not done:
        screen.line("Nothing to consolidate.")
    elif not asking and not options.yes:
        refused = sum(1 for one in done if one["refused"])
        screen.line(
            f"{count_of(len(done), 'proposal')}, {refused} refused; nothing was written: --yes accepts the rest"
        )
    return 0 if done else 1


def _proposed(kb: KnowledgeBase, model: str, limit: int) -> Iterator[Proposal]:
    """What the model answers; if it does not, one line says why."""
    from co_cli.agent.consolidating import ModelRewriter
    from co_cli.chat.models import NoAnswerError, full_name, load_model, problem_of

    rewriter = ModelRewriter(load_model(model))
    try:
        yield from proposals(kb, rewriter, limit)
    except Exception as error:  # whatever a model's library raises
        raise NoAnswerError(problem_of(error, full_name(model))) from error


def _show(screen: Screen, number: int, proposal: Proposal) -> None:
    screen.line(screen.paint(f"{number}. {printable(proposal.title)}", "bold"))
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in proposal.diff.splitlines():
        screen.wrapped(line, style=styles.get(line[:1], ""))
    if proposal.refused:
        screen.wrapped(f"refused: {proposal.refused}", style="yellow")
    screen.line()
