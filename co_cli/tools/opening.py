"""Tools that open and list notes."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.excerpt import excerpt
from co_cli.notes.moments import moment_text
from co_cli.notes.refs import lines_of, without_lines
from co_cli.tools import schemas
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import fence_note, one_line
from co_cli.tools.tool import Tool, ToolResult

READ_NOTE = Tool(
    "read_note",
    "Read a note",
    "Open one note, or the lines of an article that a ref points at, as the file says it now. Use it after a search "
    "to read what a snippet only hinted at, and before update_memory. A long note comes in parts; the answer gives "
    "the ref of the rest.",
    schemas.arguments("ref", ref=schemas.REF),
    schemas.NOTE,
    read_only=True,
    idempotent=True,
)
LIST_MEMORIES = Tool(
    "list_memories",
    "List memories",
    "List memories by title, newest first, to see what there is or what has a tag. To find something particular use "
    "recall_memory instead: a list shows only titles, and not all of them.",
    schemas.arguments(tags=schemas.TAGS, limit=schemas.limit(20, 200)),
    schemas.LISTED,
    read_only=True,
    idempotent=True,
)


def read_note(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    ref = plain_ref(values["ref"])
    note = kb.note(ref)
    lines = excerpt(ref, note)
    wanted = lines_of(ref)
    first = max(wanted[0], note.body_line) if wanted else note.body_line
    kept, left = within("\n".join(lines), budget)
    last, rest = first + len(lines) - 1, None
    if left:
        shown = kept.count("\n") + 1
        last, rest = first + shown - 1, f"{without_lines(note.ref)}#L{first + shown}-{first + len(lines) - 1}"
        if shown >= len(lines):
            rest = None  # one line longer than the budget: there is no ref to the rest of a line
    cut = None
    if left:
        cut = f"about {left} tokens left out" + (f"; go on with read_note {rest}" if rest else "")
    created, updated = (moment_text(when) if when is not None else None for when in (note.created, note.updated))
    text = fence_note(
        note.ref,
        note.title,
        note.provenance,
        kept,
        category=note.category,
        tags=" ".join(note.tags),
        created=(created or "")[:10],
        updated=(updated or "")[:10],
        importance=note.metadata.get("importance"),
        lines=f"{first}-{last}" if wanted or left else None,
        cut=cut,
    )
    data: dict[str, Any] = {
        "ref": note.ref,
        "title": note.title,
        "source": note.source,
        "text": kept,
        "tags": list(note.tags),
        "category": note.category,
        "created": created,
        "updated": updated,
        "provenance": note.provenance,
        "fields": plain(note.metadata),
        "lines": [first, last],
        "rest": rest,
        "problem": note.problem,
    }
    return ToolResult(text, data)


def list_memories(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    limit, tags = values.get("limit", 20), values.get("tags")
    notes = kb.notes("memory", tags, limit + 1)
    lines: list[str] = []
    room = budget
    for note in notes[:limit]:
        about = " ".join(f"#{one_line(tag)}" for tag in note.tags)
        line = f"{note.ref} · {one_line(note.title)} · {note.created[:10]}{' · ' + about if about else ''}"
        room -= estimate_tokens(line)
        if room < 0:
            break
        lines.append(line)
    total = kb.index.by_source().get("memory", 0) if not tags else None
    more = len(notes) > len(lines)
    of = f" of {total}" if total is not None else ""
    head = (
        f"{len(lines)}{of} {'memory' if total == 1 else 'memories'}, newest first{'; there are more' if more else ''}"
    )
    told = [*(f"({problem})" for problem in behind), f"{head}."]
    if lines:
        told += ["<notes>", *lines, "</notes>"]
    data: dict[str, Any] = {
        "notes": [
            {
                "ref": note.ref,
                "title": note.title,
                "tags": list(note.tags),
                "created": note.created,
                "category": note.category,
            }
            for note in notes[: len(lines)]
        ],
        "more": more,
        "total": total,
    }
    return ToolResult("\n".join(told), data)


def plain_ref(ref: str) -> str:
    """A ref as typed, or as the address of an MCP resource: `co://memory/slug`."""
    ref = ref.strip().strip("`<>[]\"'")
    if ref.startswith("co://"):
        source, _, name = ref.removeprefix("co://").partition("/")
        return f"{source}:{unquote(name)}"
    return ref


def plain(value: Any) -> Any:
    """Frontmatter as JSON can say it: dates become texts."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return value if value is None or isinstance(value, bool | int | str) else str(value)
