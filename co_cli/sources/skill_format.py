"""Skills in the Agent Skills format (agentskills.io): folders with a `SKILL.md`, each read as one note.

A skill that breaks a rule of the format says so in the note's `problem`. Its other files (`scripts/`, `references/`,
`assets/`) are not read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import cast

from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import Note, decode, read_note
from co_cli.sources.origin import Kind, Origin
from co_cli.values import Passage

SKILL_FILE = "SKILL.md"
PROVENANCE = "skill"
"""Whatever a skill says of itself: it is an instruction that somebody wrote, not what the user said."""
HEAVY = ("node_modules/", "__pycache__/", "venv/", "site-packages/")
"""Folders that a skill's scripts leave behind: large, and without skills."""
SEARCHED = 600
"""Characters of a body that are searched."""
NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
MAX_NAME = 64
TEXTS = {
    "description": (1_024, "1 to 1,024 characters: what it does and when to use it"),
    "license": (100_000, "text"),
    "compatibility": (500, "1 to 500 characters"),
}
"""The fields that hold text, with their longest length."""


class SkillKind(Kind):
    """A folder of skills, or one skill. A deleted skill is dropped at once: agents must not be offered it."""

    sources = ("skill",)

    def wants(self, name: str) -> bool:
        return name == SKILL_FILE

    def exclusions(self, origin: Origin) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return HEAVY, ()

    def path(self, origin: Origin, rest: str) -> str:
        return f"{rest}/{SKILL_FILE}" if rest else SKILL_FILE

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        folder = folder_name(origin, path)
        note = read_note(path, data)
        text, undecodable = decode(data)
        return note._replace(
            ref=f"skill:{folder}",
            source="skill",
            title=folder,
            metadata={**note.metadata, "provenance": PROVENANCE},
            tags=(),  # a `#` in a body is a comment of a script
            aliases=(),
            links=(),
            category=None,
            problem=undecodable or broken_rules(text, folder),
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


def broken_rules(text: str, folder: str) -> str | None:
    """What is wrong, all of it, as `line 2: …; line 3: …`; None for a skill that agents can be offered."""
    front = read_frontmatter(text)
    if front.problem:
        return f"line {front.problem_line}: {front.problem}"
    if front.start == front.end:
        return front.remark or "line 1: there is no frontmatter; begin with `---`, `name:`, `description:`, `---`"
    problems: list[str] = []
    for rule in _problems(front.metadata, folder):
        found = re.search(rf"^{rule.split()[0]}[ \t]*:", text, re.MULTILINE)
        problems.append(f"line {text.count(chr(10), 0, found.start()) + 1 if found else 1}: {rule}")
    return "; ".join(problems) or None


def _problems(fields: dict[str, object], folder: str) -> Iterator[str]:
    """The rules that are broken. Each begins with the name of its field."""
    name = unicodedata.normalize("NFKC", str(fields.get("name") or "").strip())
    if not NAME.fullmatch(name) or name != name.lower() or len(name) > MAX_NAME:
        yield f"name must be 1 to {MAX_NAME} lowercase letters, digits and single hyphens, not {name[:70]!r}"
    elif name != unicodedata.normalize("NFKC", folder):
        yield f"name is {name!r} and its folder {folder!r}; they must be the same"
    for key, (longest, rule) in TEXTS.items():
        value = fields.get(key, "" if key == "description" else "not given")
        if not isinstance(value, str) or not 0 < len(value.strip()) <= longest:
            yield f"{key} must be {rule}"
    if not isinstance(fields.get("metadata", {}), dict):
        yield "metadata must be a map of keys to values"
    tools = fields.get("allowed-tools", "")
    if not all(isinstance(tool, str) for tool in (cast("list[object]", tools) if isinstance(tools, list) else [tools])):
        yield "allowed-tools must be text or a list of texts"
