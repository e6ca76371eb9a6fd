"""The chat itself: a line from the person, then a slash command or an answer, until they leave.

The agent library takes a second to import, so it is imported while the person types the first question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any

from co_cli.chat.commands import COMMANDS, is_command, run_command, words_for
from co_cli.chat.models import HOW_TO_GET_ONE, UnusableModelError
from co_cli.chat.turn import Thinking, ToolCall, Turn, asked
from co_cli.chat.view import View
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.freshness import Freshener
from co_cli.tools import TOOLS
from co_cli.tools.fencing import plain_ref

if TYPE_CHECKING:
    from co_cli.chat.conversation import Conversation

FIRST_SYNC_SECONDS = 0.3


class Session:
    """One chat with one vault. Holds what the slash commands ask for."""

    def __init__(self, kb: KnowledgeBase, model: str | None, view: View, *, yes: bool, interactive: bool) -> None:
        self.kb, self.view = kb, view
        self.freshener = Freshener(kb)
        self.last: Turn | None = None
        self._model, self._yes, self._interactive = model, yes, interactive
        self._conversation: Conversation | None = None
        self._runner = asyncio.Runner()

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, question: str) -> Turn:
        """One answer, shown as it comes. Ctrl-C stops it. Raises UnusableModelError when there is no model to ask."""
        with quiet_keys():
            self.view.show(Thinking())
            try:
                turn = self._runner.run(_stoppable(self._talk().ask(question, self.view.show)))
            except BaseException:
                self.view.clear()
                raise
        self.view.done(turn)
        if not turn.problem:
            self.last = turn
        return turn

    async def approve(self, call: ToolCall) -> bool:
        """May the model do this? Only the person can say so, or `--yes`."""
        if self._yes or not self._interactive:
            return self._yes
        from co_cli.chat.prompt import confirm

        self.view.clear()
        return await confirm(f"{about(self.kb, call)}?")

    def close(self) -> None:
        self.freshener.close()
        self._runner.close()

    # -- what the slash commands need -------------------------------------------------------------------------------

    @property
    def model_name(self) -> str | None:
        return self._conversation.model_name if self._conversation else self._model

    def use_model(self, name: str) -> str:
        if self._conversation is None:
            self._conversation = self._begin(name)
        else:
            self._conversation.use(name)
        self._model = self._conversation.model_name
        return self._model

    def clear(self) -> None:
        self.last = None
        if self._conversation:
            self._conversation.clear()

    def _talk(self) -> Conversation:
        if self._conversation is None:
            if self._model is None:
                raise UnusableModelError("no model is configured: `ollama pull qwen3`, then /model ollama:qwen3")
            self._conversation = self._begin(self._model)
        return self._conversation

    def _begin(self, model: str) -> Conversation:
        os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
        from co_cli.chat.conversation import Conversation  # over a second of imports

        return Conversation(self.kb, model, self.approve)

    # -- the loop ---------------------------------------------------------------------------------------------------

    def talk(self, keep_history: bool) -> int:
        """Until the person leaves."""
        threading.Thread(target=self._warm_up, name="co-chat-imports", daemon=True).start()
        self._greet()
        self.freshener.watch()
        from co_cli.chat.prompt import Prompt, Words, open_history

        completer = Words(
            [(command.name, command.summary) for command in COMMANDS], lambda name: words_for(self.kb, name)
        )
        prompt = Prompt(open_history(self.kb.settings.data_dir, keep_history), completer)
        while True:
            try:
                line = prompt.line().strip()
                if line and not self.take(line):
                    return 0
            except KeyboardInterrupt:
                print("/quit or Ctrl-D ends the chat.")
            except EOFError:
                return 0

    def take(self, line: str) -> bool:
        """A slash command or a question; False ends the chat. A mistake is one line, and the chat goes on."""
        try:
            if is_command(line):
                return run_command(self, line)
            turn = self.ask(line)
            if turn.problem:
                _complain(turn.problem)
            print()
        except KnowledgeError as error:
            _complain(str(error))
        except KeyboardInterrupt:
            print("stopped")
        return True

    def _greet(self) -> None:
        screen = Screen()
        behind = self.freshener.ensure(FIRST_SYNC_SECONDS)
        with contextlib.suppress(KnowledgeError):  # an index that cannot be read says so when it is asked
            counted = "notes are being indexed" if behind else count_of(sum(self.kb.index.by_source().values()), "note")
            screen.wrapped(f"{counted} in {_short(self.kb.root)} · {self._model or 'no model'}", style="dim")
        if self._model is None:
            print(HOW_TO_GET_ONE, end="")
        screen.wrapped("/help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat.", style="dim")
        sys.stdout.flush()

    def _warm_up(self) -> None:
        """Import what the first question needs, while it is being typed."""
        if self._model is None:
            return
        from co_cli.chat.models import load_model

        with contextlib.suppress(UnusableModelError):  # it is told when the question is asked
            os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
            import co_cli.chat.conversation  # noqa: F401  # pyright: ignore[reportUnusedImport]

            load_model(self._model)


async def _stoppable(answer: Coroutine[Any, Any, Turn]) -> Turn:
    """Ctrl-C stops the answer. Pressing it again, while the answer winds up, changes nothing."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is None or threading.current_thread() is not threading.main_thread():
        return await answer
    pressed: list[int] = []

    def stop(number: int, _: object) -> None:
        if not pressed:
            loop.call_soon_threadsafe(task.cancel)
        pressed.append(number)

    before = signal.signal(signal.SIGINT, stop)
    try:
        return await answer
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def quiet_keys() -> Generator[None]:
    """What is typed during an answer is not echoed into it; the next prompt gets it."""
    if sys.platform == "win32" or sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    quiet = list(before)
    quiet[3] = int(quiet[3]) & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _complain(problem: str) -> None:
    Screen().wrapped(" ".join(problem.split()), style="red")


def about(kb: KnowledgeBase, call: ToolCall) -> str:
    """`Forget memory:blue-first (Blue takes traffic first)`: the note that the tool itself would take them to mean."""
    tool = next(tool for tool in TOOLS if tool.name == call.name)
    try:
        note = kb.note(plain_ref(tool.read_arguments(call.arguments)[0]["ref"]))
    except KnowledgeError:
        return asked(call)  # the tool says what is wrong with it, if it is allowed to
    return f"Forget {note.ref} ({note.title})" if call.name == "forget_memory" else f"{call.name} {note.ref}"


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return printable("~" + path[len(home) :] if path.startswith(home + os.sep) else path)
