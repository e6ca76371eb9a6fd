"""Skills are a source of their own: found by a task, fresh at every call, and never in the way of notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.skill_set import put_skills, tasks, written_skills
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from tests.command import Co
from tests.folder import Vault
from tests.vault.skills.conftest import SkillRoot


def test_only_searches_that_ask_for_skills_find_them(co: Co, vault: Vault, mine: SkillRoot) -> None:
    mine.write("knives", "Sharpens knives and scissors.")
    vault.write("memories/knife.md", "The bread knife is in the left drawer.")
    co("skill", "search", "knives")  # they are in search.db from now on

    ordinary = co("search", "sharpens knives", "--json").json
    asked = co("search", "sharpens knives", "--source", "skill", "--json").json
    both = co("search", "knife knives", "--source", "skill", "--source", "memory", "--json").json

    assert [hit["ref"] for hit in ordinary["hits"]] == ["memory:knife"]
    assert [hit["ref"].split("#")[0] for hit in asked["hits"]] == ["skill:knives"]
    assert {hit["ref"].split("#")[0] for hit in both["hits"]} == {"skill:knives", "memory:knife"}
    assert co("list", "--json").json[0]["ref"] == "memory:knife"


def test_changed_skills_are_seen_at_the_next_search(kb: KnowledgeBase, mine: SkillRoot) -> None:
    file = mine.write("knives", "Sharpens knives.")
    assert [skill.name for skill, _ in kb.search_skills("knives")[0]] == ["knives"]

    mine.write("knives", "Sharpens scissors and shears.")
    mine.write("bread", "Bakes bread.")
    assert {skill.description for skill in kb.skills.all()} == {"Sharpens scissors and shears.", "Bakes bread."}

    file.unlink()
    assert [skill.name for skill in kb.skills.all()] == ["bread"]
    assert "skill:knives" not in [hit.ref.split("#")[0] for hit in kb.search("shears", sources=["skill"]).hits]


def test_a_skill_is_opened_by_its_ref_and_is_not_written_here(co: Co, mine: SkillRoot) -> None:
    file = mine.write("knives", "Sharpens knives.", "Hold it at 20 degrees.")
    before = file.read_bytes()

    assert "Hold it at 20 degrees." in co("show", "skill:knives").out
    refused = co("forget", "skill:knives")

    assert refused.code == 2
    assert "SKILL.md" in refused.err
    assert file.read_bytes() == before


@pytest.mark.medium
def test_the_skill_for_a_task_is_mostly_among_the_first_three(tmp_path: Path, home: Path) -> None:
    """The written skills and an eighth of the tasks; `python -m benchmarks skills` measures all of them."""
    put_skills(tmp_path / "skills", len(written_skills()))
    (tmp_path / "vault").mkdir()
    flags = {"vault": str(tmp_path / "vault"), "data_dir": str(tmp_path / "data")}
    wanted = tasks()[::8]
    with KnowledgeBase.open(settings=load_settings({**flags, "skill_folders": [str(tmp_path / "skills")]})) as kb:
        assert [skill.detail for skill in kb.skills.all() if skill.state != "offered"] == []
        first = [{skill.name for skill, _ in kb.search_skills(task.task, 10)[0][:3]} for task in wanted]

    found = sum(task.skill in names for task, names in zip(wanted, first, strict=True))
    assert found / len(wanted) >= 0.85
