"""The checks of `co note review`: notes in, findings out: what is stale, broken or doubled, and what can be done.

Pure, except that it looks for files that notes link to.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from co_cli.activity.extracted import FacetRow
from co_cli.embedding.static import SPACE as STATIC
from co_cli.embedding.static import shared_embedder
from co_cli.ground.reports import Progress
from co_cli.ground.values import DAY, moment_text
from co_cli.index.tokens import is_stop_word
from co_cli.notes.secrets import find_secrets, redact
from co_cli.notes.similarity import likeness, without_articles, words_of
from co_cli.notes.subjects import same_subject, with_subject
from co_cli.notes.wikilinks import Attachments, LinkTargets
from co_cli.saving.proposals import source_of_facet
from co_cli.saving.related import CLOSE, MOST_RELATED
from co_cli.upkeep.combining import draft, subjects
from co_cli.upkeep.reviewed_note import ReviewedNote

Kind = Literal[
    "secret",
    "proposed",
    "conflict",
    "near-duplicate",
    "possible-conflict",
    "expired",
    "superseded",
    "broken-link",
    "oversized",
    "orphan",
    "never-recalled",
    "combine",
]
KINDS: dict[Kind, str] = {
    "secret": "tokens, private keys and passwords",
    "proposed": "memories that follow from conversations",
    "conflict": "two versions of one note that nobody has merged",
    "near-duplicate": "notes with nearly the same words",
    "possible-conflict": "memories about the same thing that may disagree",
    "expired": "notes whose valid_until has passed",
    "superseded": "supersedes or superseded_by names an unknown note",
    "broken-link": "links to notes and files that do not exist",
    "oversized": "memories and always-loaded notes that are too long",
    "orphan": "notes without links that no search has returned",
    "never-recalled": "notes with links that no search has returned",
    "combine": "four or more memories on one subject, for one article",
}
ACTIONS = {"a": "accept", "w": "rewrite", "f": "forget", "s": "supersede", "e": "edit", "k": "keep"}
NEAR = 0.8
"""The share of words in common that makes two memories near-duplicates."""
RAREST, MOST_HOLDERS = 8, 60
"""Memories are compared if they share some of their 8 rarest words. Words in more than 60 memories are skipped."""
YOUNG = 30 * DAY
"""Seconds. A younger note has had no time to be asked for."""
LONG_MEMORY = 1_000
"""Tokens. A memory is one thing; what is longer is an article, or several memories."""
LEAST_PART = 100
"""Tokens of room that a part of an always-loaded note fills."""
LONGEST_SHOWN = 200
BLOCK, REPORT_EVERY = 512, 100
"""Vectors that are compared with all others at a time, and notes after which a check reports progress."""


class ReviewItem(NamedTuple):
    """One thing to decide: which notes, why, and what can be done with a key."""

    kind: Kind
    refs: tuple[str, ...]
    """Of two, the older first."""
    title: str
    reason: str
    actions: Sequence[str]
    """None with a token that may only read."""
    key: str
    proposed: str = ""
    """The memory or the article that accepting it saves, or the other version of a note. Of a memory, the second ref is
    the one that it replaces, and `replaced` its text."""
    replaced: str = ""
    """The text that would be replaced."""
    copy: str = ""
    """The file of the other version; empty if it is in the note itself."""
    same: tuple[str, ...] = ()
    """The keys of further proposals of the same memory, from other conversations, which are decided with it."""

    @property
    def is_version(self) -> bool:
        """Whether it is about two versions of one note."""
        return self.kind == "conflict" and "accept" in self.actions

    @property
    def keeping_acts(self) -> bool:
        """Whether to keep it is more than not to be asked again."""
        return self.kind == "proposed" or (self.is_version and len(self.refs) == 1)

    def lost(self, action: str) -> set[str]:
        """The refs of the notes that are gone after this action."""
        if self.is_version:
            return set(self.refs[1:]) if action in ("accept", "forget", "edit") else set()
        return {self.refs[0]} if action == "forget" else set()


class NoteVersion(NamedTuple):
    """Two versions of a note."""

    note: ReviewedNote
    ours: str
    theirs: str
    copy: str = ""
    """The file of the other version; empty if it is in the note itself."""
    other: tuple[str, ...] = ()
    """The ref of that file, if it may be a note of its own."""


Pair = tuple[ReviewedNote, ReviewedNote, float]
"""The older one first, and how alike they are."""


@dataclass(frozen=True, slots=True)
class ReviewInput:
    """All that the checks look at. Notes are in order of age, the oldest first."""

    notes: Sequence[ReviewedNote]
    proposals: Sequence[FacetRow]
    unknown: Collection[str]
    """Names in `supersedes` and `superseded_by` that no note has."""
    recalled: Collection[str] | None
    """Paths of notes that a search has returned; None if that is not recorded."""
    now: float
    tokens: Callable[[str], int]
    context_tokens: int
    always: Sequence[tuple[str, int]]
    """The refs of notes that are always loaded, in the order in which they are added, with their tokens."""
    attachments: Attachments
    related: float
    """The share of words in common that makes two memories related."""
    text_of: Callable[[ReviewedNote], str]
    """What the file of a note says now; empty if it is gone."""
    versions: Sequence[NoteVersion]
    rewrites: bool
    """Whether a model can rewrite a draft."""
    progress: Progress = lambda done, total: None

    def each(self) -> Iterator[ReviewedNote]:
        """All notes, for a check that takes long."""
        for place, note in enumerate(self.notes):
            if place % REPORT_EVERY == 0:
                self.progress(place, len(self.notes))
            yield note

    @property
    def perhaps_versions(self) -> set[frozenset[str]]:
        """Pairs of notes about which one question is enough."""
        return {frozenset((version.note.ref, *version.other)) for version in self.versions if version.other}

    @property
    def valid(self) -> list[ReviewedNote]:
        return [note for note in self.notes if not note.superseded and not note.expired(self.now)]


def _secrets(given: ReviewInput) -> Iterator[ReviewItem]:
    for note in given.each():
        fields = "\n".join(f"{key}: {value}" for key, value in note.frontmatter.items() if isinstance(value, str))
        for secret in (*find_secrets(note.body), *find_secrets(fields)):
            yield _item("secret", (note,), f"{secret.what}: {secret.shown}", "efk", f"{secret.what} {secret.shown}")


def _conflicts(given: ReviewInput) -> Iterator[ReviewItem]:
    """Versions that synchronisers left, and notes that a team's keeper made of texts that did not merge."""
    for note, ours, theirs, copy, other in given.versions:
        actions = _named("afek" if copy else "afe")
        yield with_versions(
            ReviewItem("conflict", (note.ref, *other), redact(note.title), "", actions, "", copy=copy), ours, theirs
        )
    by_ref = {note.ref: note for note in given.notes}
    for note in given.notes:
        for other in (by_ref[ref] for ref in note.names("conflict_with") if ref in by_ref):
            reason = f"{_short(note.body)!r} was saved while somebody pushed {_short(other.body)!r}"
            yield _item("conflict", (note, other), reason, "fek", "")


