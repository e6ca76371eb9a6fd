"""Tools for memories: recall, save, update, forget, list and rate.

A save or update answers with a receipt: the file was read again, and a search finds it, or the receipt says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired, Unpack, get_type_hints

from pydantic import Field
from typing_extensions import TypedDict

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import FrontmatterError, InvalidInputError
from co_cli.ground.saves import NOTE_FIELDS, NoteField, NoteFields, Saved, masked_text
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import OWN_SOURCES, OwnSource, to_utf8
from co_cli.notes.editing import set_section
from co_cli.notes.note import Note
from co_cli.notes.refs import FOLDERS, lines_of, slugify, without_lines
from co_cli.notes.secrets import redact
from co_cli.notes.similarity import words_of
from co_cli.notes.subjects import title_from
from co_cli.searching.requests import Options, close_tags, parse_filters, unused_tags
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.fencing import one_line, plain_ref
from co_cli.tools.knowledge import ABOUT, LIMIT, Found, Limit, Ranking, recall
from co_cli.tools.tool import ToolCall, ToolResult, tool
from co_cli.upkeep.feedback import judge
from co_cli.vault.history import ChangedNote, changed_notes

PROOF_WORDS, CLOSE_ENOUGH = 12, 20
"""A receipt searches for a note by its longest words; it must be among the first 20 hits."""
WORD = re.compile(r"\w{1,40}")
LONGEST_TITLE = 120
"""Characters of a title, or of all tags, in a list or receipt."""
short = partial(one_line, longest=LONGEST_TITLE)
LONGEST_MEMORY = 100_000
"""Bytes: a memory is searched and shown as one passage."""
MOST_TAGS = 10
"""Tags that are suggested when none is similar to the one asked for."""

SavedKind = Literal["memory", "entity", "resource"]
Ref = Annotated[str, Field(description="memory:slug or article:slug#L10-24")]


def _arguments(hint_of: Callable[[NoteField], str]) -> dict[str, Any]:
    """The table of fields as optional arguments of a tool."""
    fields: dict[str, Any] = {}
    for key, hint in get_type_hints(NoteFields).items():
        field = NOTE_FIELDS[key]
        least, most = (0, 1) if field.form == "share" else (None, None)
        about = Field(description=hint_of(field) or None, exclude=not field.for_agents, ge=least, le=most)
        fields[key] = Annotated[hint, about]
    return fields


if TYPE_CHECKING:
    SavedFields = ChangedFields = NoteFields
else:
    SavedFields = TypedDict("SavedFields", _arguments(lambda field: field.hint), total=False)
    ChangedFields = TypedDict("ChangedFields", _arguments(lambda field: field.new_hint), total=False)


class ListedNote(TypedDict):
    """A note in a list."""

    ref: str
    title: str
    created: str
    category: str | None
    outdated: Annotated[str | None, Field(description="Why it is not valid now.")]
    tags: list[str]
    change: NotRequired[Annotated[str, Field(description="With since: what happened to it.")]]
    changed: NotRequired[Annotated[str, Field(description="When.")]]
    before: NotRequired[Annotated[str | None, Field(description="The ref that it had, if it was moved.")]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Some notes, newest first."""

    notes: list[ListedNote]
    more: bool
    total: int
    next_offset: Annotated[int | None, Field(description="The offset that lists more.")]


@dataclass(frozen=True, slots=True)
class Gone:
    """A note that was forgotten."""

    ref: str
    path: str
    trash: Annotated[str, Field(description="Where it is now.")]
    valid_again: Annotated[list[str], Field(description="Refs of notes that it superseded.")]


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


class TextChange(NamedTuple):
    """A change of a part of a text."""

    content: str | None
    old: str | None
    new: str
    append: str | None
    section: str | None


@tool("Recall memories", read_only=True)
def recall_memory(call: ToolCall, query: str, limit: Limit = LIMIT, **narrowing: Unpack[Ranking]) -> ToolResult[Found]:
    """Look up what is known about the user: preferences, decisions, corrections, people, projects, how things are done
    here. Call it before you answer anything that may depend on that, and before you save."""
    return recall(call, query, limit, ABOUT, narrowing)


