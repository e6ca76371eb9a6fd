"""Tools for memories: recall, save, update, forget, list and rate.

A save or update answers with a receipt: the file was read again, and a search finds it, or the receipt says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Unpack

from pydantic import Field

from co_cli.errors import FrontmatterError, InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note
from co_cli.notes.refs import lines_of, without_lines
from co_cli.notes.secrets import redact
from co_cli.notes.similarity import words_of
from co_cli.service.feedback import judge
from co_cli.service.searching import close_tags, unused_tags
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.fencing import one_line, plain_ref
from co_cli.tools.knowledge import Found, Limit, Narrowing, Query, recall
from co_cli.tools.tool import ToolContext, ToolResult, tool
from co_cli.values import Saved, masked_text, to_utf8

PROOF_WORDS, CLOSE_ENOUGH = 12, 20
"""A receipt searches for a note by its longest words; it must be among so many hits."""
WORD = re.compile(r"\w{1,40}")
LONGEST_TITLE = 120
"""Characters of a title, or of all tags, in a list or receipt."""
_short = partial(one_line, longest=LONGEST_TITLE)
MOST_TAGS = 10
"""Tags that are suggested when none is similar to the one asked for."""

Ref = Annotated[str, Field(description="Ref from another tool: memory:slug or article:slug#L10-24.")]
NewTags = Annotated[list[str] | None, Field(description="A few short words to find it by, such as a project or topic.")]
Category = Annotated[str | None, Field(description="Such as preference, fact, decision, correction, procedure.")]
Importance = Annotated[float | None, Field(ge=0, le=1, description="How much it matters. Leave out unless you know.")]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a save or an update did."""

    ref: str
    title: str
    path: str
    outcome: Literal["created", "updated", "unchanged", "duplicate", "restored"]
    version: Annotated[str, Field(description="Version of the note now, for update_memory.")]
    detail: str
    read_back: Annotated[bool, Field(description="The file was read again and has the text.")]
    found_again: Annotated[bool, Field(description="A search finds it.")]
    related: Annotated[list[dict[str, str]], Field(description="Similar memories.")]
    masked: Annotated[int, Field(description="Secrets masked before it was written.")]


@tool("Recall memories", read_only=True)
def recall_memory(
    ctx: ToolContext, query: Query, limit: Limit = 5, **narrowing: Unpack[Narrowing]
) -> ToolResult[Found]:
    """Look up what was saved earlier about the user: preferences, decisions, corrections, people, projects, and how
    things are done here. Call it before you answer anything that may depend on that, and before you save something that
    may be known. For long documents use recall_article. The answer says `found`, `absent` (everything was searched and
    nothing is there: do not try other words) or `inconclusive` (something could not be searched)."""
    return recall(ctx, query, limit, ["memory"], narrowing)


@tool("Save a memory")
def save_memory(
    ctx: ToolContext,
    content: Annotated[str, Field(description="What to remember. Markdown.")],
    title: Annotated[str | None, Field(description="A few words that state it. Default: the first sentence.")] = None,
    tags: NewTags = None,
    category: Category = None,
    importance: Importance = None,
    supersedes: Annotated[
        list[str] | None, Field(description="Refs of notes that this one replaces; they are no longer recalled.")
    ] = None,
    on_related: Annotated[
        Literal["report", "keep", "supersede"],
        Field(description="Similar memories: name them, do not look for them, or supersede them."),
    ] = "report",
) -> ToolResult[Receipt]:
    """Remember one thing for later conversations: a preference, a decision, a correction, a fact about the user or
    their work. Call it when the user asks you to remember, corrects you, or says something that will matter again.
    Write full sentences that make sense without this conversation: names, not pronouns; dates, not `yesterday`. No
    secrets, small talk, or what can be looked up. The answer names similar memories: if this replaces one, save the
    same content again with `supersedes`. For a document use save_article, to correct a note update_memory."""
    saved = ctx.kb.remember(
        content,
        title=title,
        tags=tags,
        category=category,
        provenance=ctx.provenance,
        fields={} if importance is None else {"importance": importance},
        supersedes=[without_lines(plain_ref(ref)) for ref in supersedes or ()],
        on_related=on_related,
    )
    return saved_receipt(ctx.kb, saved, content)


