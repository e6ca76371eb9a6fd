"""Skills in the Agent Skills format (agentskills.io): folders with a `SKILL.md`, each read as one note.

A skill that breaks a rule of the format says so in the note's `problem`. Its other files (`scripts/`, `references/`,
`assets/`) are not read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from typing import Any

from co_cli.ground.hits import Passage
from co_cli.notes.note import Note, read_note
from co_cli.sources.origin import Origin, SourceAdapter

SKILL_FILE = "SKILL.md"
HEAVY = ("node_modules/", "__pycache__/", "venv/", "site-packages/")
"""Folders that a skill's scripts leave behind: large, and without skills."""
SEARCHED = 600
"""Characters of a body that are searched."""
NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
MAX_NAME, MAX_DESCRIPTION = 64, 1_024


class SkillAdapter(SourceAdapter):
    """A folder of skills, or one skill. A deleted skill is dropped at once: agents must not be offered it."""

    sources = ("skill",)
    guards_missing = False

    def wants(self, name: str) -> bool:
        return name == SKILL_FILE

    def exclusions(self, origin: Origin) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
        return {"left by a tool": HEAVY}, ()

    def path(self, origin: Origin, rest: str) -> str:
        return f"{rest}/{SKILL_FILE}" if rest else SKILL_FILE

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        folder = folder_name(origin, path)
        note = read_note(path, data)
        return replace(
            note,
            ref=f"skill:{folder}",
            source="skill",
            title=folder,
            metadata={**note.metadata, "provenance": "skill"},  # not what the user said, whatever it claims
            tags=(),  # a `#` in a body is a comment of a script
            aliases=(),
            links=(),
            category=None,
            problem=note.problem or _broken_rule(note.metadata, folder),
        )


def skill_passage(note: Note) -> Passage:
    """What is searched of a skill: its description, then the beginning of its body.

    One passage, because a skill is chosen by what its author says it is for; a long body mentions many things.
    """
    body = note.body.strip()
    if len(body) > SEARCHED:
        body = body[:SEARCHED].rpartition(" ")[0]
    text = "\n\n".join(part for part in (note.description, body) if part)
    return Passage(text, 1, note.body_line + note.body.rstrip().count("\n"))


def folder_name(origin: Origin, path: str) -> str:
    """The name of the folder that the file is in; that of the link to it, if it was found through one."""
    folder = path.rpartition("/")[0]
    return folder.rpartition("/")[2] or (origin.name if origin.only else os.path.basename(origin.root))


def _broken_rule(fields: dict[str, Any], folder: str) -> str | None:
    """None for a skill that agents can be offered."""
    name = unicodedata.normalize("NFKC", str(fields.get("name") or "").strip())
    description = fields.get("description")
    if not NAME.fullmatch(name) or name != name.lower() or len(name) > MAX_NAME:
        return f"name must be 1 to {MAX_NAME} lowercase letters, digits and single hyphens, not {name[:70]!r}"
    if name != unicodedata.normalize("NFKC", folder):
        return f"name is {name!r} and its folder {folder!r}; they must be the same"
    if not isinstance(description, str) or not 0 < len(description.strip()) <= MAX_DESCRIPTION:
        return f"description must be 1 to {MAX_DESCRIPTION:,} characters: what it does and when to use it"
    return None
