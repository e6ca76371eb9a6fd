"""Where a sentence ends, and what only looks like an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.sources.sentences import sentences, short_enough


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text, 0, len(text))]


@pytest.mark.parametrize(
    "expected",
    [
        ["Oaks live very long.", "Do beeches as well?", "Not quite so long!"],
        ["He said “they live long.”", "Then he left (it was late).", "Nobody followed."],
        ["As Dr. Oak and J. R. Beech say, e.g. Here, it is so.", "The end of it."],
        ["It costs 3.50 or 4.20 in e.g. two shops.", "Version 1.2.3 is out now."],
        ["We met at approx. nine, i.e. late, etc. and so on.", "That was all of it."],
        ["They ended… slowly, as trees do.", "What then?! Nobody knows."],
        ["See example.org/a.html for more.", "It has a table of trees."],
        ["彼は毎朝森を歩いていたと言った。", "「そうですか、それはいいですね。」", "彼女は長い間黙ったままだった！"],
        ["यह एक लंबा और सुंदर वाक्य है।", "यह दूसरा लंबा वाक्य है।"],
        ["هل تعيش أشجار البلوط طويلا؟", "نعم، إنها تعيش طويلا جدا."],
        ["Das gilt z.B. Eichen, Buchen usw. Auch für andere.", "Das ist der Schluss."],
        ["no end at all, and none needed"],
    ],
)
def test_sentences_end_where_a_reader_ends_them(expected: list[str]) -> None:
    apart = "" if "。" in expected[0] else " "

    assert said(apart.join(expected)) == expected


def test_a_line_break_inside_a_sentence_is_not_its_end() -> None:
    assert said("Oaks live\nvery long.\nBeeches live\nless long.") == [
        "Oaks live\nvery long.",
        "Beeches live\nless long.",
    ]


def test_a_word_that_stands_alone_goes_with_the_next_sentence() -> None:
    assert said("No. They do not live long.") == ["No. They do not live long."]


@given(text=st.text(alphabet="aB1.!?。… \n\t)\"'", max_size=200), longest=st.integers(1, 30))
def test_sentences_and_their_pieces_lose_no_letter_and_do_not_overlap(text: str, longest: int) -> None:
    place = 0
    left = ""
    for sentence in sentences(text, 0, len(text)):
        for start, end in short_enough(text, sentence, longest):
            assert place <= start < end <= len(text)
            assert end - start <= longest
            left += text[place:start]
            place = end
    assert not (left + text[place:]).strip()


def test_what_has_no_sentence_end_is_cut_at_a_line_or_a_space() -> None:
    text = "word " * 10 + "\n" + "word " * 10

    assert [text[start:end] for start, end in short_enough(text, (0, len(text)), 60)] == [
        "word " * 10,
        "word " * 10,
    ]
    assert [*short_enough("oaks beeches", (0, 12), 8)] == [(0, 4), (5, 12)]
    assert [*short_enough("x" * 25, (0, 25), 10)] == [(0, 10), (10, 20), (20, 25)]