def with_versions(item: ReviewItem, ours: str, theirs: str) -> ReviewItem:
    """A finding about two versions of a note, with their texts."""
    same = ", with the same text" if ours == theirs else ""
    reason = f"{item.copy} is {'perhaps ' if item.refs[1:] else ''}another version of it{same}"
    reason = reason if item.copy else "git could not merge two versions of it"
    texts = () if item.refs[1:] else (ours, theirs)  # two notes are kept once for all
    return item._replace(
        reason=reason, key=_key("version", item.refs[0], item.copy, *texts), proposed=theirs, replaced=ours
    )


def _proposed(given: ReviewInput) -> Iterator[ReviewItem]:
    return proposed_items(given.proposals, {note.ref: note.body for note in given.notes})


def proposed_items(proposals: Sequence[FacetRow], bodies: Mapping[str, str]) -> Iterator[ReviewItem]:
    """`bodies` has the memories that they replace, by ref. What was said several times is one item."""
    alike: dict[tuple[str, str], list[FacetRow]] = {}
    for facet in proposals:
        alike.setdefault((" ".join(facet.text.casefold().split()), str(facet.detail.get("known"))), []).append(facet)
    for facet, *others in alike.values():
        known, relation = str(facet.detail.get("known")), facet.detail["relation"]
        until = f", until {facet.detail['valid_until']}" if "valid_until" in facet.detail else ""
        reason = f"{facet.kind} of {facet.detail['speaker']}{until}, {facet.detail['confidence']:.0%} sure"
        if known in bodies:
            verb = "replaces" if relation == "changed" else "contradicts"
            reason += f"; it {verb} {known}"
        reason += f"; said {1 + len(others)} times" if others else ""
        refs = (source_of_facet(facet), *([known] if known in bodies else ()))
        texts = facet.text, redact(_short(bodies.get(known, "")))
        title, same = redact(_short(facet.text)), tuple(other.id for other in others)
        yield ReviewItem("proposed", refs, title, redact(reason), _named("ak"), facet.id, *texts, same=same)


