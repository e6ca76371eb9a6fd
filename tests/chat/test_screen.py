"""Answers on a terminal: each block of Markdown is printed when it is complete, and nothing controls the terminal."""

from __future__ import annotations

import io
import re

import pytest

from co_cli.chat.screen import TerminalOutput
from tests.safety.hostile import HOSTILE, OBEYED

ANSWER = """\
They go through the **blue pool** first; see [the runbook](https://example.org/run), List<String> and snake_case.

1. First

   more about it

       indented code

2. Second

```python
def f():

    return 1
```
"""
PRINTED = """\
They go through the blue pool first; see the runbook (https://example.org/run),
List<String> and snake_case.

 1 First
   more about it

    indented code

 2 Second

 def f():

     return 1
"""


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # no status line
    return FakeTerminal()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_blocks_do_not_depend_on_how_the_text_is_cut_into_pieces(screen: FakeTerminal, size: int) -> None:
    output = TerminalOutput(screen)
    for start in range(0, len(ANSWER), size):
        output.text(ANSWER[start : start + size])
    output.finish()

    assert screen.getvalue() == PRINTED


def test_a_block_is_printed_as_soon_as_the_next_one_begins(screen: FakeTerminal) -> None:
    output = TerminalOutput(screen)
    output.text("First paragraph.\n\nSec")
    assert screen.getvalue().strip() == "First paragraph."
    output.text("ond.")
    output.line("· a tool")
    output.finish()
    assert screen.getvalue() == "First paragraph.\n\nSecond.\n· a tool\n"


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE.values(),
        "<http://x.example/%1b[2J%1b]0;owned%07>",
        "&#x1b;[2J &#27;[2J &#x202e; &#13;",
        "```\x1b]0;owned\x07\n\x1b[2J\n```",
        "| \x1b[2J |\n|-|\n| \x9b2J |",
        "[a](http://x/\x1b[2J) ![b](<\x1b[2J>)",
    ],
)
def test_nothing_in_an_answer_controls_the_terminal(
    screen: FakeTerminal, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    output = TerminalOutput(screen)
    output.line(text)
    output.status(text)
    output.text(text)
    output.finish()

    ours = re.compile(r"\x1b\[(?:[0-9;]*m|2K|1A|\?25[lh])|\r")
    assert OBEYED.search(ours.sub("", screen.getvalue())) is None
