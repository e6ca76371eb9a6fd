"""What Claude gives out: claude.ai's data export, the memory tool's folder, Claude Code's CLAUDE.md and memory folder.

The export has `conversations.json`, `projects.json` (or `projects/*.json`) and `memories.json` (or `memories/*.json`);
a folder of Markdown holds one memory a file. Thoughts, tools and their answers are left out of conversations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from co_cli.exchange.archive import Export, Member, Unreadable
from co_cli.exchange.claude_files import memory_file, memory_members
from co_cli.exchange.conversations import YOU, Conversation, Turn, conversation_entry
from co_cli.exchange.items import (
    Entry,
    Left,
    Text,
    Trouble,
    as_list,
    as_object,
    as_text,
    called,
    first_moment,
    first_text,
    text_hash,
)
from co_cli.exchange.json_values import numbered_values
from co_cli.exchange.memories import memory_entries
from co_cli.notes.slug import slugify
from co_cli.service.saving import title_from

SPEAKERS = {"human": YOU, "user": YOU, "assistant": "Claude"}
OURS = re.compile(r"(?:.*/)?(?:conversations|projects|memories)(?:[-_]?\d+)?(?:\.json|/[^/]+\.json)$", re.I)
NO_PARENT = "00000000-0000-4000-8000-000000000000"
SECTION = re.compile(r"^(?:#{1,6}[ \t]+(.+?)|\*\*([^*\n]+?):?\*\*:?)[ \t]*$", re.M)
PASTED = re.compile(r"(?:paste[\w .-]*)?$", re.I)


def read_claude(export: Export) -> Iterator[Entry]:
    reading = _Reading(export)
    wanted = [member for member in export.members if _ours(export, member)]
    wanted += memory_members(export)
    if not wanted:
        yield Trouble(export.path, "nothing of Claude's in it: no conversations.json, no memories, no Markdown")
    # projects first: their names stand in what is remembered of them
    for member in sorted(wanted, key=lambda member: ("projects" not in member.name, member.name)):
        place = export.place(member)
        try:
            if member.ending == ".json":
                for number, value in numbered_values(export, member):
                    yield from reading.entries(value, f"{place}, item {number}")
            else:
                yield memory_file(export, member)
        except Unreadable as problem:
            yield Trouble(place, str(problem))


def _ours(export: Export, member: Member) -> bool:
    """By its name in the folder: a zip of `projects/` alone counts as that folder."""
    if export.single:
        return member.ending == ".json"
    return bool(OURS.match(f"{export.name}/{member.name}"))


class _Reading:
    """One export; it remembers what the projects are called."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.projects: dict[str, str] = {}

    def entries(self, value: object, place: str) -> Iterator[Entry]:
        found = as_object(value)
        if "chat_messages" in found:
            yield _conversation(found, place)
        elif isinstance(found.get("conversations"), list):
            for number, inner in enumerate(as_list(found["conversations"]), 1):
                where = f"{place}, conversation {number}"
                talk = as_object(inner)
                known = "chat_messages" in talk
                yield _conversation(talk, where) if known else Trouble(where, "no chat_messages in it")
        elif "conversations_memory" in found or "project_memories" in found:
            yield from self._remembered(found, place)
        elif "docs" in found or "prompt_template" in found:
            yield from self._project(found, place)
        elif isinstance(value, str) or first_text(found, "content", "memory", "text"):
            yield from memory_entries(value, place)
        else:
            yield Trouble(place, f"{called(value)} that is no conversation, no project and no memory")

    def _project(self, found: dict[str, object], place: str) -> Iterator[Entry]:
        name = " ".join(first_text(found, "name").split()) or "Untitled project"
        identity = first_text(found, "uuid", "id") or f"text:{text_hash(name)}"
        self.projects[identity] = name
        folder = f"claude/{slugify(name)}"
        about = [first_text(found, "description").strip(), first_text(found, "prompt_template").strip()]
        if any(about):
            parts = [about[0], f"## Instructions\n\n{about[1]}" if about[1] else ""]
            text = "\n\n".join(part for part in parts if part)
            yield Text(
                place,
                f"project:{identity}",
                "project",
                name,
                text,
                folder=folder,
                created=first_moment(found, "created_at"),
                updated=first_moment(found, "updated_at"),
            )
        for number, inner in enumerate(as_list(found.get("docs")), 1):
            document = as_object(inner)
            text = first_text(document, "content").strip()
            title = " ".join(first_text(document, "filename", "name").split())
            where = f"{place}, document {number}"
            if not text:
                yield Left(where, "document", title, "it has no text")
                continue
            yield Text(
                where,
                first_text(document, "uuid", "id") or f"{identity}/{title or text_hash(text)}",
                "document",
                title or title_from(text),
                text,
                folder=folder,
                created=first_moment(document, "created_at"),
                updated=first_moment(document, "updated_at"),
            )

    def _remembered(self, found: dict[str, object], place: str) -> Iterator[Entry]:
        """Claude keeps what it remembers as one text with bold headings; each section is a memory."""
        account = first_text(found, "account_uuid", "account_id") or "account"
        yield from _sections(first_text(found, "conversations_memory"), account, "", place)
        for identity, text in as_object(found.get("project_memories")).items():
            project = self.projects.get(identity, "")
            yield from _sections(as_text(text), f"{account}/{as_text(identity)}", project, place)
        for number, inner in enumerate(as_list(found.get("memory_files")), 1):
            file = as_object(inner)
            text = first_text(file, "content", "text").strip()
            name = first_text(file, "path", "name", "file_name") or str(number)
            if text:
                where = f"{place}, memory file {number}"
                yield Text(where, f"{account}/files/{name}", "memory", title_from(text), text, "memory")


