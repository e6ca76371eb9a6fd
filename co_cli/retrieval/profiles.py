"""Named ways to search: which steps run, and how words and meaning are weighed."""

from __future__ import annotations

from co_cli.errors import InvalidInputError
from co_cli.record import Record
from co_cli.retrieval.fuse import Weights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Profile(Record):
    """What a search does. A step that is off is left out; the others go on with what they get."""

    name: str
    weights: Weights | None = None
    """None: those of the settings, else those of the space."""
    meaning: bool = True
    """Ask for a vector at all."""
    names: bool = True
    """A note that is called what was typed comes first."""
    every_term: bool = False
    """Words propose only what has all of them."""
    trust: bool = True
    """Words count as far as the best match has what was asked for."""
    crowd: bool = True
    """A note of many passages gives a little of its meaning up."""
    noise: bool = True
    """Leave out what shares no word and is no nearer than unrelated texts are."""
    rerank: bool = True
    recency: bool = True
    """Who asks how things stand now finds newer notes a little nearer."""
    diversify: bool = True
    """One hit a note."""
    abstain: bool = True
    """Say absent when nothing is nearer than unrelated notes are."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("default"),
        Profile("exact", meaning=False, rerank=False, recency=False),
        Profile("meaning", Weights(meaning=1.0, words=0.0), names=False, rerank=False, recency=False),
        Profile(
            "spec",
            Weights(meaning=0.7, words=0.3),
            names=False,
            every_term=True,
            trust=False,
            crowd=False,
            noise=False,
            rerank=False,
            recency=False,
            abstain=False,
        ),
    )
}
DEFAULT_PROFILE = PROFILES["default"]


def profile_named(name: str) -> Profile:
    if name not in PROFILES:
        raise InvalidInputError(f"the profile is one of {', '.join(PROFILES)}, not {name!r}")
    return PROFILES[name]


def read_weights(weights: Mapping[str, float] | None) -> Weights | None:
    """`{"words": 0.3, "meaning": 0.7}`; one that is not named counts for nothing."""
    if weights is None:
        return None
    for name, value in weights.items():
        if name not in Weights._fields:
            raise InvalidInputError(f"weights are of {' and '.join(Weights._fields)}, not {name!r}")
        if not 0 <= value <= 1:
            raise InvalidInputError(f"the weight of {name} is between 0 and 1, not {value}")
    if not any(weights.values()):
        raise InvalidInputError("weights that are all 0 rank nothing: give words or meaning more")
    return Weights(**{"meaning": 0.0, "words": 0.0, **weights})
