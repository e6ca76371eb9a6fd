"""Tools that write, each with a receipt: the file was read again and a search finds it, or the receipt says so."""

from __future__ import annotations

import unicodedata
from typing import Any, cast

from co_cli.errors import FrontmatterError, IndexUnavailableError, InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note
from co_cli.notes.refs import lines_of, without_lines
from co_cli.notes.twins import says_all_of, words_of
from co_cli.service.saving import clean_tags
from co_cli.tools import schemas
from co_cli.tools.fencing import one_line
from co_cli.tools.opening import plain_ref
from co_cli.tools.tool import Tool, ToolResult
from co_cli.typed import whole
from co_cli.values import ON_RELATED, OwnSource, Saved, masked_text

TELLING_WORDS = 6
LONGEST_TITLE = 120
CLOSE_ENOUGH = 20
"""Hits among which a note must be when it is searched for by its rarest words."""

NEW_TAGS = schemas.texts("A few short words to find it by, such as a project or a topic.")
NEW_CATEGORY = schemas.text("What it is: preference, fact, decision, correction, procedure, ...")
NEW_TITLE = schemas.text("A title of a few words that says what it states. Without one the first sentence is taken.")
IMPORTANCE = schemas.number("How much it matters, from 0 to 1. Leave it out unless you know.", 0, 1)

SAVE_MEMORY = Tool(
    "save_memory",
    "Save a memory",
    "Remember one thing for later conversations: a preference, a decision, a correction, a fact about the user or "
    "their work. Use it when the user asks you to remember, corrects you, or says something that will matter again. "
    "One thing a memory, in full sentences that make sense without this conversation (names instead of pronouns, "
    "dates instead of `yesterday`). Not for secrets, small talk, or what can be looked up. If nearly the same is "
    "known already, it joins that note and the answer says which. If an older memory says something else about the "
    "same, the answer names it: then save the same content again with `supersedes`, or leave both. For a longer "
    "document use save_article, to correct a note update_memory.",
    schemas.arguments(
        "content",
        content=schemas.text("What to remember, as it should be read later. Markdown."),
        title=NEW_TITLE,
        tags=NEW_TAGS,
        category=NEW_CATEGORY,
        importance=IMPORTANCE,
        supersedes=schemas.texts(
            "Refs of notes that this one takes the place of. They stay as files, and are no longer recalled."
        ),
        on_related={
            "type": "string",
            "enum": list(ON_RELATED),
            "description": "What becomes of a memory that says something else about the same: tell (name it and leave "
            "it; the default), keep (both hold), supersede (this one takes its place), merge (add this to it).",
        },
    ),
    schemas.RECEIPT,
    idempotent=True,
)
SAVE_ARTICLE = Tool(
    "save_article",
    "Save an article",
    "Keep a longer document: a summary, a guide, a report, the text of a page worth keeping. It is found by its "
    "sections. For a single fact or preference use save_memory.",
    schemas.arguments(
        "content",
        "title",
        content=schemas.text("The document, in Markdown with headings."),
        title=schemas.text("Its title."),
        tags=NEW_TAGS,
        category=NEW_CATEGORY,
        source_url=schemas.text("Where it comes from, if it has an address."),
    ),
    schemas.RECEIPT,
    idempotent=True,
)
UPDATE_MEMORY = Tool(
    "update_memory",
    "Update a memory",
    "Change a note that is no longer right: give its ref and only what changes. `content` takes the place of the "
    "whole text, so read the note first, and give the `version` that you read: then nothing is overwritten that "
    "somebody wrote since. `tags` take the place of all its tags. Every other line of the file stays "
    "as it is, but for who said it, if the text is yours now. To add a new fact use save_memory instead.",
    schemas.arguments(
        "ref",
        ref=schemas.REF,
        content=schemas.text("The new text, whole. Markdown."),
        title=schemas.text("A new title."),
        tags={**schemas.texts("All its tags from now on; an empty list takes them away."), "minItems": 0},
        category=schemas.text("A new category."),
        importance=IMPORTANCE,
        version=schemas.text("The version that this change is based on, as read_note or a receipt gave it."),
    ),
    schemas.RECEIPT,
    destructive=True,
    idempotent=True,
)
FORGET_MEMORY = Tool(
    "forget_memory",
    "Forget a memory",
    "Take away a note that is wrong or that the user wants forgotten. The file moves to the vault's trash, and a "
    "person can bring it back with `co restore`. To correct a note use update_memory instead.",
    schemas.arguments("ref", ref=schemas.REF),
    schemas.FORGOTTEN,
    destructive=True,
)


def save_memory(kb: KnowledgeBase, values: dict[str, Any], provenance: str) -> ToolResult:
    return _save(kb, values, provenance, "memory", ("importance",))


def save_article(kb: KnowledgeBase, values: dict[str, Any], provenance: str) -> ToolResult:
    return _save(kb, values, provenance, "article", ("source_url",))


def _save(
    kb: KnowledgeBase, values: dict[str, Any], provenance: str, source: OwnSource, extra: tuple[str, ...]
) -> ToolResult:
    content = values["content"]
    saved = kb.remember(
        content,
        title=values.get("title"),
        tags=values.get("tags"),
        category=values.get("category"),
        provenance=provenance,
        source=source,
        fields={name: values[name] for name in extra if name in values},
        supersedes=[without_lines(plain_ref(ref)) for ref in values.get("supersedes", ())],
        on_related=values.get("on_related", "tell"),
    )
    note, content = kb.note(saved.ref), _as_written(content, saved)
    joined = saved.outcome != "created"
    holds = says_all_of(note.body, whole(content)) if joined else _says(note, content)
    return receipt(kb, saved, note, holds)


