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
        for one in found:
            screen.titled(one.title, one.ref)
            screen.wrapped(_about(one), "  ", style="dim")
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
        one, note = kb.checkpoints.get(options.name), kb.checkpoints.note(options.name)

    def show(screen: Screen) -> None:
        screen.titled(one.title, one.ref)
        screen.wrapped(_about(one), style="dim")
        screen.line(screen.paint(printable(one.path), "dim"))
        for name in LISTS:
            if getattr(one, name):
                screen.wrapped(f"{name}: {', '.join(getattr(one, name))}")
        screen.line()
        screen.text(note.body.strip())

    return print_result(options, {**one._asdict(), "body": note.body}, show)


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
        gone = [{"ref": one.ref, "trash": kb.checkpoints.remove(one.ref)} for one in found]
    lines = [f"removed {one['ref']}; to restore it, move {' and '.join(one['trash'])} to .checkpoints/" for one in gone]
    return print_result(options, gone, lines)


def _about(one: Checkpoint) -> str:
    rated = "" if one.quality is None else f"rated {one.quality:.0%} good"
    score = "" if one.score is None else f"{one.score:.2f}"
    parts = (one.created[:10], count_of(one.messages, "message"), one.model, rated, score, one.description)
    return " · ".join(part for part in parts if part)
