"""The part of YAML that nearly all frontmatter is written in, read line by line; None for anything beyond it.

Twenty times faster than a YAML library, and a one-file sync needs not import one. It accepts only what it reads
exactly as YAML would: a property test compares the two. Also home of what a bare scalar means to us.
"""

from __future__ import annotations

import re

Plain = str | int | float | bool | None

KEY = re.compile(r"([A-Za-z_][\w-]*):(?:[ ]+(.*))?$", re.ASCII)
ITEM = re.compile(r"[ ]*-[ ]+(\S.*)$")
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$", re.ASCII)
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}$", re.ASCII)
NOT_FIRST = frozenset("&*!|>%@`\"'[]{}#,?:-=<~")
"""A plain scalar that starts with one of these means something else, or needs a closer look."""


def resolve_scalar(text: str) -> Plain:
    """What an unquoted word means: null, true, false, a number that prints as it was written, else the text itself.

    Unlike YAML 1.1, `NO` and `on` stay words, `1.10` stays a version, and dates stay the text that was written:
    whoever needs a date reads it with `moments.read_moment`.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if INTEGER.match(text):
        return int(text)
    if DECIMAL.match(text):
        number = float(text)
        return number if repr(number) == text else text
    return text


def read_plain(block: str) -> dict[str, object] | None:
    """The mapping, or None if the block uses anything but `key: scalar`, `key: [a, b]` and lists of scalars."""
    found: dict[str, object] = {}
    items: list[Plain] | None = None
    open_key = ""
    for line in block.replace("\r\n", "\n").split("\n"):
        if not line.isprintable():
            return None
        if not line or line.isspace() or line[0] == "#":
            continue
        key = KEY.match(line)
        if key is None:
            item = ITEM.match(line)
            if item is None or not open_key:
                return None
            value = _scalar(item[1].rstrip(" "))
            if value is _BEYOND:
                return None
            if items is None:
                items = []
                found[open_key] = items
            items.append(value)  # pyright: ignore[reportArgumentType]
            continue
        name, rest = key[1], (key[2] or "").rstrip(" ")
        if name in found or resolve_scalar(name) != name:
            return None
        items, open_key = None, ""
        if not rest:
            found[name], open_key = None, name
        elif rest[0] == "[":
            values = _flow_list(rest)
            if values is None:
                return None
            found[name] = values
        else:
            value = _scalar(rest)
            if value is _BEYOND:
                return None
            found[name] = value
    return found


_BEYOND = object()


def _scalar(text: str) -> object:
    first = text[0]
    if first in "\"'":
        inside = text[1:-1]
        closed = len(text) > 1 and text[-1] == first
        return inside if closed and first not in inside and "\\" not in inside else _BEYOND
    if first in NOT_FIRST and not INTEGER.match(text) and not DECIMAL.match(text):
        return _BEYOND
    if ": " in text or " #" in text or text[-1] == ":":
        return _BEYOND
    return resolve_scalar(text)


def _flow_list(text: str) -> list[object] | None:
    if text[-1] != "]":
        return None
    inside = text[1:-1].strip(" ")
    if not inside:
        return []
    values: list[object] = []
    for part in inside.split(","):
        part = part.strip(" ")
        if not part or any(letter in part for letter in "[]{}\"'?:"):
            return None
        value = _scalar(part)
        if value is _BEYOND:
            return None
        values.append(value)
    return values
