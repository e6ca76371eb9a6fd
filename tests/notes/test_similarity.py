"""When two texts are equal, and how alike two of them are."""

from __future__ import annotations

import pytest

from co_cli.notes.similarity import NO_WORDS, fingerprint, likeness, words_of

BASE = "The nightly backup of the harbour database runs at dawn on the old server in the loft"


@pytest.mark.parametrize(
    "other", [BASE.upper(), f"  **{BASE}**.\n", BASE.replace(" ", "\n"), BASE.replace("harbour", "_harbour_")]
)
def test_case_white_space_punctuation_and_markdown_do_not_count(other: str) -> None:
    assert fingerprint(BASE) == fingerprint(other)


def test_a_word_or_a_sign_makes_another_text() -> None:
    for one, other in (
        ("Mara likes tea", "Maria likes tea"),
        ("The parser is written in C", "The parser is written in C++"),
        ("set -e", "set +e"),
        ("5 metres", "-5 metres"),
        ("version 1.10", "version 1.1"),
        ("🎉", "🚀"),
        ("...", "!"),
    ):
        assert fingerprint(one) != fingerprint(other)


def test_a_text_without_words_has_a_known_fingerprint() -> None:
    assert fingerprint("") == fingerprint(" \n") == NO_WORDS


def test_likeness_is_the_share_of_words_in_common() -> None:
    one, other = words_of("The door code is 1111"), words_of("The door code is 2222")

    assert likeness(one, other) == pytest.approx(0.8)
    assert likeness(one, other, 0.8) == pytest.approx(0.8)
    assert likeness(one, other, 0.81) == 0
    assert likeness([], []) == 0
