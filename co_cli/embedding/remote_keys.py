"""API keys from the environment, and whose turn it is.

`OPENAI_API_KEYS=a,b` gives two keys that are used in turn when one of them meets a rate limit; with nothing but
`OPENAI_API_KEY` the provider's own package reads it. Keys never appear in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

VARIABLES = {
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "cohere": ("CO_API_KEY",),
    "voyageai": ("VOYAGE_API_KEY",),
    "bedrock": ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",),
    "google-cloud": ("GOOGLE_CLOUD_PROJECT",),
    "azure": ("AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT",),
}


def key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables that this provider's key is read from."""
    return VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


def keys_of(provider: str, environment: Mapping[str, str]) -> list[str]:
    """Every key in `OPENAI_API_KEYS` and the like; empty when there is none and the provider looks for itself."""
    for variable in key_variables(provider):
        keys = [key.strip() for key in environment.get(f"{variable}S", "").split(",")]
        if any(keys):
            return list(dict.fromkeys(key for key in keys if key))
    return []


class Keyring:
    """Hands out the key whose turn it is. A key that met a limit rests; one that was refused is not used again."""

    def __init__(self, keys: Sequence[str], clock: Callable[[], float]) -> None:
        self._ready_at: dict[str | None, float] = dict.fromkeys(keys or [None], 0.0)
        self._clock = clock

    def __len__(self) -> int:
        return len(self._ready_at)

    def next(self) -> tuple[str | None, float]:
        """The key that is ready first, and the seconds until then."""
        key = min(self._ready_at, key=self._ready_at.__getitem__)
        return key, max(0.0, self._ready_at[key] - self._clock())

    def rest(self, key: str | None, seconds: float) -> None:
        if key in self._ready_at:
            self._ready_at[key] = self._clock() + seconds

    def drop(self, key: str | None) -> None:
        """Not the last one: somebody has to be asked again when the account is in order."""
        if len(self._ready_at) > 1:
            self._ready_at = {other: at for other, at in self._ready_at.items() if other != key}
