"""The properties of a note, the fields of its frontmatter, as the text that people read and search for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from co_cli.ground.values import members_of
from co_cli.notes.wikilinks import WIKILINK

NOT_TEXT = frozenset(
    """
    title tags tag context kind created updated modified date provenance valid_from valid_until superseded_by loading
    agent participants session user importance limit
    """.split()
)
"""Fields that are searched and shown elsewhere, or say nothing that people search for."""


def properties_of(metadata: Mapping[str, object]) -> dict[str, str]:
    """The value of each property as one line; those of a list with commas, and links without brackets."""
    found = {key: ", ".join(_texts(value)) for key, value in metadata.items() if key not in NOT_TEXT}
    return {key: text for key, text in found.items() if text}


def properties_text(metadata: Mapping[str, object]) -> str:
    """A line for each property: `director: Ridley Scott`."""
    return "\n".join(f"{key}: {text}" for key, text in properties_of(metadata).items())


def _texts(value: object) -> Iterator[str]:
    for member in members_of(value):
        if isinstance(member, list):  # `[[A note]]` without quotes is a list in a list
            inside = cast("list[object]", member)
            yield from (text for scalar in inside if not isinstance(scalar, list) for text in _texts(scalar))
        elif member is not None and not isinstance(member, bool | dict):
            text = " ".join(WIKILINK.sub(_unlinked, str(member)).split())
            yield from (text,) if text else ()


def _unlinked(link: re.Match[str]) -> str:
    """What is shown for a link, and the name of its note if that is another."""
    name, _, shown = link[0][2:-2].partition("|")
    name, shown = name.strip(), shown.strip()
    return f"{shown} ({name})" if shown and shown != name else name
