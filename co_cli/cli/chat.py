"""`co chat`: talk with a model that has your notes, or ask it one question."""

from __future__ import annotations

import argparse
import io
import os
import sys
from dataclasses import asdict

from co_cli.agent.models import NO_MODEL
from co_cli.cli.opening import print_json
from co_cli.cli.terminal import print_message
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import load_settings
from co_cli.tools.fencing import clean
from co_cli.vault.vault import Opening

MAX_STDIN = 1_000_000  # bytes: more than any model reads at once


def add_chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", help="ask this and exit (default: start a conversation)")
    parser.add_argument("-m", "--model", metavar="NAME", help="ollama:qwen3, openai:gpt-5, ... (setting model)")
    parser.add_argument("-c", "--continue", dest="resume", action="store_true", help="continue the last conversation")
    parser.add_argument("--from", dest="origin", metavar="CHECKPOINT", help="continue from a checkpoint")
    parser.add_argument("-y", "--yes", action="store_true", help="let the model forget notes without asking")
    parser.add_argument("--no-history", action="store_true", help="keep nothing of this conversation")


def run_chat(options: argparse.Namespace) -> int:
    """
    Piped standard input is sent with the question.

    examples:
      co chat --model ollama:qwen3
      co chat "what did we decide about deploys?"
      co chat --continue "and why?"
      co chat --from plan-the-release "and the next one?"
      git diff | co chat "summarise this and remember the decision"
    """
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir, "model": options.model})
    piped, terminal = _read_pipe(), sys.stdout.isatty() and not options.json
    question = " ".join(options.question).strip() or (piped or "").strip()
    if not question and (piped is not None or not terminal):
        raise InvalidInputError("there is no question: give one, pipe one in, or start `co chat` on a terminal")
    if settings.model is None and question:
        raise InvalidInputError(NO_MODEL)
    if not question:
        print_message(settings.model or f"{NO_MODEL}; /recall searches your notes without one")
        print("/help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat.")
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    from co_cli.cli.chat_commands import confirm, talk  # with prompt-toolkit, rich and pydantic-ai: a second
    from co_cli.cli.chat_screen import Output
    from co_cli.cli.chat_session import ChatSession

    async def allow(question: str) -> bool:
        return options.yes or (terminal and piped is None and await confirm(question))

    streams = (io.StringIO(), io.StringIO()) if options.json else (sys.stdout, sys.stderr)
    with KnowledgeBase.open(settings=settings, opening=Opening("chat")) as kb:
        session = ChatSession(kb, settings.model, Output(*streams, terminal), allow)
        session.keep = settings.chat_history == "on"
        session.private = options.no_history
        if options.resume:
            session.resume()
        if options.origin:
            session.fork(options.origin)
        if not question:
            talk(session, options)
            session.remember(least=1)
            return 0
        if options.question and piped and piped.strip():
            question += f'\n\n<context from="standard input">\n{clean(piped).strip()}\n</context>'
        turn = session.ask(question)
        session.remember()
    if turn.problem:
        print_message(f"co: {turn.problem}", sys.stderr)
    elif options.json:
        calls = list(turn.tool_calls.values())
        saved = [call["result"]["ref"] for call in calls if call["result"].get("outcome") in ("created", "updated")]
        print_json({**asdict(turn), "tool_calls": calls, "saved": saved})
    return 3 if turn.problem else 130 if turn.stopped else 0


def _read_pipe() -> str | None:
    """Standard input, unless it is a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise InvalidInputError(f"standard input is longer than {MAX_STDIN:,} bytes: send a part of it")
    return data.decode("utf-8", "replace")