@tool("Save a memory")
def save_memory(
    call: ToolCall,
    content: str,
    title: str | None = None,
    kind: SavedKind = "memory",
    supersedes: Annotated[list[str] | None, Field(description="Refs of notes that this one replaces.")] = None,
    path: Annotated[str | None, Field(description="people/mara.md")] = None,
    **fields: Unpack[SavedFields],
) -> ToolResult[Receipt]:
    """Remember one thing for later conversations: a preference, a decision, a correction, a fact. Call it when the user
    asks you to, corrects you, or says something that will matter again. Write sentences that stand alone: names, not
    pronouns; dates, not `yesterday`. No secrets, no small talk. kind=entity says who or what its title is,
    kind=resource why a link matters. The answer names similar memories: if this replaces one, save it again with
    `supersedes`."""
    size = len(to_utf8(content).encode())
    if size > LONGEST_MEMORY:
        instead = f"{call.prefix}save_article(content=..., title={short(title or title_from(content))!r})"
        raise InvalidInputError(f"{size:,} bytes are too long for a memory ({LONGEST_MEMORY:,}): call {instead}")
    replaced = [without_lines(plain_ref(ref)) for ref in supersedes or ()]
    saved = call.kb.remember(
        content, title, source=kind, provenance=call.provenance, supersedes=replaced, path=path, **fields
    )
    return saved_receipt(call, saved, content)


@tool("Update a memory", destructive=True)
def update_memory(
    call: ToolCall,
    ref: Ref,
    content: Annotated[str | None, Field(description="The whole new text, or that of section.")] = None,
    old: Annotated[str | None, Field(description="Instead: a text that it has exactly once.")] = None,
    new: Annotated[str | None, Field(description="Replaces old; empty removes it.")] = None,
    append: Annotated[str | None, Field(description="Goes to its end, or that of section.")] = None,
    section: Annotated[str | None, Field(description="A heading in it.")] = None,
    title: str | None = None,
    path: Annotated[str | None, Field(description="Moves it; links follow.")] = None,
    version: str | None = None,
    **fields: Unpack[ChangedFields],
) -> ToolResult[Receipt]:
    """Correct a note: give its ref and only what changes. Before you change `content`, read the note and pass its
    `version`, so that nobody's later change is overwritten. For a new fact use save_memory."""
    ref = plain_ref(ref)
    if not fields and all(value is None for value in (content, old, append, title, path)):
        name, texts = f"{call.prefix}update_memory", ("content", "old", "new", "append", "section")
        others = [other for other in update_memory.parameters["properties"] if other not in ("ref", "version", *texts)]
        raise InvalidInputError(
            f"nothing was changed of {ref}, because only its ref was given. Call {name} again with "
            f'ref="{ref}" and one of: content="all of its text, as it should be"; old="some words of it" and '
            f'new="what replaces them"; append="a sentence to add"; or a new {", ".join(others[:-1])} or {others[-1]}. '
            f"An empty value changes nothing: `co edit {ref}` removes a field, {call.prefix}forget_memory the note"
        )
    before = call.kb.note(ref)
    if old is not None or append is not None or section is not None:
        content, version = (
            _edited(before, TextChange(content, old, new or "", append, section)),
            version or before.version,
        )
    elif content is not None and lines_of(ref) is not None:
        raise InvalidInputError(
            f"update_memory: content replaces the whole text, and {ref} names some lines of it: read {before.ref}, "
            "then give that ref and all of the text"
        )
    update = partial(call.kb.update, before.ref, content, title=title, version=version, path=path, **fields)
    try:
        saved = update(fields=_new_author(before, content, call.provenance))
    except FrontmatterError:  # then the text can still be changed
        saved = update()
    after = call.kb.note(saved.ref)
    undone = saved.outcome == "updated" and after.version == before.version and after.path == before.path
    return receipt(call, saved, after, not undone and (content is None or _says(after, _as_written(content, saved))))


@tool("Forget a memory", destructive=True, idempotent=False)
def forget_memory(call: ToolCall, ref: str) -> ToolResult[Gone]:
    """Move a note to the trash, because it is wrong or the user wants it forgotten."""
    gone = call.kb.forget(without_lines(plain_ref(ref)))
    shown = one_line(gone.ref)
    text = f"forgotten {shown}: it is in the vault's trash, and `co note restore {shown}` restores it."
    if gone.valid_again:
        text += f" Valid again, because it superseded them: {', '.join(map(one_line, gone.valid_again))}."
        text += f" If the user wants that forgotten as well, call {call.prefix}forget_memory with each."
    return ToolResult(text, Gone(gone.ref, gone.path, gone.trash, list(gone.valid_again)))


