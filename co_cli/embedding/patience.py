"""Ask an embedder for so long and no longer, whatever its server does: somebody is waiting for a save or a search."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from co_cli.embedding.space import Embedder, Vector
from co_cli.errors import EmbedderUnreachableError


class OutOfTimeError(EmbedderUnreachableError):
    """The time was over before the answer came."""


def embed_within(embedder: Embedder, texts: Sequence[str], seconds: float | None) -> list[Vector | None]:
    """Documents to vectors. Raises EmbeddingError, OutOfTimeError among them; None leaves all the time there is."""
    if seconds is None:
        return embedder.embed(texts, "document")
    answers: list[list[Vector | None]] = []
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(embedder.embed(texts, "document"))
        except BaseException as error:
            problems.append(error)

    # a daemon: what hangs must not keep the process from ending
    asking = threading.Thread(target=ask, name="co-embed", daemon=True)
    asking.start()
    asking.join(max(0.0, seconds))
    for problem in problems:
        raise problem
    if not answers:
        raise OutOfTimeError(
            f"{embedder.space.provider}'s {embedder.space.model} did not answer in time: `co sync` waits longer"
        )
    return answers[0]
