"""What Claude exports: claude.ai's data export, the memory tool's folder, Claude Code's CLAUDE.md and memory folder.

The export has `conversations.json`, `projects.json` (or `projects/*.json`) and `memories.json` (or `memories/*.json`).
In a memory folder each file is a memory. Thoughts and tool calls are left out of conversations.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from co_cli.importers import items
from co_cli.importers.archive import Export, Member
from co_cli.importers.conversations import YOU, Turn, branch, conversation_item
from co_cli.importers.items import Entry, Item, as_line, as_list, as_object, as_text, first_text, skipped
from co_cli.importers.memories import memory_item
from co_cli.notes.new_note import title_from
from co_cli.notes.note import NotTextError, read_note
from co_cli.notes.refs import slugify
from co_cli.values import to_utf8

SPEAKERS = {"human": YOU, "user": YOU, "assistant": "Claude"}
DATA = re.compile(r"(?:.*/)?(?:conversations|projects|memories)(?:[-_]?\d+)?(?:\.json|/[^/]+\.json)$", re.I)
NO_PARENT = "00000000-0000-4000-8000-000000000000"
SECTION = re.compile(r"^(?:#{1,6}[ \t]+(.+?)|\*\*([^*\n]+?):?\*\*:?)[ \t]*$", re.M)
PASTED = re.compile(r"(?:paste[\w .-]*)?$", re.I)
TEXTS = (".md", ".markdown", ".txt", ".xml")
MEMORY_FOLDER = re.compile(r"(?:^|/)(?:memory|memories)/", re.I)
PROJECT_FILE = re.compile(r"(?:.*/)?([^/]+/(?:memory|memories)/.*)", re.I)
INSTRUCTIONS = ("claude.md", "claude.local.md")
INDEX_LINE = re.compile(r"\s*[-*+]\s+\[[^\]\n]*\]\([^)\n]*\)|\s*[-*+]\s+\[\[|\s*#|\s*$")


def read_claude(export: Export) -> Iterator[Entry]:
    data = [member for member in export.matching(DATA) if member.ending == ".json"]
    projects: dict[str, str] = {}
    # projects first: the memories of a project carry its name
    for place, value in export.values(sorted(data, key=lambda one: ("projects" not in one.name, one.name))):
        found = as_object(value)
        if "chat_messages" in found:
            yield conversation_item(found, _messages(found), "claude", place)
        elif "conversations_memory" in found or "project_memories" in found:
            yield from _remembered(found, projects, place)
        elif "docs" in found or "prompt_template" in found:
            yield from _project(found, projects, place)
        else:
            yield memory_item(value, place)
    texts = [member for member in export.members if member.ending in TEXTS]
    named = [one for one in texts if one.base.lower() in INSTRUCTIONS or MEMORY_FOLDER.search(one.name)]
    for member in named or texts:  # every text, if no folder is named like a memory folder
        content = export.read(member)
        if content is not None:
            yield _memory_file(export, member, content)


def _messages(found: dict[str, object]) -> Iterator[Turn]:
    """Without answers that were regenerated: the branch of the last message. All messages, if it has no beginning."""
    messages = [as_object(message) for message in as_list(found["chat_messages"])]
    by_id = {as_text(message.get("uuid")): message for message in messages}
    leaf = as_text(found.get("current_leaf_message_uuid"))
    last = leaf if leaf in by_id else next(reversed(by_id), None)
    seen = [by_id[one] for one in branch({key: one.get("parent_message_uuid") for key, one in by_id.items()}, last)]
    for message in seen if seen and seen[0].get("parent_message_uuid") == NO_PARENT else messages:
        blocks = [as_object(block) for block in as_list(message.get("content"))]
        parts = [as_text(block.get("text")) for block in blocks if block.get("type") == "text"]
        parts = parts if blocks else [as_text(message.get("text"))]
        for file in map(as_object, (*as_list(message.get("attachments")), *as_list(message.get("files")))):
            name, content = as_line(file.get("file_name")), as_text(file.get("extracted_content"))
            pasted = content.strip() and PASTED.match(name)
            parts.append(content if pasted else f"*(attached: {name})*" if name else "")
        speaker = SPEAKERS.get(as_text(message.get("sender")))
        if speaker:
            yield speaker, "\n\n".join(part.strip() for part in parts if part.strip())


def _project(found: dict[str, object], projects: dict[str, str], place: str) -> Iterator[Entry]:
    name = as_line(found.get("name")) or "Untitled project"
    identity, folder = items.id_of(found, name), f"claude/{slugify(name)}"
    projects[identity] = name
    description, instructions = (first_text(found, key).strip() for key in ("description", "prompt_template"))
    text = "\n\n".join(filter(None, (description, instructions and f"## Instructions\n\n{instructions}")))
    if text:
        yield Item(place, f"project:{identity}", "project", text, name, folder=folder, fields=items.dates_of(found))
    for document in map(as_object, as_list(found.get("docs"))):
        title, text = as_line(first_text(document, "filename", "name")), first_text(document, "content").strip()
        if text:
            known = first_text(document, "uuid", "id") or f"{identity}/{title or items.id_of({}, text)}"
            yield Item(place, known, "document", text, title, folder=folder, fields=items.dates_of(document))
        else:
            yield skipped(place, "document", title, "it is empty")


def _remembered(found: dict[str, object], projects: dict[str, str], place: str) -> Iterator[Entry]:
    """Claude keeps what it remembers as texts with headings; each section becomes a memory."""
    account = first_text(found, "account_uuid", "account_id") or "account"
    yield from _sections(first_text(found, "conversations_memory"), account, "", place)
    for identity, text in as_object(found.get("project_memories")).items():
        yield from _sections(as_text(text), f"{account}/{as_text(identity)}", projects.get(identity, ""), place)
    for number, file in enumerate(map(as_object, as_list(found.get("memory_files"))), 1):
        name = first_text(file, "path", "name", "file_name") or str(number)
        if text := first_text(file, "content", "text").strip():
            yield Item(f"{place}, {as_line(name)}", f"{account}/files/{name}", "memory", text, source="memory")


def _sections(text: str, identity: str, project: str, place: str) -> Iterator[Entry]:
    seen: Counter[str] = Counter()
    parts = ["", "", *SECTION.split(text)]  # headings, bold headings and the texts below them, in turn
    for heading, bold, section in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        name, said = (heading or bold or "").strip(), section.strip()
        if said:
            slug, title = slugify(name) if name else "start", name or title_from(said)
            seen[slug] += 1
            known = f"{identity}#{slug}" + (f"-{seen[slug]}" if seen[slug] > 1 else "")
            title, tags = (f"{project}: {title}", (slugify(project),)) if project else (title, ())
            yield Item(f"{place}, “{title}”", known, "memory", said, title, "memory", tags=tags)


def _memory_file(export: Export, member: Member, content: bytes) -> Entry:
    """A memory file has a name, a description and a type in its frontmatter; those of the memory tool have none."""
    place, identity = export.place(member), _file_id(export, member)
    try:
        note = read_note(f"memories/{member.base}", content)
    except NotTextError:
        return skipped(place, "file", member.base, "it is not a text file")
    text = note.body.strip()
    if not text:
        return skipped(place, "memory", note.title, "it is empty")
    if member.base == "MEMORY.md" and all(INDEX_LINE.match(line) for line in text.splitlines()):
        return skipped(place, "memory", "MEMORY.md", "it is only an index of the other files")
    if member.base.lower() in INSTRUCTIONS:
        return Item(place, identity, "document", text, identity.replace("/", ": "), folder="claude")
    title, kind = first_text(note.metadata, "name", "title"), as_object(note.metadata.get("metadata")).get("type")
    category = as_text(kind or note.metadata.get("type")).strip() or None
    fields: dict[str, object] = {"description": note.description} if note.description else {}
    return Item(place, identity, "memory", text, title, "memory", tags=note.tags, category=category, fields=fields)


def _file_id(export: Export, member: Member) -> str:
    """The path from the project's folder on: the same, whichever folder above the file was imported."""
    inside = f"{export.name}/{member.name}"
    where = inside if export.archive else to_utf8(os.path.realpath(member.where)).replace(os.sep, "/")
    if export.single or member.base.lower() in INSTRUCTIONS:
        inside = "/".join(where.split("/")[-2:])
    project = PROJECT_FILE.fullmatch(where)
    return project[1] if project else inside
