"""`co skill`, as a person and as a program reads it."""

from __future__ import annotations

import pytest

from tests.command import Co
from tests.skills.conftest import SkillRoot


def test_alone_it_lists_the_skills_by_name(co: Co, mine: SkillRoot, project: SkillRoot) -> None:
    mine.write("pdf-forms", "Creates and fills PDF forms.")
    project.write("deploy", "Deploys this project.")
    mine.put("broken/SKILL.md", "---\nname: broken\n---\n")

    ran = co("skill")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "deploy  project",
        "  Deploys this project.",
        "pdf-forms  user",
        "  Creates and fills PDF forms.",
        "1 skill not offered: `co skill list --all` says why",
    ]


def test_the_folders_of_skills_are_sources(co: Co, mine: SkillRoot, project: SkillRoot) -> None:
    mine.write("pdf-forms", "Creates and fills PDF forms.")
    mine.put("broken/SKILL.md", "---\nname: broken\n---\n")
    other = SkillRoot(project.root.parent / "more")
    other.write("bread", "Bakes bread.")
    co("add", str(other.root), "--as", "skill")

    rows = [(row["path"], row["source"], row["notes"], row["skipped"]) for row in co("source", "list", "--json").json]

    assert rows == [(str(other.root), "skill:more", 1, 0), (str(mine.root), "skill", 1, 1)]


def test_without_any_skill_it_says_where_they_belong(co: Co) -> None:
    ran = co("skill")

    assert ran.code == 1
    assert ".agents/skills" in ran.out
    assert co("skill", "search", "anything").out == "No skill has to do with that: 0 skills searched.\n"


def test_a_search_prints_names_levels_scores_and_whole_descriptions(co: Co, mine: SkillRoot) -> None:
    mine.write("pdf-forms", "Creates and fills PDF forms: contracts with blanks, applications, questionnaires.")
    mine.write("bread", "Bakes bread with sourdough.")

    lines = co("skill", "search", "turn", "this", "contract", "into", "a", "fillable", "form").out.splitlines()

    assert lines[0].startswith("pdf-forms  user, 0.")
    assert lines[1] == "  Creates and fills PDF forms: contracts with blanks, applications, questionnaires."


def test_show_prints_the_steps_and_the_files(co: Co, mine: SkillRoot) -> None:
    mine.write("pdf-forms", "Fills forms.", "# Steps\n\nRun scripts/fill.py.", license="MIT", allowed_tools="Bash Read")
    mine.put("pdf-forms/scripts/fill.py", "print()\n")
    mine.put("pdf-forms/.cache/x", "")

    ran = co("skill", "show", "pdf-forms")
    shown = co("skill", "show", "skill:PDF_forms", "--json").json

    assert "license: MIT" in ran.out
    assert ran.out.endswith("# Steps\n\nRun scripts/fill.py.\n\nfiles:\n  scripts/fill.py\n")
    assert (shown["name"], shown["files"], shown["more_files"]) == ("pdf-forms", ["scripts/fill.py"], False)


def test_a_skill_that_is_not_offered_can_be_looked_at(co: Co, mine: SkillRoot) -> None:
    mine.put("broken/SKILL.md", "---\nname: broken\n---\nSteps.\n")

    ran = co("skill", "show", "broken")

    assert ran.code == 0
    assert "invalid: " in ran.out


def test_control_characters_of_a_skill_are_shown_and_not_obeyed(co: Co, mine: SkillRoot) -> None:
    mine.write("loud", "Rings\u001b[31m the bell.", "Ring\u001b[2J it.")

    out = co("skill").out + co("skill", "show", "loud").out + co("skill", "search", "bell").out

    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show",), "name one skill"),
        (("show", "nope"), "did you mean"),
        (("search",), "say what is to be done"),
        (("list", "pdf"), "`co skill search pdf` looks for one"),
        (("list", "--limit", "3"), "--limit: only for `co skill search`"),
        (("show", "pdf", "--all"), "--all: only for `co skill list`"),
        (("search", "pdf", "--limit", "0"), "limit is between 1 and"),
        (("find", "pdf"), "invalid choice"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(co: Co, mine: SkillRoot, arguments: tuple[str, ...], told: str) -> None:
    mine.write("node", "Runs Node.")

    ran = co("skill", *arguments)

    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
