"""`co chat`: talk with a model that has your notes; or ask it one thing and leave."""

from __future__ import annotations

import argparse
import sys

from co_cli.cli.opening import print_json
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import Settings, load_settings

MOST_STDIN = 1_000_000
"""Bytes of standard input: more than any model reads at once."""


def add_chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", help="ask this and leave; without it, a conversation begins")
    parser.add_argument(
        "-m", "--model", metavar="NAME", help="ollama:qwen3, openai:gpt-5, ... (setting model, CO_MODEL)"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="let the model forget notes without asking")
    parser.add_argument("--no-history", action="store_true", help="do not keep what is typed (setting chat_history)")
    parser.epilog = (
        "Standard input, if it is piped, goes with the question.\n\n"
        "examples:\n  co chat --model ollama:qwen3\n"
        '  co chat "what did we decide about deploys?"\n'
        '  git diff | co chat "summarise this and remember the decision"\n'
    )
    parser.set_defaults(run=chat)


def chat(options: argparse.Namespace) -> int:
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir, "model": options.model})
    question = " ".join(options.question).strip()
    piped = _piped()
    if not question and piped is None and sys.stdout.isatty() and not options.json:
        return _talk(options, settings)
    if not question and not (piped or "").strip():
        raise InvalidInputError("there is no question: give one, pipe one in, or start `co chat` on a terminal")
    return _ask(options, settings, question, piped)


def _talk(options: argparse.Namespace, settings: Settings) -> int:
    from co_cli.chat.screen import TerminalOutput
    from co_cli.chat.session import Session

    keep = settings.chat_history == "on" and not options.no_history
    with KnowledgeBase.open(settings=settings) as kb:
        kb.door = "chat"
        session = Session(kb, settings.model, TerminalOutput(), yes=options.yes, interactive=True)
        try:
            return session.talk(keep)
        finally:
            session.close()


def _ask(options: argparse.Namespace, settings: Settings, question: str, piped: str | None) -> int:
    from co_cli.chat.models import HOW_TO_GET_ONE, NoAnswerError
    from co_cli.chat.screen import Output, PipeOutput, TerminalOutput
    from co_cli.chat.session import Session

    if settings.model is None:
        sys.stderr.write(HOW_TO_GET_ONE)
        return 2
    on_terminal = sys.stdout.isatty()
    output = Output() if options.json else TerminalOutput() if on_terminal else PipeOutput()
    asking = on_terminal and piped is None and not options.json
    with KnowledgeBase.open(settings=settings) as kb:
        kb.door = "chat"
        session = Session(kb, settings.model, output, yes=options.yes, interactive=asking)
        try:
            turn = session.ask(_with_input(question, piped))
        finally:
            session.close()
    if options.json and not turn.problem:
        print_json(turn.as_object())
    if turn.problem:
        raise NoAnswerError(turn.problem)
    return 130 if turn.stopped else 0


def _piped() -> str | None:
    """Standard input, if somebody sent some; None on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(MOST_STDIN + 1)
    if len(data) > MOST_STDIN:
        raise InvalidInputError(f"standard input is longer than {MOST_STDIN:,} bytes: send a part of it")
    return data.decode("utf-8", "replace")


def _with_input(question: str, piped: str | None) -> str:
    """The question, and what was piped in as data behind it; that alone is the question if there is no other."""
    if not piped or not piped.strip():
        return question
    if not question:
        return piped.strip()
    from co_cli.tools.fencing import clean

    return f'{question}\n\n<context from="standard input">\n{clean(piped).strip()}\n</context>'
