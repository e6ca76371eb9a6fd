"""Which skills keep to the Agent Skills format, and what is said of those that do not."""

from __future__ import annotations

import pytest

from tests.command import Co
from tests.skills.conftest import SkillRoot


@pytest.mark.parametrize(
    ("front", "line", "rule"),
    [
        ("name: Pdf\ndescription: Fills forms.", 2, "lowercase letters, digits and hyphens only"),
        ("name: pdf_forms\ndescription: Fills forms.", 2, "lowercase letters, digits and hyphens only"),
        ("name: pdf--forms\ndescription: Fills forms.", 2, "nor has two in a row"),
        ("name: -pdf\ndescription: Fills forms.", 2, "neither begins nor ends with a hyphen"),
        (f"name: {'a' * 65}\ndescription: Fills forms.", 2, "name has 65 characters; at most 64"),
        ("name: other\ndescription: Fills forms.", 2, "name is 'other' and its folder 'pdf'"),
        ("description: Fills forms.", 1, "name is missing"),
        ("name: pdf", 1, "description is missing"),
        ("name: pdf\ndescription: ''", 3, "description is missing"),
        (f"name: pdf\ndescription: {'d' * 1025}", 3, "description has 1,025 characters; at most 1,024"),
        ("name: pdf\ndescription: Fills.\nlicense: [MIT]", 4, "license is a text"),
        (f"name: pdf\ndescription: Fills.\ncompatibility: {'c' * 501}", 4, "compatibility is a text of 1 to 500"),
        ("name: pdf\ndescription: Fills.\nmetadata: nobody", 4, "metadata is a map"),
        ("name: pdf\ndescription: Fills.\nallowed-tools: 3", 4, "allowed-tools is a text or a list of texts"),
        ("name: pdf\ndescription: a: b", 3, ""),
    ],
)
def test_a_skill_that_breaks_a_rule_is_reported_with_file_line_and_rule_and_not_offered(
    co: Co, mine: SkillRoot, front: str, line: int, rule: str
) -> None:
    file = mine.put("pdf/SKILL.md", f"---\n{front}\n---\nSteps.\n")

    listed = co("skill", "list", "--all", "--json").json["skills"]

    assert [(skill["name"], skill["state"]) for skill in listed] == [("pdf", "invalid")]
    assert listed[0]["detail"].startswith(f"{file}:{line}: ")
    assert rule in listed[0]["detail"]
    assert co("skill", "search", "fill forms").code == 1
    assert co("skill", "--json").json["skills"] == []


def test_every_broken_rule_is_told_at_once(co: Co, mine: SkillRoot) -> None:
    mine.put("pdf/SKILL.md", "---\nname: other\nlicense: 3\n---\n")

    detail = co("skill", "list", "--all", "--json").json["skills"][0]["detail"]

    assert "its folder 'pdf'" in detail
    assert "line 1: description is missing" in detail
    assert "line 3: license is a text" in detail


def test_a_skill_with_every_field_of_the_format_is_offered(co: Co, mine: SkillRoot) -> None:
    mine.put(
        "pdf-forms/SKILL.md",
        "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  Use for contracts.\nlicense: Apache-2.0\n"
        'compatibility: Requires Python 3.14+\nmetadata:\n  author: example-org\n  version: "1.0"\n'
        "allowed-tools:\n  - Bash(git:*)\n  - Read\nmodel: some-agents-own-field\n---\nSteps.\n",
    )

    shown = co("skill", "show", "pdf-forms", "--json").json

    assert shown["state"] == "offered"
    assert shown["description"] == "Fills forms. Use for contracts."
    assert shown["fields"]["metadata"] == {"author": "example-org", "version": "1.0"}


@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [
        ("pdf/SKILL.md", "Steps without frontmatter.\n", "there is no frontmatter"),
        ("pdf/SKILL.md", "---\nname: pdf\ndescription: x\n", "frontmatter that never ends"),
        ("pdf/skill.md", "---\nname: pdf\ndescription: x\n---\n", "agents look for SKILL.md"),
    ],
)
def test_a_file_that_is_hardly_a_skill_is_reported(co: Co, mine: SkillRoot, path: str, text: str, rule: str) -> None:
    mine.put(path, text)

    listed = co("skill", "list", "--all", "--json").json["skills"]

    assert [skill["state"] for skill in listed] == ["invalid"]
    assert rule in listed[0]["detail"]


def test_a_skill_file_that_is_no_text_or_a_link_is_reported(co: Co, mine: SkillRoot) -> None:
    mine.put("binary/SKILL.md", "").write_bytes(b"\0\1\2")
    (mine.root / "linked").mkdir()
    (mine.root / "linked" / "SKILL.md").symlink_to(mine.put("real/other.md", "---\nname: linked\n---\n"))

    listed = {skill["name"]: skill["detail"] for skill in co("skill", "list", "--all", "--json").json["skills"]}

    assert "not a text file" in listed["binary"]
    assert "symbolic link" in listed["linked"]


def test_a_skill_that_its_author_keeps_for_people_is_listed_and_not_offered(co: Co, mine: SkillRoot) -> None:
    mine.write("deploy", "Deploys to production.", disable_model_invocation=True)

    assert [skill["state"] for skill in co("skill", "--json").json["skills"]] == ["manual"]
    assert co("skill", "search", "deploy to production").code == 1
