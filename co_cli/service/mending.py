"""Mend what a search trips over: passages that lack their words or their vectors, though search.db itself is sound.

Not again and again: if it does not help, searches go on with what there is and say so.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from co_cli.errors import KnowledgeError
from co_cli.index.integrity import mend_vectors, mend_words
from co_cli.logbook import logger

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.service.searching import Finding

REST_SECONDS = 60.0
_tried: dict[str, float] = {}


def mend(kb: KnowledgeBase, finding: Finding) -> bool:
    """True if the search is to be asked once more. Else the finding says what it lacks."""
    what = " and ".join(finding.drift)
    tried = _tried.get(kb.database.path)
    if tried is None or time.monotonic() - tried > REST_SECONDS:
        _tried[kb.database.path] = time.monotonic()
        try:
            _mend(kb, finding.drift)
        except KnowledgeError as error:
            logger("index").warning(
                "%s lacks %s of some passages, and cannot be mended: %s", kb.database.path, what, error
            )
        else:
            logger("index").warning("%s lacked %s of some passages: they were made again", kb.database.path, what)
            return True
    finding.degraded.append(f"some passages lack their {what}: `co doctor --fix` mends it")
    return False


def _mend(kb: KnowledgeBase, drift: list[str]) -> None:
    if "words" in drift and not mend_words(kb.database):
        kb.rebuild()
    elif "vectors" in drift:
        for origin in (kb.index.origin, *kb.index.beside):
            index = kb.index.of(origin)
            mend_vectors(index.rows)
            index.embed()
