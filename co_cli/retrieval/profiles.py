"""Named ways to search: which steps run, and how words and meaning are weighed."""

from __future__ import annotations

from co_cli.errors import InvalidInputError
from co_cli.record import Record
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.rerank import DEFAULT as DEFAULT_SHARES
from co_cli.retrieval.rerank import Shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Mix(Record):
    """What the ranking by words and meaning counts for, and what each further signal does."""

    ranking: float
    others: tuple[tuple[str, float], ...]


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
    apart: bool = False
    """Take off what all passages have in common whatever words tell, and not only where they do not tell."""
    rerank: bool = True
    shares: Shares = DEFAULT_SHARES
    """What each signal of the closer look counts for."""
    alike: bool = True
    """What is like the best candidates gains a little, where a long question is asked. Needs `rerank`."""
    by_rank: bool = False
    """Fuse by the places in the two lists, and not by what words and meaning are worth."""
    mix: Mix | None = None
    """Further signals, and what they weigh. None: words and meaning alone, and nothing is read for others."""
    half_life: float = 365.0
    """Days in which the signal recency falls to a half."""
    dates: bool = False
    """A date in the query narrows, or is a reason among others."""
    recency: bool = True
    """Who asks how things stand now finds newer notes a little nearer."""
    tier: bool = True
    """Whose vault a note is of counts a little, where there are several."""
    validity: bool = True
    """Leave out what was superseded or no longer holds."""
    diversify: bool = True
    """One hit a note."""
    abstain: bool = True
    """Say absent when nothing is nearer than unrelated notes are."""


PLAIN = Profile(
    "plain",
    names=False,
    trust=False,
    crowd=False,
    noise=False,
    rerank=False,
    recency=False,
    abstain=False,
)
"""A formula and nothing else; what others build on."""

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("default", dates=True),
        Profile("exact", meaning=False, rerank=False, recency=False),
        Profile("meaning", Weights(meaning=1.0, words=0.0), names=False, rerank=False, recency=False),
        PLAIN._replace(
            name="spec", weights=Weights(meaning=0.7, words=0.3), every_term=True, tier=False, validity=False
        ),
        PLAIN._replace(name="classic", weights=Weights(meaning=0.7, words=0.3)),
        PLAIN._replace(
            name="agent",
            weights=Weights(meaning=0.4, words=0.3),
            mix=Mix(0.7, (("recency", 0.2), ("importance", 0.1))),
            dates=True,
        ),
        PLAIN._replace(
            name="seven",
            weights=Weights(meaning=0.2, words=0.15),
            mix=Mix(0.35, (("severity", 0.1), ("recency", 0.1), ("tags", 0.1), ("domain", 0.1), ("links", 0.15))),
            dates=True,
        ),
        PLAIN._replace(
            name="fresh", weights=Weights(meaning=0.4, words=0.4), mix=Mix(0.8, (("recency", 0.2),)), dates=True
        ),
        PLAIN._replace(name="rrf", weights=Weights(meaning=0.5, words=0.5), by_rank=True),
    )
}
DEFAULT_PROFILE = PROFILES["default"]


def profile_named(name: str) -> Profile:
    if name not in PROFILES:
        raise InvalidInputError(f"the profile is one of {', '.join(PROFILES)}, not {name!r}")
    return PROFILES[name]


def weighed(profile: Profile, weights: Mapping[str, float] | None) -> tuple[Profile, Weights | None]:
    """A profile as one query weighs it, and the weights of words and meaning; None: those it has otherwise.

    Who names words or meaning says what the whole score is made of: what is not named counts for nothing. Who names
    only others adds them, and the ranking by words and meaning keeps what they leave of one.
    """
    if weights is None:
        return profile, None
    check_weights(weights)
    others = tuple((name, float(weight)) for name, weight in weights.items() if name not in Weights._fields)
    if len(others) < len(weights):
        balance = Weights(float(weights.get("meaning", 0.0)), float(weights.get("words", 0.0)))
        return profile._replace(mix=Mix(sum(balance), others) if others else None), balance
    ranking = max(0.0, 1.0 - sum(weight for _, weight in others))
    return profile._replace(mix=Mix(ranking, others)), None


def check_weights(weights: Mapping[str, float]) -> None:
    from co_cli.retrieval.signals import NAMES

    for name, value in weights.items():
        if name not in NAMES:
            raise InvalidInputError(f"weights are of {', '.join(NAMES)}, not {name!r}")
        if not 0 <= value <= 1:
            raise InvalidInputError(f"the weight of {name} is between 0 and 1, not {value}")
    if not any(weights.values()):
        raise InvalidInputError("weights that are all 0 rank nothing: give words or meaning more")


def weights_of(text: str) -> dict[str, float]:
    """`words=0.3,recency=0.2`, as it is typed on a command line."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidInputError(f"weights are NAME=NUMBER, such as words=0.3,recency=0.2, not {part!r}") from None
    return found
