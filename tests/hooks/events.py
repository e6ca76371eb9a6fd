"""Events as clients send them to their hooks, with a person's prompt in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command import Co

START, PROMPT = "start", "prompt"
PAUSES = ("answer", "compaction", "end")
NAMES = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"),
    "cursor": ("sessionStart", "beforeSubmitPrompt", "stop", "preCompact", "sessionEnd"),
}
FIELDS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "Done."},
    "AfterAgent": {"prompt": "how do we deploy?", "prompt_response": "Done.", "stop_hook_active": False},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "PreCompress": {"trigger": "auto"},
    "SessionEnd": {"reason": "exit"},
}


def event(client: str, what: str, folder: Path, **fields: Any) -> str:
    """The event as JSON; `what` is a kind of event or a client's name for one."""
    names = dict(zip((START, PROMPT, *PAUSES), NAMES.get(client, NAMES["claude-code"]), strict=True))
    name = names.get(what, what)
    common = {
        "session_id": "5b7c8c1e-0000-4000-8000-000000000001",
        "transcript_path": str(folder / "transcript.jsonl"),
        "cwd": str(folder),
        "hook_event_name": name,
    }
    if client == "cursor":  # as its documentation has it
        del common["session_id"], common["cwd"]
        common |= {"conversation_id": "c0ffee", "generation_id": "1", "model": "gpt", "cursor_version": "3.9"}
        return json.dumps({**common, "workspace_roots": [str(folder)], "attachments": [], **fields})
    if client == "copilot" and name == "SessionStart":
        fields = {"source": "new", "initial_prompt": "", **fields}
    extra = {"codex": {"turn_id": "1", "model": "gpt"}, "gemini": {"timestamp": "2026-11-17T12:00:00Z"}}.get(client, {})
    return json.dumps({**common, **extra, **FIELDS.get(name, {}), **fields})


def given(co: Co, client: str, what: str, **fields: Any) -> str:
    """The text that the client's model is given for an event in this folder; empty if nothing is printed."""
    ran = co.process("hook", client, "--seconds", "30", stdin=event(client, what, co.folder, **fields))
    assert (ran.code, ran.err) == (0, "")
    if not ran.out:
        return ""
    if client == "cursor":
        return json.loads(ran.out)["additional_context"]
    output = json.loads(ran.out)["hookSpecificOutput"]
    assert json.loads(ran.out).get("additionalContext") == (
        output["additionalContext"] if client == "copilot" else None
    )
    assert output["hookEventName"] == json.loads(event(client, what, co.folder))["hook_event_name"]
    return output["additionalContext"]
