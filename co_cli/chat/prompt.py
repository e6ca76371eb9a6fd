"""Read what the user types, with history, completion and questions of several lines.

Enter sends, Alt-Enter starts another line. A line that begins with a space is not kept in the history.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from co_cli.chat.commands import COMMANDS, arguments_for
from co_cli.cli.terminal import printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import to_utf8

HISTORY = "chat-history"


class CommandCompleter(Completer):
    """Completes slash commands, and the refs or tags that follow them."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in line:
            return
        name, blank, typed = line.partition(" ")
        if not blank:
            for command in COMMANDS:
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), display_meta=command.summary)
            return
        for word in arguments_for(self._kb, name):
            if word.startswith(typed) or word.partition(":")[2].startswith(typed):
                yield Completion(word, -len(typed), display=printable(word))


class LineHistory(FileHistory):
    """What was typed, in a file of mode 0600; nowhere if it should not or cannot be kept."""

    def __init__(self, data_dir: str, keep: bool) -> None:
        path = os.path.join(data_dir, HISTORY)
        try:
            if keep:
                os.makedirs(data_dir, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
                os.chmod(path, 0o600)
        except OSError:
            keep = False
        super().__init__(path if keep else os.devnull)

    def append_string(self, string: str) -> None:
        if not string.startswith((" ", "\t")):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the chat
            super().store_string(to_utf8(string))


def new_prompt(history: LineHistory, completer: Completer, **session: Any) -> PromptSession[str]:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    prompt: PromptSession[str] = PromptSession(
        history=history,
        completer=completer,
        complete_while_typing=Condition(lambda: prompt.default_buffer.text.startswith("/")),
        complete_in_thread=True,
        prompt_continuation="… ",
        key_bindings=keys,
        reserve_space_for_menu=5,
        **session,
    )
    return prompt


def read_line(prompt: PromptSession[str]) -> str:
    """What was typed. Raises KeyboardInterrupt for Ctrl-C, EOFError for Ctrl-D on an empty line."""
    return to_utf8(prompt.prompt(FormattedText([("ansicyan bold", "› ")])))


async def confirm(question: str, **session: Any) -> bool:
    """Ask for a yes; anything else, Ctrl-C included, is a no."""
    asking: PromptSession[str] = PromptSession(**session)
    try:
        answer = await asking.prompt_async(FormattedText([("ansicyan bold", f"{printable(question)} [y/N] ")]))
    except (KeyboardInterrupt, EOFError):
        return False
    return answer.strip().lower() in ("y", "yes")
