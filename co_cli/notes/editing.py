"""Change single fields or tags of a note's text, or its body, and leave every other byte as it is.

python-frontmatter rewrites the whole block; this keeps comments, key order, quotes, line endings and unknown keys. What
cannot be changed without guessing (broken YAML, a root that is not `key: value` lines) is refused, and every edit is
read back before it is returned.
"""

from __future__ import annotations

import re
from typing import cast

from co_cli.ground.errors import FrontmatterError, InvalidInputError
from co_cli.ground.values import to_utf8
from co_cli.notes.frontmatter import HANDLER, Frontmatter, read_frontmatter, render_value, resolve_scalar
from co_cli.notes.markdown import blocks, headings

FIELD_NAME = re.compile(r"[^\W_](?:[\w .-]*\w)?\Z|_\w+\Z")
TOP_KEY = re.compile(r"(\"[^\"]*\"|'[^']*'|[^\s#'\"\[\]{},&*!|>%@`-][^:\n]*?|-[^\s:][^:\n]*?)[ \t]*:(?=[ \t\r\n]|$)")
ONE_LINE = re.compile(
    r"""([ \t]+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[(?:[^\[\]{}"']|"[^"]*"|'[^']*')*\]"""
    r"""|[^\s"'\[{&*!|>#](?:(?![ \t]#).)*?)([ \t]+#.*)?$"""
)
"""The gap, the value and the comment of a field on one line."""
MOST_HEADINGS = 20
"""Headings that are named if one is not there."""
ITEM = re.compile(r"[ \t]*-[ \t]+(?=[^ \t\r\n])")


class Tags(tuple[str, ...]):
    """All the tags that a note should have. As the value of `tags`, those that stay keep their spelling."""


def clean_tag(tag: object) -> str:
    """Without `#` and blanks, in lower case."""
    return re.sub(r"[\s,\[\]{}\"']+", "-", to_utf8(str(tag)).strip().lstrip("#").strip()).casefold()


def render_note(metadata: dict[str, object], body: str) -> str:
    """The text of a new note; fields that are None or empty are left out."""
    kept = {key: value for key, value in metadata.items() if value not in (None, "", [], ())}
    for key in kept:
        require_field_name(key)
    return _new_block(kept, "\n") + body.strip("\n") + "\n"


def set_fields(text: str, fields: dict[str, object], path: str = "note") -> str:
    """`text` with these frontmatter fields; None removes a field."""
    front = read_frontmatter(text)
    fields = _with_tags(front, fields, path)
    fields = {key: value for key, value in fields.items() if not _has_already(front, key, value)}
    if not fields:
        return text
    for key in fields:
        require_field_name(key)
    if front.problem:
        raise FrontmatterError(path, front.problem_line, f"{front.problem}; fix it, then change the field")
    if not _has_block(front):
        kept = {key: value for key, value in fields.items() if value is not None}
        newline = "\r\n" if "\r\n" in text else "\n"
        return text[: front.start] + _new_block(kept, newline) + text[front.start :] if kept else text
    newline = "\r\n" if "\r\n" in text[: front.body] else "\n"
    lines = text[front.start : front.end].splitlines(keepends=True)
    for key, value in fields.items():
        lines = _set_one(lines, key, value, newline)
    edited = text[: front.start] + "".join(lines) + text[front.end :]
    if _reads_back(edited, front.metadata, fields):
        return edited
    raise FrontmatterError(path, 2, f"{', '.join(fields)} cannot be changed safely here; edit the file by hand")


