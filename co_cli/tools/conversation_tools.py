"""A tool for agents that we do not run: it keeps the turns of a conversation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from co_cli.conversations.capture import KeptSession, keep_turns
from co_cli.errors import InvalidInputError
from co_cli.notes.dates import read_moment
from co_cli.notes.transcripts import SpokenTurn, speaker_of, user_name
from co_cli.tools.fencing import one_line
from co_cli.tools.tool import ToolContext, ToolResult, tool


@tool("Keep a conversation")
def save_conversation(
    ctx: ToolContext,
    session: Annotated[str, Field(description="An id, the same for all turns of one conversation")],
    turns: Annotated[
        list[dict[str, str | None]],
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
    title: str = "",
) -> ToolResult[dict[str, Any]]:
    """Keep what was said in this conversation, word for word, at its end or now and then. Turns that were kept before
    may be sent again. Not if the user wants it to be private."""
    if not ctx.kb.captures:
        raise InvalidInputError("save_conversation: the user keeps no conversations (setting capture)")
    speakers = [(turn.get("role") or turn.get("speaker") or "", turn.get("name") or "") for turn in turns]
    said = [
        SpokenTurn(speaker_of(*speaker), turn.get("text") or turn.get("content") or "", read_moment(turn.get("time")))
        for speaker, turn in zip(speakers, turns, strict=True)
    ]
    about = KeptSession(session, ctx.kb.activity.actor.partition(":")[0], title, user_name(speakers))
    kept = keep_turns(ctx.kb.vault, about, said, repeated=True)
    turns_kept = "1 turn" if kept.added == 1 else f"{kept.added} turns"
    return ToolResult(f"kept {turns_kept} in {one_line(kept.ref)}", kept._asdict())