@tool("Update a memory", destructive=True)
def update_memory(
    ctx: ToolContext,
    ref: Ref,
    content: Annotated[str | None, Field(description="The whole new text. Markdown.")] = None,
    title: Annotated[str | None, Field(description="New title.")] = None,
    tags: Annotated[list[str] | None, Field(description="All its tags; an empty list removes them.")] = None,
    category: Category = None,
    importance: Importance = None,
    version: Annotated[str | None, Field(description="Version you read, from read_note or a receipt.")] = None,
) -> ToolResult[Receipt]:
    """Change a note that is no longer right: give its ref and only what changes. `content` replaces the whole text, so
    read the note first and pass the `version` you read; then no one's later change is overwritten. `tags` replaces all
    tags. The rest of the file stays as it is. To add a new fact use save_memory."""
    ref = plain_ref(ref)
    if all(value is None for value in (content, title, tags, category, importance)):
        raise InvalidInputError(f"update_memory: say what changes of {ref}: content, title, tags, category, importance")
    before = ctx.kb.note(ref)
    if content is not None and lines_of(ref) is not None:
        raise InvalidInputError(
            f"update_memory: content replaces the whole text, and {ref} names some lines of it: read {before.ref}, "
            "then give that ref and all of the text"
        )
    fields: dict[str, object] = {} if importance is None else {"importance": importance}
    update = partial(ctx.kb.update, before.ref, content, title=title, tags=tags, category=category, version=version)
    try:
        saved = update(fields=fields | _new_author(before, content, ctx.provenance))
    except FrontmatterError:  # then the text can still be changed
        saved = update(fields=fields)
    after = ctx.kb.note(saved.ref)
    undone = saved.outcome == "updated" and after.version == before.version
    return receipt(ctx.kb, saved, after, not undone and (content is None or _says(after, _as_written(content, saved))))


@tool("Forget a memory", destructive=True, idempotent=False)
def forget_memory(ctx: ToolContext, ref: Ref) -> ToolResult[dict[str, Any]]:
    """Remove a note that is wrong or that the user wants forgotten. The file moves to the vault's trash;
    `co note restore` brings it back. To correct a note use update_memory."""
    gone = ctx.kb.forget(without_lines(plain_ref(ref)))
    shown = one_line(gone.ref)
    text = f"forgotten {shown}: it is in the vault's trash, and `co note restore {shown}` brings it back."
    return ToolResult(text, {"ref": gone.ref, "path": gone.path, "trash": gone.trash})


@tool("List memories", read_only=True)
def list_memories(
    ctx: ToolContext,
    tags: Annotated[list[str] | None, Field(description="Only memories with all of these tags.")] = None,
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of memories.")] = 20,
) -> ToolResult[dict[str, Any]]:
    """List memories by title, newest first, to see what there is or what has a tag. To find something specific use
    recall_memory."""
    notes = ctx.kb.notes("memory", tags=tags)
    lines: list[str] = []
    room = ctx.budget
    for note in notes[:limit]:
        about = _short(" ".join(f"#{tag}" for tag in note.tags))
        parts = [
            one_line(note.ref),
            _short(note.title),
            note.created[:10],
            about,
            "missing" if note.missing else "",
        ]
        line = " · ".join(filter(None, parts))
        room -= estimate_tokens(line)
        if room < 0:
            break
        lines.append(line)
    total = None if tags else len(notes)
    more = len(notes) > len(lines)
    of = "" if total is None else f" of {total}"
    head = f"{len(lines)}{of} {'memory' if total == 1 else 'memories'}, newest first{'; there are more' * more}"
    if tags and not notes:
        head = _none_tagged(tags, list(ctx.kb.tags("memory")))
    text = [*(f"({one_line(problem)})" for problem in ctx.degraded), f"{head}."]
    text += ["<notes>", *lines, "</notes>"] if lines else []
    listed = [
        {"ref": one.ref, "title": one.title, "tags": list(one.tags), "created": one.created, "category": one.category}
        for one in notes[: len(lines)]
    ]
    return ToolResult("\n".join(text), {"notes": listed, "more": more, "total": total})