def set_body(text: str, body: str) -> str:
    """`text` with another body; the frontmatter keeps every byte."""
    front = read_frontmatter(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = body.replace("\r\n", "\n").strip("\n") + "\n"
    head = text[: front.body]
    if head and not head.endswith("\n") and _has_block(front):
        head += newline
    if not head and read_frontmatter(body).body:
        head = _new_block({}, newline)  # otherwise the start of this body would be read as frontmatter
    return head + body.replace("\n", newline)


def set_section(body: str, heading: str, text: str, append: bool = False) -> str:
    """A text with the part below a heading replaced, up to the next heading of its level, or with more at its end.

    Raises InvalidInputError if there is no such heading, or more than one.
    """
    lines, name = body.split("\n"), heading.strip("# ")
    every = list(headings(lines))
    found = [place for place, here in enumerate(every) if here.text.strip().casefold() == name.casefold()]
    if len(found) != 1:
        there = ", ".join(here.text for here in every[:MOST_HEADINGS]) or "none"
        count = f"{len(found)} sections are" if found else "no section is"
        raise InvalidInputError(f"{count} called {name!r}; the headings are: {there}")
    section = every[found[0]]
    start = next(block.end for block in blocks(lines) if block.start == section.line)
    end = next((here.line for here in every[found[0] + 1 :] if here.level <= section.level), len(lines))
    kept = "\n".join(lines[start:end]).strip("\n") if append else ""
    parts = ["\n".join(lines[:start]), kept, text.strip("\n"), "\n".join(lines[end:])]
    return "\n\n".join(part for part in parts if part.strip())


def require_field_name(key: str) -> None:
    """Refuse a name that frontmatter would read as something else."""
    if not FIELD_NAME.match(key) or str(resolve_scalar(key)) != key:
        raise InvalidInputError(f"{key!r} is not a valid field name: use letters, digits, - and _")


def _has_block(front: Frontmatter) -> bool:
    return front.body > front.start


def _has_already(front: Frontmatter, key: str, value: object) -> bool:
    if front.problem or value is None or key not in front.metadata:
        return False
    return repr(front.metadata[key]) == repr(_listed(value))  # 1 is not true


def _reads_back(edited: str, before: dict[str, object], fields: dict[str, object]) -> bool:
    """Does the edited text read as exactly the wanted change?"""
    wanted = {**before, **fields}
    wanted = {key: _listed(value) for key, value in wanted.items() if key not in fields or value is not None}
    front = read_frontmatter(edited)
    return not front.problem and front.metadata == wanted


def _listed(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def _new_block(fields: dict[str, object], newline: str) -> str:
    lines = HANDLER.export(fields).split("\n") if fields else []
    return newline.join(["---", *lines, "---", ""])


def _set_one(lines: list[str], key: str, value: object, newline: str) -> list[str]:
    span = _span_of(lines, key)
    if span is None:
        return lines if value is None else [*lines, HANDLER.export({key: value}) + newline]
    first, last = span
    changed = [] if value is None else [_replaced(lines[first:last], key, value)]
    return [*lines[:first], *changed, *lines[last:]]


def _replaced(lines: list[str], key: str, value: object) -> str:
    """A field's line with another value. Of a single line, the key, the gap and a comment stay as they are."""
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    found = TOP_KEY.match(lines[0])
    parts = ONE_LINE.match(lines[0][found.end() :].rstrip("\r\n")) if found and len(lines) == 1 else None
    if found and parts:
        return f"{lines[0][: found.end()]}{parts[1]}{render_value(value)}{parts[3] or ''}{ending}"
    if isinstance(value, list):
        edited = "".join(_with_items(lines, cast("list[object]", value), ending))
        if read_frontmatter(f"---\n{edited}---\n").metadata == {key: value}:
            return edited
    return HANDLER.export({key: value}) + ending


def _with_items(lines: list[str], values: list[object], ending: str) -> list[str]:
    """A list with an item on each line, with these values. The lines of items that stay keep quotes and comments."""
    edited: list[str] = []
    missing, end, dash = list(values), 0, ""
    for line in lines:
        item = ITEM.match(line)
        if item:
            value = read_frontmatter(f"---\n_:\n{line}---\n").metadata.get("_")
            if value not in [[one] for one in missing]:
                continue
            missing.remove(cast("list[object]", value)[0])
            end, dash = len(edited) + 1, item[0]
        edited.append(line)
    edited[end:end] = [f"{dash}{render_value([value])[1:-1]}{ending}" for value in missing]
    return edited


def _span_of(lines: list[str], key: str) -> tuple[int, int] | None:
    """A key's first line and the one after its last. Of a duplicate key the last, which is the one that counts."""
    starts = [number for number, line in enumerate(lines) if _key_at(line) is not None]
    for place in reversed(range(len(starts))):
        first = starts[place]
        if _key_at(lines[first]) == key:
            last = starts[place + 1] if place + 1 < len(starts) else len(lines)
            while last > first + 1 and re.match(r"(?:[ \t]*|#.*)\r?\n?$", lines[last - 1]):
                last -= 1  # blank lines and comments above the next key belong to that key
            return first, last
    return None


def _key_at(line: str) -> str | None:
    found = TOP_KEY.match(line)
    return found[1].strip("\"'") if found else None


def _with_tags(front: Frontmatter, fields: dict[str, object], path: str) -> dict[str, object]:
    """The fields, with `Tags` replaced by a list for the key that the file uses. What is not words is not dropped."""
    tags = fields.get("tags")
    if not isinstance(tags, Tags):
        return fields
    key = "tag" if "tag" in front.metadata and "tags" not in front.metadata else "tags"
    written = front.metadata.get(key)
    listed = cast("list[object]", written) if isinstance(written, list) else [] if written is None else [written]
    if isinstance(written, str):
        listed = [part.strip() for part in re.split(r"," if "," in written else r"\s+", written) if part.strip()]
    if any(isinstance(tag, dict | list) for tag in listed):
        raise FrontmatterError(path, 2, f"`{key}` is not a list of words; edit the file by hand")
    kept = [one for one in listed if clean_tag(one) in ("", *tags)]  # a lone `#` is not a tag, and stays
    new = [tag for tag in tags if tag not in map(clean_tag, kept)]
    unchanged = len(kept) == len(listed) and not new
    fields = {name: value for name, value in fields.items() if name != "tags"}
    return {**fields, key: written if unchanged else [*kept, *new] or None}
