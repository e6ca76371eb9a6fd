"""Events of an answer onto the screen: Markdown as it comes on a terminal, plain text into a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from co_cli.chat.inline import Span
from co_cli.chat.markdown import MarkdownStream
from co_cli.chat.page import Page, styled
from co_cli.chat.turn import (
    Beside,
    CallBegan,
    CallEnded,
    Event,
    TextCame,
    Thinking,
    ToolCall,
    Turn,
    answered,
    asked,
    beside,
)
from co_cli.cli.terminal import printable, terminal_width, use_colour


class View(Protocol):
    """Shows one answer after the other."""

    def show(self, event: Event) -> None: ...
    def clear(self) -> None: ...
    def done(self, turn: Turn) -> None: ...


def can_erase(stream: TextIO) -> bool:
    """May a line be taken back? Not on a terminal that only prints."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


class TerminalView:
    """Streams Markdown; one dim line a tool call; a status while nothing comes."""

    def __init__(
        self,
        stream: TextIO | None = None,
        width: Callable[[], int] = terminal_width,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        out: TextIO = stream or sys.stdout
        self.page = Page(out, width, use_colour(out), can_erase(out))
        self._markdown = MarkdownStream(self.page)
        self._clock, self._began = clock, 0.0
        self._spoke = self._called = False

    def show(self, event: Event) -> None:
        match event:
            case Thinking():
                self._began = self._began or self._clock()
                if not self._spoke:
                    self.page.status(f"thinking{self._seconds()} …")
            case TextCame(text):
                if self._called:
                    self.page.line()
                    self._called = False
                self._spoke = True
                self._markdown.feed(text)
            case Beside(refs):
                self.page.line(styled(f"· {beside(refs)}", "dim"))
                self._called = True
            case CallBegan(call):
                self._end_text()
                self.page.status(f"· {asked(call)} …")
            case CallEnded(call):
                self._end_text()
                self.page.line(*_call_line(call))
                self.page.flush()
                self._called = True

    def done(self, turn: Turn) -> None:
        self._end_text()
        if turn.stopped:
            self.page.line(styled("· stopped", "dim"))
        self.page.clear_status()
        self._began, self._called = 0.0, False

    def clear(self) -> None:
        """Make room for a question, or for what went wrong."""
        self._end_text()
        self.page.clear_status()

    def _end_text(self) -> None:
        self._markdown.finish()
        self._spoke = False

    def _seconds(self) -> str:
        passed = self._clock() - self._began
        return f" for {passed:.0f} s" if passed >= 2 else ""


class PlainView:
    """The answer on standard output, as the model wrote it; what tools did on standard error."""

    def __init__(self) -> None:
        self._at_line_start = True

    def show(self, event: Event) -> None:
        match event:
            case TextCame(text):
                shown = "\n".join(printable(line) for line in text.replace("\r", "").split("\n"))
                self._at_line_start = shown.endswith("\n")
                sys.stdout.write(shown)
                sys.stdout.flush()
            case Beside(refs):
                print(printable(f"· {beside(refs)}"), file=sys.stderr)
            case CallEnded(call):
                self._end_line()
                print(printable("".join(span.text for span in _call_line(call))), file=sys.stderr)
            case _:
                pass

    def clear(self) -> None:
        """There is no status to take away."""

    def done(self, turn: Turn) -> None:
        self._end_line()

    def _end_line(self) -> None:
        if not self._at_line_start:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._at_line_start = True


class SilentView:
    """Nothing, until the turn is over."""

    def show(self, event: Event) -> None:
        """For `--json`."""

    def clear(self) -> None:
        """For `--json`."""

    def done(self, turn: Turn) -> None:
        """For `--json`."""


def _call_line(call: ToolCall) -> tuple[Span, ...]:
    """`· recall_memory "deploy" → 3 notes, memory:blue-pool-first`"""
    wrote = call.outcome == "success" and ("outcome" in call.data or "trash" in call.data)
    said = styled(answered(call), "good" if wrote else "dim")
    return styled(f"· {asked(call)} → ", "dim"), said
