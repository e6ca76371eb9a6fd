"""The map: notes by meaning in two dimensions. Places are computed in the background and kept in `map.json`."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from math import dist
from typing import Any, NamedTuple

import numpy as np

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.values import moment_text
from co_cli.index.stored import StoredNote
from co_cli.index.tokens import is_stop_word
from co_cli.notes.files import change_json, read_json
from co_cli.server.cached_answers import kept_until_changed
from co_cli.server.jobs import Jobs, Progress, Report
from co_cli.server.layout import Matrix, arrange, centres, group_of
from co_cli.server.routes import route

MOST_NOTES = 20_000
"""The newest are on the map: half a minute's work."""


MOST_GROUPS, NOTES_OF_A_GROUP = 8, 12
"""A map of few notes has fewer groups."""
NAMES, ROOT = 2, 4
"""Words that name a group, and how many first letters no two of them share."""
WORD = re.compile(r"[^\W\d_]{3,}")


class MapNote(NamedTuple):
    """A note and its place; None for one that was not placed yet, or whose text has no meaning."""

    ref: str
    title: str
    source: str
    created: str
    tags: tuple[str, ...]
    place: tuple[float, float] | None
    group: int | None
    """Which of the groups it is in."""


class MapGroup(NamedTuple):
    """Notes that are close together."""

    name: str
    """Words that its titles and tags have, and those of other groups have not."""
    place: tuple[float, float]
    colour: int
    """It stays when notes are added."""


class NoteMap(NamedTuple):
    """The newest notes, each with its place."""

    notes: list[MapNote]
    groups: list[MapGroup]
    working: bool
    """Whether new places are being computed: ask again soon."""
    progress: Progress | None


_jobs: Jobs[None] = Jobs()