def _near_duplicates(given: ReviewInput) -> Iterator[ReviewItem]:
    asked = given.perhaps_versions
    for older, newer, alike in _near_pairs(given.valid):
        if frozenset((older.ref, newer.ref)) in asked:
            continue
        words = f"{alike:.0%} the same words" if alike < 1 else "the same text"
        reason = f"{_short(older.body)!r} has {words} as {newer.ref}: {_short(newer.body)!r}"
        yield _item("near-duplicate", (older, newer), reason, "fsek", "")


def _near_pairs(notes: Sequence[ReviewedNote]) -> list[Pair]:
    """Notes with the same text, and memories with most words in common, with how alike they are."""
    same: dict[tuple[str, str], list[int]] = {}
    for place, note in enumerate(notes):
        if note.body.strip():
            same.setdefault((note.source, note.fingerprint), []).append(place)
    alike = {pair: 1.0 for places in same.values() for pair in pairwise(places)}
    words = {place: words_of(note.body) for place, note in enumerate(notes) if note.source == "memory"}
    for first, other in _pairs_sharing_rare_words(words):
        if notes[first].fingerprint != notes[other].fingerprint:
            alike[first, other] = likeness(words[first], words[other], NEAR)
    return [(notes[first], notes[other], share) for (first, other), share in sorted(alike.items()) if share]


def _possible_conflicts(given: ReviewInput) -> Iterator[ReviewItem]:
    """Memories that a save would name as related: one subject, and most words in common or close in meaning."""
    near = {frozenset((older.ref, newer.ref)) for older, newer, _ in _near_pairs(given.valid)}
    near |= given.perhaps_versions
    memories = [note for note in given.valid if note.source == "memory" and note.body.strip()]
    words = [without_articles(words_of(note.body)) for note in memories]
    found: dict[tuple[int, int], tuple[float, str]] = {}
    for first, other in _pairs_sharing_rare_words(dict(enumerate(words))):
        alike = likeness(words[first], words[other], given.related)
        if alike:
            found[first, other] = alike, f"shares {alike:.0%} of its words with"
    for first, other, cosine in _close_pairs([note.body for note in memories], given.progress):
        found.setdefault((first, other), (cosine, "is close in meaning to"))
    times: Counter[int] = Counter()
    for (first, other), (_, why) in sorted(found.items(), key=lambda pair: (-pair[1][0], pair[0])):
        older, newer = memories[first], memories[other]
        if frozenset((older.ref, newer.ref)) in near or max(times[first], times[other]) >= MOST_RELATED:
            continue
        if not same_subject(with_subject(older.title, older.body), with_subject(newer.title, newer.body)):
            continue
        times.update((first, other))
        reason = f"{_short(older.body)!r} {why} {newer.ref}: {_short(newer.body)!r}"
        yield _item("possible-conflict", (older, newer), reason, "fsek", "")


