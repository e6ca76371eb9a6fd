"""A snippet shows the matched words, and its marks point exactly at them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.retrieval.snippets import LENGTH, Snippet, around, from_marked

WORDS = st.lists(st.sampled_from(["oak", "Oaks", "élm", "İstanbul", "ß", "木", "a", "\n", "x" * 90]), max_size=80)


def marked(snippet: Snippet) -> list[str]:
    return [snippet.text[start:end] for start, end in snippet.marks]


def test_marks_of_fts_become_places() -> None:
    snippet = from_marked("…the \x02blue\x03  pool\n takes \x02traffic\x03…")

    assert snippet.text == "…the blue pool takes traffic…"
    assert marked(snippet) == ["blue", "traffic"]


@pytest.mark.parametrize("text", ["", "no marks", "\x02\x03", "\x03 closed first", "open \x02forever"])
def test_odd_marks_do_no_harm(text: str) -> None:
    snippet = from_marked(text)

    assert "\x02" not in snippet.text
    assert "\x03" not in snippet.text
    assert snippet.marks == ()


def test_a_short_text_is_shown_whole() -> None:
    assert around("Oaks live\n long.", ("long",)) == Snippet("Oaks live long.", ((10, 14),))


def test_a_long_text_is_cut_around_the_first_match_between_words() -> None:
    body = "filler " * 200 + "the needle is here " + "filler " * 200

    snippet = around(body, ("needle",))

    assert marked(snippet) == ["needle"]
    assert snippet.text.startswith("…filler ")
    assert snippet.text.endswith("filler…")
    assert len(snippet.text) <= LENGTH + 2


def test_a_text_without_the_words_shows_its_beginning() -> None:
    snippet = around("Oaks live long. " * 50, ("zebra",))

    assert snippet.text.startswith("Oaks live long.")
    assert snippet.marks == ()


def test_words_of_the_query_are_text_and_not_a_pattern() -> None:
    snippet = around("a.c abc a+c (x", ("a.c", "a+c", "(x"))

    assert marked(snippet) == ["a.c", "a+c", "(x"]


@given(
    body=WORDS.map(" ".join),
    words=st.lists(st.sampled_from(["oak", "ÉLM", "i̇stanbul", "SS", "木", "xx", ""]), max_size=4).map(tuple),
)
def test_every_mark_is_one_of_the_words(body: str, words: tuple[str, ...]) -> None:
    snippet = around(body, words)

    lowered = {word.lower() for word in words}
    assert all(text.lower() in lowered for text in marked(snippet))
    assert list(snippet.marks) == sorted(snippet.marks)
    assert "\n" not in snippet.text
