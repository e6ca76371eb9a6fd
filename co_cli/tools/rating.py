"""The tool that rates: whether a note was the answer. Nothing in the vault changes; activity.db keeps it."""

from __future__ import annotations

from typing import Any

from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.service.tuning import VERDICTS, judge
from co_cli.tools import schemas
from co_cli.tools.fencing import one_line
from co_cli.tools.opening import plain_ref
from co_cli.tools.tool import Tool, ToolResult

RATE_MEMORY = Tool(
    "rate_memory",
    "Rate a memory",
    "Say whether a note that a search found was what you needed (good) or had nothing to do with it (bad). Later "
    "searches are ranked a little better for it. Use it when you have used a note, or when the first hits were off the "
    "mark; not for what you think of its content. The note itself does not change: to correct it use update_memory.",
    schemas.arguments(
        "ref",
        "verdict",
        ref=schemas.REF,
        verdict={"type": "string", "enum": list(VERDICTS), "description": "good or bad."},
        query=schemas.text("What you searched for. Left out, the last search that found it."),
    ),
    schemas.answer(
        "ref",
        "verdict",
        ref={"type": "string"},
        title={"type": "string"},
        verdict={"type": "string"},
        query={"type": ["string", "null"], "description": "What it was rated as an answer to; null: the note alone."},
        rank={"type": ["integer", "null"], "description": "Where the default weights rank it for that."},
        good={"type": "integer", "description": "How often the note was called good, this time included."},
        bad={"type": "integer"},
        judgements={"type": "number", "description": "Judgements so far that weights can be learned from."},
        applied={"type": "boolean", "description": "Did this change how searches are ranked?"},
        ignored={"type": "array", "items": {"type": "string"}},
    ),
    idempotent=True,
)


def rate_memory(kb: KnowledgeBase, values: dict[str, Any], provenance: str) -> ToolResult:
    told = judge(kb, without_lines(plain_ref(values["ref"])), values["verdict"], values.get("query"))
    about = f" for {one_line(told.query)!r}" if told.query else ", about the note alone: no search was named or found"
    text = f"rated {told.verdict}: {one_line(told.ref)}{about}."
    if told.applied and told.lesson is not None:
        text += f" Searches now weigh meaning {told.lesson.meaning:.2f} and words {1 - told.lesson.meaning:.2f}."
    data = {name: value for name, value in told._asdict().items() if name != "lesson"}
    return ToolResult(text, data)
