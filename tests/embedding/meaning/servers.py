"""Ollama on loopback, with vectors that mean the same as the static model's and are nonsense beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tests.embedding.loopback import OllamaServer


class TurnedOllama(OllamaServer):
    """Numbers in reverse order: angles between its own vectors are right, angles to static ones are not."""

    pause = 0.0
    """Seconds that an answer takes."""
    meanwhile: Callable[[], object] | None = None
    """What happens once, before the next answer."""

    def vectors(self, texts: Sequence[str], dimensions: int) -> list[list[float]]:
        time.sleep(self.pause)
        work, self.meanwhile = self.meanwhile, None
        if work:
            work()
        return [vector[::-1] for vector in super().vectors(texts, dimensions)]

    @property
    def asked(self) -> list[str]:
        """Every text that was sent, in order."""
        return [text for request in self.requests for text in request["input"]]

    @property
    def documents(self) -> list[str]:
        return [text for text in self.asked if "query: " not in text]
