"""The guide to skills says what is so: its skill is a valid one, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.command import Co
from tests.skills.conftest import SkillRoot

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "skills.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs beside it")


def test_the_commands_of_the_guide_run_with_the_skill_of_the_guide(co: Co, home: Path) -> None:
    guide = GUIDE.read_text("utf-8")
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
