"""Which sets count as one when one is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError
from co_cli.evaluation.families import families_of


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Two talks of one origin, two parts of one name, and one that stands alone."""
    origins = {"chat": "talks@1", "turns_long": "talks@1", "facts": "", "facts_tune": "", "code": "functions@2"}
    for name, origin in origins.items():
        (tmp_path / name).mkdir()
        if origin:
            (tmp_path / name / "meta.json").write_text(json.dumps({"origin": origin}))
    return [str(tmp_path / name) for name in origins]


def test_sets_of_one_origin_or_of_one_beginning_are_a_family(folders: list[str]) -> None:
    assert families_of(folders) == {
        "chat": "chat+turns",
        "turns_long": "chat+turns",
        "facts": "facts",
        "facts_tune": "facts",
        "code": "code",
    }


def test_a_person_can_say_that_sets_belong_together(folders: list[str]) -> None:
    said = families_of(folders, ["code,facts_tune"])

    assert said["code"] == said["facts"] == said["facts_tune"] == "facts+code"
    assert said["chat"] == "chat+turns"


def test_a_family_of_sets_that_are_not_there_is_a_mistake(folders: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="no set 'moon'"):
        families_of(folders, ["chat,moon"])
