"""Signals of notes: recency, importance, severity, tags, domain, links, use and tier, each a value from 0 to 1. Pure.

They are only looked at where a profile or a caller gives them weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite, log1p, nan

from co_cli.ground.hits import UseCount
from co_cli.ground.values import DAY, members_of
from co_cli.index.stored import StoredNote, Validity
from co_cli.notes.dates import read_moment
from co_cli.retrieval.score import Scored, best_first

NEUTRAL = 0.5
"""The importance of a note that nobody rated, and few mention."""
SEVERITY = {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}
MUCH_USED, OPENED = 50, 3
"""Recalls after which more of them say nothing new, and recalls that one opening is worth."""
MENTIONED = 10
"""Notes that link to a note, at which its importance reaches 1."""
RESTART, HOPS, SEEDS = 0.15, 2, 5
"""Link proximity: a walk of two hops from the five best notes that returns with this chance at each step."""
MARKS = ",.;:!?()'\"#"


@dataclass(frozen=True, slots=True)
class Material:
    """What the signals are made from."""

    query: str
    now: float
    half_life: float  # days
    facts: Mapping[int, StoredNote] = field(default_factory=dict[int, StoredNote])
    links: Sequence[tuple[int, int]] = ()
    """Links of the candidates' notes: from, to."""
    uses: Mapping[int, UseCount] = field(default_factory=dict[int, UseCount])
    """How each note was used and rated."""
    tiers: Mapping[int, float] = field(default_factory=dict[int, float])
    """How much the vault of each note counts."""
    use_renews: bool = False
    """Whether recency counts use: see `_age`."""


def add_signals(ranked: Sequence[Scored], weights: Mapping[str, float], material: Material) -> list[Scored]:
    """Each candidate with the weighted signals of its note, best first."""
    wanted = [name for name in VALUES if weights.get(name)]
    if not wanted:
        return list(ranked)
    found = {name: VALUES[name](material, ranked) for name in wanted}
    scored: list[Scored] = []
    for candidate in ranked:
        for name in wanted:
            candidate = candidate.plus(name, weights[name] * found[name].get(candidate.note, 0.0))
        scored.append(candidate)
    return best_first(scored)


def _recency(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """A half after each half-life; within a validity window, how strongly the note holds."""
    uses = material.uses if material.use_renews else dict[int, UseCount]()
    return {note: _freshness(facts, material, uses.get(note)) for note, facts in material.facts.items()}


def _freshness(facts: StoredNote, material: Material, use: UseCount | None) -> float:
    if facts.valid_until is not None:
        return Validity(facts.created, facts.valid_from, facts.valid_until, None).strength(material.now)
    if facts.frontmatter.get("decay_protected") in (True, "true", "yes"):
        return 1.0
    updated = read_moment(facts.frontmatter.get("updated") or facts.frontmatter.get("modified"))
    written = max(facts.created, updated or facts.created)
    return 0.5 ** (_age(written, use and use.used, material.now) / DAY / material.half_life)


def _age(written: float, used: float | None, now: float) -> float:
    """Seconds. Use makes a note younger, by a half of its age at most: so it helps, and cannot feed itself."""
    age = max(0.0, now - written)
    return age if used is None or used > now else min(age, (age + now - used) / 2)


def _importance(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """As the note says; else by how many other notes mention it. Ratings raise or lower it."""
    mentions = Counter(target for _, target in material.links)
    found: dict[int, float] = {}
    for note, facts in material.facts.items():
        said = _number(facts.frontmatter.get("importance"))
        mentioned = max(NEUTRAL, log1p(mentions[note]) / log1p(MENTIONED))
        own = min(1.0, max(0.0, mentioned if said is None else said))
        found[note] = min(1.0, max(0.0, own + material.uses.get(note, UseCount()).rating / 2))
    return found


def _severity(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    said = {note: facts.frontmatter.get("severity") for note, facts in material.facts.items()}
    return {note: SEVERITY.get(str(value).strip().lower(), 0.0) for note, value in said.items()}


def _tags(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """Jaccard: the tags that the query and the note share, of all that either has."""
    words = {word.strip(MARKS) for word in material.query.casefold().split()}
    known = {tag for facts in material.facts.values() for tag in facts.tags}
    asked = words & known
    return {
        note: len(asked & {*facts.tags}) / len(asked | {*facts.tags}) if asked else 0.0
        for note, facts in material.facts.items()
    }


def _domain(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """1 if the query has every word of one of the note's domains."""
    words = set(_plain(material.query))
    found: dict[int, float] = {}
    for note, facts in material.facts.items():
        domains = [_plain(domain) for domain in members_of(facts.frontmatter.get("domain")) if isinstance(domain, str)]
        found[note] = float(any(domain and words.issuperset(domain) for domain in domains))
    return found


def _use(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """How often a note was found and opened, each time counting less than the one before."""
    return {
        note: min(1.0, log1p(use.recalls + OPENED * use.opens) / log1p(MUCH_USED))
        for note, use in material.uses.items()
    }


def _links(material: Material, ranked: Sequence[Scored]) -> dict[int, float]:
    """How much of a walk from the best notes, over links either way, arrives at each note; the most is 1."""
    seeds: dict[int, float] = {}
    for candidate in ranked:
        if len(seeds) < SEEDS:
            seeds.setdefault(candidate.note, candidate.score)
    neighbours: dict[int, set[int]] = {}
    for start, end in material.links:
        if start != end:
            neighbours.setdefault(start, set()).add(end)
            neighbours.setdefault(end, set()).add(start)
    here, arrived = seeds, dict[int, float]()
    for _ in range(HOPS):
        there: dict[int, float] = {}
        for note, mass in here.items():
            for other in neighbours.get(note, ()):
                there[other] = there.get(other, 0.0) + (1 - RESTART) * mass / len(neighbours[note])
        for note, mass in there.items():
            arrived[note] = arrived.get(note, 0.0) + mass
        here = there
    most = max(arrived.values(), default=0.0)
    return {note: mass / most for note, mass in arrived.items()} if most else {}


def _plain(text: str) -> list[str]:
    return [word.strip(MARKS) for word in text.casefold().replace("-", " ").replace("_", " ").split()]


def _number(value: object) -> float | None:
    with suppress(ValueError):
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else nan
        return number if isfinite(number) else None
    return None


VALUES: dict[str, Callable[[Material, Sequence[Scored]], Mapping[int, float]]] = {
    "recency": _recency,
    "importance": _importance,
    "severity": _severity,
    "tags": _tags,
    "domain": _domain,
    "links": _links,
    "use": _use,
    "tier": lambda material, _: material.tiers,
}
NEED_LINKS, NEED_USES = frozenset(("links", "importance")), frozenset(("use", "importance"))
