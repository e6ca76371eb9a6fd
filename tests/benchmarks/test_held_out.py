"""Numbers are chosen on other families of sets than the one they are judged on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.held_out import choose, families_of, family_mean
from co_cli.errors import InvalidInputError


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Two talks of one origin, two parts of one name, and one that stands alone."""
    origins = {"chat": "talks@1", "turns_long": "talks@1", "facts": "", "facts_tune": "", "code": "functions@2"}
    for name, origin in origins.items():
        (tmp_path / name).mkdir()
        if origin:
            (tmp_path / name / "meta.json").write_text(json.dumps({"origin": origin}))
    return [str(tmp_path / name) for name in origins]


def test_sets_of_one_origin_or_with_the_same_first_word_are_a_family(folders: list[str]) -> None:
    assert families_of(folders) == {
        "chat": "chat",
        "turns_long": "chat",
        "facts": "facts",
        "facts_tune": "facts",
        "code": "code",
    }


def test_one_family_is_not_enough(folders: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="at least two families"):
        families_of(folders[:2])


def test_each_family_counts_the_same() -> None:
    families = {"chat": "talk", "turns": "talk", "code": "code"}

    assert family_mean({"chat": 0.1, "turns": 0.3, "code": 0.8}, families) == 0.5


def test_the_candidate_for_a_family_is_the_best_on_the_others() -> None:
    families = {"chat": "talk", "turns": "talk", "code": "code"}
    scores = {
        "co": {"chat": 0.5, "turns": 0.5, "code": 0.5},
        "low": {"chat": 0.9, "turns": 0.9, "code": 0.1},
        "high": {"chat": 0.2, "turns": 0.2, "code": 0.7},
    }

    talk, code = choose(scores, families)

    assert (talk.candidate, talk.held_out, talk.current) == ("high", 0.2, 0.5)
    assert (code.candidate, code.held_out) == ("low", 0.1)
