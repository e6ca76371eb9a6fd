"""A note's text into its frontmatter and where its body starts. Lenient: whatever the YAML, the body is always there.

Tags that build objects are refused, aliases are bounded, and an error is returned with its line instead of raised,
beside what could still be read.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from co_cli.notes.plain_yaml import read_plain, resolve_scalar

BLOCK = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*---[ \t]*(?:\r?\n)(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
UNCLOSED = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*(---)[ \t]*\r?\n[A-Za-z_][\w-]*:(?:[ \t]|\r?\n)")
NEVER_CLOSED = "frontmatter that never ends; put a line `---` after its last field"
MOST_VALUES = 100_000
DEEPEST = 50


class Frontmatter(NamedTuple):
    """What stands between the `---` lines, and where."""

    metadata: dict[str, object]
    start: int
    """Offsets of the block between the two `---` lines; start == end == body if there is none."""
    end: int
    body: int
    """Offset of the first character after the closing line."""
    problem: str | None = None
    problem_line: int = 0
    remark: str | None = None
    """What is odd, with its line, although everything could be read."""


def read_frontmatter(text: str) -> Frontmatter:
    block = BLOCK.match(text)
    if block is None:
        start = 1 if text.startswith("\ufeff") else 0
        return Frontmatter({}, start, start, start, remark=_never_closed(text))
    start, end = block.span(1)
    first_line = text.count("\n", 0, start) + 1
    metadata = read_plain(block[1])
    problem, line, remark = None, 0, None
    if metadata is None:
        metadata, problem, line = _read_yaml(block[1])
        if problem:
            line += first_line
            metadata = _salvage(block[1])
        else:
            remark = _twice(block[1], first_line)
    return Frontmatter(metadata, start, end, block.end(), problem, line, remark)


def _never_closed(text: str) -> str | None:
    opened = UNCLOSED.match(text)
    return f"line {text.count(chr(10), 0, opened.start(1)) + 1}: {NEVER_CLOSED}" if opened else None


def _twice(block: str, first_line: int) -> str | None:
    """The first key that stands twice: YAML takes the last one, and people do not know that."""
    seen: set[str] = set()
    for number, line in enumerate(block.splitlines(), first_line):
        key = re.match(r"([A-Za-z_][\w-]*):(?:\s|$)", line, re.ASCII)
        if key and key[1] in seen:
            return f"line {number}: `{key[1]}` stands twice; the last one counts"
        if key:
            seen.add(key[1])
    return None


def _read_yaml(block: str) -> tuple[dict[str, object], str | None, int]:
    """The mapping, or what is wrong and on which line of the block (from 0)."""
    from co_cli.notes.yaml_handler import YAML_PROBLEMS, NoteHandler, describe  # a YAML library is slow to import

    depth = _flow_depth(block)
    if depth > DEEPEST:
        return {}, f"lists nested {depth} deep; at most {DEEPEST} are read", 0
    try:
        loaded: Any = NoteHandler().load(block.replace("\t", "    ") if "\t" in block else block)
        if loaded is None:
            return {}, None, 0
        if not isinstance(loaded, dict):
            return {}, "the frontmatter is not a list of `key: value` lines", 0
        return _plain_copy(loaded), None, 0
    except YAML_PROBLEMS as error:
        problem, line = describe(error)
        return {}, problem, line
    except RecursionError:
        return {}, "the frontmatter is nested too deep", 0


def _plain_copy(loaded: Any) -> dict[str, object]:
    """With text as keys, and every alias written out, which is where a bomb would go off: so it is counted."""
    left = MOST_VALUES

    def copy(value: Any) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"the frontmatter stands for more than {MOST_VALUES:,} values")
        if isinstance(value, dict):
            items: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return {str(key): copy(inner) for key, inner in items.items()}
        if isinstance(value, list | tuple | set):
            members: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return [copy(inner) for inner in members]
        if value is None or isinstance(value, str | int | float | bool):
            return value
        return str(value)

    copied = copy(loaded)
    assert isinstance(copied, dict)
    return copied  # pyright: ignore[reportUnknownVariableType]


def _flow_depth(block: str) -> int:
    depth = deepest = 0
    for letter in re.findall(r"[\[\]{}]", block):
        depth += 1 if letter in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _salvage(block: str) -> dict[str, object]:
    """The one-line `key: value` pairs of a block that is not YAML: people do write `title: Deploys: blue first`."""
    found: dict[str, object] = {}
    for line in block.splitlines():
        pair = re.match(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*$", line, re.ASCII)
        if pair is None or pair[2][0] in "&*!|>{}%":
            continue
        text = pair[2]
        if text[0] == "[":
            found[pair[1]] = [part.strip(" \"'") for part in text.strip("[] ").split(",") if part.strip(" \"'")]
        else:
            found[pair[1]] = resolve_scalar(text.strip("\"'"))
    return found
