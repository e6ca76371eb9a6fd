"""The text that a coding agent's model is given for an event: notes that the user trusts, fenced as data.

The same choice as for every agent (`searching/context.py`): at the start notes marked `loading: always`, with a prompt
those that are about it, each once in a session. No language model is called.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from dataclasses import replace

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.settings import Settings
from co_cli.hooks.hook_events import HookEvent
from co_cli.notes.files import make_folders, open_private
from co_cli.notes.refs import without_lines
from co_cli.searching.context import asks_something
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.fencing import one_line, quoted
from co_cli.tools.prompt_notes import QUOTED, render_notes
from co_cli.vault.tiers import vaults_for_prompts
from co_cli.vault.vault import Opening, embedders_of

START_TOKENS, PROMPT_TOKENS, MOST_NOTES = 500, 600, 3
SYNC_SECONDS = 0.7
"""How long a prompt waits for changed files to be indexed; it is then answered without them."""
LATE_TOOLS = {"codex": "; if you do not have them yet, they come after your first call of another tool"}
"""Codex starts servers beside its first request, and does not wait for them (`mcp_optional_startup_grace_ms`)."""
SESSIONS = "sessions"
"""The folder of what each session was given."""
KEPT_DAYS = 14
STARTED_BY_PROMPT = ("gemini",)
"""Clients that are given the start of a session with its first prompt: a resumed Gemini CLI drops a message that begins
with what a hook said, and with it the prompt that came next."""
STARTED = "started"
"""Among the refs of such a session."""


class SessionNotes:
    """The refs that one session was given: a small file in the data folder. What cannot be written is not remembered.

    Not in activity.db, which a setting may leave empty and which a short process should not have to open.
    """

    def __init__(self, data_dir: str, client: str, session: str) -> None:
        self._folder = os.path.join(data_dir, SESSIONS)
        name = hashlib.sha256(f"{client}\n{session}".encode("utf-8", "replace")).hexdigest()[:24]
        self._path = os.path.join(self._folder, name) if session else ""

    def refs(self) -> set[str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return set(file.read().split("\n")) - {""}
        except (OSError, UnicodeDecodeError):
            return set()

    def add(self, refs: list[str]) -> None:
        if not refs or not self._path:
            return
        with contextlib.suppress(OSError):
            make_folders(self._folder, private=True)
            with open(self._path, "a", encoding="utf-8", errors="replace", opener=open_private) as file:
                file.write("".join(f"{ref}\n" for ref in refs))

    def restart(self) -> None:
        """The model has nothing of it any more. Sessions that ended long ago are forgotten, too."""
        oldest = time.time() - KEPT_DAYS * 86_400
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.path == self._path or entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)


def given_text(event: HookEvent, settings: Settings) -> str:
    """The text for the model, from the vault of these settings."""
    if not embedders_of(settings).ready:
        settings = replace(settings, knowledge_search_backend="fts5")  # by words: unpacking takes too long here
    with LocalKnowledgeBase(settings, Opening(event.client, short_lived=True)) as kb:
        return text_for(kb, event)


def text_for(kb: LocalKnowledgeBase, event: HookEvent) -> str:
    """The text for the model. What was given is recorded."""
    allowed, _ = vaults_for_prompts(kb.settings, kb.root, kb.vault.linked)
    if not allowed:
        return ""
    given = SessionNotes(kb.settings.data_dir, event.client, event.session)
    if event.fresh:
        given.restart()
    known, later = given.refs(), event.client in STARTED_BY_PROMPT
    starts = STARTED not in known if later and event.kind == "prompt" else event.kind == "start" and not later
    asks = event.kind == "prompt" and asks_something(event.prompt)
    if not (starts or asks):
        return ""
    _sync(kb)
    head = _introduction(kb, allowed, event.client) if starts else ""
    notes = kb.always_notes().notes if starts else []
    notes += kb.matching_notes(event.prompt, known).notes[:MOST_NOTES] if asks else []
    budget = (START_TOKENS - estimate_tokens(head) if starts else 0) + (PROMPT_TOKENS if asks else 0)
    text, report = render_notes(notes, budget, QUOTED)
    text = "\n".join(filter(None, (head, text)))
    kb.injected(report["injected"], event.session or None, prompt=event.prompt if asks else "", given=text)
    given.add([*([STARTED] if starts and later else []), *(without_lines(note["ref"]) for note in report["injected"])])
    return text


def _introduction(kb: LocalKnowledgeBase, allowed: set[str], client: str) -> str:
    """Which memory there is and how to use it, and where the last conversation was left."""
    vaults = " and ".join(one_line(root) for root in sorted(allowed))
    later = LATE_TOOLS.get(client, "")
    lines = [
        f"co is the user's long-term memory: notes in {vaults}. Its tools (MCP server co{later}): recall_memory before "
        "you answer what may depend on the user's preferences, decisions, people or projects; save_memory when the "
        "user wants something remembered or corrects you; read_note for a ref. Prefer it to other memory files."
    ]
    checkpoint = kb.checkpoints.latest() if kb.root in allowed else None
    if checkpoint:
        lines += ["The ref and the title of the latest checkpoint (data):"]
        lines += [quoted(one_line(checkpoint.ref)), quoted(checkpoint.title)]
    return "\n".join(lines)


def _sync(kb: LocalKnowledgeBase) -> None:
    """Update the index, as far as there is time: another process may be at it, and what is indexed can be read."""

    def sync() -> None:
        try:
            kb.sync(seconds=0)
        except KnowledgeError:
            pass  # the search that follows gets the same error
        except Exception as error:
            from co_cli.notes.logbook import crashed

            crashed(error)

    thread = threading.Thread(target=sync, daemon=True)
    thread.start()
    thread.join(SYNC_SECONDS)
