"""Memories as JSON (mem0 and others) or as lines of text.

The services agree on little but a text and perhaps an id, dates and categories. Everything else is kept together under
`import_metadata`, where it cannot pass for a field of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from co_cli.importers import items
from co_cli.importers.archive import Export, Member
from co_cli.importers.items import Entry, Item, as_line, as_list, as_object, as_text, first_text, skipped

MEM0 = re.compile(r".*\.(?:json|jsonl|ndjson)$", re.I)
TEXT_KEYS = ("memory", "content", "text", "value", "data")
GONE = ("deleted", "archived")
KEPT_KEYS = ("user_id", "agent_id", "app_id", "run_id", "app", "actor_id", "memory_type", "source_type")
MAX_METADATA = 2_000
LINE = re.compile(r"\s*(?:[-*+\u2022]\s+|\d{1,4}[.)]\s+)?(?:\[([^\]\n]{4,40})\]\s*[-\u2013\u2014:.]?\s*)?(.*)$")
UNDATED = ("unknown", "no date", "undated", "date unknown")


def read_mem0(export: Export) -> Iterator[Entry]:
    """The result of `get_all`, a list, JSON Lines, or the zip of OpenMemory."""
    for place, value in export.values(export.matching(MEM0)):
        yield memory_item(value, place)


def memory_item(value: object, place: str) -> Entry:
    """The memory that a JSON value is; else a failure."""
    found = as_object(value) or {"text": value}
    text = first_text(found, *TEXT_KEYS).strip()
    if not text:
        if any(isinstance(found.get(key), str) for key in TEXT_KEYS):
            return skipped(place, "memory", "", "it is empty")
        return items.failed(place, f"no conversation, and no memory with a text ({', '.join(TEXT_KEYS)})")
    state = as_text(found.get("state"))
    if state in GONE or found.get("deleted_at"):
        return skipped(place, "memory", as_line(text)[:80], f"it is {state or 'deleted'} there")
    metadata = as_object(found.get("metadata"))
    categories = _names(found.get("categories")) or _names(found.get("category"))
    others = {**{key: found.get(key) for key in KEPT_KEYS}, **metadata, "tags": None, "category": None}
    kept = {as_text(key): line for key, one in others.items() if as_text(key) and (line := _plain(one))}
    fields = {"valid_until": items.moment_of(found.get("expiration_date")), "import_metadata": kept}
    return Item(
        place=place,
        id=items.id_of(found, text),
        noun="memory",
        text=text,
        source="memory",
        tags=(*categories, *_names(found.get("tags")), *_names(metadata.get("tags"))),
        category=next(iter((*_names(metadata.get("category")), *categories)), None),
        fields=items.dates_of(found)
        | {key: one for key, one in fields.items() if one and len(str(one)) <= MAX_METADATA},
    )


def memory_lines(export: Export, member: Member) -> Iterator[Entry]:
    """One memory a line, as copied from a settings page, with bullets, numbers and dates."""
    text = (export.read(member) or b"").decode("utf-8-sig", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        found = LINE.match(as_text(line))
        if found is None or line.startswith(("#", "```", "~~~")):
            continue
        created = items.moment_of(found[1])
        dated = not found[1] or created or found[1].casefold() in UNDATED
        said = (found[2] if dated else f"[{found[1]}] {found[2]}").strip()
        if re.search(r"\w", said):
            fields: dict[str, object] = {"created": created} if created else {}
            place = f"{export.place(member)}, line {number}"
            yield Item(place, items.id_of({}, said), "memory", said, source="memory", fields=fields)


def _names(value: object) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else as_list(value)
    return tuple(filter(None, (as_line(as_object(one).get("name")) or as_line(one) for one in listed)))


def _plain(value: object) -> str:
    """A value that fits on a line of frontmatter."""
    return str(value) if isinstance(value, int | float) else ", ".join(_names(value))
