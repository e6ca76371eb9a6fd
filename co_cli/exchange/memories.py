"""One remembered thing, as the services write it in JSON or as lines of text, into a memory.

They agree on little but that there is a text and perhaps an id, dates and categories; what else stands beside it is
kept together under `import_metadata`, where it cannot pose as a field of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from co_cli.exchange.items import (
    Entry,
    Left,
    Text,
    Trouble,
    as_list,
    as_object,
    as_text,
    called,
    first_moment,
    first_text,
    moment_of,
    text_hash,
)
from co_cli.service.saving import title_from

TEXT_KEYS = ("memory", "content", "text", "value", "data")
LISTS = ("results", "memories", "items")
"""Members of an object that hold the list of memories."""
GONE = ("deleted", "archived")
KEPT_KEYS = ("user_id", "agent_id", "app_id", "run_id", "app", "actor_id", "memory_type", "source_type")
LONGEST_METADATA = 2_000
LINE = re.compile(r"\s*(?:[-*+\u2022]\s+|\d{1,4}[.)]\s+)?(?:\[([^\]\n]{4,40})\]\s*[-\u2013\u2014:.]?\s*)?(.*)$")


def memory_entries(value: object, place: str) -> Iterator[Entry]:
    """The memories in a JSON value: one, or the list that an object holds."""
    holder = as_object(value)
    for key in LISTS:
        if isinstance(holder.get(key), list) and not first_text(holder, *TEXT_KEYS):
            for number, member in enumerate(as_list(holder[key]), 1):
                yield memory_entry(member, f"{place}, {key} {number}")
            return
    yield memory_entry(value, place)


def memory_entry(value: object, place: str) -> Entry:
    if isinstance(value, str):
        text = as_text(value).strip()
        return text_memory(text, place) if text else Left(place, "memory", "", "it is empty")
    found = as_object(value)
    text = first_text(found, *TEXT_KEYS).strip()
    if not text:
        if any(isinstance(found.get(key), str) for key in TEXT_KEYS):
            return Left(place, "memory", "", "it is empty")
        return Trouble(place, f"no memory: {called(value)} without a text ({', '.join(TEXT_KEYS[:3])}, …)")
    state = as_text(found.get("state"))
    if state in GONE or found.get("deleted_at"):
        return Left(place, "memory", title_from(text), f"it is {state or 'deleted'} where it comes from")
    metadata = as_object(found.get("metadata"))
    categories = _words(found.get("categories")) or _words(found.get("category"))
    own = _words(metadata.get("category"))
    expires = moment_of(found.get("expiration_date"))
    return Text(
        place=place,
        id=first_text(found, "id", "uuid") or f"text:{text_hash(text)}",
        noun="memory",
        title=title_from(text),
        text=text,
        source="memory",
        created=first_moment(found, "created_at", "created", "create_time", "created_timestamp", "timestamp"),
        updated=first_moment(found, "updated_at", "updated", "update_time", "modified"),
        tags=(*categories, *_words(found.get("tags")), *_words(metadata.get("tags"))),
        category=next(iter((*own, *categories)), None),
        fields={
            **({"valid_until": expires} if expires else {}),
            **_kept({**{key: found.get(key) for key in KEPT_KEYS}, **metadata}),
        },
    )


def text_memory(text: str, place: str, created: str | None = None) -> Text:
    """A memory of which nothing but its words is known."""
    return Text(place, f"text:{text_hash(text)}", "memory", title_from(text), text, "memory", created=created)


def memory_lines(text: str, place: str) -> Iterator[Entry]:
    """One memory a line, as people copy them out of a settings page: bullets, numbers and dates are understood."""
    for number, line in enumerate(text.splitlines(), 1):
        found = LINE.match(as_text(line))
        if found is None or line.startswith(("#", "```", "~~~")):
            continue
        created = moment_of(found[1])
        said = found[2].strip() if created or not found[1] else f"[{found[1]}] {found[2].strip()}"
        if found[1] and not created and found[1].casefold() in ("unknown", "no date", "undated", "date unknown"):
            said = found[2].strip()
        if re.search(r"\w", said):
            yield text_memory(said, f"{place}, line {number}", created)


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    named = (as_text(as_object(member).get("name")) or as_text(member) for member in as_list(value))
    return tuple(" ".join(word.split()) for word in named if word.strip())


def _kept(metadata: dict[str, object]) -> dict[str, object]:
    """What is plain and short enough for a line of frontmatter."""
    kept = {as_text(key): _plain(value) for key, value in metadata.items() if key not in ("tags", "category")}
    kept = {key: value for key, value in kept.items() if key and value not in (None, "", [])}
    return {"import_metadata": kept} if kept and len(str(kept)) <= LONGEST_METADATA else {}


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [" ".join(member.split()) for member in map(as_text, cast("list[object]", value)) if member.strip()]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return str(value)
    return " ".join(as_text(value).split())
