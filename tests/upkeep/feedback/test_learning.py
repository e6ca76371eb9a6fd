"""The rule that learns from ratings, and the check that refuses what does not help. No vault, no database."""

from __future__ import annotations

import random

from co_cli.upkeep.feedback import DEFAULT_WEIGHTS, STEPS, Comparison, learn

DEFAULT = DEFAULT_WEIGHTS["meaning"]
WORDS, MEANING = (0.25, 0.5), (0.5, 0.25)
"""The parts of a note that has more of the words, and of one that has more of the meaning."""
PREFER_MEANING = Comparison(good=[(*MEANING, 0.0)], others=[(*WORDS, 0.12)])
"""The good note ranks second, and first if meaning counts a little more."""
PREFER_WORDS = Comparison(good=[(*WORDS, 0.08)], others=[(*MEANING, 0.0)])


def test_weights_move_towards_what_was_rated_good_within_a_bound() -> None:
    for preferred, opposite, side in ((PREFER_MEANING, PREFER_WORDS, 1), (PREFER_WORDS, PREFER_MEANING, -1)):
        lesson = learn([preferred] * 40, 40)

        assert lesson.kept, lesson
        assert 0 < side * (lesson.meaning - DEFAULT) <= max(STEPS) + 1e-9
        assert (lesson.after or 0) > (lesson.before or 0)
        assert not learn([preferred] * 40, 40, lesson.meaning).kept, "not again"
        assert learn([opposite] * 40, 40, lesson.meaning).kept, "and back"


def test_it_takes_thirty_ratings_of_ten_questions() -> None:
    assert learn([PREFER_MEANING] * 30, 29).why == "29 of the 30 ratings needed to learn"
    few = learn([PREFER_MEANING] * 9, 30)
    assert (few.kept, few.meaning, few.questions) == (False, DEFAULT, 9)
    assert learn([PREFER_MEANING] * 30, 30).kept


def test_a_question_without_its_good_note_or_without_others_teaches_nothing() -> None:
    useless = [Comparison([], PREFER_MEANING.others), Comparison(PREFER_MEANING.good, [])]

    assert learn(useless * 20, 40).questions == 0


def test_chance_rarely_passes_the_check() -> None:
    kept = 0
    for seed in range(12):
        chance = random.Random(seed)
        found: list[Comparison] = []
        for _ in range(60):
            notes = [(chance.random() / 2, chance.random() / 2, chance.random() / 5) for _ in range(8)]
            found.append(Comparison(notes[:1], notes[1:]))
        kept += learn(found, 60).kept
    assert kept <= 2
