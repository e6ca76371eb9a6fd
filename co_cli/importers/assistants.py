"""The exports of assistants: conversations, projects and memories of ChatGPT, Claude and mem0.

A conversation is a tree of messages. Only the branch that the person saw last is read, without system messages, hidden
messages, tool calls and thoughts.

Of memories, the services agree on little but a text and perhaps an id, dates and categories. Everything else is kept
together under `import_metadata`, where it cannot pass for a field of ours.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator

from co_cli.ground.values import to_utf8
from co_cli.importers import items
from co_cli.importers.archive import TEXTS, Export, Member
from co_cli.importers.items import Entry, Item, as_list, as_object, as_text, first_text, id_of
from co_cli.importers.sessions import conversation
from co_cli.notes.dates import read_moment
from co_cli.notes.note import read_note
from co_cli.notes.refs import slugify
from co_cli.notes.transcripts import USER, SpokenTurn

MEMORIES = r"(?:[^/]*[-_ ])?memor(?:y|ies)(?:[-_ ][^/]*)?"  # saved_memories, not memorandum
CHATGPT_FILE = re.compile(rf"/(?:conversations[-_]?\d*|{MEMORIES})\.jsonl?$", re.I)
CHATGPT_LINES = re.compile(rf"(?:^|/){MEMORIES}\.(?:txt|md)$", re.I)
SPOKEN = ("text", "multimodal_text", "audio_transcription")
HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
MARKS = re.compile("\ue200[^\ue201]{0,500}\ue201|[\ue200-\ue206]|\u3010\\d+\u2020[^\u3011]{0,80}\u3011")
"""References to sources, which lead nowhere in a text."""
CLAUDE_FILE = re.compile(r"(?:^|/)(?:conversations|projects|memories)[-_\d]*(?:/[^/]+)?\.json$", re.I)
NO_PARENT = "00000000-0000-4000-8000-000000000000"
REMEMBERED = ("conversations_memory", "project_memories", "memory_files")
BOLD_LINE = re.compile(r"^\*\*([^*\n]+?):?\*\*:?[ \t]*$", re.M)  # a heading in what Claude remembers
PASTED = re.compile(r"(?:paste[\w .-]*)?$", re.I)
DOCUMENT = re.compile(r"(?:^|/)(?:claude|claude\.local|memory)\.md$", re.I)  # too long for a memory
MEMORY_FILE = re.compile(r"(?:^|/)(?:memory|memories)/|/(?:claude|claude\.local)\.md$", re.I)
PROJECT_FILE = re.compile(r"[^/]+/(?:memory|memories)/.*", re.I)
MEM0_FILE = re.compile(r"\.(?:json|jsonl|ndjson)$", re.I)
TEXT_KEYS = ("memory", "content", "text", "value", "data")
KEPT_KEYS = ("user_id", "agent_id", "app_id", "run_id", "app", "actor_id", "role", "memory_type", "source_type")
LINE = re.compile(r"\s*(?:[-*+\u2022]\s+|\d{1,4}[.)]\s+)?(?:\[(\d{4}-\d\d-\d\d|unknown)\][\s:-]*)?(.*)")


def read_chatgpt(export: Export) -> Iterator[Entry]:
    """`conversations.json`, or `conversations-000.json` and so on; saved memories as JSON or lines of text."""
    for member in export.members:
        if CHATGPT_LINES.search(member.name) or (export.single and member.name.lower().endswith(TEXTS)):
            yield from _memory_lines(export, member)
    for place, value in export.values(CHATGPT_FILE):
        found = as_object(value)
        if found.get("is_do_not_remember") is True:
            yield items.skipped(
                place, "conversation", first_text(found, "title"), "“do not remember” is set in ChatGPT"
            )
        elif "mapping" in found:
            yield _conversation(found, _chatgpt_turns(found), "ChatGPT", place)
        else:
            yield _memory(value, place)


def read_claude(export: Export) -> Iterator[Entry]:
    """claude.ai's data export, the memory tool's folder, Claude Code's CLAUDE.md and memory folder."""
    for place, value in export.values(CLAUDE_FILE):
        found = as_object(value)
        if "chat_messages" in found:
            yield _conversation(found, _claude_turns(found), "Claude", place)
        elif any(key in found for key in REMEMBERED):
            yield from _remembered(found, place)
        elif "docs" in found or "prompt_template" in found:
            yield from _project(found, place)
        else:
            yield _memory(value, place)
    texts = [member for member in export.members if member.name.lower().endswith(TEXTS)]
    # every text, if no file is named like a memory file
    for member in [member for member in texts if MEMORY_FILE.search(f"{export.name}/{member.name}")] or texts:
        with export.reporting(member.name):
            yield _memory_file(export, member)


