"""Where skills are looked for, which of two counts, and which links are followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.vault.skills import Skill
from tests.command import Co
from tests.vault.skills.conftest import SkillRoot


def states(skills: list[Skill]) -> list[tuple[str, str, str]]:
    return [(skill.name, skill.level, skill.state) for skill in skills]


def test_both_folders_of_the_project_and_of_the_home_are_looked_into(
    kb: KnowledgeBase, home: Path, project: SkillRoot
) -> None:
    root = project.root.parents[1]
    folders = [root / ".agents/skills", root / ".claude/skills", home / ".agents/skills", home / ".claude/skills"]
    for number, folder in enumerate(folders):
        SkillRoot(folder).write(f"skill-{number}")

    levels = ["project", "project", "user", "user"]
    assert states(kb.skills.all()) == [(f"skill-{n}", level, "offered") for n, level in enumerate(levels)]


def test_the_projects_skill_comes_before_the_users_and_that_before_a_configured_one(
    co: Co, tmp_path: Path, mine: SkillRoot, project: SkillRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for root, whose in ((project, "project"), (mine, "user"), (SkillRoot(tmp_path / "team"), "team")):
        root.write("review", f"Reviews code as the {whose} does.")
    monkeypatch.setenv("CO_SKILL_FOLDERS", str(tmp_path / "team"))

    listed = co("skill", "list", "--all", "--json").json

    assert [(skill["level"], skill["state"]) for skill in listed] == [
        ("project", "offered"),
        ("user", "shadowed"),
        ("configured", "shadowed"),
    ]
    assert "project before user" in listed[1]["detail"]
    found = co("skill", "search", "review code", "--json").json["skills"]
    assert [skill["description"] for skill in found] == ["Reviews code as the project does."]


def test_a_linked_skill_of_the_user_is_found_once_under_the_name_of_the_link(
    kb: KnowledgeBase, home: Path, tmp_path: Path, mine: SkillRoot
) -> None:
    elsewhere = SkillRoot(tmp_path / "checkout")
    elsewhere.put("v2/SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\nSteps.\n")
    elsewhere.put("v2/scripts/fill.py", "print()\n")
    shared = SkillRoot(home / ".agents" / "skills")
    shared.write("docx")
    mine.root.mkdir(parents=True)
    (mine.root / "pdf").symlink_to(tmp_path / "checkout" / "v2")
    (mine.root / "docx").symlink_to(shared.root / "docx")  # as installers do

    assert states(kb.skills.all()) == [("docx", "user", "offered"), ("pdf", "user", "offered")]
    found = kb.skills.find("pdf")
    assert found.path == str(mine.root / "pdf" / "SKILL.md")
    assert kb.skills.open(found)[1] == ["scripts/fill.py"]


def test_a_link_out_of_the_project_is_not_followed(co: Co, tmp_path: Path, mine: SkillRoot, project: SkillRoot) -> None:
    inside = SkillRoot(project.root.parents[1] / "docs")
    inside.write("style")
    mine.write("private")
    project.root.mkdir(parents=True)
    (project.root / "style").symlink_to(inside.root / "style")
    (project.root / "stolen").symlink_to(mine.root / "private")

    listed = co("skill", "list", "--all", "--json").json

    assert [(skill["name"], skill["level"]) for skill in listed] == [("style", "project"), ("private", "user")]


def test_skills_may_be_grouped_and_what_lies_in_a_skill_is_part_of_it(kb: KnowledgeBase, mine: SkillRoot) -> None:
    mine.write("group/pdf")
    mine.put("group/pdf/examples/tiny/SKILL.md", "---\nname: tiny\ndescription: An example.\n---\n")
    mine.put("group/pdf/node_modules/left-pad/SKILL.md", "---\nname: left-pad\ndescription: x\n---\n")

    assert [skill.name for skill in kb.skills.all()] == ["pdf"]
    assert kb.skills.open(kb.skills.find("pdf"))[1] == ["examples/tiny/SKILL.md"]


def test_a_projects_file_names_folders_inside_the_project_only(
    co: Co, tmp_path: Path, project: SkillRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    root = project.root.parents[1]
    settings = SkillRoot(root / ".co-cli").put("settings.toml", 'skill_folders = ["tools/skills"]\n')
    SkillRoot(root / "tools" / "skills").write("inside")

    assert [(skill["name"], skill["level"]) for skill in co("skill", "--json").json] == [("inside", "project")]

    settings.write_text('skill_folders = ["tools/skills", "../elsewhere"]\n')
    refused = co("skill")

    assert refused.code == 2
    assert f"{settings}:1: a project may not point skill_folders outside itself" in refused.err


def test_a_folder_that_was_added_as_skills_is_one_of_theirs_and_not_in_an_ordinary_search(
    co: Co, tmp_path: Path
) -> None:
    SkillRoot(tmp_path / "team").write("knives", "Sharpens knives.")

    assert co("add", str(tmp_path / "team"), "--as", "skill").code == 0

    assert [skill["level"] for skill in co("skill", "--json").json] == ["configured"]
    assert co("search", "sharpens knives").code == 1


def test_skills_of_the_vaults_project_are_found_from_any_folder(
    tmp_path: Path, data_dir: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ours"
    (root / ".co-cli" / "knowledge").mkdir(parents=True)
    (root / "nested" / ".git").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    SkillRoot(root / ".agents" / "skills").write("review")

    for folder in (tmp_path / "elsewhere", root / "nested", home, root):
        monkeypatch.chdir(folder)
        with KnowledgeBase.open(root / ".co-cli" / "knowledge", data_dir) as kb:
            assert states(kb.skills.all()) == [("review", "project", "offered")], folder


def test_files_of_a_skill_are_listed_without_entering_heavy_and_hidden_folders(
    kb: KnowledgeBase, mine: SkillRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.write("pdf")
    for number in range(120):
        mine.put(f"pdf/scripts/{number:03}.py", "")
    for path in ("node_modules/a/b/c.js", ".venv/lib/x.py", "scripts/.cache/y"):
        mine.put(f"pdf/{path}", "")
    skill, listed, scandir = kb.skills.find("pdf"), list[str](), os.scandir

    def list_folder(folder: str) -> Iterator[os.DirEntry[str]]:
        listed.append(os.path.relpath(folder, mine.root))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", list_folder)
    _, files = kb.skills.open(skill)

    assert files == [f"scripts/{number:03}.py" for number in range(100)]
    assert listed == ["pdf", "pdf/scripts"]


def test_a_skill_file_that_cannot_be_read_is_listed_with_the_reason(co: Co, mine: SkillRoot) -> None:
    mine.write("good")
    mine.put("large/SKILL.md", "x" * 3_000_000)
    mine.put("binary/SKILL.md", "").write_bytes(b"\x00\x01\xff" * 100)

    listed = {skill["name"]: skill for skill in co("skill", "list", "--all", "--json").json}

    assert {name: skill["state"] for name, skill in listed.items()} == {
        "binary": "invalid",
        "good": "offered",
        "large": "invalid",
    }
    assert "not a text file" in listed["binary"]["detail"]
    assert "bytes" in listed["large"]["detail"]
    shown = co("skill", "show", "binary")
    assert (shown.code, len(shown.err.splitlines())) == (2, 1)


@pytest.mark.parametrize("is_project", [True, False], ids=["in a project", "in the current folder"])
def test_a_folder_of_skills_that_was_added_inside_the_project_or_the_current_folder_is_offered(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_project: bool
) -> None:
    place = tmp_path / "work"
    (place / ".git" if is_project else place).mkdir(parents=True)
    monkeypatch.chdir(place)
    SkillRoot(place / "tools" / "skills").put(
        "pdf/SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\nSteps.\n"
    )

    co("add", "tools/skills", "--as", "skill")

    (listed,) = co("skill", "list", "--all", "--json").json
    assert (listed["name"], listed["level"], listed["state"]) == ("pdf", "project", "offered")
    assert [skill["name"] for skill in co("skill", "search", "fill forms", "--json").json["skills"]] == ["pdf"]
