"""Answers on a terminal: each block of Markdown is printed when it is complete, and nothing controls the terminal."""

from __future__ import annotations

import re

import pytest

from co_cli.cli.chat_screen import Output
from tests.safety.hostile import HOSTILE, OBEYED, FakeTerminal

ANSWER = """\
They go through the **blue pool** first; see [the runbook](https://example.org/run), List<String> and snake_case.

1. First

   more about it

2. Second

```python
def f():

    return 1
```
"""
HOSTILE_MARKDOWN = (
    *HOSTILE.values(),
    "<http://x.example/%1b[2J%1b]0;owned%07>",
    "&#x1b;[2J &#27;[2J &#x202e; &#13;",
    "```\x1b]0;owned\x07\n\x1b[2J\n```",
    "| \x1b[2J |\n|-|\n| \x9b2J |",
    "[a](http://x/\x1b[2J) ![b](<\x1b[2J>)",
)


def printed(text: str, size: int = 1000) -> str:
    """What a terminal shows of a text that arrives in pieces."""
    screen = FakeTerminal()
    output = Output(screen, screen, markdown=True)
    for start in range(0, len(text), size):
        output.text(text[start : start + size])
    output.finish()
    return screen.getvalue()


def test_what_is_printed_does_not_depend_on_how_the_text_is_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # no status line
    whole = printed(ANSWER)

    assert "blue pool first; see the runbook (https://example.org/run)," in whole
    assert "List<String> and snake_case." in whole
    assert max(map(len, whole.splitlines())) <= 80
    assert [printed(ANSWER, size) for size in (1, 7)] == [whole, whole]


def test_nothing_in_an_answer_controls_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ours = re.compile(r"\x1b\[(?:[0-9;]*m|2K|1A|\?25[lh])|\r")
    for text in HOSTILE_MARKDOWN:
        screen = FakeTerminal()
        output = Output(screen, screen, markdown=True)
        output.line(text)
        output.status(text)
        output.text(text)
        output.finish()

        assert OBEYED.search(ours.sub("", screen.getvalue())) is None, text
