"""Weights of signals as people write them: `words=0.3,recency=0.2`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from co_cli.ground.errors import InvalidInputError

WEIGHABLE = (
    "meaning", "words", "recency", "importance", "severity", "tags", "domain", "links", "use", "tier", "reader",
)  # fmt: skip
"""Signals with a weight. There is one more, `name`: a note that is called what was asked for always comes first."""
AGENT_WEIGHTS = "meaning=0.4,words=0.3,recency=0.2,importance=0.1"
"""The profile `agent`, unless the settings say otherwise."""


def read_weights(text: str) -> dict[str, float]:
    """Weights as they were written. Raises InvalidInputError."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidInputError(f"weights must be NAME=NUMBER: words=0.3,recency=0.2, not {part!r}") from None
    return check_weights(found)


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
