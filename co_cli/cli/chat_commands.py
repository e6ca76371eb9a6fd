"""The interactive chat: read a line, run a slash command or answer a question, until the user leaves.

Most slash commands run the `co` command that does the same, so they work without a model.
"""

from __future__ import annotations

import contextlib
import os
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from co_cli.agent.message_history import save_checkpoint
from co_cli.agent.models import NO_MODEL, load_model
from co_cli.cli.app import main
from co_cli.cli.chat_session import ChatSession, Turn
from co_cli.cli.terminal import Screen, printable
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.ground.values import to_utf8
from co_cli.notes.files import open_private
from co_cli.searching.freshness import Freshener

HISTORY = "chat-history"
keys = KeyBindings()


class SlashCommand(NamedTuple):
    """`words` is the `co` command to run. Its last word comes before the argument and is left out without one."""

    summary: str
    argument: str = ""
    words: Sequence[str] = ()


COMMANDS = {
    "/recall": SlashCommand("search your notes", "QUESTION", ("search", "--limit", "5", "--")),
    "/remember": SlashCommand("save a memory", "TEXT", ("remember", "--")),
    "/forget": SlashCommand("move a note to the trash", "REF", ("forget", "--")),
    "/restore": SlashCommand("restore a forgotten note", "REF", ("note", "restore", "--")),
    "/notes": SlashCommand("list the newest notes", "[TAG]", ("list", "--limit", "15", "--tag")),
    "/show": SlashCommand("show a note", "REF", ("show", "--")),
    "/why": SlashCommand("show what the last answer is based on"),
    "/model": SlashCommand("show or change the model", "[NAME]"),
    "/private": SlashCommand("keep nothing of this conversation from here on"),
    "/checkpoint": SlashCommand("save the conversation to continue from it later", "[TITLE]"),
    "/clear": SlashCommand("start a new conversation"),
    "/help": SlashCommand("show this list"),
    "/quit": SlashCommand("end the chat (also Ctrl-D)"),
}
ALIASES = {"/search": "/recall", "/list": "/notes", "/exit": "/quit"}
"""What people type who know `co` and other chats."""


def talk(session: ChatSession, options: Namespace) -> None:
    """Run until the user leaves. `options` name the vault that the chat was started with."""
    prompt = new_prompt(session)
    with contextlib.closing(Freshener(session.kb)) as freshener, contextlib.suppress(EOFError):
        freshener.watch()
        while True:
            try:
                typed = to_utf8(prompt.prompt(FormattedText([("ansicyan bold", "› ")])))
                if typed.startswith(" "):
                    session.private = True
                line = typed.strip()
                if line and not handle(session, line, options):
                    return
            except KeyboardInterrupt:
                print("/quit or Ctrl-D ends the chat.")


def handle(session: ChatSession, line: str, options: Namespace) -> bool:
    """Run a slash command or answer a question. False ends the chat; an error does not."""
    name, _, argument = line.partition(" ")
    try:
        if name.startswith("/") and "/" not in name[1:]:  # `/usr/bin is full` is a question
            return run_command(session, name, argument.strip(), options)
        problem = session.ask(line).problem
    except KnowledgeError as error:
        problem = str(error)
    if problem:
        Screen().wrapped(" ".join(problem.split()), style="red")
    return True


