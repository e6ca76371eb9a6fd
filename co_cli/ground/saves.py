"""A note to be saved or changed, and the receipt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from co_cli.ground.errors import KeyReusedError
from co_cli.ground.values import OwnSource, fields_of

Outcome = Literal["created", "updated", "unchanged", "duplicate", "restored"]
OnConflict = Literal["skip", "overwrite", "error"]
OnRelated = Literal["report", "keep", "supersede"]
ON_CONFLICT: tuple[OnConflict, ...] = ("skip", "overwrite", "error")
"""What to do with something that is added and exists already."""
ON_RELATED: tuple[OnRelated, ...] = ("report", "keep", "supersede")
"""What a save does with related memories: name them, ignore them, or supersede them."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A note to be saved."""

    content: str
    title: str | None = None
    """None: made from the first sentence."""
    tags: Sequence[str] | None = None
    category: str | None = None
    provenance: str = "user"
    source: OwnSource = "memory"
    fields: Mapping[str, object] | None = None
    """Other frontmatter keys, such as `importance`."""
    tier: str | None = None
    """The vault to save to: `user`, `project` or `team`; None for the open one."""
    supersedes: str | Sequence[str] = ()
    """Refs of notes that it replaces."""
    on_related: OnRelated = "report"
    path: str | None = None
    """Its file in the folder of its kind, such as `people/mara.md`, or a folder: `people/`. None: by its title."""
    key: SaveKey | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a note. None leaves a part as it is; None as the value of a field removes the field."""

    content: str | None = None
    title: str | None = None
    tags: Sequence[str] | None = None
    category: str | None = None
    fields: Mapping[str, object] | None = None
    version: str | None = None
    """The `note.version` that the change is based on; a note of another version is a conflict."""
    path: str | None = None
    """Where its file moves, in the folder of its kind, such as `people/mara.md`, or a folder: `people/`."""
    keep: bool = False
    """Keep a text that is replaced in the trash; without a version, it is always kept."""


@dataclass(frozen=True, slots=True)
class Related:
    """A note that is similar to a new one, and why, such as `82% the same words`."""

    ref: str
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class SaveReceipt:
    """How far a save in a team vault has come."""

    seq: int
    indexed: bool
    committed: str | None
    """The commit that has it. It may be made anew, with another name, until it is pushed."""
    pushed: bool
    """Whether it is at the remote; without a remote, whether it is committed."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The receipt of a save."""

    ref: str
    path: str
    outcome: Outcome
    detail: str = ""
    """The existing note of a duplicate, what the note supersedes, or where an old text is kept."""
    related: tuple[Related, ...] = ()
    """Up to three similar memories, which the new one may supersede."""
    masked: int = 0
    """How many secrets were masked, by the setting `secrets`."""
    seq: int | None = None
    """The number of the save in a team vault, which tells later whether it is committed and pushed."""
    receipt: SaveReceipt | None = None
    """How far it has come, if a server answered."""

    @property
    def summary(self) -> str:
        """The receipt in words, on one line."""
        said = f"{self.outcome}: {self.detail}" if self.detail else f"{self.outcome} {self.ref}"
        return f"{said} ({masked_text(self.masked)})" if self.masked else said


def masked_text(count: int) -> str:
    """`2 secrets masked`."""
    return f"{count:,} secret{'' if count == 1 else 's'} masked"


@dataclass(frozen=True, slots=True)
class SaveKey:
    """A client's key for one save, so that it can be sent again after a timeout. Both parts are hashes."""

    key: str
    """Who sent which key."""
    request: str
    """What was asked."""

    def write(self, saved: Saved) -> str:
        """An answer as it is kept."""
        return json.dumps({**fields_of(saved), "related": [fields_of(note) for note in saved.related]})

    def read(self, request: str, answer: str, seq: int | None = None) -> Saved:
        """A kept answer to a request. Raises KeyReusedError if this is another request."""
        if request != self.request:
            raise KeyReusedError
        told: dict[str, Any] = json.loads(answer)
        told["related"], told["seq"] = tuple(Related(**note) for note in told["related"]), seq
        return Saved(**told)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased with a note."""

    ref: str
    files: int
    """Its file and copies in the trash."""
    rows: int
    """Entries of its history, of the query log and of other logs."""
    turns: int
    """Of conversations."""
    left: tuple[str, ...]
    """Where it may still be, each with the command that removes it."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Where a forgotten note went."""

    ref: str
    path: str
    trash: str
    valid_again: tuple[str, ...] = ()
    """Refs of notes that it superseded, and that nothing supersedes now: searches find them again."""
