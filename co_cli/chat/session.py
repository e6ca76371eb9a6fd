"""The chat loop: read a line, run a slash command or answer a question, until the user leaves.

pydantic-ai takes a second to import, so it is imported while the user types the first question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from co_cli.chat.commands import is_command, run_command
from co_cli.chat.models import HOW_TO_GET_ONE, UnusableModelError, load_model
from co_cli.chat.screen import Output, request_summary
from co_cli.cli.terminal import Screen, count_of
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.freshness import Freshener
from co_cli.tools import TOOLS
from co_cli.tools.fencing import plain_ref

if TYPE_CHECKING:
    from co_cli.chat.conversation import Conversation, ToolCall, Turn

FIRST_SYNC_SECONDS = 0.3


class Session:
    """One chat with one vault."""

    def __init__(self, kb: KnowledgeBase, model: str | None, output: Output, *, yes: bool, interactive: bool) -> None:
        self.kb, self.model, self.output = kb, model, output
        self.freshener = Freshener(kb)
        self.last: Turn | None = None
        self.conversation: Conversation | None = None
        self._yes, self._interactive = yes, interactive
        self._runner = asyncio.Runner()
        os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")

    def close(self) -> None:
        self.freshener.close()
        self._runner.close()

    def ask(self, question: str) -> Turn:
        """Print the answer as it comes. Ctrl-C stops it. Raises UnusableModelError if there is no usable model."""
        if self.model is None:
            raise UnusableModelError("no model is configured: `ollama pull qwen3`, then /model ollama:qwen3")
        self.output.status("thinking …")
        try:
            conversation = self.conversation or self.use_model(self.model)
            turn = self._runner.run(_stoppable(conversation.ask(question, self.output)))
        finally:
            self.output.finish()
        if not turn.problem:
            self.last = turn
        return turn

    def use_model(self, name: str) -> Conversation:
        """Switch to this model. If it raises UnusableModelError, the previous model stays."""
        if self.conversation:
            self.conversation.use(name)
        else:
            from co_cli.chat.conversation import Conversation  # over a second of imports

            self.conversation = Conversation(self.kb, name, self.approve)
        self.model = self.conversation.model_name
        return self.conversation

    def clear(self) -> None:
        """Start a new conversation."""
        self.last = None
        if self.conversation:
            self.conversation.messages = []

    async def approve(self, call: ToolCall) -> bool:
        """Ask the user, unless `--yes` has decided or there is nobody to ask."""
        if self._yes or not self._interactive:
            return self._yes
        from co_cli.chat.prompt import confirm

        self.output.finish()
        return await confirm(approval_question(self.kb, call))

    def talk(self, keep_history: bool) -> int:
        """Run until the user leaves."""
        threading.Thread(target=self._import_early, name="co-chat-imports", daemon=True).start()
        self._greet()
        self.freshener.watch()
        from co_cli.chat.prompt import CommandCompleter, LineHistory, new_prompt, read_line

        prompt = new_prompt(LineHistory(self.kb.settings.data_dir, keep_history), CommandCompleter(self.kb))
        while True:
            try:
                line = read_line(prompt).strip()
                if line and not self.handle(line):
                    return 0
            except KeyboardInterrupt:
                print("/quit or Ctrl-D ends the chat.")
            except EOFError:
                return 0

    def handle(self, line: str) -> bool:
        """Run a slash command or answer a question. False ends the chat; an error does not."""
        try:
            if is_command(line):
                return run_command(self, line)
            problem = self.ask(line).problem
            if problem:
                _complain(problem)
            print()
        except KnowledgeError as error:
            _complain(str(error))
        except KeyboardInterrupt:
            print("stopped")
        return True

    def _greet(self) -> None:
        screen = Screen()
        behind = self.freshener.ensure(FIRST_SYNC_SECONDS)
        with contextlib.suppress(KnowledgeError):  # the first search reports an index that cannot be read
            count = "notes are being indexed" if behind else count_of(sum(self.kb.index.by_source().values()), "note")
            root = self.kb.root.replace(os.path.expanduser("~") + os.sep, "~" + os.sep)
            screen.wrapped(f"{count} in {root} · {self.model or 'no model'}", style="dim")
        if self.model is None:
            print(HOW_TO_GET_ONE, end="")
        screen.wrapped("/help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat.", style="dim")

    def _import_early(self) -> None:
        if self.model is not None:
            with contextlib.suppress(UnusableModelError):  # reported when a question is asked
                load_model(self.model)
                import co_cli.chat.conversation  # noqa: F401  # pyright: ignore[reportUnusedImport]


def approval_question(kb: KnowledgeBase, call: ToolCall) -> str:
    """`Forget memory:blue-first (Blue takes traffic first)?`, about the note that the tool itself would choose."""
    tool = next(tool for tool in TOOLS if tool.name == call.name)
    try:
        note = kb.note(plain_ref(tool.read_arguments(call.arguments)[0]["ref"]))
    except KnowledgeError:
        return f"{request_summary(call)}?"  # the tool reports what is wrong with it
    return f"Forget {note.ref} ({note.title})?"


async def _stoppable(answer: Coroutine[Any, Any, Turn]) -> Turn:
    """Let Ctrl-C cancel the answer; pressing it again changes nothing."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is None or threading.current_thread() is not threading.main_thread():
        return await answer

    def stop(*_: object) -> None:
        if not task.cancelling():
            loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        return await answer
    finally:
        signal.signal(signal.SIGINT, before)


def _complain(problem: str) -> None:
    Screen().wrapped(" ".join(problem.split()), style="red")
