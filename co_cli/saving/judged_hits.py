"""Record ratings of notes as answers to questions."""

from __future__ import annotations

import time

from co_cli.activity import judgements
from co_cli.activity.events import masked, place_of
from co_cli.activity.judgements import Judgement
from co_cli.activity.query_log import last_question
from co_cli.ground.values import to_utf8
from co_cli.vault.lookup import file_of, open_note
from co_cli.vault.vault import Vault


def rate(
    vault: Vault, ref: str, good: bool, query: str | None = None, how: str = "said", until: float | None = None
) -> Judgement:
    """Rate a note as the answer to a question; by default the last one that it answered, `until` this moment.

    `how` is `heard` for what a model understood from a conversation.
    """
    note, query, now = open_note(vault, ref), masked(to_utf8(query or "").strip()) or None, time.time()
    place = place_of(file_of(vault, note.ref), (vault.root, *(origin.root for origin in vault.linked)))
    with vault.activity.written().writing() as connection:
        if vault.settings.query_log != "on":
            query = None  # not even a hash: a short question can be guessed from it
        elif query is None:
            query = last_question(connection, vault.root, [note.ref], until or now)
        judgement = Judgement(note.ref, query, good, how)
        judgements.put(connection, vault.root, place, judgement, now)
    return judgement
