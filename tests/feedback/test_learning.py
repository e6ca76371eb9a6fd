"""The rule that learns from judgements, and the check that refuses what does not help. No vault, no database."""

from __future__ import annotations

import random

import pytest

from co_cli.service.learning import BOUND, ENOUGH, Candidate, Judgement, candidates, learn

DEFAULT = 0.4


def asked(number: int, prefers: str, good: bool = True, weight: float = 1.0) -> Judgement:
    """A question whose judged note stands second now, and first if words or meaning count a little more."""
    ahead = 0.08 if prefers == "words" else 0.0
    shown = Candidate("words", 0.5, 0.25, 0.0), Candidate("meaning", 0.25, 0.5, ahead)
    return Judgement(f"question {number}", prefers, good, weight, shown)


@pytest.mark.parametrize(("prefers", "side"), [("meaning", 1), ("words", -1)])
def test_weights_move_towards_what_was_judged_good_within_a_bound(prefers: str, side: int) -> None:
    told = [asked(number, prefers) for number in range(40)]

    lesson = learn(told, DEFAULT)

    assert lesson.kept, lesson
    assert 0 < side * (lesson.meaning - DEFAULT) <= BOUND + 1e-9
    assert lesson.before is not None
    assert lesson.after is not None
    assert lesson.after > lesson.before
    assert (lesson.better, lesson.worse) == (40, 0)


def test_weights_in_use_are_not_learned_again() -> None:
    told = [asked(number, "meaning") for number in range(40)]
    first = learn(told, DEFAULT)

    again = learn(told, DEFAULT, first.meaning)

    assert not again.kept
    assert again.meaning == first.meaning


def test_weights_that_no_longer_fit_are_learned_back() -> None:
    changed = learn([asked(number, "words") for number in range(40)], DEFAULT, DEFAULT + BOUND)

    assert changed.kept
    assert DEFAULT - BOUND - 1e-9 <= changed.meaning < DEFAULT


def test_learning_needs_thirty_judgements_and_opening_a_note_counts_less_than_a_verdict() -> None:
    told = [asked(number, "meaning") for number in range(29)]
    assert learn(told, DEFAULT).why == "29 of the 30 judgements that it takes"
    assert learn([*told, asked(29, "meaning")], DEFAULT).kept

    opened = [asked(number, "meaning", weight=0.3) for number in range(99)]
    assert not learn(opened, DEFAULT).kept
    assert learn([*opened, asked(99, "meaning", weight=0.3)], DEFAULT).kept


def test_one_question_rated_a_hundred_times_is_one_judgement() -> None:
    lesson = learn([asked(1, "meaning") for _ in range(100)], DEFAULT)

    assert not lesson.kept
    assert (lesson.judgements, lesson.questions, lesson.meaning) == (1.0, 1, DEFAULT)


def test_one_question_with_a_hundred_rated_notes_moves_nothing() -> None:
    shown = tuple(Candidate(f"n{number}", number % 7 / 7, number % 5 / 5, 0.0) for number in range(100))
    told = [Judgement("the only one", f"n{number}", number % 2 == 0, 1.0, shown) for number in range(100)]

    lesson = learn(told, DEFAULT)

    assert lesson.judgements >= ENOUGH
    assert not lesson.kept
    assert lesson.meaning == DEFAULT


def test_the_last_verdict_on_a_note_counts() -> None:
    told = [asked(number, "meaning", good) for good in (True, False) for number in range(40)]

    assert learn(told, DEFAULT).judgements == 0  # nothing is good any more


def test_all_bad_teaches_nothing() -> None:
    lesson = learn([asked(number, "meaning", good=False) for number in range(100)], DEFAULT)

    assert not lesson.kept
    assert lesson.meaning == DEFAULT


def test_all_good_teaches_nothing() -> None:
    told = [asked(number, "words")._replace(ref=ref) for number in range(50) for ref in ("words", "meaning")]

    lesson = learn(told, DEFAULT)

    assert not lesson.kept
    assert lesson.meaning == DEFAULT


def test_a_note_that_is_first_already_needs_no_other_weights() -> None:
    first = Candidate("a", 0.5, 0.5, 0.3), Candidate("b", 0.4, 0.1, 0.0)
    lesson = learn([Judgement(f"q{number}", "a", True, 1.0, first) for number in range(50)], DEFAULT)

    assert not lesson.kept
    assert lesson.meaning == DEFAULT


def test_contradictory_judgements_are_refused() -> None:
    told = [asked(number, "meaning")._replace(ref=("words", "meaning")[number % 2]) for number in range(100)]

    lesson = learn(told, DEFAULT)

    assert not lesson.kept, lesson
    assert abs(lesson.meaning - DEFAULT) <= BOUND + 1e-9


def test_chance_passes_the_check_rarely_and_never_leaves_the_bounds() -> None:
    kept = 0
    for seed in range(20):
        chance = random.Random(seed)
        told: list[Judgement] = []
        for number in range(60):
            shown = tuple(
                Candidate(f"n{place}", chance.random() / 2, chance.random() / 2, chance.random() / 5)
                for place in range(8)
            )
            told.append(Judgement(f"q{number}", f"n{chance.randrange(8)}", chance.random() < 0.8, 1.0, shown))
        lesson = learn(told, DEFAULT)
        assert lesson.before is not None  # it was replayed
        assert DEFAULT - BOUND - 1e-9 <= lesson.meaning <= DEFAULT + BOUND + 1e-9
        kept += lesson.kept
    assert kept <= 2


@pytest.mark.parametrize("default", [0.0, 0.05, 0.97, 1.0])
@pytest.mark.parametrize("prefers", ["words", "meaning"])
def test_weights_stay_between_nothing_and_everything(default: float, prefers: str) -> None:
    lesson = learn([asked(number, prefers) for number in range(40)], default)

    assert 0 <= lesson.meaning <= 1
    assert abs(lesson.meaning - default) <= BOUND + 1e-9


def test_a_score_is_split_by_the_weights_that_made_it() -> None:
    (one,) = candidates([("a", {"words": 0.3, "meaning": 0.1, "recency": 0.05})], 0.4, 0.6)

    assert (one.words, one.meaning, one.rest) == pytest.approx((0.5, 0.25, 0.05))
