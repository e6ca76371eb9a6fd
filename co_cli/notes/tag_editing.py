"""Add and drop single tags of a list in frontmatter; those that stay are not written again.

A tag is compared as `clean_tag` makes it, and the owner may have spelled it in another way: `Two Words` stays that.
"""

from __future__ import annotations

import re
from typing import cast

from co_cli.typed import whole

ITEM = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"'#]+?)[ \t]*(?:,|\Z)""")
FLOW = re.compile(r"([^\[\n]*\[)([^\[\]{}\n]*)(\][ \t]*(?:#[^\n]*)?\r?\n?)\Z")
BLOCK_ITEM = re.compile(
    r"""([ \t]*-[ \t]+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\[{&*!|>#"'][^\n]*?)(?:[ \t]+#[^\n]*)?\r?\n?\Z"""
)
NO_ITEM = re.compile(r"[ \t]*(?:#[^\n]*)?\r?\n?\Z")


class Tags(tuple[str, ...]):
    """All the tags that a note is to have, clean. How its file spells those that it has is the owner's matter."""


def clean_tag(tag: object) -> str:
    """Without `#` and blanks, in lower case."""
    return re.sub(r"[\s,\[\]{}\"']+", "-", whole(str(tag)).strip().lstrip("#").strip()).casefold()


def wanted_value(written: object, tags: Tags) -> object:
    """What the field has to say so that these are its tags: what it said, without some and with some more."""
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


def in_place(lines: list[str], tags: Tags) -> list[str] | None:
    """The lines of a list: what stays of it as it is, new tags behind it. None if it is written in another way."""
    return _in_brackets(lines[0], tags) if len(lines) == 1 else _on_lines(lines, tags)


def _in_brackets(line: str, tags: Tags) -> list[str] | None:
    found = FLOW.match(line)
    items = None if found is None else _items(found[2])
    if found is None or items is None:
        return None
    kept = [item for item in items if _stays(_meant(item), tags)]
    if kept and kept[0] is not items[0]:
        kept[0] = kept[0].lstrip()
    inside = ",".join([*kept, *(f" {tag}" for tag in _new(items, tags))])
    return [found[1] + (inside if kept else inside.lstrip()) + found[3]]


def _on_lines(lines: list[str], tags: Tags) -> list[str] | None:
    rows = [BLOCK_ITEM.match(line) for line in lines]
    items = [row for row in rows if row]
    others = [line for line, row in zip(lines[1:], rows[1:], strict=True) if row is None]
    if not items or rows[0] or not all(map(NO_ITEM.match, (lines[0].partition(":")[2], *others))):
        return None
    there = [str(row[2]) for row in items]
    kept: list[str] = []
    for line, row in zip(lines, rows, strict=True):
        if row is None or _stays(_meant(str(row[2])), tags):
            kept.append(line)
        if row is items[-1]:
            ending = "\r\n" if line.endswith("\r\n") else "\n"
            kept += [f"{items[-1][1]}{tag}{ending}" for tag in _new(there, tags)]
    return kept


def _stays(tag: str, tags: Tags) -> bool:
    """What is no tag at all, such as a lone `#`, is none that was dropped."""
    return not tag or tag in tags


def _new(items: list[str], tags: Tags) -> list[str]:
    """Those that are not there yet, as YAML writes them."""
    from co_cli.notes.yaml_handler import render_value  # PyYAML is slow to import, and notes are read without it

    there = {_meant(item) for item in items}
    return [render_value([tag])[1:-1] for tag in tags if tag not in there]


def _items(inside: str) -> list[str] | None:
    found: list[str] = []
    place = 0
    while place < len(inside.rstrip()):
        item = ITEM.match(inside, place)
        if item is None:
            return None
        found.append(inside[place : item.end()].removesuffix(","))
        place = item.end()
    return found


def _meant(item: str) -> str:
    text = item.strip()
    return clean_tag(text[1:-1] if text[:1] in ("'", '"') else text)
