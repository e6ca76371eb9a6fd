"""Print answers and tool calls: Markdown on a terminal, plain text to a pipe.

On a terminal, each block of Markdown is printed once, when it is complete, so you can scroll, copy and resize while the
model writes. Nothing that a model or a note says can control the terminal.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import Any, TextIO

from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown
from rich.status import Status
from rich.text import Text

from co_cli.cli.terminal import printable, terminal_width, use_colour

MAX_REQUEST, MAX_RESULT, MAX_REFS = 48, 160, 3
"""Characters of a request and of a result, and refs, that are shown of a tool call."""


class Output:
    """Prints the answer to `answers` as the model wrote it, and lines about tool calls to `remarks`."""

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        self._answers, self._remarks = answers, remarks
        self._ending = ""

    def status(self, text: str) -> None:
        """Show what is going on, where that is possible, until something is printed."""

    def text(self, piece: str) -> None:
        """The next piece of the answer."""
        self._ending = "" if piece.endswith("\n") else "\n"
        print(safe(piece), end="", file=self._answers, flush=True)

    def line(self, text: str) -> None:
        """A line about a tool call or about the notes in the prompt."""
        self.finish()
        print(printable(text), file=self._remarks)

    def finish(self) -> None:
        """Print the rest of the answer and remove the status."""
        print(end=self._ending, file=self._answers, flush=True)
        self._ending = ""


class TerminalOutput(Output):
    """Prints each block of Markdown with rich as soon as the block is complete."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, color_system="auto" if use_colour(stream) else None)
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self._status: Status | None = None
        self._text = ""

    def status(self, text: str) -> None:
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        self._status.update(Text(printable(text), style="dim"))

    def text(self, piece: str) -> None:
        self._text += piece
        if "\n" in piece:
            self._print_blocks(keep_last=True)
        self.status("writing …")

    def line(self, text: str) -> None:
        self._print_blocks()
        self._console.print(printable(text), style="dim", soft_wrap=True, markup=False, highlight=False, emoji=False)

    def finish(self) -> None:
        self._print_blocks()
        if self._status:
            self._status.stop()
        self._status = None

    def _print_blocks(self, keep_last: bool = False) -> None:
        """Print the blocks of the text so far; the last one may not be complete."""
        starts = [token.map[0] for token in self._parser.parse(self._text) if token.map and token.level == 0]
        lines = self._text.splitlines(keepends=True)
        blocks = ["".join(lines[start:end]) for start, end in pairwise([0, *starts[1:], len(lines)])]
        self._text = blocks.pop() if keep_last and blocks else ""
        for block in blocks:
            markdown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
            markdown.parsed = self._parser.parse(block)  # rich's own parser drops everything that looks like HTML
            self._print(markdown)

    def _print(self, markdown: Markdown) -> None:
        options = self._console.options.update(width=terminal_width())
        shown = Text()
        for parts in self._console.render_lines(markdown, options, pad=False):
            # escaped here, because the parser decodes entities such as `&#27;`, and `%1b` in links
            line = Text.assemble(*((safe(part.text), part.style or "") for part in parts))
            line.rstrip()  # rich fills lines with spaces, which are in the way when text is copied
            shown += line + "\n" if line or shown else line
        self._console.print(shown, soft_wrap=True)


def safe(text: str) -> str:
    """Escape control characters and direction marks, but keep the lines."""
    return "\n".join(printable(line) for line in text.replace("\r", "").split("\n"))


def summarise(name: str, arguments: dict[str, Any], text: str, result: dict[str, Any]) -> str:
    """`recall_memory "deploy" → found: memory:blue-pool-first`: what a tool was asked, and what it answered."""
    asked = next((arguments[key] for key in ("query", "q", "ref", "title", "content") if arguments.get(key)), "")
    request = f'{name} "{textwrap.shorten(str(asked), MAX_REQUEST, placeholder=" …")}"' if asked else name
    refs = [str(note["ref"]) for note in result.get("hits") or result.get("notes") or ()]
    found = f"{result.get('state', 'found')}: {' '.join(refs[:MAX_REFS])}{' …' if len(refs) > MAX_REFS else ''}"
    return f"{request} → {found if refs else textwrap.shorten(text, MAX_RESULT, placeholder=' …')}"