@tool("List memories", read_only=True)
def list_memories(
    call: ToolCall,
    tags: list[str] | None = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
    kind: OwnSource | None = None,
    since: str | None = None,
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0,
) -> ToolResult[Listing]:
    """List memories, or notes of another kind, by title, newest first. since=7d: those of any kind that were created,
    updated, moved or forgotten."""
    changed, problems = _changed(call.kb.local, kind, tags, since) if since else ([], [])
    notes = [change.note for change in changed] if since else call.kb.notes(kind or "memory", tags=tags)
    news = {change.note.ref: change for change in changed}
    lines: list[str] = []
    room = call.budget
    for note in notes[offset : offset + limit]:
        line = _line(note, news.get(note.ref))
        room -= estimate_tokens(line)
        if room < 0 and lines:
            break
        lines.append(line)
    shown = offset + len(lines)
    following = shown if shown < len(notes) else None
    head = _list_head(kind, (offset, shown, len(notes)), since)
    if tags and not notes and not since:
        head = _none_tagged(FOLDERS[kind or "memory"], tags, list(call.kb.tags(kind or "memory")))
    text = [*(f"({one_line(problem)})" for problem in (*call.degraded, *problems)), f"{head}."]
    text += ["<notes>", *lines, "</notes>"] if lines else []
    listed = [_listed(note, news.get(note.ref)) for note in notes[offset:shown]]
    return ToolResult("\n".join(text), Listing(listed, following is not None, len(notes), following))


@tool("Rate a memory")
def rate_memory(
    call: ToolCall,
    ref: Ref,
    verdict: Annotated[Literal["good", "bad"], Field(description="good or bad.")],
    query: Annotated[str | None, Field(description="What you searched for. Default: the last search.")] = None,
) -> ToolResult[dict[str, Any]]:
    """Say whether a note that a search found was what you needed (good) or unrelated (bad); later searches rank better
    for it. Call it when you have used a note, or when the first hits were wrong. It does not change the note: to
    correct it use update_memory."""
    rated = judge(call.kb.local.vault, without_lines(plain_ref(ref)), verdict == "good", query)
    about = f" for {one_line(rated.query)!r}" if rated.query else ", about the note alone: no search was named or found"
    return ToolResult(f"rated {verdict}: {one_line(rated.ref)}{about}.", rated._asdict())


def saved_receipt(call: ToolCall, saved: Saved, content: str) -> ToolResult[Receipt]:
    note, content = call.kb.note(saved.ref), _as_written(content, saved)
    repeated = saved.outcome != "created"  # then case and punctuation may differ
    same = words_of(note.body) == words_of(to_utf8(content)) if repeated else _says(note, content)
    return receipt(call, saved, note, same)


def receipt(call: ToolCall, saved: Saved, note: Note, read_back: bool) -> ToolResult[Receipt]:
    found_again = _found_again(call.kb, note)
    outdated = None if found_again else call.kb.outdated(note)
    done = "known already, nothing written:" if saved.outcome == "duplicate" else saved.outcome
    proofs = [
        *([] if says_title(saved.ref, note.title) else [short(note.title)]),
        *([f"{masked_text(saved.masked)} before it was written"] if saved.masked else []),
        "read back" if read_back else "BUT the file does not hold all of this: somebody changed it since",
        "found by search"
        if found_again
        else f"left out of searches: {one_line(outdated)}"
        if outdated
        else "not found by search yet: it has no words to find it by, or the index cannot be used (run `co doctor`)",
        *([f"version {note.version}"] if saved.outcome == "updated" else []),
    ]
    text = f"{done} {one_line(saved.ref)} ({'; '.join(proofs)})."
    detail = "" if saved.outcome == "duplicate" else one_line(saved.detail.removeprefix(f"{saved.ref}; "))
    text += f" ({detail}.)" if detail else ""
    if saved.related:
        refs = ", ".join(f'"{one_line(other.ref)}"' for other in saved.related)
        titles = [short(other.title) for other in saved.related if not says_title(other.ref, other.title)]
        named = f" ({'; '.join(titles)})" if titles else ""
        text += f" About the same subject{named}: if this replaces "
        text += "it" if len(saved.related) == 1 else "any of them"
        text += f", {call.prefix}save_memory again, the same content, supersedes=[{refs}]; if all are true, do nothing."
    related = [{"ref": other.ref, "title": other.title, "why": other.why} for other in saved.related]
    about = (saved.ref, note.title, note.path, saved.outcome, note.version, saved.detail)
    return ToolResult(text, Receipt(*about, read_back, found_again, related, saved.masked))


