"""Markdown that is still arriving, onto a page: word by word, each block in its shape, nothing ever redrawn.

A line is looked at until its kind is certain (a heading, an item, a fence, a table, plain text); then its words go out
as they come. Code goes out line by line, and a table when it is complete: its columns depend on all of its rows.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import NamedTuple

from co_cli.chat.inline import PLAIN, Span, Styles, read_inline
from co_cli.chat.page import Page, styled

UNDECIDED = re.compile(r"\s*(?:#{1,6}\s*|[-*+_=\s]+|\d{1,9}(?:[.)]\s*)?|[>\s]+|`{1,2}|~{1,2})?$")
"""The beginning of a line that may still become another kind of line."""
HEADING = re.compile(r" {0,3}(#{1,6})\s+")
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(?=\S)")
QUOTE = re.compile(r"\s{0,3}>\s?(?:>\s?)*")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(([^`\s]*)[^`]*)$")
FENCE_BEGUN = re.compile(r"\s*(?:`{3,}|~{3,})")
RULE = re.compile(r"\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,}\s*)$")
SEPARATOR = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
CELL = re.compile(r"(?<!\\)\|")
CODE_CONTEXT = 100
"""Lines of code that are looked at together to colour the last one."""


class Code(NamedTuple):
    """An open fence."""

    fence: str
    language: str
    indent: int
    lines: list[str]


class MarkdownStream:
    """`feed` it as the answer comes, then `finish`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._line = ""
        """The line that is arriving, as far as it was not taken into the flow."""
        self._decided = False
        """Is the beginning of this line in the flow already?"""
        self._flow: str | None = None
        """The text of the open paragraph, heading, item or quote; None when there is none."""
        self._read = 0
        self._styles: Styles = PLAIN
        self._items: list[int] = []
        """Where the open list items stand, outermost first."""
        self._code: Code | None = None
        self._table: list[str] = []
        self._gap = False
        self._begun = False

    def feed(self, text: str) -> None:
        for part in re.split(r"(\n)", text.replace("\r", "")):
            if part == "\n":
                self._end_of_line()
            elif part:
                self._line += part
                self._arriving()
        self.page.flush()

    def finish(self) -> None:
        """No more text: everything that was held back goes out."""
        if self._line or self._decided:
            self._end_of_line()
        self._close_flow()
        self._close_table()
        if self._code:
            self._close_code()
        self._items, self._gap, self._begun = [], False, False
        self.page.end_line()
        self.page.flush()

    # -- lines ------------------------------------------------------------------------------------------------------

    def _arriving(self) -> None:
        """As much of the line as is certain goes into the flow."""
        if self._decided:
            self._extend(self._line)
            self._line = ""
        elif not (self._code or self._is_table(self._line) or self._may_change(self._line)):
            self._begin(self._line)
            self._line, self._decided = "", True
            self._show(final=False)

    def _end_of_line(self) -> None:
        line, self._line = self._line, ""
        if self._decided:
            self._extend(line)
            self._decided = False
        elif self._code:
            self._code_line(line)
        elif self._is_table(line):
            self._close_flow()
            self._table.append(line)
        else:
            self._whole_line(line)

    def _whole_line(self, line: str) -> None:
        self._close_table()
        fence = FENCE.match(line)
        if not line.strip():
            self._close_flow()
            self._gap = self._begun
        elif fence:
            self._open_code(fence)
        elif RULE.match(line):
            self._close_flow()
            self._block()
            self.page.line(styled("─" * min(self.page.width(), 40) if self._unicode() else "-" * 40, "dim"))
        else:
            self._begin(line)
            self._show(final=False)

    @staticmethod
    def _may_change(line: str) -> bool:
        return bool(UNDECIDED.match(line) or FENCE_BEGUN.match(line))

    @staticmethod
    def _is_table(line: str) -> bool:
        return line.lstrip().startswith("|")

    # -- paragraphs, headings, items, quotes ------------------------------------------------------------------------

    def _begin(self, line: str) -> None:
        """The beginning of a line, whose kind is certain."""
        self._close_table()
        heading, item, quote = HEADING.match(line), ITEM.match(line), QUOTE.match(line)
        if heading:
            self._open_flow(frozenset({"heading"}))
            self._items = []
            self.page.begin()
            self._flow = line[heading.end() :]
        elif item:
            self._open_flow(PLAIN)
            self._begin_item(len(item[1].expandtabs(4)), item[2])
            self._flow = line[item.end() :]
        elif quote:
            words = line[quote.end() :]
            if self._flow is not None and "quote" in self._styles:
                self._extend(" " + words)
                return
            self._open_flow(frozenset({"quote", "italic"}))
            bar = (styled("│ " if self._unicode() else "> ", "dim"),)
            self.page.begin(bar, bar)
            self._flow = words
        elif self._flow is not None and "heading" not in self._styles:
            self._extend("\n" if self._flow.endswith(("  ", "\\")) else " ")
            self._extend(line.lstrip(" \t"))
        else:
            self._open_flow(PLAIN)
            inside = len(line) - len(line.lstrip(" "))
            if inside < 2:
                self._items = []
            blank = (Span("  " * len(self._items)),) if self._items else ()
            self.page.begin(blank, blank)
            self._flow = line.lstrip()

    def _begin_item(self, indent: int, mark: str) -> None:
        while self._items and self._items[-1] > indent:
            self._items.pop()
        if not self._items or self._items[-1] < indent:
            self._items.append(indent)
        margin = "  " * (len(self._items) - 1)
        bullet = mark if mark[0].isdigit() else "•" if self._unicode() else "-"
        self.page.begin((Span(margin), styled(bullet + " ", "code")), (Span(margin + " " * (len(bullet) + 1)),))

    def _open_flow(self, styles: Styles) -> None:
        self._close_flow()
        self._block()
        self._flow, self._read, self._styles = "", 0, styles

    def _extend(self, text: str) -> None:
        if self._flow is not None:
            self._flow += text
            self._show(final=False)

    def _show(self, final: bool) -> None:
        if self._flow is None:
            return
        read = read_inline(self._flow, final, self._styles - {"quote"}, self._read)
        self._read = read.consumed
        for span in read.spans:
            self.page.words(span)

    def _close_flow(self) -> None:
        if self._flow is not None:
            self._flow = self._flow.rstrip(" \t#" if "heading" in self._styles else " \t")
            self._show(final=True)
            self.page.end_line()
            self._flow = None

    def _block(self) -> None:
        """One empty line before a block that one preceded in the source."""
        if self._gap:
            self.page.line()
        self._gap, self._begun = False, True

    # -- code -------------------------------------------------------------------------------------------------------

    def _open_code(self, fence: re.Match[str]) -> None:
        self._close_flow()
        self._block()
        self._code = Code(fence[2], fence[4], len(fence[1]), [])
        self.page.line(styled(f"```{fence[3].rstrip()}", "dim"))

    def _code_line(self, line: str) -> None:
        assert self._code is not None
        if line.strip() and set(line.strip()) == {self._code.fence[0]} and len(line.strip()) >= len(self._code.fence):
            self._close_code()
            return
        indent = min(self._code.indent, len(line) - len(line.lstrip(" ")))
        self._code.lines.append(line[indent:])
        del self._code.lines[:-CODE_CONTEXT]
        self.page.raw(self._coloured(self._code) + "\n")

    def _coloured(self, code: Code) -> str:
        """The last line, in the colours of its language."""
        from co_cli.cli.terminal import printable

        if not self.page.colour or not code.language:
            return printable(code.lines[-1])
        from rich.console import Console
        from rich.syntax import Syntax

        lines = [printable(line) for line in code.lines]
        text = Syntax("", code.language, theme="ansi_dark", background_color="default").highlight("\n".join(lines))
        text.rstrip()
        shown = text.split("\n")
        last = shown[-1] if len(shown) == len(lines) else None
        if last is None:
            return lines[-1]
        out = StringIO()
        Console(file=out, force_terminal=True, color_system="standard", width=10_000).print(
            last, end="", soft_wrap=True
        )
        return out.getvalue()

    def _close_code(self) -> None:
        self.page.line(styled("```", "dim"))
        self._code = None

    # -- tables -----------------------------------------------------------------------------------------------------

    def _close_table(self) -> None:
        lines, self._table = self._table, []
        if not lines:
            return
        self._block()
        if len(lines) < 2 or not SEPARATOR.match(lines[1]):
            for line in lines:
                self.page.line(Span(line))
            return
        rows = [_cells(line) for line in lines]
        self.page.raw(self._drawn_table(rows[0], rows[2:], _sides(rows[1])))

    def _drawn_table(self, head: list[str], rows: list[list[str]], sides: list[str]) -> str:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        def cell(words: str) -> Text:
            text = Text(style="")
            for span in read_inline(words, True).spans:
                styles = [{"code": "cyan", "link": "underline"}.get(style, style) for style in sorted(span.styles)]
                text.append(span.text, " ".join(styles))
            return text

        table = Table(box=box.SIMPLE_HEAD if self._unicode() else box.ASCII, pad_edge=False, show_edge=False)
        for place, words in enumerate(head):
            side = sides[place] if place < len(sides) else "left"
            table.add_column(cell(words), justify=side, overflow="fold")  # pyright: ignore[reportArgumentType]
        for row in rows:
            table.add_row(*(cell(words) for words in (row + [""] * len(head))[: len(head)]))
        out = StringIO()
        system = "standard" if self.page.colour else None
        console = Console(file=out, force_terminal=self.page.colour, color_system=system, width=self.page.width())
        console.print(table)
        return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").split("\n")) + "\n"

    def _unicode(self) -> bool:
        return (self.page.stream.encoding or "utf-8").lower().replace("-", "") == "utf8"


def _cells(line: str) -> list[str]:
    from co_cli.cli.terminal import printable

    inside = line.strip().removeprefix("|").removesuffix("|")
    return [printable(part.strip().replace("\\|", "|")) for part in CELL.split(inside)]


def _sides(separators: list[str]) -> list[str]:
    return [
        "center" if mark.startswith(":") and mark.endswith(":") else "right" if mark.endswith(":") else "left"
        for mark in separators
    ]
