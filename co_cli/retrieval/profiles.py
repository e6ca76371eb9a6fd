"""Profiles: named tables of weights. `default` is the formula; the others add signals of the notes.

A score is the sum of weight × value over the signals, each value from 0 to 1. Weights that a caller gives replace those
of the profile, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from co_cli.errors import InvalidInputError
from co_cli.retrieval.score import Formula, hybrid, rank_fusion

WEIGHABLE = (
    "meaning", "words", "recency", "importance", "severity", "tags", "domain", "links", "use", "tier", "reader",
)  # fmt: skip
"""Signals with a weight. There is one more, `name`: a note that is called what was asked for always comes first."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to rank."""

    name: str
    weights: Mapping[str, float]
    half_life: float | None = None
    """Days in which recency falls to a half; None: as the settings say."""
    formula: Formula = hybrid
    overfetch: bool = False
    """Look at 3 × limit candidates (30 at least), and return all word matches when the limit would drop most of few."""


SEVEN = {
    "words": 0.20, "meaning": 0.15, "severity": 0.10, "recency": 0.10, "tags": 0.10, "domain": 0.10, "links": 0.15,
}  # fmt: skip
"""They add up to 0.90 as specified, and are normalised. Without vectors, words take over the weight of meaning."""

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("default", {"meaning": 0.7, "words": 0.3}),
        Profile("agent", {"meaning": 0.4, "words": 0.3, "recency": 0.2, "importance": 0.1}),
        Profile(
            "seven",
            {name: weight / 0.9 for name, weight in SEVEN.items()},
            half_life=365.0,
            overfetch=True,
        ),
        Profile("rrf", {"meaning": 0.5, "words": 0.5}, formula=rank_fusion),
        Profile("fresh", {"meaning": 0.6, "words": 0.4, "recency": 0.1}, half_life=30.0),
    )
}
DEFAULT = PROFILES["default"]


def profile_named(name: str) -> Profile:
    if name not in PROFILES:
        raise InvalidInputError(f"the profile must be one of {', '.join(PROFILES)}, not {name!r}")
    return PROFILES[name]


def check_weights(weights: Mapping[str, Any]) -> dict[str, float]:
    """Weights as a caller gave them. Raises InvalidInputError for a name or a number that makes no sense."""
    for name, value in weights.items():
        if name not in WEIGHABLE:
            raise InvalidInputError(f"a weight must be for one of {', '.join(WEIGHABLE)}, not {name!r}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidInputError(f"the weight of {name} must be a number from 0 to 1, not {value!r}")
    if weights.get("words", 1) == weights.get("meaning", 1) == 0:
        raise InvalidInputError("words and meaning are both 0, and nothing else finds notes: give one of them more")
    return dict(weights)
