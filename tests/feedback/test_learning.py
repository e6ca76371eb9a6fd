"""The rule that learns from judgements, and the check that refuses what does not help. No vault, no database."""

from __future__ import annotations

import random

from co_cli.service.feedback import BOUND, ENOUGH, Candidate, JudgedQuestion, Judgement, learn, questions_of

DEFAULT = 0.4


def asked(number: int, prefers: str, good: str = "", how: str = "said") -> JudgedQuestion:
    """A question whose good note ranks second, and first if words or meaning count a little more."""
    ahead = 0.08 if prefers == "words" else 0.0
    shown = Candidate("words", 0.5, 0.25, 0.0), Candidate("meaning", 0.25, 0.5, ahead)
    text = f"question {number}"
    return JudgedQuestion(text, (Judgement(good or prefers, text, True, how),), shown)


def test_weights_move_towards_what_was_judged_good_within_a_bound() -> None:
    for prefers, other, side in (("meaning", "words", 1), ("words", "meaning", -1)):
        questions = [asked(number, prefers) for number in range(40)]

        lesson = learn(questions, DEFAULT)

        assert lesson.kept, lesson
        assert 0 < side * (lesson.meaning - DEFAULT) <= BOUND + 1e-9
        assert (lesson.after or 0) > (lesson.before or 0)
        assert not learn(questions, DEFAULT, lesson.meaning).kept, "not again"
        assert learn([asked(number, other) for number in range(40)], DEFAULT, lesson.meaning).kept, "and back"


def test_thirty_judgements_are_enough_and_opening_a_note_counts_less_than_a_verdict() -> None:
    questions = [asked(number, "meaning") for number in range(30)]
    assert learn(questions[:29], DEFAULT).why == "29 of the 30 ratings needed to learn"
    assert learn(questions, DEFAULT).kept

    opened = [asked(number, "meaning", how="opened") for number in range(100)]
    assert not learn(opened[:99], DEFAULT).kept
    assert learn(opened, DEFAULT).kept


def test_one_question_does_not_move_weights_however_often_it_is_judged() -> None:
    again = questions_of([Judgement("meaning", "the same", True) for _ in range(100)])
    assert (len(again), len(again[0].judged)) == (1, 1)

    shown = tuple(Candidate(f"n{number}", number % 7 / 7, number % 5 / 5, 0.0) for number in range(100))
    judged = tuple(Judgement(one.ref, "the only one", place % 2 == 0) for place, one in enumerate(shown))
    lesson = learn([JudgedQuestion("the only one", judged, shown)], DEFAULT)
    assert lesson.judgements >= ENOUGH
    assert (lesson.kept, lesson.meaning) == (False, DEFAULT)


def test_the_last_verdict_counts_and_bad_notes_alone_teach_nothing() -> None:
    rows = [Judgement("oak", f"question {number}", good) for good in (True, False) for number in range(40)]

    assert len(questions_of(rows[:40])) == 40
    assert questions_of(rows) == []


def test_chance_rarely_passes_the_check_and_weights_never_leave_the_bounds() -> None:
    kept = 0
    for seed in range(12):
        chance = random.Random(seed)
        questions: list[JudgedQuestion] = []
        for number in range(60):
            shown = tuple(
                Candidate(f"n{place}", chance.random() / 2, chance.random() / 2, chance.random() / 5)
                for place in range(8)
            )
            questions.append(JudgedQuestion(f"q{number}", (Judgement(f"n{chance.randrange(8)}", None, True),), shown))
        lesson = learn(questions, DEFAULT)
        assert lesson.before is not None  # it was replayed
        assert abs(lesson.meaning - DEFAULT) <= BOUND + 1e-9
        kept += lesson.kept
    assert kept <= 2
