"""Token estimates and cuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from co_cli.tools.budget import estimate_tokens, within


def test_a_cut_falls_between_lines_before_sentences_before_words() -> None:
    assert within("one two three\nfour five six seven", 6)[0] == "one two three"
    assert within("One two three. Four five six seven", 6)[0] == "One two three."
    assert within("one two three four five six", 4)[0] == "one two three"


@given(st.text(max_size=400), st.integers(0, 60))
def test_a_cut_text_fits_and_says_what_was_left_out(text: str, tokens: int) -> None:
    kept, left = within(text, tokens)

    assert text.startswith(kept)
    assert estimate_tokens(kept) <= tokens or not left
    assert (left > 0) == (estimate_tokens(text) > tokens)


def test_megabytes_of_any_script_are_cut() -> None:
    text = "知識庫的文字。éa" * 250_000

    kept, left = within(text, 2_000)

    assert estimate_tokens(kept) <= 2_000
    assert left > 1_000_000
