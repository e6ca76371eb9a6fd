"""The frozen values that all layers share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast, get_args

Source = Literal["memory", "article", "conversation", "entity", "resource", "folder", "obsidian", "skill", "checkpoint"]
OwnSource = Literal["memory", "article", "conversation", "entity", "resource"]
Backend = Literal["grep", "fts5", "hybrid"]
State = Literal["found", "absent", "inconclusive"]
Outcome = Literal["created", "updated", "unchanged", "duplicate", "restored"]
OnConflict = Literal["skip", "overwrite", "error"]
OnRelated = Literal["report", "keep", "supersede"]
Progress = Callable[[int, int], None]
"""How much is done, and of how much."""

OWN_SOURCES: tuple[OwnSource, ...] = ("memory", "article", "conversation", "entity", "resource")
"""The kinds of notes in a vault."""
SOURCES: tuple[Source, ...] = (*OWN_SOURCES, "folder", "obsidian", "skill")
"""And what is read in place, next to the vault."""
DAY = 86_400.0
"""Seconds."""
BINARY = "binary"
"""The reason for a skipped file that is not a problem."""
ON_CONFLICT: tuple[OnConflict, ...] = ("skip", "overwrite", "error")
"""What to do with something that is added and exists already."""
ON_RELATED: tuple[OnRelated, ...] = ("report", "keep", "supersede")
"""What a save does with related memories: name them, ignore them, or supersede them."""

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTORS, _JOINERS = "\ufe00-\ufe0f\U000e0100-\U000e01ef", "\u200c\u200d"
INVISIBLE = (
    f"[{_HIDDEN}]"
    f'|(?<=[\\x00-"$-)+-/:-\\x7f{_HIDDEN}{_JOINERS}{_SELECTORS}])[{_SELECTORS}]+'
    f"|(?<=[\\x00-\\x7f{_HIDDEN}{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}]+(?=[\\x00-\\x7f{_HIDDEN}])"
)
"""Matches control characters, direction marks, zero-width spaces, fillers and tag characters: a person cannot see them,
but a terminal obeys them, a model reads them, and they hide a secret. Variation selectors and joiners match only where
they hide something: after a letter, next to ASCII, or in a row. Emoji and some scripts need the others."""
LOWEST_SHOWN = 0.005
WEAK_SHARE = 0.4
"""Share of the best score below which terminals and agents do not see a hit. On the sample vault's 158 questions, with
the reader and 8 hits, that saves 12 % of the tokens and loses no question; of the score without the reader's part, 20 %
and one question."""
NEAREST = 3
"""Hits of an `absent` result that are shown although they share no word with the query."""


class Passage(NamedTuple):
    """The unit that is searched: a memory or a section of an article, with its lines."""

    text: str
    first_line: int
    last_line: int
    heading: str = ""
    """Its headings, outermost first: `Deploys > Rolling back`."""
    context: str = ""
    """Text around it that is searched with it: the nearest words, the header of a table."""
    said: float | None = None
    """When it was said, in a conversation; None: when its note was created."""


class Filters(NamedTuple):
    """Which notes a search covers. Empty means all; times are seconds since 1970."""

    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    any_tag: bool = False
    """True: one of the tags is enough; False: all of them."""
    category: str | None = None
    since: float | None = None
    until: float | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Any other frontmatter key and the value it must have (or contain, if it is a list)."""
    as_of: float | None = None
    """Only notes that existed and were valid at this moment; None: now."""
    outdated: bool = False
    """Include notes that are no longer, or not yet, valid."""
    roots: tuple[str, ...] = ()
    """Only origins with these folders."""
    speakers: tuple[str, ...] = ()
    """Required `provenance`, in lower case; a note without one is the user's."""
    paths: tuple[str, ...] = ()
    """Texts that must occur in the path."""
    files: tuple[str, ...] = ()
    """Texts that must occur in the file name."""
    others: tuple[tuple[str, Any], ...] = ()
    """Values of filters that nothing but their entries in index/filter_table.py reads."""


class Hit(NamedTuple):
    """A passage that was found, with its score, the signals behind it, and the ref that opens it."""

    ref: str
    source: str
    path: str
    title: str
    snippet: str
    lines: tuple[int, int]
    score: float
    signals: dict[str, float]
    tags: tuple[str, ...]
    created: str
    marks: tuple[tuple[int, int], ...] = ()
    """Where the matched words are in the snippet."""
    heading: str = ""
    missing: bool = False
    """Its file is gone."""
    category: str | None = None
    weak: bool = False
    """A weak match."""


class Searched(NamedTuple):
    """How much was searched, and how fresh it was."""

    notes: int
    passages: int
    fresh_as_of: str | None


class SearchResult(NamedTuple):
    """The result of a search: found, absent (everything was searched), or inconclusive (something was missing).

    An absent answer may have hits: the nearest there are, though nothing says that they have to do with the question.
    """

    query: str
    state: State
    degraded: list[str]
    backend: str
    searched: Searched
    hits: list[Hit]
    took_ms: float
    confidence: float | None = None
    """How sure it is that something here has to do with the question, 0 to 1; None if that was not asked, as by words
    alone or in a space that nobody measured."""
    understood: tuple[str, ...] = ()
    """Parts of the query that were understood as filters, such as dates, and an expired note that would answer."""
    suggestions: tuple[str, ...] = ()
    """Words of the vault that are spelled like those of a query that found nothing."""
    meta: dict[str, Any] = {}  # noqa: RUF012
    """How it was ranked: profile, weights, how many candidates, trust in words, milliseconds."""


