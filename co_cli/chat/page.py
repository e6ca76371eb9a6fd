"""Words onto a terminal, one after the other, in lines that fit: nothing that was written is ever written again.

So nothing flickers, an answer may be taller than the screen, and the terminal may be resized at any moment: each word
asks for the width that there is when it comes. The only thing that is taken away again is a short status on a line of
its own. What a model sends cannot steer the terminal: control characters are shown, not obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TextIO

from co_cli.chat.inline import Span
from co_cli.cli.terminal import columns, printable

CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "strike": "9",
    "code": "36",
    "link": "4",
    "heading": "1;35",
    "good": "32",
}
ERASE_LINE = "\r\x1b[K"
WIDE = "\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
PIECES = re.compile(rf"\n|[ \t]+|[{WIDE}]|[^\s{WIDE}]+|\s")
"""A line may end after each of these; Chinese, Japanese and Korean letters stand for themselves."""
LONGEST_STATUS = 38


class Page:
    """Where an answer is written. `width` is asked again for each word."""

    def __init__(self, stream: TextIO, width: Callable[[], int], colour: bool, erasable: bool) -> None:
        self.stream, self.width, self.colour, self.erasable = stream, width, colour, erasable
        self.column = 0
        self._indent: tuple[Span, ...] = ()
        self._word: list[Span] = []
        self._blank = False
        self._status = ""

    def begin(self, first: Iterable[Span] = (), following: Iterable[Span] = ()) -> None:
        """Begin a block: what stands before its first line, and before those that follow."""
        self.end_line()
        self._indent = tuple(following)
        for span in first:
            self._put(span)

    def words(self, span: Span) -> None:
        """Write the words that are complete; a word is complete when something follows it."""
        for piece in PIECES.findall(span.text):
            if piece == "\n":
                self._finish_word()
                self._new_line()
            elif piece.isspace():
                self._finish_word()
                self._blank = self.column > 0
            else:
                if self._word and columns(piece) > 1 and len(piece) == 1:
                    self._finish_word()
                if self._word and self._word[-1].styles == span.styles:
                    piece = self._word.pop().text + piece
                self._word.append(Span(piece, span.styles))
                if columns(piece) > 1 and len(piece) == 1:
                    self._finish_word()

    def end_line(self) -> None:
        """Write what is left, and stand at the beginning of a line."""
        self._finish_word()
        self._clear_status()
        if self.column:
            self._write("\n")
        self.column, self._blank, self._indent = 0, False, ()

    def line(self, *spans: Span) -> None:
        """A line of its own, as it is: the terminal breaks it, so that copying it gives it back whole."""
        self.end_line()
        self._write("".join(self.painted(span) for span in spans) + "\n")

    def raw(self, text: str) -> None:
        """Text that is painted already, with its line ends."""
        self.end_line()
        self._write(text)

    def status(self, text: str) -> None:
        """Say what is going on, until the next thing is written."""
        if self.erasable and not self.column and not self._word and text != self._status:
            self._clear_status()
            self.stream.write(self.painted(styled(text[:LONGEST_STATUS], "dim")))
            self._status = text
            self.flush()

    def clear_status(self) -> None:
        self._clear_status()
        self.flush()

    def flush(self) -> None:
        self.stream.flush()

    def painted(self, span: Span) -> str:
        text = printable(span.text)
        if not self.colour or not span.styles or not text.strip():
            return text
        codes = ";".join(CODES[style] for style in CODES if style in span.styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def _finish_word(self) -> None:
        if not self._word:
            return
        wide = sum(columns(span.text) for span in self._word)
        begun = sum(columns(span.text) for span in self._indent)
        if self.column > begun and self.column + self._blank + wide > self.width():
            self._new_line()
        elif self._blank:
            self._put(Span(" "))
        self._blank = False
        for span in self._word:
            self._put(span)
        self._word = []

    def _new_line(self) -> None:
        self._write("\n")
        self.column, self._blank = 0, False
        for span in self._indent:
            self._put(span)

    def _put(self, span: Span) -> None:
        self._write(self.painted(span))
        self.column += columns(span.text)

    def _clear_status(self) -> None:
        if self._status:
            self._status = ""
            self.stream.write(ERASE_LINE)

    def _write(self, text: str) -> None:
        self._clear_status()
        self.stream.write(text)


def styled(text: str, *styles: str) -> Span:
    """`styled("· ", "dim")`."""
    return Span(text, frozenset(styles))
