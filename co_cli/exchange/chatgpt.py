"""ChatGPT's data export: `conversations.json`, or `conversations-000.json` and so on, and saved memories.

A conversation is a tree of messages; only the branch that the person saw last is read. What was hidden from them, the
system's messages, tools and their answers, thoughts and uploads are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from co_cli.exchange.archive import Export, Member, Unreadable
from co_cli.exchange.conversations import YOU, Conversation, Turn, conversation_entry
from co_cli.exchange.items import (
    Entry,
    Left,
    Trouble,
    as_list,
    as_object,
    as_text,
    first_moment,
    first_text,
    moment_of,
    text_hash,
)
from co_cli.exchange.json_values import numbered_values
from co_cli.exchange.memories import memory_entries, memory_lines

SPEAKERS = {"user": YOU, "assistant": "ChatGPT"}
CONVERSATIONS = re.compile(r"conversations(?:[-_]?\d+)?\.json$", re.I)
MEMORIES = re.compile(r"(?:.*[-_ ])?memor(?:y|ies)(?:[-_ ].*)?\.(?:jsonl?|txt|md)$", re.I)
SPOKEN = ("text", "multimodal_text", "audio_transcription")
MARKS = re.compile("\ue200[^\ue201]{0,500}\ue201|[\ue200-\ue206]|\u3010\\d+\u2020[^\u3011]{0,80}\u3011")
"""Where the page shows a small number that leads to a source; in a text they lead nowhere."""
LARGEST_TEXT = 20_000_000


def read_chatgpt(export: Export) -> Iterator[Entry]:
    found = [member for member in export.members if export.single or _wanted(member)]
    if not found:
        yield Trouble(export.path, "no conversations.json in it: is this what ChatGPT sent?")
    for member in found:
        place = export.place(member)
        try:
            if member.ending in (".txt", ".md"):
                yield from memory_lines(export.read(member, LARGEST_TEXT).decode("utf-8-sig", "replace"), place)
                continue
            for number, value in numbered_values(export, member):
                yield from _entries(value, f"{place}, item {number}")
        except Unreadable as problem:
            yield Trouble(place, str(problem))


def _wanted(member: Member) -> bool:
    return bool(CONVERSATIONS.match(member.base) or MEMORIES.match(member.base))


def _entries(value: object, place: str) -> Iterator[Entry]:
    if isinstance(value, Unreadable):
        yield Trouble(place, str(value))
        return
    found = as_object(value)
    if "mapping" in found:
        yield _conversation(found, place)
    elif isinstance(found.get("conversations"), list):
        for number, inner in enumerate(as_list(found["conversations"]), 1):
            where, talk = f"{place}, conversation {number}", as_object(inner)
            yield _conversation(talk, where) if "mapping" in talk else Trouble(where, "no mapping in it")
    else:
        for entry in memory_entries(value, place):
            wrong = isinstance(entry, Trouble)
            yield Trouble(entry.place, "neither a conversation (no mapping) nor a memory") if wrong else entry


def _conversation(found: dict[str, object], place: str) -> Entry:
    title = first_text(found, "title")
    if found.get("is_do_not_remember") is True:
        return Left(place, "conversation", title, "it is marked “do not remember” at ChatGPT")
    mapping = as_object(found["mapping"])
    turns = [turn for turn in map(_turn, _branch(mapping, found.get("current_node"))) if turn]
    model = first_text(found, "default_model_slug")
    conversation = Conversation(
        place=place,
        id=first_text(found, "conversation_id", "id") or f"text:{text_hash(str([*turns]))}",
        title=title,
        turns=turns,
        created=first_moment(found, "create_time", "created_at"),
        updated=first_moment(found, "update_time", "updated_at"),
        fields={"model": model} if model else {},
    )
    return conversation_entry(conversation, "chatgpt")


def _branch(mapping: dict[str, object], current: object) -> list[dict[str, object]]:
    """The messages from the first to the current one; without a current one, of the branch that was written last."""
    node = current if isinstance(current, str) and current in mapping else _newest_leaf(mapping)
    found: list[dict[str, object]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node in mapping and node not in seen:
        seen.add(node)
        here = as_object(mapping[node])
        found.append(as_object(here.get("message")))
        node = here.get("parent")
    return found[::-1]


def _newest_leaf(mapping: dict[str, object]) -> str | None:
    leaves = [node for node, value in mapping.items() if not as_list(as_object(value).get("children"))]

    def written(node: str) -> str:
        return moment_of(as_object(as_object(mapping[node]).get("message")).get("create_time")) or ""

    return max(leaves, key=written, default=None)


def _turn(message: dict[str, object]) -> Turn | None:
    metadata = as_object(message.get("metadata"))
    speaker = SPEAKERS.get(as_text(as_object(message.get("author")).get("role")))
    content = as_object(message.get("content"))
    if speaker is None or as_text(content.get("content_type")) not in SPOKEN:
        return None
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message"):
        return None
    if as_text(message.get("recipient")) not in ("", "all") or as_text(message.get("channel")) == "analysis":
        return None  # a call of a tool, or thinking aloud
    parts = [_part(part) for part in as_list(content.get("parts"))] or [as_text(content.get("text"))]
    said = "\n\n".join(part for part in parts if part.strip())
    return Turn(speaker, said if said.isascii() else MARKS.sub("", said))


def _part(part: object) -> str:
    if isinstance(part, str):
        return as_text(part)
    found = as_object(part)
    if as_text(found.get("content_type")).startswith("image"):
        return "*(an image)*"
    return as_text(found.get("text"))  # of what was said aloud; an audio file has none
