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
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1_024, 500


class SkillKind(Kind):
    """A folder of skills, or one skill. A deleted skill is dropped at once: agents must not be offered it."""

    sources = ("skill",)

    def wants(self, name: str) -> bool:
        return name.lower() == SKILL_FILE.lower()

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
            problem=undecodable or broken_rules(text, folder, path.rpartition("/")[2]),
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


def broken_rules(text: str, folder: str, file_name: str = SKILL_FILE) -> str | None:
    """What is wrong, all of it, as `line 2: …; line 3: …`; None for a skill that agents can be offered."""
    front = read_frontmatter(text)
    if file_name != SKILL_FILE:
        return f"line 1: the file is called {file_name}; agents look for {SKILL_FILE}"
    if front.problem:
        return f"line {front.problem_line}: {front.problem}"
    if front.start == front.end:
        return front.remark or "line 1: there is no frontmatter; begin with `---`, `name:`, `description:`, `---`"
    problems: list[str] = []
    for key, rule in _problems(front.metadata, folder):
        found = re.search(rf"^{key}[ \t]*:", text, re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        problems.append(f"line {line}: {rule}")
    return "; ".join(problems) or None


def _problems(fields: dict[str, object], folder: str) -> Iterator[tuple[str, str]]:
    """The fields that break a rule, each with the rule."""
    name = unicodedata.normalize("NFKC", str(fields.get("name") or "").strip())
    if not NAME.fullmatch(name) or name != name.lower() or len(name) > MAX_NAME:
        yield "name", f"name must be 1 to {MAX_NAME} lowercase letters, digits and single hyphens, not {name[:70]!r}"
    elif name != unicodedata.normalize("NFKC", folder):
        yield "name", f"name is {name!r} and its folder {folder!r}; they must be the same"
    if not _is_text(fields.get("description"), MAX_DESCRIPTION):
        yield "description", f"description must be 1 to {MAX_DESCRIPTION:,} characters: what it does and when to use it"
    if not _is_text(fields.get("license", "none"), 10**9):
        yield "license", "license must be text"
    if not _is_text(fields.get("compatibility", "any"), MAX_COMPATIBILITY):
        yield "compatibility", f"compatibility must be 1 to {MAX_COMPATIBILITY} characters"
    if not isinstance(fields.get("metadata", {}), dict):
        yield "metadata", "metadata must be a map of keys to values"
    tools = fields.get("allowed-tools", "")
    if not all(isinstance(tool, str) for tool in (cast("list[object]", tools) if isinstance(tools, list) else [tools])):
        yield "allowed-tools", "allowed-tools must be text or a list of texts"


def _is_text(value: object, longest: int) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= longest