def says_title(ref: str, title: str) -> bool:
    """Whether a ref has the words of a title, so that both would say the same."""
    return ref.rpartition(":")[2].rpartition("/")[2] == slugify(title)


def _found_again(kb: KnowledgeBase, note: Note) -> bool:
    words = sorted(set(WORD.findall(note.body)) or WORD.findall(note.title), key=len)[-PROOF_WORDS:]
    if not words:
        return False
    hits = kb.search(" ".join(words), limit=CLOSE_ENOUGH, sources=[note.source], backend="fts5", track=False).hits
    return any(without_lines(hit.ref) == note.ref for hit in hits)


def _edited(note: Note, change: TextChange) -> str:
    """The text of a note after a change of a part of it."""
    if sum(part is not None for part in (change.content, change.old, change.append)) != 1:
        raise InvalidInputError("update_memory: give one of content, append, or old and new")
    if change.old is not None:
        count = note.body.count(change.old)
        if change.section is not None:
            raise InvalidInputError("update_memory: old is looked for in the whole text; leave out section")
        if count != 1:
            found = (
                f"occurs {count} times: give more of the text around it" if count else "does not occur: read it first"
            )
            raise InvalidInputError(f"update_memory: nothing was changed of {note.ref}, because old {found}")
        return note.body.replace(change.old, change.new)
    text = change.append if change.content is None else change.content
    if change.section is not None:
        return set_section(note.body, change.section, text or "", append=change.content is None)
    return f"{note.body.rstrip()}\n\n{text}"


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


def _changed(
    kb: LocalKnowledgeBase, kind: OwnSource | None, tags: list[str] | None, since: str
) -> tuple[list[ChangedNote], list[str]]:
    filters = parse_filters(
        kb.vault.linked, Options(sources=kind or OWN_SOURCES, filters={"tags": tags, "since": since})
    )
    return changed_notes(kb.vault, filters)


def _line(note: NoteSummary, change: ChangedNote | None) -> str:
    """A note in a list, with what happened to it if changes are listed."""
    what = ""
    if change:
        moved = f" from {one_line(change.before)}" if change.before else ""
        what = f"{'forgotten' if change.what == 'removed' else change.what}{moved} {change.at[:10]}"
    parts = [
        one_line(note.ref),
        short(note.title),
        what or note.created[:10],
        short(" ".join(f"#{tag}" for tag in note.tags)),
        "missing" if note.missing else short(note.outdated or ""),
    ]
    return " · ".join(filter(None, parts))


def _listed(note: NoteSummary, change: ChangedNote | None) -> ListedNote:
    listed: ListedNote = {
        "ref": note.ref,
        "title": note.title,
        "created": note.created,
        "category": note.category,
        "outdated": note.outdated,
        "tags": list(note.tags),
    }
    return {**listed, "change": change.what, "changed": change.at, "before": change.before} if change else listed


def _list_head(kind: OwnSource | None, place: tuple[int, int, int], since: str | None) -> str:
    """Which notes are listed: `place` is the offset, where the list ends, and how many notes there are."""
    offset, shown, total = place
    one, many = (kind, FOLDERS[kind]) if kind else ("note", "notes") if since else ("memory", "memories")
    what = f"{one if total == 1 else many}{f' changed since {short(since)}' if since else ''}"
    if total and offset >= total:
        return f"0 of {total} {what}: offset={offset} is past the last one"
    which = f"{offset + 1}-{shown}" if offset else f"{shown}"
    more = f"; offset={shown} lists more" if shown < total else ""
    return f"{which} of {total} {what}, newest first{more}"


def _none_tagged(what: str, tags: list[str], known: list[str]) -> str:
    close = [tag for unused in unused_tags(tags, known) for tag in close_tags(unused, known)] or known[:MOST_TAGS]
    there = f"; known tags: {', '.join(map(short, close))}" if close else ""
    return f"0 {what} have {'the tag' if len(tags) == 1 else 'all of the tags'} {short(', '.join(tags))}{there}"
