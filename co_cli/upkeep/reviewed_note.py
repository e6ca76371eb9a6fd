"""A note as the checks of a review see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from co_cli.ground.values import members_of
from co_cli.notes.dates import edge_for


@dataclass(frozen=True, slots=True)
class ReviewedNote:
    """A note with everything that the checks look at."""

    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: Sequence[str]
    category: str | None
    fingerprint: str
    valid_until: float | None
    superseded: bool
    body: str
    frontmatter: Mapping[str, object]
    links: Sequence[str]

    @property
    def pinned(self) -> bool:
        return self.frontmatter.get("loading") == "always"

    @property
    def aliases(self) -> list[str]:
        return [alias for key in ("aliases", "alias") for alias in self.names(key)]

    def expired(self, now: float) -> bool:
        return self.valid_until is not None and self.valid_until <= edge_for(self.valid_until, now)

    def names(self, key: str) -> list[str]:
        """The notes that a field names: one or a list, with or without the brackets of a link."""
        members = members_of(self.frontmatter.get(key))
        texts = (
            str(member).removeprefix("[[").removesuffix("]]").partition("|")[0].strip() for member in members if member
        )
        return [text for text in texts if text]
