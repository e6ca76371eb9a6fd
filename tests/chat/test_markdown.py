"""Markdown is shown as it comes: word by word, each block in its shape, and never redrawn."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.chat.markdown import MarkdownStream
from co_cli.chat.page import Page
from co_cli.cli.terminal import columns

ANSWER = """\
# Deploying the *blue* pool

Deploys go through the **blue pool first**; `green` follows after ten quiet minutes. See
[the runbook](https://example.org/run) or <https://example.org>. A snake_case_name, 2 * 3 * 4 and *args stay.

1. First
2. Second, which is long enough to be broken at the end of its line because it has so many words
   - nested `one`
   - nested two
10. Tenth

> quoted words that go on
> and on

```python
def f(x):
    \"\"\"two
    lines\"\"\"
```

| name | value |
| --- | ---: |
| a **b** | 1 |
| c | 22 |

---
- [ ] open
- done!
"""
PLAIN = """\
Deploying the blue pool

Deploys go through the blue pool first; green follows after ten quiet minutes.
See the runbook (https://example.org/run) or https://example.org. A
snake_case_name, 2 * 3 * 4 and *args stay.

1. First
2. Second, which is long enough to be broken at the end of its line because it
   has so many words
  • nested one
  • nested two
10. Tenth

│ quoted words that go on and on

```python
def f(x):
    \"\"\"two
    lines\"\"\"
```

name   value
────────────
a b        1
c         22

────────────────────────────────────────
• [ ] open
• done!
"""


class Screen:
    """A page of 80 columns in memory."""

    def __init__(self, width: int = 80, colour: bool = False, erasable: bool = False) -> None:
        self.out = io.StringIO()
        self.width = width
        self.page = Page(self.out, lambda: self.width, colour, erasable)
        self.stream = MarkdownStream(self.page)

    def shown(self) -> str:
        return self.out.getvalue()

    def all_of(self, *pieces: str) -> str:
        for piece in pieces:
            self.stream.feed(piece)
        self.stream.finish()
        return self.shown()


def test_every_kind_of_block_has_its_shape() -> None:
    assert Screen().all_of(ANSWER) == PLAIN


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_it_does_not_matter_how_the_text_is_cut_into_pieces(size: int) -> None:
    pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]

    assert Screen().all_of(*pieces) == PLAIN


PIECES = "* ** _ ` ``` ~~ | [ ]( ) ! < https://x.y> \\ word 日本 --- === é".split()
PIECES += ["\n", "\n\n", "- ", "1. ", "10) ", "> ", "# ", "| a | b |\n", "|-|-|\n", " ", "  ", "\t", "\x1b[2J"]
MARKDOWNISH = st.lists(
    st.sampled_from(PIECES),
    max_size=40,
).map("".join)


@given(MARKDOWNISH, st.lists(st.integers(1, 9), min_size=1, max_size=8))
@example("***a**", [1])
@example("`a``", [1])
@example("*\n`\t*", [1])
@example("| a |\n| - |\nb", [3])
def test_any_text_in_any_pieces_gives_the_same_page(text: str, sizes: list[int]) -> None:
    pieces: list[str] = []
    start = 0
    while start < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[start : start + size])
        start += size

    assert Screen().all_of(*pieces) == Screen().all_of(text)


@given(MARKDOWNISH)
@example("```- word")
def test_no_word_is_lost_and_no_escape_sequence_gets_through(text: str) -> None:
    shown = Screen(width=40).all_of(text)

    assert shown.count("word") + shown.count("日") == text.count("word") + text.count("日")
    assert "\x1b" not in shown


@given(st.lists(st.sampled_from(["short", "a-longer-word", "日本語", "x", "**bold**"]), min_size=1).map(" ".join))
def test_no_line_is_wider_than_the_page(text: str) -> None:
    assert max(columns(line) for line in Screen(width=30).all_of(text).split("\n")) <= 30


def test_words_are_shown_before_the_paragraph_ends() -> None:
    screen = Screen()
    screen.stream.feed("Deploys go through the **blue")

    assert screen.shown() == "Deploys go through the"

    screen.stream.feed(" pool** first")
    assert screen.shown() == "Deploys go through the blue pool"


def test_nothing_that_was_written_is_written_again() -> None:
    screen, seen = Screen(colour=True), ""
    for letter in ANSWER:
        screen.stream.feed(letter)
        assert screen.shown().startswith(seen)
        seen = screen.shown()
    assert not re.search(r"\x1b\[[0-9;]*[A-LN-Za-ln-z]|\r", seen)  # colours only: no cursor is moved


def test_a_mark_without_a_partner_is_shown_when_the_paragraph_ends() -> None:
    assert Screen().all_of("2 **of 3\n\nnext") == "2 **of 3\n\nnext\n"


def test_a_mark_without_a_partner_does_not_hold_a_long_answer_back() -> None:
    screen = Screen()
    screen.stream.feed("a *b " + "word " * 400)

    assert screen.shown().count("word") > 300


def test_the_width_that_there_is_counts_from_the_next_word_on() -> None:
    screen = Screen(width=40)
    screen.stream.feed("word " * 20)
    screen.width = 20
    screen.stream.feed("word " * 20)
    screen.width = 60
    screen.stream.feed("word " * 30)
    screen.stream.finish()

    widths = [len(line) for line in screen.shown().splitlines()]
    assert widths[0] == 39
    assert 19 in widths
    assert 59 in widths
    assert screen.shown().count("word") == 70


def test_code_is_coloured_line_by_line_and_keeps_its_spaces() -> None:
    screen = Screen(colour=True)
    screen.stream.feed("```python\nif x:\n    return 'a long line " + "x" * 100 + "'\n")

    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.shown())
    assert plain.splitlines() == ["```python", "if x:", "    return 'a long line " + "x" * 100 + "'"]
    assert "\x1b[" in screen.shown().splitlines()[1]


def test_escape_sequences_are_shown_and_not_obeyed() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    shown = Screen().all_of(f"a {evil}\n\n```\n{evil}\n```\n\n| {evil} | b |\n| --- | --- |\n| {evil} | c |\n")

    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_a_table_wider_than_the_page_is_folded_into_it() -> None:
    shown = Screen(width=50).all_of("| a | b |\n|---|---|\n| " + "many words " * 9 + "| " + "even more " * 9 + "|\n")

    assert max(map(len, shown.splitlines())) <= 50


def test_a_status_is_taken_away_by_the_next_word() -> None:
    screen = Screen(erasable=True)
    screen.page.status("thinking …")
    screen.stream.feed("Hello there ")

    assert screen.shown() == "thinking …\r\x1b[KHello there"