def _sections(text: str, identity: str, project: str, place: str) -> Iterator[Entry]:
    marks = [*SECTION.finditer(text)]
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    names = ["", *((mark[1] or mark[2]).strip() for mark in marks)]
    seen: dict[str, int] = {}
    for name, start, end in zip(names, starts, ends, strict=True):
        said = text[start:end].strip()
        if not said:
            continue
        slug = slugify(name) if name else "start"
        seen[slug] = seen.get(slug, 0) + 1
        number = f"-{seen[slug]}" if seen[slug] > 1 else ""
        title = name or title_from(said)
        yield Text(
            place=f"{place}, “{title}”",
            id=f"{identity}#{slug}{number}",
            noun="memory",
            title=f"{project}: {title}" if project else title,
            text=said,
            source="memory",
            tags=(slugify(project),) if project else (),
        )


def _conversation(found: dict[str, object], place: str) -> Entry:
    messages = [as_object(message) for message in as_list(found["chat_messages"])]
    turns = [turn for turn in map(_turn, _branch(messages, as_text(found.get("current_leaf_message_uuid")))) if turn]
    model = first_text(found, "model")
    conversation = Conversation(
        place=place,
        id=first_text(found, "uuid", "id") or f"text:{text_hash(str([*turns]))}",
        title=first_text(found, "name", "title"),
        turns=turns,
        created=first_moment(found, "created_at"),
        updated=first_moment(found, "updated_at"),
        fields={"model": model} if model else {},
    )
    return conversation_entry(conversation, "claude")


def _branch(messages: list[dict[str, object]], leaf: str) -> list[dict[str, object]]:
    """Without answers that were made again: from the last message up. All of them, if that does not reach the top."""
    by_id = {as_text(message.get("uuid")): message for message in messages}
    node = leaf if leaf in by_id else as_text(messages[-1].get("uuid")) if messages else ""
    found: list[dict[str, object]] = []
    seen: set[str] = set()
    while node in by_id and node not in seen:
        seen.add(node)
        found.append(by_id[node])
        node = as_text(by_id[node].get("parent_message_uuid"))
    return found[::-1] if found and node == NO_PARENT else messages


def _turn(message: dict[str, object]) -> Turn | None:
    speaker = SPEAKERS.get(as_text(message.get("sender")))
    if speaker is None:
        return None
    blocks = [as_object(block) for block in as_list(message.get("content"))]
    said = [as_text(block.get("text")) for block in blocks if as_text(block.get("type")) == "text"]
    parts = said if blocks else [as_text(message.get("text"))]
    for inner in (*as_list(message.get("attachments")), *as_list(message.get("files"))):
        file = as_object(inner)
        name, content = " ".join(as_text(file.get("file_name")).split()), as_text(file.get("extracted_content"))
        if content.strip() and PASTED.match(name):
            parts.append(content)
        elif name:
            parts.append(f"*(attached: {name})*")
    return Turn(speaker, "\n\n".join(part.strip() for part in parts if part.strip()))