def _close_pairs(texts: Sequence[str], progress: Progress) -> Iterator[tuple[int, int, float]]:
    """Places of texts whose vectors are close, and the cosine. Always in the embedded model, which CLOSE is for."""
    import numpy as np  # 150 ms, which other commands do not pay

    made = [(place, vector) for place, vector in enumerate(shared_embedder().embed(texts, "document")) if vector]
    vectors = np.frombuffer(b"".join(vector for _, vector in made), "<f4").reshape(-1, STATIC.dimensions)
    for start in range(0, len(made), BLOCK):
        progress(start, len(made))
        block = vectors[start : start + BLOCK] @ vectors[start:].T
        for row, column in np.argwhere(np.triu(block >= CLOSE, 1)).tolist():
            yield made[start + row][0], made[start + column][0], float(block[row, column])


def _pairs_sharing_rare_words(words: Mapping[int, list[str]]) -> list[tuple[int, int]]:
    """Pairs that share two of their rarest words, or the only one: comparing all with all would take minutes."""
    counts = Counter(word for said in words.values() for word in set(said))
    rare: dict[int, list[str]] = {}
    holders: dict[str, list[int]] = {}
    for place, said in words.items():
        shared = [word for word in set(said) if counts[word] >= 2 and not is_stop_word(word)]
        rare[place] = sorted(shared, key=lambda word: (counts[word], word))[:RAREST]
        for word in rare[place]:
            holders.setdefault(word, []).append(place)
    together = Counter(
        pair for places in holders.values() if len(places) <= MOST_HOLDERS for pair in combinations(places, 2)
    )
    return [pair for pair, times in together.items() if times >= min(2, len(rare[pair[0]]), len(rare[pair[1]]))]


def _expired(given: ReviewInput) -> Iterator[ReviewItem]:
    for note in given.notes:
        if note.expired(given.now) and not note.superseded:
            ended = moment_text((note.valid_until or 1.0) - 1)[:10]  # a day includes its end
            yield _item("expired", (note,), f"valid until {ended}", "fek", ended)


def _superseded(given: ReviewInput) -> Iterator[ReviewItem]:
    for note in given.notes:
        for key in ("supersedes", "superseded_by"):
            for name in note.names(key):
                if name in given.unknown:
                    reason = f"{key} names {name!r}, which does not exist"
                    yield _item("superseded", (note,), reason, "ek", f"{key} {name}")


def _broken_links(given: ReviewInput) -> Iterator[ReviewItem]:
    resolve = _link_resolver(given.notes)
    for note in given.notes:
        for target in dict.fromkeys(note.links):
            if resolve(target, note.path) is None and not given.attachments.has(target, note.path):
                yield _item("broken-link", (note,), f"[[{_short(target)}]] does not exist", "ek", target)


def _oversized(given: ReviewInput) -> Iterator[ReviewItem]:
    taken = _taken_before(given)
    for note in given.notes:
        pinned = note.pinned and not note.superseded
        if len(note.body) < LONG_MEMORY and not pinned:
            continue  # no letter costs more than a token
        size = given.tokens(note.body)
        if pinned and size > given.context_tokens:
            reason = f"about {size:,} tokens; all always-loaded notes together may have {given.context_tokens:,}"
            yield _item("oversized", (note,), reason, "ek", "always")
        elif note.ref in taken:
            room = f"{taken[note.ref]:,} of {given.context_tokens:,} tokens"
            reason = f"about {size:,} tokens are cut or left out: always-loaded notes before it take {room}"
            yield _item("oversized", (note,), reason, "ek", "always together")
        elif note.source == "memory" and size > LONG_MEMORY:
            reason = f"about {size:,} tokens: make it an article, or several memories"
            yield _item("oversized", (note,), reason, "ek", "memory")


