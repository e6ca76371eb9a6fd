"""Change single fields or tags of a note's text, or its body, and leave every other byte as it is.

python-frontmatter writes a block anew; this keeps comments, key order, quotes, line endings and unknown keys. What
cannot be changed without guessing (broken YAML, a root that is not `key: value` lines) is refused, and every edit is
read back before it is returned.
"""

from __future__ import annotations

import re
from typing import cast

from co_cli.errors import FrontmatterError, InvalidInputError
from co_cli.notes.frontmatter import HANDLER, Frontmatter, read_frontmatter, render_value, resolve_scalar
from co_cli.values import to_utf8

FIELD_NAME = re.compile(r"[^\W_](?:[\w .-]*\w)?\Z|_\w+\Z")
TOP_KEY = re.compile(r"(\"[^\"]*\"|'[^']*'|[^\s#'\"\[\]{},&*!|>%@`-][^:\n]*?|-[^\s:][^:\n]*?)[ \t]*:(?=[ \t\r\n]|$)")
ONE_LINE = re.compile(
    r"""([ \t]+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\[\]{}"']*\]|[^\s"'\[{&*!|>#](?:(?![ \t]#).)*?)([ \t]+#.*)?$"""
)
"""The gap, the value and the comment of a field on one line."""

FLOW_LIST = re.compile(r"([^\[\n]*\[)([^\[\]{}\n]*)(\][ \t]*(?:#[^\n]*)?\r?\n?)\Z")
FLOW_ITEM = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"'#]+?)[ \t]*(?:,|\Z)""")
BLOCK_ITEM = re.compile(
    r"""([ \t]*-[ \t]+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\[{&*!|>#"'][^\n]*?)(?:[ \t]+#[^\n]*)?\r?\n?\Z"""
)
BLANK_OR_COMMENT = re.compile(r"[ \t]*(?:#[^\n]*)?\r?\n?\Z")


class Tags(tuple[str, ...]):
    """All the tags that a note should have, clean. As the value of `tags`, it keeps how the file spells the others."""


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
    fields, tags = _with_tag_values(front, fields)
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
    for spelled in dict.fromkeys((tags, None)):  # if the tags cannot be edited in place, write the list again
        lines = text[front.start : front.end].splitlines(keepends=True)
        for key, value in fields.items():
            lines = _set_one(lines, key, value, newline, spelled if key in ("tags", "tag") else None)
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


def _set_one(lines: list[str], key: str, value: object, newline: str, tags: Tags | None) -> list[str]:
    span = _span_of(lines, key)
    if span is None:
        return lines if value is None else [*lines, HANDLER.export({key: value}) + newline]
    first, last = span
    if value is None:
        return [*lines[:first], *lines[last:]]
    field = lines[first:last]
    in_place = _edit_tags(field, tags) if tags is not None and not isinstance(value, str) else None
    return [*lines[:first], *(in_place or [_replaced(field, key, value)]), *lines[last:]]


def _replaced(lines: list[str], key: str, value: object) -> str:
    """A field's line with another value. Of a single line, the key, the gap and a comment stay as they are."""
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    found = TOP_KEY.match(lines[0])
    parts = ONE_LINE.match(lines[0][found.end() :].rstrip("\r\n")) if found and len(lines) == 1 else None
    if found and parts:
        return f"{lines[0][: found.end()]}{parts[1]}{render_value(value)}{parts[3] or ''}{ending}"
    return HANDLER.export({key: value}) + ending


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


def _with_tag_values(front: Frontmatter, fields: dict[str, object]) -> tuple[dict[str, object], Tags | None]:
    """The fields, with `Tags` replaced by the value of the key that the file uses, and those `Tags`."""
    tags = fields.get("tags")
    if not isinstance(tags, Tags):
        return fields, None
    key = "tag" if "tag" in front.metadata and "tags" not in front.metadata else "tags"
    fields = {name: value for name, value in fields.items() if name != "tags"}
    return {**fields, key: _tag_value(front.metadata.get(key), tags)}, tags


def _tag_value(written: object, tags: Tags) -> object:
    """The field's value with these tags: a list, or text if it was text. Tags that stay keep their spelling."""
    if isinstance(written, str):
        listed: list[object] = [part for part in re.split(r"," if "," in written else r"\s+", written) if part.strip()]
    else:
        listed = cast("list[object]", written) if isinstance(written, list) else [] if written is None else [written]
    kept = [one for one in listed if _stays(clean_tag(one), tags)]
    there = {clean_tag(one) for one in kept}
    new = [tag for tag in tags if tag not in there]
    if len(kept) == len(listed) and not new:
        return cast("object", written)
    if isinstance(written, str) and kept:
        return (", " if "," in written else " ").join(str(one).strip() for one in (*kept, *new))
    return [*kept, *new] or None


def _edit_tags(lines: list[str], tags: Tags) -> list[str] | None:
    """A list's lines without the tags that are gone and with new ones at its end; None if it has another form."""
    return _edit_flow_list(lines[0], tags) if len(lines) == 1 else _edit_block_list(lines, tags)


def _edit_flow_list(line: str, tags: Tags) -> list[str] | None:
    found = FLOW_LIST.match(line)
    items = None if found is None else _flow_items(found[2])
    if found is None or items is None:
        return None
    kept = [item for item in items if _stays(_tag_of(item), tags)]
    if kept and kept[0] is not items[0]:
        kept[0] = kept[0].lstrip()
    inside = ",".join([*kept, *(f" {tag}" for tag in _missing(items, tags))])
    return [found[1] + (inside if kept else inside.lstrip()) + found[3]]


def _flow_items(inside: str) -> list[str] | None:
    found: list[str] = []
    place = 0
    while place < len(inside.rstrip()):
        item = FLOW_ITEM.match(inside, place)
        if item is None:
            return None
        found.append(inside[place : item.end()].removesuffix(","))
        place = item.end()
    return found


def _edit_block_list(lines: list[str], tags: Tags) -> list[str] | None:
    rows = [BLOCK_ITEM.match(line) for line in lines]
    items = [row for row in rows if row]
    others = [line for line, row in zip(lines[1:], rows[1:], strict=True) if row is None]
    if not items or rows[0] or not all(map(BLANK_OR_COMMENT.match, (lines[0].partition(":")[2], *others))):
        return None
    there = [str(row[2]) for row in items]
    kept: list[str] = []
    for line, row in zip(lines, rows, strict=True):
        if row is None or _stays(_tag_of(str(row[2])), tags):
            kept.append(line)
        if row is items[-1]:
            ending = "\r\n" if line.endswith("\r\n") else "\n"
            kept += [f"{items[-1][1]}{tag}{ending}" for tag in _missing(there, tags)]
    return kept


def _stays(tag: str, tags: Tags) -> bool:
    """Items that are not tags, such as a lone `#`, stay."""
    return not tag or tag in tags


def _missing(items: list[str], tags: Tags) -> list[str]:
    """The tags that the list lacks, as YAML."""
    there = {_tag_of(item) for item in items}
    return [render_value([tag])[1:-1] for tag in tags if tag not in there]


def _tag_of(item: str) -> str:
    text = item.strip()
    return clean_tag(text[1:-1] if text[:1] in ("'", '"') else text)
