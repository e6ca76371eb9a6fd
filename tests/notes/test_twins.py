"""When two memories are the same one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.notes.twins import fingerprint, likeness, says_all_of

BASE = "The nightly backup of the harbour database runs at dawn on the old server in the loft"


@pytest.mark.parametrize(
    "other",
    [
        BASE.upper(),
        f"  **{BASE}**.\n",
        BASE.replace(" ", "\n"),
        BASE.replace("harbour", "_harbour_"),
    ],
)
def test_case_blanks_and_markdown_do_not_count(other: str) -> None:
    assert fingerprint(BASE) == fingerprint(other)
    assert likeness(BASE, other) == 1.0


@pytest.mark.parametrize(
    "other",
    [BASE.replace("the old", "that old"), BASE + " upstairs", BASE.replace("nightly backup", "nightly back-up")],
)
def test_a_new_wording_is_nearly_the_same(other: str) -> None:
    assert 0.9 <= likeness(BASE, other) < 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The backup runs at 3 in the morning on gull", "The backup runs at 4 in the morning on gull"),
        ("Deploy on Fridays when the pool is quiet", "Do not deploy on Fridays when the pool is quiet"),
        ("We always deploy on Fridays with the blue pool", "We never deploy on Fridays with the blue pool"),
        ("Use version 1.10 of the driver in production", "Use version 1.1 of the driver in production"),
        ("Bex can fly to the harbours in the north", "Bex can\u2019t fly to the harbours in the north"),
        ("The pump must run during the night watch", "The pump mustn't run during the night watch"),
    ],
)
def test_a_number_or_a_negation_makes_it_another_fact(one: str, other: str) -> None:
    assert likeness(one, other) == 0


def test_emoji_only_notes_are_compared_as_written() -> None:
    assert fingerprint("🎉") == fingerprint(" 🎉\n")
    assert fingerprint("🎉") != fingerprint("🚀")


@given(one=st.text(), other=st.text())
def test_likeness_is_a_share_and_the_same_both_ways(one: str, other: str) -> None:
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == likeness(other, one)
    assert likeness(one, one) == 1.0


@given(st.lists(st.sampled_from("blue green first pool"), max_size=8), st.integers(0, 8))
def test_a_text_says_all_of_any_part_of_it(words: list[str], without: int) -> None:
    part = words[:without] + words[without + 1 :]

    assert says_all_of(" ".join(words), " ".join(part))