def run_command(session: ChatSession, typed: str, argument: str, options: Namespace) -> bool:
    """Run the command of this name, or the only one that begins with it. False ends the chat."""
    typed = ALIASES.get(typed.lower(), typed)
    found = [name for name in COMMANDS if name.startswith(typed.lower())]
    if len(found) != 1:
        raise InvalidInputError(f"no command {typed}: did you mean {' or '.join(found) or '/help'}?")
    match found[0]:
        case "/why":
            explain(session.last)
        case "/model":
            if argument:
                session.model = load_model(argument)
            print(printable(session.model_name) or NO_MODEL)
        case "/clear":
            session.messages, session.last, session.private = [], None, options.no_history
            print("Started a new conversation. Saved notes stay.")
        case "/private":
            session.private = True
            until = "" if options.no_history else ", until /clear starts a new conversation"
            print(f"Nothing that is said from here on is kept{until}.")
        case "/checkpoint":
            saved = save_checkpoint(session.kb, session.messages, argument or None)
            print(printable(f"saved {saved.ref}; `co chat --from {saved.ref.partition(':')[2]}` continues from here"))
        case "/help":
            for name, command in COMMANDS.items():
                print(f"{name} {command.argument}".ljust(19), command.summary)
            print("Anything else is a question. Alt-Enter: another line. Ctrl-C: stop an answer.")
        case "/quit":
            return False
        case name:
            places = {"--vault": options.vault, "--data-dir": options.data_dir}
            # a search without words would read what is typed here next
            given = argument or name == "/recall"
            words = [*COMMANDS[name].words, argument] if given else COMMANDS[name].words[:-1]
            with contextlib.suppress(SystemExit):  # argparse, after it printed what is missing
                main([*(word for pair in places.items() if pair[1] for word in pair), *words])
    return True


def explain(turn: Turn | None) -> None:
    """Print what an answer is based on: the notes in the prompt and those that tools returned, with scores."""
    lines = [f"in the prompt ({note['why']}): {note['ref']}" for note in turn.injected] if turn else []
    for call in turn.tool_calls.values() if turn else ():
        hits = [f"{hit['ref']} {hit['title']}: {hit['score']:.2f}" for hit in call["result"].get("hits", ())]
        lines += [call["summary"], *hits]
    for line in lines or ["There is no answer yet, or it is not based on any note."]:
        Screen().wrapped(line)


class CommandCompleter(Completer):
    """Completes slash commands and the refs that follow them."""

    def __init__(self, kb: LocalKnowledgeBase) -> None:
        self._kb = kb

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        name, blank, typed = document.text_before_cursor.partition(" ")
        if not blank and name.startswith("/"):
            found = {known: command for known, command in COMMANDS.items() if known.startswith(name)}
            yield from (Completion(known, -len(name), display_meta=command.summary) for known, command in found.items())
        elif name in COMMANDS and COMMANDS[name].argument == "REF":
            with contextlib.suppress(KnowledgeError):  # an index that cannot be read: commands report it
                refs = [note.ref for note in self._kb.index.notes.all() if typed in note.ref]
                yield from (Completion(ref, -len(typed), display=printable(ref)) for ref in sorted(refs))


class LineHistory(FileHistory):
    """What was typed, in a file that only its owner can read. A line that begins with a space is not kept."""

    def __init__(self, session: ChatSession) -> None:
        super().__init__(os.path.join(session.kb.settings.data_dir, HISTORY) if session.keep else os.devnull)
        self._session = session

    def store_string(self, string: str) -> None:
        if string.startswith(" ") or self._session.private:
            return
        with contextlib.suppress(OSError):  # a full disk must not end the chat
            os.close(open_private(self.filename, os.O_CREAT | os.O_WRONLY))
            super().store_string(to_utf8(string))


@keys.add("escape", "enter")
def _start_another_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def new_prompt(session: ChatSession) -> PromptSession[str]:
    """Enter sends, Alt-Enter starts another line."""
    history, completer = LineHistory(session), CommandCompleter(session.kb)
    return PromptSession(history=history, completer=completer, complete_in_thread=True, key_bindings=keys)


async def confirm(question: str) -> bool:
    """Ask for a yes; anything else, Ctrl-C included, is a no."""
    with contextlib.suppress(KeyboardInterrupt, EOFError):
        asked = FormattedText([("ansicyan bold", f"{printable(question)} [y/N] ")])
        return (await PromptSession[str]().prompt_async(asked)).strip().lower() in ("y", "yes")
    return False
