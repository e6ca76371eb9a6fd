"""Notice that a new memory says something else about the same as one that is there.

Looks only at the memories that the check for duplicates looks at anyway, so that a save stays as quick as it was. Says
so and decides nothing: whether the new one takes the place of the old one, both stay, or they become one note is for
who saves.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable

from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.likely import Likely
from co_cli.index.reader import StoredPassage
from co_cli.notes.claims import claims_of
from co_cli.notes.disagreeing import disagree, may_disagree
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import stem_of
from co_cli.notes.store import NoteStore
from co_cli.service.holding import outdated
from co_cli.values import Related

WHY = "says something else about the same"
MOST = 3
LONG_ENOUGH = 40
"""Characters of a text that says by itself what it is about; a shorter one may leave that to its title."""


def related_among(
    store: NoteStore,
    index: KnowledgeIndex,
    content: str,
    title: str,
    likely: Iterable[Likely | StoredPassage],
    apart_from: Collection[str] = (),
) -> list[Related]:
    """Those of these memories that hold now and say something else; `apart_from` are paths that are known to."""
    ours = claims_of(content, title)
    found: dict[str, Related] = {}
    for passage in likely:
        if passage.path in found or passage.path in apart_from:
            continue
        if len(passage.body) > LONG_ENOUGH and not may_disagree(passage.body, ours):
            continue  # most are done with here
        slug = re.sub(r"-\d+$", "", stem_of(passage.path)).replace("-", " ")
        if disagree(claims_of(passage.body, slug), ours) is None:
            continue
        note = _open(store, passage.path)  # as its file says it now, under its own title
        if note is None or disagree(claims_of(note.body, note.title), ours) is None:
            continue
        if outdated(note, index, time.time()):
            continue  # what was superseded already, or no longer holds, may say what it likes
        found[passage.path] = Related(note.ref, note.title, WHY)
        if len(found) == MOST:
            break
    return list(found.values())


def _open(store: NoteStore, path: str) -> Note | None:
    if not store.exists(path):
        return None
    try:
        return read_note(path, store.read(path))
    except NotTextError:
        return None