def _taken_before(given: ReviewInput) -> dict[str, int]:
    """The always-loaded notes that do not fit, with what those before them take."""
    left, found = given.context_tokens, dict[str, int]()
    for ref, size in given.always:
        if size <= left:
            left -= size
        else:
            found[ref] = given.context_tokens - left
            left = left if left < LEAST_PART else 0
    return found


def _orphans(given: ReviewInput) -> Iterator[ReviewItem]:
    linked = _linked_paths(given.notes)
    for note in _unrecalled(given):
        if note.path not in linked:
            yield _item("orphan", (note,), "no links to or from it, and no search has returned it", "fek", "")


def _never_recalled(given: ReviewInput) -> Iterator[ReviewItem]:
    linked = _linked_paths(given.notes)
    for note in _unrecalled(given):
        if note.path in linked:
            yield _item("never-recalled", (note,), "no search has returned it", "fek", "")


def _unrecalled(given: ReviewInput) -> Iterator[ReviewedNote]:
    """Notes that had time to be asked for. Where no search has returned anything, that says nothing about notes."""
    for note in given.notes if given.recalled else ():
        young = given.now - note.created < YOUNG
        if not young and note.source != "conversation" and note.path not in (given.recalled or ()) and not note.pinned:
            yield note


def _combinable(given: ReviewInput) -> Iterator[ReviewItem]:
    """Memories that one article can hold. A subject that has its article is not proposed again."""
    titles = {note.title.casefold() for note in given.valid if note.source == "article"}
    for name, notes in subjects(given.valid):
        title, texts = f"About {name}", [given.text_of(note).strip() for note in notes]
        if title.casefold() in titles or not all(texts) or any(map(find_secrets, texts)):
            continue
        reason = f"{len(notes)} memories are about {name}; one article would have their texts and supersede them"
        item = _item("combine", notes, reason, "awk" if given.rewrites else "ak", "")
        # whatever is added to a subject, it is dismissed once
        yield item._replace(title=redact(title), key=_key("combine", name.casefold()), proposed=draft(notes, texts))


def _linked_paths(notes: Sequence[ReviewedNote]) -> set[str]:
    resolve = _link_resolver(notes)
    found: set[str] = set()
    for note in notes:
        for target in note.links:
            path = resolve(target, note.path)
            if path is not None and path != note.path:
                found |= {note.path, path}
    return found


def _link_resolver(notes: Sequence[ReviewedNote]) -> Callable[[str, str], str | None]:
    """Which note a link means, for all notes at once."""
    targets = LinkTargets()
    for note in notes:
        targets.add(note.path, note.title, note.aliases)
    return targets.resolve


def _item(kind: Kind, notes: Sequence[ReviewedNote], reason: str, actions: str, about: str) -> ReviewItem:
    """A finding. Its key stays the same as long as it is `about` the same."""
    refs = tuple(note.ref for note in notes)
    return ReviewItem(kind, refs, redact(notes[0].title), redact(reason), _named(actions), _key(kind, *refs, about))


def _named(letters: str) -> list[str]:
    return [ACTIONS[letter] for letter in letters]


def _key(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SHOWN else line[: LONGEST_SHOWN - 1] + "…"


CHECKS: dict[Kind, Callable[[ReviewInput], Iterator[ReviewItem]]] = {
    "secret": _secrets,
    "proposed": _proposed,
    "conflict": _conflicts,
    "near-duplicate": _near_duplicates,
    "possible-conflict": _possible_conflicts,
    "expired": _expired,
    "superseded": _superseded,
    "broken-link": _broken_links,
    "oversized": _oversized,
    "orphan": _orphans,
    "never-recalled": _never_recalled,
    "combine": _combinable,
}