def read_mem0(export: Export) -> Iterator[Entry]:
    """The result of `get_all`, a list, JSON Lines, or the zip of OpenMemory."""
    for place, value in export.values(MEM0_FILE):
        yield _memory(value, place)


def _conversation(found: dict[str, object], turns: Iterable[SpokenTurn], agent: str, place: str) -> Item:
    said = list(turns)
    identity = id_of(found, "".join(turn.text for turn in said))
    fields = {**items.dates_of(found), "model": first_text(found, "default_model_slug", "model"), "agent": agent}
    return conversation(place, identity, agent.lower(), said, first_text(found, "title", "name"), **fields)


def _branch(parents: dict[str, object], last: object) -> list[str]:
    """The ids from the first message to `last`; ends where a loop would begin."""
    found: dict[str, None] = {}
    while isinstance(last, str) and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return [*found][::-1]


def _chatgpt_turns(found: dict[str, object]) -> Iterator[SpokenTurn]:
    mapping = {key: as_object(node) for key, node in as_object(found["mapping"]).items()}
    current = first_text(found, "current_node")
    current = current if current in mapping else next(reversed(mapping), None)
    for node in _branch({key: node.get("parent") for key, node in mapping.items()}, current):
        message = as_object(mapping[node].get("message"))
        metadata, content = as_object(message.get("metadata")), as_object(message.get("content"))
        speaker = {"user": USER, "assistant": "ChatGPT"}.get(first_text(as_object(message.get("author")), "role"))
        if speaker is None or content.get("content_type") not in SPOKEN or any(map(metadata.get, HIDDEN)):
            continue
        if message.get("recipient") not in (None, "", "all") or message.get("channel") == "analysis":
            continue  # a tool call or a thought
        parts: list[str] = []
        for part in as_list(content.get("parts")) or [content.get("text")]:
            object_part = as_object(part)  # an image, or the text of what was said aloud
            image = as_text(object_part.get("content_type")).startswith("image")
            parts.append("*(an image)*" if image else as_text(part) or as_text(object_part.get("text")))
        text = MARKS.sub("", "\n\n".join(part for part in parts if part.strip()))
        yield SpokenTurn(speaker, text, read_moment(items.moment_of(message.get("create_time"))))


def _claude_turns(found: dict[str, object]) -> Iterator[SpokenTurn]:
    """Without answers that were regenerated: the branch shown last. All messages, if it has no beginning."""
    messages = [as_object(message) for message in as_list(found["chat_messages"])]
    by_id = {as_text(message.get("uuid")): message for message in messages}
    parents = {key: message.get("parent_message_uuid") for key, message in by_id.items()}
    leaf = first_text(found, "current_leaf_message_uuid")
    seen = [by_id[key] for key in _branch(parents, leaf if leaf in by_id else next(reversed(by_id), None))]
    for message in seen if seen and seen[0].get("parent_message_uuid") == NO_PARENT else messages:
        blocks = [as_object(block) for block in as_list(message.get("content"))] or [{**message, "type": "text"}]
        parts = [first_text(block, "text") for block in blocks if block.get("type") == "text"]
        for file in map(as_object, (*as_list(message.get("attachments")), *as_list(message.get("files")))):
            name, content = first_text(file, "file_name"), first_text(file, "extracted_content")
            quoted = textwrap.indent(content, "> ", lambda _: True)  # what was pasted is not what the user says
            parts.append(quoted if content and PASTED.match(name) else f"*(attached: {name})*" if name else "")
        if speaker := {"human": USER, "user": USER, "assistant": "Claude"}.get(as_text(message.get("sender"))):
            moment = read_moment(items.moment_of(message.get("created_at")))
            yield SpokenTurn(speaker, "\n\n".join(filter(None, parts)), moment)


