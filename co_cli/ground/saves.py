"""A note to be saved or changed, and the receipt.

A field of notes that saves have a name for is one entry of `NoteFields`. Python, the command line, the HTTP API and the
tools of agents read their names and types here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

from co_cli.ground.errors import KeyReusedError
from co_cli.ground.values import OwnSource, fields_of

Outcome = Literal["created", "updated", "unchanged", "duplicate", "restored"]
OnConflict = Literal["skip", "overwrite", "error"]
OnRelated = Literal["report", "keep", "supersede"]
Ack = Literal["indexed", "pushed"]
"""What of a save in a team to wait for, if a server makes it."""
ON_CONFLICT: tuple[OnConflict, ...] = ("skip", "overwrite", "error")
"""What to do with something that is added and exists already."""
ON_RELATED: tuple[OnRelated, ...] = ("report", "keep", "supersede")
"""What a save does with related memories: name them, ignore them, or supersede them."""


@dataclass(frozen=True, slots=True)
class NoteField:
    """One entry of the table."""

    form: Literal["text", "texts", "share"]
    """What a value looks like. A share is a number from 0 to 1."""
    flags: tuple[str, ...] = ()
    """Of the command line, the long one last. None: only `--set`."""
    help: str = ""
    new_help: str = ""
    """Of `co edit`, where it differs."""
    for_agents: bool = False
    """Tools have an argument for it, which costs tokens in every request."""
    hint: str = ""
    """For agents that save a note: what it looks like."""
    new_hint: str = ""
    """And for those that change one."""

    @property
    def word(self) -> str:
        """Its name on the command line: `valid_until` for `--valid-until`."""
        return self.flags[-1].lstrip("-").replace("-", "_")


class NoteFields(TypedDict, total=False):
    """The frontmatter that saves have a name for. The annotation of each is its entry."""

    type: Annotated[str | None, NoteField("text", for_agents=True, hint="Of an entity: person, project, thing")]
    aliases: Annotated[Sequence[str] | None, NoteField("texts", for_agents=True)]
    url: Annotated[
        str | None, NoteField("text", ("--url",), "the link that it is about; for a resource", for_agents=True)
    ]
    tags: Annotated[
        Sequence[str] | None,
        NoteField(
            "texts",
            ("-t", "--tag"),
            "a tag (repeatable)",
            new_help="replace its tags (repeatable)",
            for_agents=True,
            new_hint="All its tags.",
        ),
    ]
    category: Annotated[
        str | None,
        NoteField(
            "text",
            ("--category",),
            "preference, fact, decision, correction, procedure, ...",
            for_agents=True,
            hint="Such as preference, fact or decision.",
        ),
    ]
    importance: Annotated[
        float | None, NoteField("share", ("--importance",), "how much it matters", for_agents=True, hint="0 to 1")
    ]
    valid_until: Annotated[str | None, NoteField("text", for_agents=True, hint="2026-03-01")]


NOTE_FIELDS: dict[str, NoteField] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(NoteFields, include_extras=True).items()
}


class DraftOptions(NoteFields, total=False):
    """What a new note may have besides its text and title; `Draft` says what each means."""

    provenance: str
    source: OwnSource
    fields: Mapping[str, object] | None
    tier: str | None
    supersedes: str | Sequence[str]
    on_related: OnRelated
    path: str | None
    key: SaveKey | None
    ack: Ack


class ChangeOptions(NoteFields, total=False):
    """What may change besides the text; `Change` says what each means."""

    title: str | None
    fields: Mapping[str, object] | None
    version: str | None
    path: str | None
    keep: bool
    ack: Ack


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


def make_draft(content: str, title: str | None, options: DraftOptions) -> Draft:
    return Draft(content, title, **_with_fields(options, Draft))


def make_change(content: str | None, options: ChangeOptions) -> Change:
    return Change(content, **_with_fields(options, Change))


def _with_fields(options: DraftOptions | ChangeOptions, kind: type[Draft | Change]) -> dict[str, Any]:
    """Options, with the named fields that a draft or change has no place for in `fields`. Empty ones are removed."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None and name != "ack"}
    named = {name: given.pop(name) for name in NOTE_FIELDS if name in given and name not in kind.__annotations__}
    others = {name: value if value or value == 0 else None for name, value in named.items()}
    return {**given, "fields": {**(given.get("fields") or {}), **others}}


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
    """The commit that has it. Until it is pushed, another commit may replace it."""
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
