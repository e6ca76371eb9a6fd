"""Profiles: named tables of weights. `default` is the formula; the others add signals of the notes.

A score is the sum of weight × value over the signals, each value from 0 to 1. Weights that a caller gives replace those
of the profile, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.weights import AGENT_WEIGHTS, read_weights
from co_cli.retrieval.score import Formula, hybrid, rank_fusion


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to rank."""

    name: str
    weights: Mapping[str, float]
    half_life: float | None = None
    """Days in which recency falls to a half; None: as the settings say."""
    use_renews: bool = False
    """Whether the recency of a note counts when it was last used."""
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
        Profile("agent", read_weights(AGENT_WEIGHTS), use_renews=True),
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
