"""Keep a session of a coding agent when it pauses: a process of its own, which outlives the client.

Clients end hooks soon after an answer, so `co hook` only starts it. It waits a moment, because a client may still be
writing and may pause several times in a row; while one waits, others end at once.
"""

from __future__ import annotations

import os
import time

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.hooks.hook_events import read_event
from co_cli.importers.recorded_sessions import capture_session, capture_transcript, state_file
from co_cli.notes.files import locked
from co_cli.notes.logbook import logger
from co_cli.vault.tiers import vaults_for_prompts
from co_cli.vault.vault import Opening

PAUSE = 1.0
"""Seconds in which a client finishes what it writes."""


def capture(client: str, data: bytes, vault: str | None, data_dir: str | None) -> None:
    """Append what was said to the session's conversation, in a vault that the user trusts."""
    event = read_event(client, data)
    if event is None:
        return
    if os.path.isdir(event.folder):
        os.chdir(event.folder)
    settings = load_settings({"vault": vault, "data_dir": data_dir})
    try:
        with locked(f"{state_file(settings.data_dir, event.transcript or event.session)}.waiting", wait=False):
            time.sleep(PAUSE)
    except BlockingIOError:
        return  # another one is about to read the same lines
    with LocalKnowledgeBase(settings, Opening(client, short_lived=True)) as kb:
        allowed, _ = vaults_for_prompts(settings, kb.root, kb.vault.linked)
        if kb.root in allowed:
            about = kb.vault, client, event.session, event.folder
            if event.transcript:
                kept = capture_transcript(*about, event.transcript)
            else:
                kept = capture_session(*about, event.conversation)
            if kept:
                logger("capture").info("%s: kept %d turns in %s", client, kept.added, kept.ref)