def worth_showing(found: SearchResult) -> list[Hit]:
    """The hits to show: none that scores 0.00, and of an `absent` result only the nearest ones and those with a word of
    the query."""
    hits = [hit for hit in found.hits if hit.score >= LOWEST_SHOWN or not hit.signals]
    if found.state == "found":
        return hits
    return [hit for place, hit in enumerate(hits) if place < NEAREST or hit.signals.get("words")]


def without_weak(hits: Sequence[Hit]) -> list[Hit]:
    """Up to where the scores drop."""
    least = WEAK_SHARE * max((hit.score for hit in hits), default=0.0)
    return [hit for hit in hits if hit.score >= least]


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync. Paths are relative to the vault. `int(report)` is how many notes it indexed."""

    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    moved: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    removed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Files that are not indexed, each with the reason."""
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Notes that are indexed although something is wrong, each with the problem."""
    linked: tuple[tuple[str, SyncReport], ...] = ()
    """The reports of sources searched together with the vault, each with its label, such as `folder:handbook`."""
    kept: tuple[str, ...] = ()
    """Notes that stay in the index although most files of the vault are gone at once, as on an unmounted drive."""
    excluded: tuple[str, ...] = ()
    """Of `removed`: those whose files exist and are excluded now."""

    def __int__(self) -> int:
        return len(self.added) + len(self.changed) + len(self.moved)

    @property
    def gone(self) -> list[str]:
        """Of `removed`: those whose files are gone."""
        return [path for path in self.removed if path not in self.excluded]

    @property
    def touched(self) -> int:
        return int(self) + len(self.removed)


class Draft(NamedTuple):
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


class Change(NamedTuple):
    """A change of a note. None leaves a part as it is; None as the value of a field removes the field."""

    content: str | None = None
    title: str | None = None
    tags: Sequence[str] | None = None
    category: str | None = None
    fields: Mapping[str, object] | None = None
    version: str | None = None
    """The `note.version` that the change is based on; a note of another version is a conflict."""


class Related(NamedTuple):
    """A note that is similar to a new one, and why, such as `82% the same words`."""

    ref: str
    title: str
    why: str


class SaveReceipt(NamedTuple):
    """How far a save in a team vault has come."""

    seq: int
    indexed: bool
    committed: str | None
    """The commit that has it. It may be made anew, with another name, until it is pushed."""
    pushed: bool
    """Whether it is at the remote; without a remote, whether it is committed."""


class Saved(NamedTuple):
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


class UseCount(NamedTuple):
    """How often a note was found and opened, and how often somebody rated it good or bad."""

    recalls: int = 0
    opens: int = 0
    good: int = 0
    bad: int = 0
    used: float | None = None
    """When it was last opened or the first hit of a search."""

    @property
    def rating(self) -> float:
        """From -1 to 1; 0 if nobody rated it. One rating alone is worth a half."""
        return (self.good - self.bad) / (self.good + self.bad + 1)


class NoteSummary(NamedTuple):
    """One row of a listing."""

    ref: str
    source: str
    path: str
    title: str
    tags: tuple[str, ...]
    category: str | None
    created: str
    description: str = ""
    missing: bool = False
    """It is still indexed although its file is gone."""
    outdated: str | None = None
    """Why it is not valid now, such as `superseded by memory:new`."""


class Forgotten(NamedTuple):
    """Where a forgotten note went."""

    ref: str
    path: str
    trash: str


class Status(NamedTuple):
    """The state of the index in numbers."""

    vault: str
    search_db: str
    search_db_bytes: int
    backend: str
    notes: dict[str, int]
    passages: int
    synced_at: str | None
    skipped: list[tuple[str, str]]
    problems: list[tuple[str, str]]
    trashed: int
    space: str | None
    """The active space, as provider:model:dimensions:prompts."""
    building: str | None
    """The space that is being built to replace it."""
    unembedded: int
    """Passages without a vector yet."""
    cache_entries: int
    cache_bytes: int
    cache_hit_rate: float | None
    linked: dict[str, int]
    """How many notes each linked source has, by its label."""
    trashed_in_tiers: dict[str, int]
    """How many notes are in the trash of the other tiers' vaults."""
    tier: str | None
    """`user` or `project`, if the vault is searched together with others."""
    missing: int = 0
    """Notes that are still indexed although their files are gone."""
    unread: tuple[tuple[str, str], ...] = ()
    """Entries of the vault that are not read, each with the reason: links, pipes, devices, undecodable names."""
    moved_aside: tuple[str, ...] = ()
    """Files that were search.db or activity.db, were damaged or replaced, and are kept under another name."""


def plain(value: Any) -> Any:
    """A value as JSON has it: NamedTuples are objects."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def members_of(value: object) -> list[object]:
    """The members of a list; anything else is a list of one."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def moment_text(seconds: float) -> str:
    """A moment as text, such as `2026-03-01T09:30:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def to_utf8(text: str) -> str:
    """Text that a file and SQLite can hold. Lone surrogates become the UTF-8 character they came from, or `?`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""


class Token(NamedTuple):
    """What is known about a token. The token itself is shown once, when it is created."""

    name: str
    """Whose it is. Recorded with everything that is saved with it."""
    role: Role
    vault: str
    """The only vault that it opens: its folder, or its name in a team's database."""
    created: str = ""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)
