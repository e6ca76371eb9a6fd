"""`co checkpoint list`, `show` and `remove`: conversations that were saved to continue from."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_result
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.conversations.checkpoints import LISTS, Checkpoint

HINT = "`co chat --from NAME` continues there."
NONE = "No checkpoints yet: /checkpoint TITLE in `co chat` saves one, and so does Knowledge.checkpoint in Python."


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help="only those that are about this, the best first")


def run_list(options: argparse.Namespace) -> int:
    """
    examples:
      co checkpoint list
      co checkpoint list plan the release
    """
    query = " ".join(options.query).strip()
    with open_knowledge_base(options) as kb:
        found = kb.checkpoints.find(query, limit=10) if query else kb.checkpoints.all()

    def show(screen: Screen) -> None:
        for checkpoint in found:
            screen.titled(checkpoint.title, checkpoint.ref)
            screen.wrapped(_about(checkpoint), "  ", style="dim")
        screen.wrapped(HINT if found else "No checkpoint is about that." if query else NONE)

    return print_result(options, found, show, 1 if query and not found else 0)


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="which checkpoint")


def run_show(options: argparse.Namespace) -> int:
    """
    example:
      co checkpoint show plan-the-release
    """
    with open_knowledge_base(options) as kb:
        checkpoint, note = kb.checkpoints.get(options.name), kb.checkpoints.note(options.name)

    def show(screen: Screen) -> None:
        screen.titled(checkpoint.title, checkpoint.ref)
        screen.wrapped(_about(checkpoint), style="dim")
        screen.line(screen.paint(printable(checkpoint.path), "dim"))
        for name in LISTS:
            if getattr(checkpoint, name):
                screen.wrapped(f"{name}: {', '.join(getattr(checkpoint, name))}")
        screen.line()
        screen.text(note.body.strip())

    return print_result(options, {**checkpoint._asdict(), "body": note.body}, show)


def add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="+", help="which checkpoints")


def run_remove(options: argparse.Namespace) -> int:
    """
    The files move to .checkpoints/.trash in the vault.

    example:
      co checkpoint remove plan-the-release
    """
    with open_knowledge_base(options) as kb:
        found = [kb.checkpoints.get(name) for name in options.name]  # if one is unknown, none is removed
        gone = [{"ref": checkpoint.ref, "trash": kb.checkpoints.remove(checkpoint.ref)} for checkpoint in found]
    lines = [
        f"removed {removed['ref']}; to restore it, move {' and '.join(removed['trash'])} to .checkpoints/"
        for removed in gone
    ]
    return print_result(options, gone, lines)


def _about(checkpoint: Checkpoint) -> str:
    rated = "" if checkpoint.quality is None else f"rated {checkpoint.quality:.0%} good"
    score = "" if checkpoint.score is None else f"{checkpoint.score:.2f}"
    parts = (
        checkpoint.created[:10],
        count_of(checkpoint.messages, "message"),
        checkpoint.model,
        rated,
        score,
        checkpoint.description,
    )
    return " · ".join(part for part in parts if part)
