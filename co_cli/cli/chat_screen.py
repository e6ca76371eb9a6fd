"""Print answers and tool calls: Markdown on a terminal, plain text to a pipe.

On a terminal, each block of Markdown is printed once, when it is complete, so you can scroll, copy and resize while the
model writes. Nothing that a model or a note says can control the terminal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TextIO

from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from co_cli.cli.terminal import printable, terminal_width, use_colour


class Output:
    """Prints to a terminal, or without `markdown` to a pipe: lines about tool calls go to `remarks` then."""

    def __init__(self, answers: TextIO, remarks: TextIO, markdown: bool) -> None:
        self._answers, self._remarks, self._markdown = answers, remarks, markdown
        self._console = Console(file=answers, color_system="auto" if use_colour(answers) else None)
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self._status = self._console.status("")
        self._text = ""  # what is not printed yet; in a pipe, the last piece

    def status(self, text: str) -> None:
        """Show what is going on, on a terminal, until the answer is finished."""
        if self._markdown:
            self._status.update(Text(printable(text), style="dim"))
            self._status.start()

    def text(self, piece: str) -> None:
        """The next piece of the answer."""
        self._text = self._text + piece if self._markdown else piece
        if not self._markdown:
            print(safe(piece), end="", file=self._answers, flush=True)
        elif "\n" in piece:
            self._print_blocks(keep_last=True)
        self.status("writing …")

    def line(self, text: str) -> None:
        """A line about a tool call or about the notes in the prompt."""
        self._print_blocks()
        if self._markdown:
            self._console.print(Text(printable(text), style="dim"), soft_wrap=True)
        else:
            print(printable(text), file=self._remarks)

    def finish(self) -> None:
        """Print the rest of the answer and remove the status."""
        self._print_blocks()
        self._status.stop()

    def _print_blocks(self, keep_last: bool = False) -> None:
        """Print the blocks of the text so far, or end the last line in a pipe. The last block may not be complete."""
        if not self._markdown:
            print(end="\n" if self._text and not self._text.endswith("\n") else "", file=self._answers, flush=True)
            self._text = ""
            return
        starts = [token.map[0] for token in self._parser.parse(self._text) if token.map and token.level == 0]
        lines = self._text.splitlines(keepends=True)
        blocks = ["".join(lines[start:end]) for start, end in pairwise([0, *starts[1:], len(lines)])]
        self._text = blocks.pop() if keep_last and blocks else ""
        for block in filter(None, blocks):
            markdown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
            markdown.parsed = self._parser.parse(block)  # rich's own parser drops everything that looks like HTML
            shown = Text()
            options = self._console.options.update(width=terminal_width())
            for parts in self._console.render_lines(markdown, options, pad=False):
                # escaped here, because the parser decodes entities such as `&#27;`, and `%1b` in links
                line = Text.assemble(*((safe(part.text), part.style or "") for part in parts))
                line.rstrip()  # rich fills lines with spaces, which are in the way when text is copied
                shown += line + "\n" if line or shown else line
            self._console.print(shown, soft_wrap=True)


def safe(text: str) -> str:
    """Escape control characters and direction marks, but keep the lines."""
    return "\n".join(printable(line) for line in text.replace("\r", "").split("\n"))
