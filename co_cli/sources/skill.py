"""Skills: folders with a `SKILL.md`, as agents know them. Each is a note that is searched by name and description.

What a skill must say of itself is in `skill_rules`; what breaks a rule stands in the note's `problem`. The other files
of a skill (`scripts/`, `references/`, `assets/`) are not read: whoever loads the skill gets to see their names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import Note, decode, read_note
from co_cli.sources.origin import Kind, Origin
from co_cli.sources.skill_rules import broken_rules
from co_cli.values import Passage

if TYPE_CHECKING:
    from collections.abc import Sequence

SKILL_FILE = "SKILL.md"
PROVENANCE = "skill"
"""Whatever a skill says of itself: it is an instruction that somebody wrote, not what the user said."""
HEAVY = ("node_modules/", "__pycache__/", "venv/", "site-packages/")
"""What the scripts of a skill leave behind: no skill is in there, and thousands of folders are."""
SEARCHED = 600
"""Characters of a body that are searched."""


class SkillKind(Kind):
    """A folder of skills, or one skill. One that is gone is gone: agents must not be offered it."""

    sources = ("skill",)

    def wants(self, name: str) -> bool:
        return name == SKILL_FILE or name.lower() == SKILL_FILE.lower()

    def exclusions(self, origin: Origin) -> tuple[Sequence[str], Sequence[str]]:
        return HEAVY, ()

    def path(self, origin: Origin, rest: str) -> str:
        return f"{rest}/{SKILL_FILE}" if rest else SKILL_FILE

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        folder = folder_name(origin, path)
        note = read_note(path, data)
        text, undecodable = decode(data)
        problem = undecodable or broken_rules(text, read_frontmatter(text), folder, path.rpartition("/")[2])
        return note._replace(
            ref=f"skill:{folder}",
            source="skill",
            title=folder,
            metadata={**note.metadata, "provenance": PROVENANCE},
            tags=(),  # a `#` in a body is a comment of a script
            aliases=(),
            links=(),
            category=None,
            problem=problem,
        )


def skill_passage(note: Note) -> Passage:
    """What is searched of a skill: its description, and the beginning of its body behind it.

    One passage, because a skill is chosen as a whole, and by what its author says that it is for. The body of a long
    one talks of many things.
    """
    body = note.body.strip()
    if len(body) > SEARCHED:
        body = body[:SEARCHED].rpartition(" ")[0]
    text = "\n\n".join(part for part in (note.description, body) if part)
    return Passage(text, 1, note.body_line + note.body.rstrip().count("\n"))


def folder_name(origin: Origin, path: str) -> str:
    """The name of the folder that the file is in; that of the link to it, if it was found through one."""
    folder = path.rpartition("/")[0]
    if folder:
        return folder.rpartition("/")[2]
    return origin.name if origin.only else os.path.basename(origin.root)