def _layout(kb: LocalKnowledgeBase) -> object:
    """How far the layout is, in tenths: the page need not hear of every step."""
    job = _jobs.last(kb)
    progress = job and job.state.progress
    return job and (job.state._replace(progress=None), progress and 10 * progress.done // max(1, progress.total))


@route("GET", "/map")
@kept_until_changed(_layout)
def show_map(kb: LocalKnowledgeBase) -> NoteMap:
    """Show the newest notes by meaning: where each one is in two dimensions."""
    with kb.engine.reading():
        notes = kb.index.notes.docs(limit=MOST_NOTES)
        state = _state_of(kb, notes)
    stored = _stored(kb)
    groups = [group for group in stored.get("groups", ()) if len(group) == 3]  # a place and a colour
    working = stored.get("state") != state and _place_soon(kb)
    places = stored.get("places", {})
    placed = [note for note in notes if _key(note) in places]
    middles = np.array([place for *place, _ in groups], float).reshape(-1, 2)
    colours = [int(colour) for *_, colour in groups]
    group: dict[int, int] = {}
    if placed and len(middles):
        nearest = group_of(np.array([places[_key(note)] for note in placed]), middles)
        group = {note.id: int(at) for note, at in zip(placed, nearest, strict=True)}
    names = _names([[note for note in placed if group.get(note.id) == at] for at in range(len(middles))])
    job = _jobs.last(kb)
    return NoteMap(
        [
            MapNote(note.ref, note.title, note.source, moment_text(note.created), note.tags, place, group.get(note.id))
            for note in notes
            for place in [places.get(_key(note))]
        ],
        [MapGroup(name, (x, y), colour) for name, (x, y), colour in zip(names, middles.tolist(), colours, strict=True)],
        working,
        job.state.progress if job and working else None,
    )


def _names(groups: Sequence[Sequence[StoredNote]]) -> list[str]:
    """For each group, words of many of its titles and tags that are rare in the others."""
    spelled: dict[str, str] = {}
    counts: list[Counter[str]] = []
    for notes in groups:
        counts.append(Counter())
        for note in notes:
            words = {word.lower(): word for word in WORD.findall(" ".join((note.title, *note.tags)))}
            counts[-1].update(word for word in words if not is_stop_word(word))
            spelled |= {low: word for low, word in words.items() if low not in spelled or word.islower()}
    everywhere = sum(counts, Counter[str]())
    found: list[str] = []
    for own in counts:
        ranked = sorted(own, key=lambda word: (-own[word] * own[word] / everywhere[word], word))
        different = {word[:ROOT]: word for word in reversed(ranked)}  # of `write` and `writing`, the better one
        found.append(", ".join([spelled[word] for word in ranked if different[word[:ROOT]] == word][:NAMES]))
    return found


def place_notes(kb: LocalKnowledgeBase, report: Report) -> None:
    """Compute the places of all notes, beginning with their earlier ones, and their groups, and store them."""
    with kb.engine.reading():
        notes = kb.index.notes.docs(limit=MOST_NOTES)
        state, vectors = _state_of(kb, notes), mean_vectors(kb, notes)
    placed = [note for note in notes if note.id in vectors]
    before, nowhere = _stored(kb).get("places", {}), (np.nan, np.nan)
    earlier = np.array([before.get(_key(note), nowhere) for note in placed], float).reshape(-1, 2)
    units = np.array([vectors[note.id] for note in placed], np.float32)
    found = arrange(units, earlier, lambda done, total: report("arrange", done, total)).round(2)
    groups = min(MOST_GROUPS, len(found) // NOTES_OF_A_GROUP)
    middles: list[list[float]] = centres(found, groups).round(2).tolist() if groups > 1 else []
    colours = _colours(middles, [group for group in _stored(kb).get("groups", []) if len(group) == 3])
    places = {_key(note): place for note, place in zip(placed, found.tolist(), strict=True)}
    coloured = [[*place, colour] for place, colour in zip(middles, colours, strict=True)]
    kept = {"state": state, "places": places, "groups": coloured}
    change_json(_file(kb), lambda stored: stored.update({kb.root: kept}))


def _colours(middles: Sequence[Sequence[float]], before: Sequence[Sequence[float]]) -> list[int]:
    """The colour of each group: that of the nearest one before, as far as it is free."""
    found: dict[int, int] = {}
    distances = [(dist(place, old[:2]), at, int(old[2])) for at, place in enumerate(middles) for old in before]
    for _, at, colour in sorted(distances):
        if at not in found and colour not in found.values():
            found[at] = colour
    free = (colour for colour in range(MOST_GROUPS) if colour not in found.values())
    return [found[at] if at in found else next(free) for at in range(len(middles))]


def mean_vectors(kb: LocalKnowledgeBase, notes: Sequence[StoredNote]) -> dict[int, Matrix]:
    """The mean of the vectors of each note's passages, as a unit vector, by the note's id."""
    space = kb.index.notes.state().active
    sums: dict[int, Matrix] = {}
    with kb.engine.reading() as snapshot:
        for note, vector in snapshot.vectors(space, [note.id for note in notes]) if space else ():
            sums[note] = sums.get(note, 0.0) + np.frombuffer(vector, "<f4")
    return {note: total / (np.linalg.norm(total) or 1.0) for note, total in sums.items()}


def _place_soon(kb: LocalKnowledgeBase) -> bool:
    """Begin, unless a layout is being computed already. Raises what went wrong with the last one."""
    last = _jobs.last(kb)
    _jobs.start(kb, lambda report: place_notes(kb, report))
    if last and last.state.problem:
        raise KnowledgeError(last.state.problem)
    return True


def _file(kb: LocalKnowledgeBase) -> str:
    return os.path.join(kb.settings.data_dir, "map.json")


def _stored(kb: LocalKnowledgeBase) -> dict[str, Any]:
    return read_json(_file(kb)).get(kb.root, {})


def _state_of(kb: LocalKnowledgeBase, notes: Sequence[StoredNote]) -> str:
    """Changes when a note, the space or the number of passages without a vector does."""
    active, waiting = kb.index.notes.state().active, kb.index.unembedded()
    told = hashlib.blake2b(f"{active and active.space.key} {waiting}".encode(), digest_size=16)
    for note in notes:
        told.update(f"{_key(note)}{note.hash}".encode())
    return told.hexdigest()


def _key(note: StoredNote) -> str:
    """Of a note's path, which is not stored itself: a forgotten note leaves no name."""
    return hashlib.blake2b(f"{note.root}\0{note.path}".encode(), digest_size=8).hexdigest()
