"""The rules of the Agent Skills format (agentskills.io), and which of them a SKILL.md breaks, each with its line.

Fields that the format does not name are nobody's business: agents have their own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import cast

from co_cli.notes.frontmatter import Frontmatter

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_024
LONGEST_COMPATIBILITY = 500
FILE_NAME = "SKILL.md"


def broken_rules(text: str, front: Frontmatter, folder: str, file_name: str = FILE_NAME) -> str | None:
    """What is wrong, all of it, as `line 2: …; line 3: …`; None for a skill that agents can be offered."""
    if file_name != FILE_NAME:
        return f"line 1: the file is called {file_name}; agents look for {FILE_NAME}"
    if front.problem:
        return f"line {front.problem_line}: {front.problem}"
    if front.start == front.end:
        return front.remark or "line 1: there is no frontmatter; begin with `---`, `name:`, `description:`, `---`"
    wrong = [f"line {line_of(text, key)}: {rule}" for key, rule in _wrong(front.metadata, folder)]
    return "; ".join(wrong) or None


def line_of(text: str, key: str) -> int:
    """Where a field of the frontmatter stands; its first line if it is missing."""
    found = re.search(rf"^{re.escape(key)}[ \t]*:", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _wrong(fields: dict[str, object], folder: str) -> Iterator[tuple[str, str]]:
    yield from (("name", rule) for rule in _wrong_name(fields.get("name"), folder))
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        yield "description", "description is missing, or no text: say what the skill does and when to use it"
    elif len(description.strip()) > LONGEST_DESCRIPTION:
        yield "description", f"description has {len(description.strip()):,} characters; at most {LONGEST_DESCRIPTION:,}"
    if "license" in fields and not isinstance(fields["license"], str):
        yield "license", "license is a text"
    compatibility = fields.get("compatibility", "any")
    if not isinstance(compatibility, str) or not 0 < len(compatibility) <= LONGEST_COMPATIBILITY:
        yield "compatibility", f"compatibility is a text of 1 to {LONGEST_COMPATIBILITY} characters"
    if not isinstance(fields.get("metadata", {}), dict):
        yield "metadata", "metadata is a map of keys to values"
    tools = fields.get("allowed-tools", "")
    if isinstance(tools, list):
        tools = "" if all(isinstance(tool, str) for tool in cast("list[object]", tools)) else None
    if not isinstance(tools, str):
        yield "allowed-tools", "allowed-tools is a text or a list of texts"


def _wrong_name(name: object, folder: str) -> Iterator[str]:
    if not isinstance(name, str) or not name.strip():
        yield "name is missing, or no text: it is the name of the folder"
        return
    name = unicodedata.normalize("NFKC", name.strip())
    if len(name) > LONGEST_NAME:
        yield f"name has {len(name)} characters; at most {LONGEST_NAME}"
    if name != name.lower() or not all(letter.isalnum() or letter == "-" for letter in name):
        yield f"name has lowercase letters, digits and hyphens only, unlike {name[:LONGEST_NAME]!r}"
    elif name.startswith("-") or name.endswith("-") or "--" in name:
        yield f"name neither begins nor ends with a hyphen, nor has two in a row, unlike {name[:LONGEST_NAME]!r}"
    if name != unicodedata.normalize("NFKC", folder):
        yield f"name is {name[:LONGEST_NAME]!r} and its folder {folder!r}; they must be the same"