def update_memory(kb: KnowledgeBase, values: dict[str, Any], provenance: str) -> ToolResult:
    ref, content = plain_ref(values["ref"]), values.get("content")
    version = values.get("version")
    if not set(values) - {"ref", "version"}:
        raise InvalidInputError(f"update_memory: say what changes of {ref}: content, title, tags, category, importance")
    note = kb.note(ref)
    if content is not None and lines_of(ref) is not None:
        raise InvalidInputError(
            f"update_memory: content takes the place of the whole text, and {ref} names some lines of it: read "
            f"{note.ref}, then give that ref and all of the text"
        )
    changes = {name: values[name] for name in ("title", "tags", "category") if name in values}
    fields = {"importance": values["importance"]} if "importance" in values else {}
    try:
        speaker = _speaker(note, content, provenance)
        saved = kb.update(note.ref, content, **changes, fields={**fields, **speaker}, version=version)
    except FrontmatterError:
        # the text can be changed, if nothing else
        saved = kb.update(note.ref, content, **changes, fields=fields, version=version)
    note = kb.note(saved.ref)
    has = _has(note, {name: _as_written(value, saved) for name, value in {**changes, **fields}.items()})
    return receipt(kb, saved, note, has and (content is None or _says(note, _as_written(content, saved))))


def forget_memory(kb: KnowledgeBase, values: dict[str, Any], provenance: str) -> ToolResult:
    gone = kb.forget(without_lines(plain_ref(values["ref"])))
    ref = one_line(gone.ref)
    text = f"forgotten {ref}: it is in the vault's trash, and `co restore {ref}` brings it back."
    return ToolResult(text, {"ref": gone.ref, "path": gone.path, "trash": gone.trash})


def _speaker(note: Note, content: str | None, provenance: str) -> dict[str, object]:
    """Whoever writes the whole text says it from now on; what came from elsewhere is never trusted more for that."""
    theirs = content is None or _says(note, content) or note.provenance.casefold() != "user"
    return {} if theirs or provenance == "user" else {"provenance": provenance}


def _as_written(value: Any, saved: Saved) -> Any:
    """What the file should hold of a text or a list of texts: where secrets were masked, that."""
    if not saved.masked:
        return value
    from co_cli.notes.secrets import redact

    if isinstance(value, list):
        return [redact(whole(one)) for one in cast("list[str]", value)]
    return redact(whole(value)) if isinstance(value, str) else value


def _says(note: Note, content: str) -> bool:
    """Does the note say this and nothing else? White space does not count."""
    return note.body.split() == whole(content).replace("\0", "").split()


def _has(note: Note, wanted: dict[str, Any]) -> bool:
    """Are these fields in its frontmatter now?"""
    texts = {"title": note.title, "category": note.category or ""}
    if any(words_of(text) != words_of(whole(wanted[name])) for name, text in texts.items() if name in wanted):
        return False
    if "importance" in wanted and note.metadata.get("importance") != wanted["importance"]:
        return False
    tags = {unicodedata.normalize("NFC", tag) for tag in clean_tags(wanted.get("tags"))}
    return tags <= set(note.tags) and (bool(tags) or "tags" not in wanted or not note.metadata.get("tags"))


def receipt(kb: KnowledgeBase, saved: Saved, note: Note, read_back: bool) -> ToolResult:
    """What was found in the file and by a search, so that `saved` is a finding and not a hope."""
    found_again = _found_again(kb, note.ref, note.source, note.body, note.title)
    title = one_line(note.title)[:LONGEST_TITLE]
    told = f"{saved.outcome} {one_line(saved.ref)} ({title})"
    if saved.outcome == "duplicate":
        told = f"known already, nothing written: {one_line(saved.ref)} ({title})"
    proofs = [
        "read back from its file" if read_back else "BUT the file does not hold all of this: somebody changed it since",
        "found again by search"
        if found_again
        else "not found by search yet: it has no words to find it by, or the "
        "index cannot be used (`co doctor` says which)",
    ]
    if saved.masked:
        proofs.insert(0, f"{masked_text(saved.masked)} before it was written")
    detail = one_line(saved.detail.removeprefix(f"{saved.ref}; "))  # which note it is, was said
    detail = f" {detail[:1].upper()}{detail[1:]}." if detail else ""
    detail += _offers(saved)
    data: dict[str, Any] = {
        "ref": saved.ref,
        "title": note.title,
        "path": note.path,
        "outcome": saved.outcome,
        "version": note.version,
        "detail": saved.detail,
        "read_back": read_back,
        "found_again": found_again,
        "related": [one._asdict() for one in saved.related],
        "masked": saved.masked,
    }
    return ToolResult(f"{told}: {'; '.join(proofs)}; version {note.version}.{detail}", data)


def _offers(saved: Saved) -> str:
    """What can be done about memories that say something else, unless it was done."""
    if not saved.related or saved.detail:
        return ""
    named = ", ".join(f"{one_line(one.ref)} ({one_line(one.title)[:LONGEST_TITLE]})" for one in saved.related)
    refs = ", ".join(f'"{one_line(one.ref)}"' for one in saved.related)
    return (
        f" BUT {named} {saved.related[0].why}. If this takes its place, call save_memory again with the same content "
        f"and supersedes=[{refs}]; if both hold, leave it; ask the user if you do not know."
    )


def _found_again(kb: KnowledgeBase, ref: str, source: str, body: str, title: str) -> bool:
    try:
        telling = kb.index.rarest(body, TELLING_WORDS) or [title]
    except IndexUnavailableError:
        telling = [title]  # the search below answers from the files
    query = " ".join(telling).replace('"', " ").replace("-", " ").strip()
    if not query:
        return False
    hits = kb.search(query, limit=CLOSE_ENOUGH, sources=[source], backend="fts5").hits
    return any(without_lines(hit.ref) == ref for hit in hits)
