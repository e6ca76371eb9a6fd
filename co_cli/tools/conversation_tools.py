"""A tool for agents that we do not run: it keeps the turns of a conversation."""

from __future__ import annotations

import time
from typing import Annotated, Any, cast

from pydantic import Field, WithJsonSchema

from co_cli.ground.errors import InvalidInputError
from co_cli.notes.dates import read_moment
from co_cli.notes.transcripts import SpokenTurn, speaker_of, user_name
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.tools.fencing import one_line, plain_ref
from co_cli.tools.tool import ToolCall, ToolResult, tool


@tool("Keep a conversation")
def save_conversation(
    call: ToolCall,
    turns: Annotated[
        list[dict[str, Any]],
        WithJsonSchema(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {name: {"type": "string"} for name in ("role", "text", "name", "time")},
                    "required": ["role", "text"],
                },
                "description": "In order: role (user, assistant or tool), text, and perhaps name and time (ISO)",
            }
        ),
    ],
    session: Annotated[str, Field(description="Which conversation to continue, as an earlier answer named it")] = "",
    title: str = "",
) -> ToolResult[dict[str, Any]]:
    """Keep what was said in this conversation, word for word, at its end or now and then. Turns that were kept before
    may be sent again. Not if the user wants it to be private."""
    if not call.kb.captures:
        raise InvalidInputError("save_conversation: the user keeps no conversations (setting capture)")
    speakers = [(_word(turn, "role", "speaker"), _word(turn, "name")) for turn in turns]
    now = time.time()
    said = [
        SpokenTurn(speaker_of(*speaker), text_of(turn), read_moment(turn.get("time")) or now)
        for speaker, turn in zip(speakers, turns, strict=True)
    ]
    about = KeptSession(plain_ref(session), call.kb.local.activity.actor.partition(":")[0], title, user_name(speakers))
    kept = keep_turns(call.kb.local.vault, about, said, repeated=True)
    turns_kept = "1 turn" if kept.added == 1 else f"{kept.added} turns"
    ref = one_line(kept.ref)
    text = f"kept {turns_kept} in {ref}; for more of this conversation pass session={ref}"
    return ToolResult(text, kept._asdict())


def text_of(turn: dict[str, Any]) -> str:
    """What was said: a text, or parts as chat interfaces write them, of which those with words are kept."""
    content = turn.get("text") or turn.get("content") or turn.get("parts") or ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        content = [content]
    texts: list[str] = []
    for part in cast("list[Any]", content):
        inner = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
        texts += [inner] if isinstance(inner, str) and inner.strip() else []
    return "\n\n".join(texts)


def _word(turn: dict[str, Any], *names: str) -> str:
    return next((str(turn[name]) for name in names if turn.get(name)), "")
