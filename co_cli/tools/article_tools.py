"""Tools for longer documents: recall, save, and read a note or a part of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Unpack

from pydantic import Field
from pydantic_core import to_jsonable_python

from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.values import moment_text
from co_cli.notes.excerpts import Excerpt, excerpt, marked_ref
from co_cli.notes.note import Note
from co_cli.notes.refs import lines_of, without_lines
from co_cli.searching.note_details import NearbyNotes, Surroundings, mentions_of, notes_around
from co_cli.tools.budget import estimate_tokens, whole_lines
from co_cli.tools.fencing import fence_note, one_line, plain_ref
from co_cli.tools.knowledge import DOCUMENTS, LIMIT, MIN_TOKENS, Found, FoundNote, Limit, Ranking, fitting, recall
from co_cli.tools.memory import Receipt, Ref, saved_receipt, says_title, short
from co_cli.tools.tool import ToolCall, ToolResult, tool


@dataclass(frozen=True, slots=True)
class OpenedNote:
    """A note, or some lines of it."""

    ref: str
    title: str
    source: str
    text: str
    tags: list[str]
    category: str | None
    created: str | None
    updated: str | None
    provenance: str
    version: Annotated[str, Field(description="Pass it to update_memory with a change based on this.")]
    fields: Annotated[dict[str, Any], Field(description="All of its frontmatter.")]
    lines: Annotated[list[int], Field(description="First and last line of the file that `text` covers.")]
    rest: Annotated[str | None, Field(description="Ref of the next part, if it was cut.")]
    problem: str | None
    moved: Annotated[str | None, Field(description="What happened to these lines since the ref was given.")]
    mentions: Annotated[list[FoundNote], Field(description="Of an entity: what other notes say about it.")]
    around: Annotated[Surroundings | None, Field(description="Other notes near it, if they were asked for.")]


@tool("Recall articles", read_only=True)
def recall_article(call: ToolCall, query: str, limit: Limit = LIMIT, **narrowing: Unpack[Ranking]) -> ToolResult[Found]:
    """Like recall_memory, in longer documents: guides, web pages, meeting notes, added folders."""
    return recall(call, query, limit, DOCUMENTS, narrowing)


@tool("Save an article")
def save_article(
    call: ToolCall,
    content: str,
    title: str,
    tags: list[str] | None = None,
    category: str | None = None,
    source_url: str | None = None,
) -> ToolResult[Receipt]:
    """Save a longer document, in Markdown with headings: a summary, a guide, a page. For one fact use save_memory."""
    fields: dict[str, object] = {} if source_url is None else {"source_url": source_url}
    saved = call.kb.remember(
        content, title, tags=tags, category=category, provenance=call.provenance, source="article", fields=fields
    )
    return saved_receipt(call, saved, content)


@tool("Read a note", read_only=True)
def read_note(
    call: ToolCall,
    ref: Ref,
    around: Annotated[bool, Field(description="Also links, backlinks, entities, folder")] = False,
) -> ToolResult[OpenedNote]:
    """Read a note, or the lines that its ref names, after a search and before update_memory. A long note comes in
    parts."""
    ref = plain_ref(ref)
    note = call.kb.note(ref, track=True)
    found = excerpt(ref, note)
    nearby, near = _around(call, ref, note) if around else (None, "")
    first, whole = found.first, "\n".join(found.lines)
    kept, torn = whole_lines(whole, max(call.budget - estimate_tokens(near), MIN_TOKENS))
    last = first + kept.count("\n")
    rest = _rest(note.ref, found, last)
    cut = f"\n({one_line(found.remark)}.)" if found.remark else ""
    if rest or torn:
        cut += f"\nAbout {estimate_tokens(whole) - estimate_tokens(kept)} tokens left out"
        cut += f"; the end of line {last} cannot be shown: the line is longer than an answer may be" if torn else ""
        cut += f"; go on with {call.prefix}read_note {one_line(rest)}." if rest else "."
    created, updated = (moment_text(when) if when is not None else None for when in (note.created, note.updated))
    text = fence_note(
        note.ref,
        note.title,
        note.provenance,
        kept,
        url=note.metadata.get("url"),
        type=note.metadata.get("type"),
        aliases=", ".join(note.aliases),
        category=note.category,
        tags=" ".join(note.tags),
        created=(created or "")[:10],
        updated=(updated or "")[:10],
        importance=note.metadata.get("importance"),
        outdated=call.kb.outdated(note),
        version=note.version,
        lines=f"{first}-{last}" if lines_of(ref) or rest or torn else None,
    )
    about = (note.ref, note.title, note.source, kept, list(note.tags), note.category, created, updated)
    fields = json_fields(note.metadata)
    room = call.budget - estimate_tokens(text) - estimate_tokens(near)
    mentions, said, _ = fitting(call, mentions_of(call.kb.local.vault, note), 0, room)
    state = (note.provenance, note.version, fields, [first, last], rest, note.problem, found.remark or None)
    data = OpenedNote(*about, *state, mentions, nearby)
    known = "\n".join(("\nNamed in other notes:", *said)) if said else ""
    return ToolResult(text + cut + known + near, data)


def _around(call: ToolCall, ref: str, note: Note) -> tuple[Surroundings | None, str]:
    """The notes around one, and the same as text for a model: a line for each that links to it, one for each group."""
    try:
        found = notes_around(call.kb.local.vault, ref, note)
    except IndexUnavailableError as error:
        return None, f"\n(What is around it is not known: {one_line(str(error))}.)"
    folder = note.path.rpartition("/")[0]
    groups = {"Links to": found.links, "Linked from": found.linked_from, "Names": found.entities}
    groups[f"In {one_line(folder)}" if folder else "In its folder"] = found.folder
    lines = [f"{name}: {_listed(group)}" for name, group in groups.items() if group.notes]
    whole = "\n".join(lines)
    text, _ = whole_lines(whole, call.budget // 2)
    text += "\n…" if len(text) < len(whole) else ""
    return found, f"\n<notes>\n{text}\n</notes>" if text else "\nNo links, entities or other notes are around it."


def _listed(group: NearbyNotes) -> str:
    named = [
        one_line(other.ref)
        + ("" if not other.title or says_title(other.ref, other.title) else f" ({short(other.title)})")
        + (f': "{short(other.line)}"' if other.line else "")
        for other in group.notes
    ]
    return "; ".join(named) + (f"; and {group.more} more" if group.more else "")


def _rest(ref: str, found: Excerpt, last: int) -> str | None:
    """The ref of what follows the last line that was shown; None if nothing does."""
    skipped = last - found.first + 1
    while skipped < len(found.lines) and not found.lines[skipped].strip():
        skipped += 1
    left = Excerpt(found.lines[skipped:], found.first + skipped)
    return marked_ref(f"{without_lines(ref)}#L{left.first}", left) if left.lines else None


def json_fields(metadata: dict[str, Any]) -> dict[str, Any]:
    """Frontmatter as JSON: dates become strings."""
    return to_jsonable_python(metadata, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
