"""Tools that open and list notes."""

from __future__ import annotations

from html import unescape
from typing import Any
from urllib.parse import unquote

from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.excerpt import excerpt
from co_cli.notes.moments import moment_text
from co_cli.notes.refs import lines_of, without_lines
from co_cli.service.narrowing import alike, unused_tags
from co_cli.tools import schemas
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import fence_note, one_line
from co_cli.tools.tool import Tool, ToolResult

AROUND_A_REF = ("``", "<>", "[]", '""', "''")
"""Signs that models put around a ref. One alone belongs to the name, as in `memory:plan [draft]`."""
LONGEST_TITLE = 120
"""Characters of a title, or of all tags, in a list."""
MOST_TAGS = 10
"""Of the most used ones, where none is like the one that was asked for."""

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
    note = kb.note(ref, track=True)
    lines = excerpt(ref, note)
    wanted = lines_of(ref)
    first = max(wanted[0], note.body_line) if wanted else note.body_line
    kept, torn = whole_lines("\n".join(lines), budget)
    shown = kept.count("\n") + 1
    last, end = first + shown - 1, first + len(lines) - 1
    rest = f"{without_lines(note.ref)}#L{last + 1}-{end}" if last < end else None
    left = estimate_tokens("\n".join(lines)) - estimate_tokens(kept)
    cut = f"\nAbout {left} tokens left out" if rest or torn else ""
    if torn:
        cut += f"; the end of line {last} cannot be shown, for the line is longer than an answer may be"
    if rest:
        cut += f"; go on with read_note {one_line(rest)}"
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
        outdated=kb.outdated(note),
        version=note.version,
        lines=f"{first}-{last}" if wanted or cut else None,
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
        "version": note.version,
        "fields": plain(note.metadata),
        "lines": [first, last],
        "rest": rest,
        "problem": note.problem,
    }
    return ToolResult(f"{text}{cut}{'.' if cut else ''}", data)


def whole_lines(text: str, budget: int) -> tuple[str, bool]:
    """As many whole lines as fit, and whether the last one is torn: only a first line that is longer than all of it."""
    kept, left = within(text, budget)
    if not left or text[len(kept) :].lstrip(" \t").startswith("\n"):
        return kept, False
    before = kept[: max(kept.rfind("\n"), 0)].rstrip()
    return (before, False) if before else (kept, True)


def list_memories(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    limit, tags = values.get("limit", 20), values.get("tags")
    notes = kb.notes("memory", tags, limit + 1)
    lines: list[str] = []
    room = budget
    for note in notes[:limit]:
        about = _short(" ".join(f"#{tag}" for tag in note.tags))
        line = f"{one_line(note.ref)} · {_short(note.title)} · {note.created[:10]}{' · ' + about if about else ''}"
        line += " · missing" if note.missing else ""
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
    if tags and not notes:
        head = none_tagged(tags, list(kb.tags("memory")))
    told = [*(f"({one_line(problem)})" for problem in behind), f"{head}."]
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


def none_tagged(tags: list[str], known: list[str]) -> str:
    """For a model that guessed a tag: nobody uses it, and what it may be called."""
    close = [tag for one in unused_tags(tags, known) for tag in alike(one, known)] or known[:MOST_TAGS]
    there = f"; there is {', '.join(map(_short, close))}" if close else ""
    return f"0 memories have {'the tag' if len(tags) == 1 else 'all of the tags'} {_short(', '.join(tags))}{there}"


def _short(text: str) -> str:
    """For one line among many: a note with an endless title must not push the others out."""
    line = one_line(text)
    return line if len(line) <= LONGEST_TITLE else f"{line[:LONGEST_TITLE].rstrip()} …"


def plain_ref(ref: str) -> str:
    """A ref as typed, as a fence shows it, or as the address of an MCP resource: `co://memory/slug`."""
    ref = unescape(unescape(ref)).strip()  # twice: what could pose as structure was escaped before the fence did so
    while len(ref) > 2 and ref[0] + ref[-1] in AROUND_A_REF:
        ref = ref[1:-1].strip()
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
