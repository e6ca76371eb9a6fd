"""`co skill`: what is listed, which skills keep to the format, and what a search and the guide's commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault
from tests.house.package import REPOSITORY
from tests.vault.skills.conftest import SkillRoot

BROKEN = (
    ("name: Pdf\ndescription: Fills forms.", "lowercase letters, digits and single hyphens"),
    ("name: pdf_forms\ndescription: Fills forms.", "lowercase letters, digits and single hyphens"),
    ("name: pdf--forms\ndescription: Fills forms.", "single hyphens"),
    ("name: -pdf\ndescription: Fills forms.", "single hyphens"),
    (f"name: {'a' * 65}\ndescription: Fills forms.", "1 to 64"),
    ("name: other\ndescription: Fills forms.", "name is 'other' and its folder 'pdf'"),
    ("description: Fills forms.", "name must be"),
    ("name: pdf", "description must be"),
    ("name: pdf\ndescription: ''", "description must be"),
    (f"name: pdf\ndescription: {'d' * 1025}", "1 to 1,024 characters"),
    ("name: pdf\ndescription: a: b", "line 3: a second `: ` in one line"),
)


def test_a_skill_that_breaks_a_rule_is_reported_with_file_and_rule_and_not_offered(co: Co, mine: SkillRoot) -> None:
    for front, rule in BROKEN:
        file = mine.put("pdf/SKILL.md", f"---\n{front}\n---\nSteps.\n")

        listed = co("skill", "list", "--all", "--json").json

        assert [(skill["name"], skill["state"]) for skill in listed] == [("pdf", "invalid")], front
        assert listed[0]["detail"].startswith(f"{file}: "), front
        assert rule in listed[0]["detail"], front
    assert co("skill", "search", "fill forms").code == 1
    assert co("skill", "--json").json == []


def test_a_skill_with_every_field_of_the_format_is_offered_and_shown(co: Co, mine: SkillRoot) -> None:
    mine.put(
        "pdf-forms/SKILL.md",
        "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  Use for contracts.\nlicense: Apache-2.0\n"
        'compatibility: Requires Python 3.14+\nmetadata:\n  author: example-org\n  version: "1.0"\n'
        "allowed-tools:\n  - Bash(git:*)\n  - Read\nmodel: some-agents-own-field\n---\n"
        "# Steps\n\nRun scripts/fill.py.\n",
    )
    mine.put("pdf-forms/scripts/fill.py", "print()\n")
    mine.put("pdf-forms/.cache/x", "")

    ran, shown = co("skill", "show", "pdf-forms"), co("skill", "show", "skill:PDF_forms", "--json").json

    assert "license: Apache-2.0" in ran.out
    assert ran.out.endswith("# Steps\n\nRun scripts/fill.py.\n\nfiles:\n  scripts/fill.py\n")
    assert (shown["state"], shown["description"]) == ("offered", "Fills forms. Use for contracts.")
    assert shown["fields"]["metadata"] == {"author": "example-org", "version": "1.0"}
    assert shown["files"] == ["scripts/fill.py"]


def test_skills_are_listed_by_name_with_those_that_are_not_offered_on_request(
    co: Co, mine: SkillRoot, project: SkillRoot
) -> None:
    assert ".agents/skills" in co("skill").out
    mine.write("pdf-forms", "Creates and fills PDF forms.")
    mine.write("release", "Releases to production.", disable_model_invocation=True)
    project.write("deploy", "Deploys this project.")
    mine.put("broken/SKILL.md", "---\nname: broken\n---\n")

    assert co("skill").out.splitlines() == [
        "deploy  project",
        "  Deploys this project.",
        "pdf-forms  user",
        "  Creates and fills PDF forms.",
        "release  user, manual",
        "  Releases to production.",
        "  `disable-model-invocation: true` keeps it for people to call",
        "1 skill not offered: `co skill list --all` says why",
    ]
    assert "invalid: " in co("skill", "show", "broken").out
    assert "release" not in co("skill", "search", "release to production").out


def test_the_commands_of_the_guide_run_with_the_skill_of_the_guide(co: Co, home: Path) -> None:
    guide = (REPOSITORY / "docs" / "guides" / "skills.md").read_text("utf-8")
    example = re.search(r"^```markdown\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert example is not None
    SkillRoot(home / ".agents" / "skills").put("pdf-forms/SKILL.md", example[1])
    blocks = re.findall(r"^```sh\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("co ")]

    assert len(commands) == 4
    for words in commands:
        ran = co(*words)
        assert ran.code == 0, f"{words}: {ran.err}"
        assert ran.out.startswith("pdf-forms  user")


def test_a_skill_has_a_history_like_any_other_note(co: Co, mine: SkillRoot) -> None:
    for description in ("Fills forms.", "Fills forms with qpdf."):
        mine.put("pdf/SKILL.md", f"---\nname: pdf\ndescription: {description}\n---\nSteps.\n")
        co("skill", "search", "forms")

    changes = co("note", "history", "skill:pdf", "--json").json["changes"]

    assert [change["what"] for change in changes] == ["updated", "seen"], "it was there before the first sync"


def test_recalls_and_opens_of_a_skill_are_counted_for_the_skill(
    co: Co, kb: KnowledgeBase, vault: Vault, mine: SkillRoot
) -> None:
    vault.write("memories/forms.md", "Forms are due in May.")
    kb.sync()
    mine.write("pdf-forms", "Fills in PDF forms.")
    co("skill", "search", "fill in PDF forms")
    co("search", "fill in PDF forms", "--kind", "skill", "--kind", "memory")
    Toolbox(kb).call("find_skills", {"query": "fill in PDF forms"})
    kb.note("skill:pdf-forms", track=True)

    counted = co("note", "history", "skill:pdf-forms", "--json").json
    assert (counted["recalls"], counted["opens"]) == (3, 1)
    assert [(one["text"], one["times"]) for one in counted["questions"]] == [("fill in PDF forms", 3)]
    with kb.activity.written().reading() as connection:
        assert [root for (root,) in connection.execute("select root from vaults") if not root] == []


def test_completion_offers_the_names_of_skills(co: Co, mine: SkillRoot) -> None:
    mine.write("pdf-forms")
    mine.write("pdf-merge")
    mine.write("tables")

    words = ("config", "completion", "--words", "skill", "show")
    assert co(*words, "pdf").out.split() == ["pdf-forms", "pdf-merge"]
    assert co(*words, "").out.split() == ["pdf-forms", "pdf-merge", "tables"]