@tool("Rate a memory")
def rate_memory(
    ctx: ToolContext,
    ref: Ref,
    verdict: Annotated[Literal["good", "bad"], Field(description="good or bad.")],
    query: Annotated[str | None, Field(description="What you searched for. Default: the last search.")] = None,
) -> ToolResult[dict[str, Any]]:
    """Say whether a note that a search found was what you needed (good) or unrelated (bad); later searches rank better
    for it. Call it when you have used a note, or when the first hits were wrong. It does not change the note: to
    correct it use update_memory."""
    rated = judge(ctx.kb, without_lines(plain_ref(ref)), verdict == "good", query)
    about = f" for {one_line(rated.query)!r}" if rated.query else ", about the note alone: no search was named or found"
    return ToolResult(f"rated {verdict}: {one_line(rated.ref)}{about}.", rated._asdict())


def saved_receipt(kb: KnowledgeBase, saved: Saved, content: str) -> ToolResult[Receipt]:
    note, content = kb.note(saved.ref), _as_written(content, saved)
    repeated = saved.outcome != "created"  # then case and punctuation may differ
    same = words_of(note.body) == words_of(to_utf8(content)) if repeated else _says(note, content)
    return receipt(kb, saved, note, same)


def receipt(kb: KnowledgeBase, saved: Saved, note: Note, read_back: bool) -> ToolResult[Receipt]:
    found_again = _found_again(kb, note)
    done = "known already, nothing written:" if saved.outcome == "duplicate" else saved.outcome
    masked = [f"{masked_text(saved.masked)} before it was written"] if saved.masked else []
    proofs = [
        *masked,
        "read back from its file" if read_back else "BUT the file does not hold all of this: somebody changed it since",
        "found again by search"
        if found_again
        else "not found by search yet: it has no words to find it by, or the index cannot be used (run `co doctor`)",
    ]
    text = f"{done} {one_line(saved.ref)} ({_short(note.title)}): {'; '.join(proofs)}; version {note.version}."
    detail = one_line(saved.detail.removeprefix(f"{saved.ref}; "))
    text += f" {detail[:1].upper()}{detail[1:]}." if detail else ""
    if saved.related:
        named = ", ".join(f"{one_line(one.ref)} ({_short(one.title)}; {one.why})" for one in saved.related)
        refs = ", ".join(f'"{one_line(one.ref)}"' for one in saved.related)
        text += (
            f" Related: {named}. If this replaces one of them, call save_memory again with the same content and "
            f"supersedes=[{refs}], naming only what it replaces; if all are true, do nothing; if unsure, ask the user."
        )
    related = [{"ref": one.ref, "title": one.title, "why": one.why} for one in saved.related]
    about = (saved.ref, note.title, note.path, saved.outcome, note.version, saved.detail)
    return ToolResult(text, Receipt(*about, read_back, found_again, related, saved.masked))


def _found_again(kb: KnowledgeBase, note: Note) -> bool:
    words = sorted(set(WORD.findall(note.body)) or WORD.findall(note.title), key=len)[-PROOF_WORDS:]
    if not words:
        return False
    hits = kb.search(" ".join(words), limit=CLOSE_ENOUGH, sources=[note.source], backend="fts5").hits
    return any(without_lines(hit.ref) == note.ref for hit in hits)


def _new_author(note: Note, content: str | None, provenance: str) -> dict[str, object]:
    """An agent that rewrites a user's text becomes its author; text from elsewhere is never trusted more for it."""
    keeps = content is None or _says(note, content) or note.provenance.casefold() != "user"
    return {} if keeps or provenance == "user" else {"provenance": provenance}


def _as_written(content: str, saved: Saved) -> str:
    """The text as the file has it, with secrets masked."""
    return redact(to_utf8(content)) if saved.masked else content


def _says(note: Note, content: str) -> bool:
    """Whether the note says this and nothing else. White space does not count."""
    return note.body.split() == to_utf8(content).replace("\0", "").split()


def _none_tagged(tags: list[str], known: list[str]) -> str:
    close = [tag for one in unused_tags(tags, known) for tag in close_tags(one, known)] or known[:MOST_TAGS]
    there = f"; there is {', '.join(map(_short, close))}" if close else ""
    return f"0 memories have {'the tag' if len(tags) == 1 else 'all of the tags'} {_short(', '.join(tags))}{there}"