def _project(found: dict[str, object], place: str) -> Iterator[Item]:
    name = first_text(found, "name") or "Untitled project"
    identity, folder = id_of(found, name), f"claude/{slugify(name)}"
    description, instructions = first_text(found, "description"), first_text(found, "prompt_template")
    text = "\n\n".join(filter(None, (description, instructions and f"## Instructions\n\n{instructions}")))
    yield Item(place, f"project:{identity}", "project", text, name, folder=folder, fields=items.dates_of(found))
    for document in map(as_object, as_list(found.get("docs"))):
        title, text = first_text(document, "filename", "name"), first_text(document, "content")
        known = first_text(document, "uuid", "id") or f"{identity}/{title or id_of({}, text)}"
        yield Item(place, known, "document", text, title, folder=folder, fields=items.dates_of(document))


def _remembered(found: dict[str, object], place: str) -> Iterator[Item]:
    """What Claude remembers of all conversations, and of each project: articles with headings."""
    account = first_text(found, "account_uuid", "account_id") or "account"
    for project, value in {"": found.get("conversations_memory"), **as_object(found.get("project_memories"))}.items():
        text, title = BOLD_LINE.sub(r"## \1", as_text(value).strip()), "What Claude remembers"
        title += " about a project" if project else ""
        yield Item(place, f"{account}/{as_text(project)}", "document", text, title, folder="claude")
    for number, file in enumerate(map(as_object, as_list(found.get("memory_files"))), 1):
        name, text = first_text(file, "path", "name", "file_name"), first_text(file, "content", "text")
        identity = f"{account}/files/{name or number}"
        yield Item(f"{place}, memory file {number}", identity, "memory", text, source="memory")


def _memory_file(export: Export, member: Member) -> Item:
    """A memory file has a name, a description and a type in its frontmatter; those of the memory tool have none."""
    inside = f"{export.name}/{member.name}"
    where = inside if export.archive else to_utf8(os.path.realpath(member.where)).replace(os.sep, "/")
    project = PROJECT_FILE.search(where)  # the same, whichever folder above the file was imported
    identity = project[0] if project else inside
    note = read_note(f"memories/{os.path.basename(member.name)}", export.read(member))
    text, metadata = note.body.strip(), note.metadata
    if DOCUMENT.search(member.name):
        return Item(member.name, identity, "document", text, identity.replace("/", ": "), folder="claude")
    title, category = first_text(metadata, "name", "title"), first_text(as_object(metadata.get("metadata")), "type")
    fields: dict[str, object] = {"description": note.description}
    return Item(member.name, identity, "memory", text, title, "memory", "", note.tags, category, fields)


def _memory(value: object, place: str) -> Entry:
    """The memory that a JSON value is; else a failure."""
    found = as_object(value) or {"text": value}
    text, state = first_text(found, *TEXT_KEYS), first_text(found, "state")
    for service, key in (("chatgpt", "mapping"), ("claude", "chat_messages")):
        if key in found:
            return items.failed(place, f"it is a conversation of another service: use `co data import {service}`")
    if not text:
        return items.failed(place, f"no conversation, and no memory with a text ({', '.join(TEXT_KEYS)})")
    if state in ("deleted", "archived") or found.get("deleted_at"):
        return items.skipped(place, "memory", text[:80], f"it is {state or 'deleted'} there")
    categories = _names(found.get("categories")) or _names(found.get("category"))
    others = {**{key: found.get(key) for key in KEPT_KEYS}, **as_object(found.get("metadata"))}
    kept = {as_text(key): as_text(str(field)) for key, field in others.items() if isinstance(field, str | int | float)}
    until = items.moment_of(found.get("expiration_date"))
    fields = {**items.dates_of(found), "valid_until": until, "import_metadata": kept or None}
    tags, category = (*categories, *_names(found.get("tags"))), next(iter(categories), None)
    return Item(place, id_of(found, text), "memory", text, "", "memory", "", tags, category, fields)


def _memory_lines(export: Export, member: Member) -> Iterator[Entry]:
    """One memory a line, as copied from a settings page, with bullets, numbers and dates."""
    with export.reporting(member.name):
        for number, line in enumerate(export.read(member).decode("utf-8-sig", "replace").splitlines(), 1):
            found = LINE.fullmatch(line)
            if found and re.search(r"\w", found[2]) and not line.startswith("#"):
                yield _memory({"text": found[2], "created_at": found[1]}, f"{member.name}, line {number}")


def _names(value: object) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else as_list(value)
    return tuple(filter(None, (first_text(as_object(entry) or {"name": entry}, "name") for entry in listed)))
