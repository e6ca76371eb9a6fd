"""`co review`: look through all notes for what went stale, and say what could be done. Nothing is changed here.

Everything is read from the index in one go, so that ten thousand notes take seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from co_cli.activity import Activity
from co_cli.activity.database import available
from co_cli.activity.folding import fold_spool
from co_cli.activity.statistics import recalled_paths
from co_cli.errors import ActivityUnavailableError, NoteConflictError
from co_cli.index.names import fold_name, name_number
from co_cli.index.overview import Overview, every_note
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.link_targets import link_key, resolve_link
from co_cli.notes.moments import moment_text
from co_cli.notes.refs import stem_of
from co_cli.notes.secrets import find_secrets, redact
from co_cli.service.attachments import Attachments
from co_cli.service.dismissing import Dismissals, key_of
from co_cli.service.pairing import Pair, contradicting_pairs, near_pairs

Kind = Literal[
    "near-duplicate",
    "contradiction",
    "expired",
    "superseded",
    "broken-link",
    "secret",
    "oversized",
    "orphan",
    "never-recalled",
]
KINDS: dict[Kind, str] = {
    "secret": "tokens, private keys and passwords",
    "contradiction": "memories that say something else about the same",
    "near-duplicate": "notes that say nearly the same",
    "expired": "notes whose valid_until is past",
    "superseded": "supersedes or superseded_by that names no note",
    "broken-link": "links to notes that are not there",
    "oversized": "memories, and notes that are always loaded, that are too long",
    "orphan": "notes without links that no search ever showed",
    "never-recalled": "notes with links that no search ever showed",
}
DAY = 86_400
YOUNG = 30 * DAY
"""A note that is younger had no time to be asked for."""
LONG_MEMORY = 1_000
"""Tokens. A memory is one thing; what is longer is an article, or several memories."""
LONGEST_SHOWN = 200


class ReviewItem(NamedTuple):
    """One thing to decide: which notes, why, and what can be done with a key."""

    kind: Kind
    refs: tuple[str, ...]
    """The one that an action is about first: of two, the older."""
    title: str
    reason: str
    actions: str
    """f forget, s supersede, e edit, k keep."""
    key: str


class Review(NamedTuple):
    """What was found, and what could not be looked at."""

    items: list[ReviewItem]
    notes: int
    dismissed: int
    degraded: list[str]


class Looking(NamedTuple):
    """All that the checks look at."""

    notes: Sequence[Overview]
    names: dict[int, set[str]]
    now: float
    replaced: Collection[str]
    """Paths of notes that another one took the place of."""
    recalled: Collection[str] | None
    """Paths of notes that were ever in an answer; None if nobody knows."""
    tokens: Callable[[str], int]
    context_tokens: int
    attachments: Attachments


def review(
    kb: KnowledgeBase,
    now: float,
    tokens: Callable[[str], int],
    only: Sequence[str] = (),
    context_tokens: int = 1_000,
) -> Review:
    """The findings by kind, the weightiest first. `tokens` counts what a text costs a model."""
    notes, names = every_note(kb.index.rows)
    recalled, degraded = _recalled(kb) if not only or {"orphan", "never-recalled"} & set(only) else (None, [])
    looking = Looking(
        notes, names, now, _replaced(notes, names), recalled, tokens, context_tokens, Attachments(kb.root)
    )
    known = Dismissals(kb.settings.data_dir, kb.root).keys()
    found = [item for kind in KINDS if not only or kind in only for item in CHECKS[kind](looking)]
    items = [item for item in found if item.key not in known]
    return Review(items, len(notes), len(found) - len(items), degraded)


def require_unchanged(kb: KnowledgeBase, item: ReviewItem, seen: dict[str, str]) -> None:
    """Raise NoteConflictError if a note is not the one that was looked at. `seen` are the hashes of then, by path."""
    for ref in item.refs:
        note = kb.note(ref)
        if not seen.get(note.path, "").startswith(note.version):
            raise NoteConflictError(f"{ref} was changed since: nothing was done; run `co review` again")


def dismiss(kb: KnowledgeBase, item: ReviewItem, now: float) -> None:
    """Remember that somebody wants it so."""
    Dismissals(kb.settings.data_dir, kb.root).add(item.key, now)


def _item(kind: Kind, notes: Sequence[Overview], reason: str, actions: str, about: str) -> ReviewItem:
    refs = tuple(note.ref for note in notes)
    return ReviewItem(kind, refs, redact(notes[0].title), redact(reason), actions, key_of(kind, refs, about))


def _near_duplicates(looking: Looking) -> Iterator[ReviewItem]:
    for older, newer, found in _both_hold(looking, near_pairs(looking.notes)):
        one, other = looking.notes[older], looking.notes[newer]
        yield _item("near-duplicate", (one, other), f"{found} as {other.ref}", "fsek", "")


def _contradictions(looking: Looking) -> Iterator[ReviewItem]:
    for older, newer, texts in _both_hold(looking, contradicting_pairs(looking.notes)):
        one, other = looking.notes[older], looking.notes[newer]
        said, says = (_short(text) for text in texts.split(" | ", 1))
        yield _item("contradiction", (one, other), f"{said!r}, but {other.ref}: {says!r}", "sfek", texts)


def _both_hold(looking: Looking, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """What no longer holds contradicts nothing."""
    for pair in pairs:
        both = looking.notes[pair.older], looking.notes[pair.newer]
        if all(note.path not in looking.replaced and not _over(note, looking.now) for note in both):
            yield pair


def _over(note: Overview, now: float) -> bool:
    return note.valid_until is not None and note.valid_until <= now


def _expired(looking: Looking) -> Iterator[ReviewItem]:
    for note in looking.notes:
        if _over(note, looking.now) and note.path not in looking.replaced:
            ended = moment_text((note.valid_until or 1.0) - 1)[:10]  # a day includes its end
            yield _item("expired", (note,), f"valid until {ended}", "fek", ended)


def _superseded(looking: Looking) -> Iterator[ReviewItem]:
    for note in looking.notes:
        for key in ("supersedes", "superseded_by"):
            for name in _named(note.frontmatter.get(key)):
                if not looking.names.get(name_number(fold_name(name))):
                    yield _item(
                        "superseded", (note,), f"{key} names {name!r}, which is not there", "ek", f"{key} {name}"
                    )


def _replaced(notes: Sequence[Overview], names: dict[int, set[str]]) -> set[str]:
    found: set[str] = set()
    for note in notes:
        for name in _named(note.frontmatter.get("supersedes")):
            found |= names.get(name_number(fold_name(name)), set()) - {note.path}
        if note.superseded_by:
            found.add(note.path)
    return found


def _named(value: object) -> list[str]:
    """Notes as a field names them: one or a list, with or without the brackets of a link."""
    members = cast("list[Any]", value) if isinstance(value, list) else [value]
    texts = (str(one).removeprefix("[[").removesuffix("]]").partition("|")[0].strip() for one in members if one)
    return [text for text in texts if text]


def _broken_links(looking: Looking) -> Iterator[ReviewItem]:
    resolve = _resolver(looking.notes)
    for note in looking.notes:
        for target in dict.fromkeys(note.links):
            if resolve(target, note.path) is None and not looking.attachments.has(target, note.path):
                yield _item("broken-link", (note,), f"[[{_short(target)}]] is not there", "ek", target)


def _resolver(notes: Sequence[Overview]) -> Callable[[str, str], str | None]:
    """Which note a link means, for all notes at once."""
    namesakes: dict[str, list[str]] = {}
    for note in notes:
        namesakes.setdefault(link_key(stem_of(note.path)), []).append(note.path)
    return lambda target, linking: resolve_link(target, linking, namesakes.get(link_key(target), []))


def _secrets(looking: Looking) -> Iterator[ReviewItem]:
    for note in looking.notes:
        fields = "\n".join(f"{key}: {value}" for key, value in note.frontmatter.items() if isinstance(value, str))
        for secret in (*find_secrets(note.body), *find_secrets(fields)):
            yield _item("secret", (note,), f"{secret.what}: {secret.shown}", "efk", f"{secret.what} {secret.shown}")


def _oversized(looking: Looking) -> Iterator[ReviewItem]:
    always = 0
    for note in looking.notes:
        pinned = note.frontmatter.get("loading") == "always" and note.path not in looking.replaced
        if len(note.body) < LONG_MEMORY and not pinned:
            continue  # no letter costs more than a token
        size = looking.tokens(note.body)
        always += size if pinned else 0
        if pinned and size > looking.context_tokens:
            reason = f"about {size:,} tokens, and what is always loaded has room for {looking.context_tokens:,}"
            yield _item("oversized", (note,), reason, "ek", "always")
        elif pinned and always > looking.context_tokens:
            reason = f"with it, notes that are always loaded take {always:,} of {looking.context_tokens:,} tokens"
            yield _item("oversized", (note,), reason, "ek", "always together")
        elif note.source == "memory" and size > LONG_MEMORY:
            reason = f"about {size:,} tokens: an article, or several memories"
            yield _item("oversized", (note,), reason, "ek", "memory")


def _orphans(looking: Looking) -> Iterator[ReviewItem]:
    linked = _linked(looking.notes)
    for note in _unrecalled(looking):
        if note.path not in linked:
            yield _item("orphan", (note,), "no links to or from it, and no search ever showed it", "fek", "")


def _never_recalled(looking: Looking) -> Iterator[ReviewItem]:
    linked = _linked(looking.notes)
    for note in _unrecalled(looking):
        if note.path in linked:
            yield _item("never-recalled", (note,), "no search ever showed it", "fek", "")


def _unrecalled(looking: Looking) -> Iterator[Overview]:
    """Notes that had time to be asked for. Where nothing was ever asked, nothing is to be learned from that."""
    if not looking.recalled:
        return
    for note in looking.notes:
        young = looking.now - note.created < YOUNG
        if not young and note.path not in looking.recalled and note.frontmatter.get("loading") != "always":
            yield note


def _linked(notes: Sequence[Overview]) -> set[str]:
    resolve = _resolver(notes)
    found: set[str] = set()
    for note in notes:
        for target in note.links:
            path = resolve(target, note.path)
            if path is not None and path != note.path:
                found |= {note.path, path}
    return found


def _recalled(kb: KnowledgeBase) -> tuple[set[str] | None, list[str]]:
    """Which notes were ever in an answer, if activity.db is there to say it."""
    with Activity.of(kb.settings, kb.root, "cli", brief=True) as activity:
        database = activity.database
        try:
            if not os.path.exists(database.path):
                return None, ["nobody counted which notes are recalled: orphans and never-recalled were left out"]
            with available(database.path):
                fold_spool(database, activity.data_dir)
                with database.reading() as connection:
                    return recalled_paths(connection, kb.root), []
        except ActivityUnavailableError as error:
            return None, [f"orphans and never-recalled were left out: {error}"]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SHOWN else line[: LONGEST_SHOWN - 1] + "…"


CHECKS: dict[Kind, Callable[[Looking], Iterator[ReviewItem]]] = {
    "secret": _secrets,
    "contradiction": _contradictions,
    "near-duplicate": _near_duplicates,
    "expired": _expired,
    "superseded": _superseded,
    "broken-link": _broken_links,
    "oversized": _oversized,
    "orphan": _orphans,
    "never-recalled": _never_recalled,
}
