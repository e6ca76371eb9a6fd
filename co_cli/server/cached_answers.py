"""Keep the answer of a route that takes long until something changes, so that nobody can make a server busy with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from starlette.responses import Response

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.server.routes import json_answer

LONGEST_SECONDS = 60.0
"""How long it is kept at most: the index does not notice a folder that is no longer mounted."""


class KeptAnswer:
    """The last one for one knowledge base."""

    def __init__(self) -> None:
        self.making = Lock()  # of many who ask at once, one computes it
        self.state: object = None
        self.until = 0.0
        self.body: bytes | memoryview = b""


def kept_until_changed(
    state: Callable[[LocalKnowledgeBase], object],
) -> Callable[[Callable[[LocalKnowledgeBase], Any]], Callable[[LocalKnowledgeBase], Response]]:
    """Decorate the function of a route. `state` says what its answer depends on besides the index."""

    def decorate(function: Callable[[LocalKnowledgeBase], Any]) -> Callable[[LocalKnowledgeBase], Response]:
        answers: WeakKeyDictionary[LocalKnowledgeBase, KeptAnswer] = WeakKeyDictionary()

        @wraps(function)
        def answer(kb: LocalKnowledgeBase) -> Response:
            kept = answers.setdefault(kb, KeptAnswer())
            with kept.making:
                now = (kb.vault, kb.engine.revision(), state(kb))
                if kept.state != now or monotonic() > kept.until:
                    kept.body = json_answer(function(kb)).body
                    kept.state, kept.until = now, monotonic() + LONGEST_SECONDS
                return Response(kept.body, media_type="application/json")

        return answer

    return decorate
