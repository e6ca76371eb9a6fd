"""What a person types into lines: history, completion, several lines in one question.

Enter sends; Alt-Enter, or a backslash at the end of the line, begins another line. Ctrl-C empties the line, and on an
empty one says how to leave. History is a file that only its owner can read; a line that begins with a space stays
out of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from co_cli.cli.terminal import printable
from co_cli.typed import whole

HISTORY = "chat-history"
STYLE = Style.from_dict({"prompt": "ansicyan bold", "continuation": "ansibrightblack"})


class Words(Completer):
    """Completes slash commands, and after one of them what it takes: `words(command)` says which there are."""

    def __init__(self, commands: Sequence[tuple[str, str]], words: Callable[[str], Sequence[str]]) -> None:
        self._commands, self._words = commands, words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in line:
            return
        name, blank, typed = line.partition(" ")
        if not blank:
            for command, summary in self._commands:
                if command.startswith(name):
                    yield Completion(command, -len(name), display_meta=summary)
            return
        for word in self._words(name):
            bare = word.partition(":")[2]
            if word.startswith(typed) or (typed and bare.startswith(typed)):
                yield Completion(word, -len(typed), display=printable(word))


class PrivateHistory(FileHistory):
    """Lines of earlier chats, in a file of mode 0600; a line that begins with a space is not kept."""

    def __init__(self, path: str) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        if os.name != "nt":
            os.chmod(path, 0o600)
        super().__init__(path)

    def append_string(self, string: str) -> None:
        if not string.startswith((" ", "\t")):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        try:
            super().store_string(whole(string))
        except OSError:
            self.store_string = lambda string: None  # a full disk: this chat goes on, remembering its own lines


class UnwrittenHistory(InMemoryHistory):
    """The lines of this chat only."""

    def append_string(self, string: str) -> None:
        if not string.startswith((" ", "\t")):
            super().append_string(string)


def open_history(data_dir: str, keep: bool) -> History:
    """The history file of the data folder, or none that outlives the chat."""
    if not keep:
        return UnwrittenHistory()
    try:
        os.makedirs(data_dir, exist_ok=True)
        return PrivateHistory(os.path.join(data_dir, HISTORY))
    except OSError:
        return UnwrittenHistory()  # a folder that cannot be written to is no reason not to talk


class Prompt:
    """Asks the person for the next line."""

    def __init__(self, history: History, completer: Completer, **session: Any) -> None:
        slashed = Condition(lambda: self._session.default_buffer.text.startswith("/"))
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=completer,
            complete_while_typing=slashed,
            complete_in_thread=True,
            multiline=True,
            prompt_continuation=FormattedText([("class:continuation", "… ")]),
            key_bindings=_keys(),
            reserve_space_for_menu=5,
            style=STYLE,
            include_default_pygments_style=False,
            **session,
        )

    def line(self, mark: str = "› ") -> str:
        """What was typed. Raises KeyboardInterrupt for Ctrl-C on an empty line, EOFError for Ctrl-D."""
        return whole(self._session.prompt(FormattedText([("class:prompt", mark)])))


async def confirm(question: str, **session: Any) -> bool:
    """Ask for a yes; anything else, Ctrl-C included, is a no."""
    asking: PromptSession[str] = PromptSession(style=STYLE, include_default_pygments_style=False, **session)
    try:
        said = await asking.prompt_async(FormattedText([("class:prompt", f"{printable(question)} [y/N] ")]))
    except (KeyboardInterrupt, EOFError):
        return False
    return said.strip().lower() in ("y", "yes")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\") and not buffer.document.current_line_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys
