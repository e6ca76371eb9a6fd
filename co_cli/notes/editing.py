"""Change single fields of a note's text, or its body, and leave every other byte as it is.

Comments, key order, quoting, line endings and unknown keys survive. What cannot be changed without guessing (broken
YAML, a root that is not `key: value` lines) is refused; and every edit is read back before it is handed out.
"""

from __future__ import annotations

import re

from co_cli.errors import FrontmatterError, InvalidInputError
from co_cli.notes.frontmatter import Frontmatter, read_frontmatter
from co_cli.notes.plain_yaml import resolve_scalar
from co_cli.notes.tag_editing import Tags, in_place, wanted_value
from co_cli.notes.yaml_handler import render_value

FIELD_NAME = re.compile(r"[^\W_](?:[\w .-]*\w)?\Z|_\w+\Z")
TOP_KEY = re.compile(r"(\"[^\"]*\"|'[^']*'|[^\s#'\"\[\]{},&*!|>%@`-][^:\n]*?|-[^\s:][^:\n]*?)[ \t]*:(?=[ \t\r\n]|$)")
ONE_LINE = re.compile(
    r"""([ \t]+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\[\]{}"']*\]|[^\s"'\[{&*!|>#](?:(?![ \t]#).)*?)([ \t]+#.*)?$"""
)


def render_note(metadata: dict[str, object], body: str) -> str:
    """The text of a new note; fields that are None or empty are left out."""
    kept = {key: value for key, value in metadata.items() if value not in (None, "", [], ())}
    for key in kept:
        require_field_name(key)
    lines = [f"{key}: {render_value(value)}" for key, value in kept.items()]
    return "\n".join(["---", *lines, "---", body.strip("\n"), ""])


def set_fields(text: str, fields: dict[str, object], path: str = "note") -> str:
    """`text` with these frontmatter fields; None takes a field away."""
    front = read_frontmatter(text)
    fields, tags = _with_tags(front, fields)
    fields = {key: value for key, value in fields.items() if not _says_already(front, key, value)}
    if not fields:
        return text
    for key in fields:
        require_field_name(key)
    if front.problem:
        raise FrontmatterError(path, front.problem_line, f"{front.problem}; mend it, then change the field")
    if not _has_block(front):
        return _with_new_block(text, front, fields)
    newline = "\r\n" if "\r\n" in text[: front.body] else "\n"
    lines = text[front.start : front.end].splitlines(keepends=True)
    kept = _keeping_tags(lines, tags, fields)
    rest = {key: value for key, value in fields.items() if kept is None or key not in ("tags", "tag") or value is None}
    for way, wanted in ((kept, rest), (lines, fields)):
        if way is None:
            continue
        for key, value in wanted.items():
            way = _set_one(way, key, value, newline)
        edited = text[: front.start] + "".join(way) + text[front.end :]
        if _proven(edited, front.metadata, fields):
            return edited
    raise FrontmatterError(path, 2, f"{', '.join(fields)} cannot be changed safely here; edit the file by hand")


def _with_tags(front: Frontmatter, fields: dict[str, object]) -> tuple[dict[str, object], Tags | None]:
    """The fields with what the file says of its tags beside what they are to be."""
    tags = fields.get("tags")
    if not isinstance(tags, Tags):
        return fields, None
    key = "tag" if "tag" in front.metadata and "tags" not in front.metadata else "tags"
    fields = {name: value for name, value in fields.items() if name != "tags"}
    return {**fields, key: wanted_value(front.metadata.get(key), tags)}, tags


def _keeping_tags(lines: list[str], tags: Tags | None, fields: dict[str, object]) -> list[str] | None:
    """With the tags in place, if that can be; None if they are to be written anew, or stay."""
    key = next((key for key in ("tags", "tag") if isinstance(fields.get(key), list)), None)
    span = _span_of(lines, key) if tags is not None and key else None
    if span is None or tags is None:
        return None
    first, last = span
    changed = in_place(lines[first:last], tags)
    return None if changed is None else [*lines[:first], *changed, *lines[last:]]


def require_field_name(key: str) -> None:
    """Refuse a name that frontmatter would read as something else."""
    if not FIELD_NAME.match(key) or str(resolve_scalar(key)) != key:
        raise InvalidInputError(f"{key!r} is no name for a field: use letters, digits, - and _")


def set_body(text: str, body: str) -> str:
    """`text` with another body; the frontmatter keeps every byte."""
    front = read_frontmatter(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = body.replace("\r\n", "\n").strip("\n") + "\n"
    head = text[: front.body]
    if head and not head.endswith("\n") and _has_block(front):
        head += newline
    if not head and read_frontmatter(body).body:
        head = f"---{newline}---{newline}"  # a body that looks like frontmatter is text: it says nothing of the note
    return head + body.replace("\n", newline)


def _says_already(front: Frontmatter, key: str, value: object) -> bool:
    if front.problem or value is None or key not in front.metadata:
        return False
    return repr(front.metadata[key]) == repr(_plain(value))  # 1 is not true


def add_paragraph(text: str, paragraph: str) -> str:
    """`text` with one more paragraph at its end; every byte that was there stays."""
    newline = "\r\n" if "\r\n" in text else "\n"
    ended = text if text.endswith("\n") else text + newline
    return ended + newline + paragraph.replace("\r\n", "\n").strip("\n").replace("\n", newline) + newline


def _has_block(front: Frontmatter) -> bool:
    return front.body > front.start


def _with_new_block(text: str, front: Frontmatter, fields: dict[str, object]) -> str:
    kept = {key: value for key, value in fields.items() if value is not None}
    if not kept:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    block = ["---", *(f"{key}: {render_value(value)}".rstrip() for key, value in kept.items()), "---", ""]
    return text[: front.start] + newline.join(block) + text[front.start :]


def _set_one(lines: list[str], key: str, value: object, newline: str) -> list[str]:
    span = _span_of(lines, key)
    if span is None:
        return lines if value is None else [*lines, _line(key, value, newline)]
    first, last = span
    if value is None:
        return [*lines[:first], *lines[last:]]
    ending = "\r\n" if lines[first].endswith("\r\n") else "\n"
    new = _line(key, value, ending)
    found = TOP_KEY.match(lines[first])
    if last == first + 1 and found:  # one line: keep how the key is written, the gap, and a comment behind the value
        rest = lines[first][found.end() :].rstrip("\r\n")
        parts = ONE_LINE.match(rest)
        if parts:
            new = f"{lines[first][: found.end()]}{parts[1]}{render_value(value)}{parts[3] or ''}{ending}"
    return [*lines[:first], new, *lines[last:]]


def _span_of(lines: list[str], key: str) -> tuple[int, int] | None:
    """First line and the one after the last of a key; of a doubled key the last, which is the one that counts."""
    starts = [number for number, line in enumerate(lines) if _key_at(line) is not None]
    for place in reversed(range(len(starts))):
        first = starts[place]
        if _key_at(lines[first]) == key:
            last = starts[place + 1] if place + 1 < len(starts) else len(lines)
            while last > first + 1 and re.match(r"(?:[ \t]*|#.*)\r?\n?$", lines[last - 1]):
                last -= 1  # blank lines and flush comments above the next key belong to that one
            return first, last
    return None


def _key_at(line: str) -> str | None:
    found = TOP_KEY.match(line)
    return found[1].strip("\"'") if found else None


def _line(key: str, value: object, newline: str) -> str:
    return f"{key}: {render_value(value)}".rstrip() + newline


def _proven(edited: str, before: dict[str, object], fields: dict[str, object]) -> bool:
    """Does an edit read back as exactly the wanted change?"""
    wanted = {**before, **fields}
    wanted = {key: _plain(value) for key, value in wanted.items() if key not in fields or value is not None}
    front = read_frontmatter(edited)
    return not front.problem and front.metadata == wanted


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
