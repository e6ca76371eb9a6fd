"""A name is the same name however it is typed."""

from __future__ import annotations

import pytest

from co_cli.index.names import LONGEST_NAME, fold_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Blue Pool", "blue-pool"),
        ("Blue Pool", "  BLUE_pool!  "),
        ("Café au lait", "cafe au lait"),
        ("Cafe\u0301", "CAFÉ"),
        ("Straße", "strasse"),
        ("Who decides?", "who decides"),
        ("ｗｉｄｅ", "wide"),
        ("article:guides/deploy", "Article guides deploy"),
        ("article:guides/deploy#L10-24", "article:guides/deploy"),
        ("#deploy", "deploy"),
    ],
)
def test_two_spellings_of_a_name_are_one(one: str, other: str) -> None:
    assert fold_name(one) == fold_name(other) != ""


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("C#", "C"), ("हिन्दी", "हनद"), ("8 May", "8 June")])
def test_two_names_stay_two(one: str, other: str) -> None:
    assert fold_name(one) != fold_name(other)


@pytest.mark.parametrize("text", ["", "  ", "?!", "++", "\u2014", "oak " * LONGEST_NAME, "x" * 100_000, "\udcff \0"])
def test_what_has_no_letter_or_is_too_long_is_no_name(text: str) -> None:
    assert fold_name(text) == ""
