"""Folders of skills to write in: the home's, a project's, and any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


class SkillRoot:
    """A folder of skills that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, folder: str, description: str = "Does things.", body: str = "Step one.", **fields: object) -> Path:
        """A skill with the name of its folder; `fields` are more of its frontmatter, with `_` for `-`."""
        front = {
            "name": folder.rpartition("/")[2],
            "description": description,
            **{key.replace("_", "-"): fields[key] for key in fields},
        }
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items() if value is not None]
        return self.put(f"{folder}/SKILL.md", "\n".join(["---", *lines, "---", body, ""]))

    def put(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file


@pytest.fixture
def mine(home: Path) -> SkillRoot:
    """The user's own."""
    return SkillRoot(home / ".claude" / "skills")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SkillRoot:
    """A project's, in which the test stands."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return SkillRoot(root / ".agents" / "skills")
