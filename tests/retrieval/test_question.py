"""A question becomes terms: each stem once, the rarest if there are many, names and numbers marked."""

from __future__ import annotations

import pytest

from co_cli.index.lexicon import WordFacts
from co_cli.retrieval.question import MOST_TERMS, asks, understand


def facts(*words: str) -> dict[str, WordFacts]:
    return {word: WordFacts(word.lower().rstrip("s"), 1.0 + number, number) for number, word in enumerate(words)}


def test_terms_stand_in_the_order_they_were_typed() -> None:
    terms = understand("boats in a storm", ["boats", "storm"], facts("boats", "storm"))

    assert [term.stem for term in terms] == ["boat", "storm"]


def test_two_forms_of_a_word_are_one_term() -> None:
    assert len(understand("boat boats", ["boat", "boats"], facts("boat", "boats"))) == 1


def test_a_word_that_nothing_is_known_of_is_no_term() -> None:
    assert understand("\u6771\u4eac boat", ["\u6771\u4eac", "boat"], facts("boat"))[0].stem == "boat"


def test_names_and_numbers_are_marked_but_not_the_first_word() -> None:
    asked = ["Boats", "Melanie", "2023", "storm"]

    terms = understand("Boats of Melanie in 2023 and a storm", asked, facts(*asked))

    assert [term.named for term in terms] == [False, True, True, False]


def test_of_a_long_question_the_rarest_words_are_kept() -> None:
    asked = [f"word{letter}" for letter in "abcdefghijklmnopqrtuvw"]

    terms = understand(" ".join(asked), asked, facts(*asked))

    assert [term.stem for term in terms] == asked[-MOST_TERMS:]


@pytest.mark.parametrize(
    "text", ["where is the boat", "Who's at the helm", "the boat?", "How old is it? ", "Did Mara sail"]
)
def test_a_question_is_told_by_its_first_word_or_its_mark(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text", ["", "boat", "the boat and where it lies", "whatever", "open questions about boats", "?!"]
)
def test_words_to_look_for_are_no_question(text: str) -> None:
    assert not asks(text)
