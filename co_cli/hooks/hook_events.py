"""What a coding agent writes to stdin into an event, and the text for its model into what it reads from stdout.

Pure. Clients send JSON with the same fields and, apart from Gemini, the same names of events; they read the same JSON.
Whatever else comes is no event: hooks of clients change, and an unknown one must not disturb anybody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

CLIENTS = ("claude-code", "codex", "gemini", "qwen", "opencode", "copilot", "cursor")
Kind = Literal["start", "prompt", "pause"]
KINDS: dict[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "Stop": "pause",
    "AfterAgent": "pause",
    "PreCompact": "pause",
    "PreCompress": "pause",
    "SessionEnd": "pause",
    "sessionStart": "start",
    "beforeSubmitPrompt": "prompt",
}
"""The events that co answers. In a pause the transcript has what was said so far: `Stop` and `AfterAgent` come after an
answer, the next two before the client shortens the conversation. The last two are those of Cursor."""
STARTS = ("startup", "clear", "compact", "new")
"""Sources of `SessionStart` after which the model has nothing of what it was given; a resumed session has it all,"""
FORGETFUL = ("qwen", "copilot")
"""except in these clients: what it was given at the start is in no request after it was resumed."""
ADDED = re.compile(r"<(hook_(?:additional_)?context|system-reminder|qwen:[\w-]+)>.*?(?:</\1>|\Z)", re.DOTALL)
"""What clients put into a prompt, our own text too."""
CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
NOTICE = re.compile(r"[/!]|<(?:task-notification|command-|local-command|bash-|user-memory-input)")
"""How commands and notices of clients begin."""
LARGEST = 10_000_000
"""Bytes of an event that are read."""
CHECK = "This is only a check of the hook, by co doctor."
"""A prompt that is not recorded."""


class HookEvent(NamedTuple):
    """Something that happened in a client."""

    client: str
    name: str
    kind: Kind
    session: str
    folder: str
    """Where the client works."""
    prompt: str
    """What the person typed; empty if it is nothing to look up."""
    transcript: str
    """The file with the conversation so far."""
    fresh: bool
    """Whether the model has nothing of what it was given before."""
    conversation: Mapping[str, Any] = MappingProxyType({})
    """What was said so far, from a client without such a file."""


def read_event(client: str, data: bytes) -> HookEvent | None:
    """The event; None if it is not one that we answer."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if client not in CLIENTS or not isinstance(found, dict):
        return None
    fields = cast("dict[str, Any]", found)
    roots: Any = fields.get("workspace_roots")
    if client == "cursor" and isinstance(roots, list):
        fields = {
            "session_id": fields.get("conversation_id"),
            "cwd": next(iter(cast("list[Any]", roots)), ""),
            **fields,
        }
    if client == "copilot":  # VS Code has had both spellings
        fields = {"session_id": fields.get("sessionId"), "hook_event_name": fields.get("hookEventName"), **fields}
    name, session, folder, prompt, transcript, source = (
        value if isinstance(value := fields.get(key), str) else ""
        for key in ("hook_event_name", "session_id", "cwd", "prompt", "transcript_path", "source")
    )
    kind = KINDS.get(name)
    fresh = kind == "start" and (source in STARTS or client == "cursor")
    if kind is None or (kind == "start" and not fresh and not (client in FORGETFUL and source == "resume")):
        return None
    said = fields.get("conversation")
    spoken = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    return HookEvent(client, name, kind, session, folder, typed(prompt), transcript, fresh, spoken)


def typed(prompt: str) -> str:
    """What the person typed, without code and what programs added; empty for a command or a notice."""
    prompt = ADDED.sub("", prompt).strip()
    if NOTICE.match(prompt):
        return ""
    return CODE.sub("", prompt).strip()


def reply(event: HookEvent, text: str) -> str:
    """What the client reads from stdout: nothing, or JSON with the text for its model."""
    if not text:
        return ""
    if event.client == "cursor":
        return json.dumps({"additional_context": text})
    said: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}
    if event.client == "copilot":  # the command line reads the outer one, VS Code the inner one
        said["additionalContext"] = text
    return json.dumps(said)
