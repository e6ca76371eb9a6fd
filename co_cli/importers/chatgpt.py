"""ChatGPT's data export: `conversations.json`, or `conversations-000.json` and so on, and saved memories.

A conversation is a tree of messages. Only the branch that the person saw last is read, without system messages, hidden
messages, tool calls and thoughts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from co_cli.importers.archive import Export
from co_cli.importers.conversations import YOU, Turn, branch, conversation_item
from co_cli.importers.items import Entry, as_list, as_object, as_text, first_text, skipped
from co_cli.importers.memories import memory_item, memory_lines

SPEAKERS = {"user": YOU, "assistant": "ChatGPT"}
WANTED = re.compile(
    r"(?:.*/)?(?:conversations(?:[-_]?\d+)?\.json"
    r"|(?:[^/]*[-_ ])?memor(?:y|ies)(?:[-_ ][^/]*)?\.(?:jsonl?|txt|md))$",
    re.I,
)
SPOKEN = ("text", "multimodal_text", "audio_transcription")
HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
MARKS = re.compile("\ue200[^\ue201]{0,500}\ue201|[\ue200-\ue206]|\u3010\\d+\u2020[^\u3011]{0,80}\u3011")
"""References to sources, which lead nowhere in a text."""


def read_chatgpt(export: Export) -> Iterator[Entry]:
    members = export.matching(WANTED)
    texts = [member for member in members if member.ending in (".txt", ".md")]
    for member in texts:
        yield from memory_lines(export, member)
    for place, value in export.values(member for member in members if member not in texts):
        found = as_object(value)
        if found.get("is_do_not_remember") is True:
            why = "it is marked “do not remember” in ChatGPT"
            yield skipped(place, "conversation", first_text(found, "title"), why)
        elif "mapping" in found:
            yield conversation_item(found, _messages(found), "chatgpt", place)
        else:
            yield memory_item(value, place)


def _messages(found: dict[str, object]) -> Iterator[Turn]:
    mapping = {key: as_object(node) for key, node in as_object(found["mapping"]).items()}
    current = found.get("current_node")
    if not isinstance(current, str) or current not in mapping:
        current = next(reversed(mapping), None)
    for node in branch({key: node.get("parent") for key, node in mapping.items()}, current):
        message = as_object(mapping[node].get("message"))
        metadata, content = as_object(message.get("metadata")), as_object(message.get("content"))
        speaker = SPEAKERS.get(as_text(as_object(message.get("author")).get("role")))
        if speaker is None or content.get("content_type") not in SPOKEN or any(map(metadata.get, HIDDEN)):
            continue
        if as_text(message.get("recipient")) not in ("", "all") or message.get("channel") == "analysis":
            continue  # a tool call or a thought
        parts = [_part(part) for part in as_list(content.get("parts"))] or [as_text(content.get("text"))]
        yield speaker, MARKS.sub("", "\n\n".join(part for part in parts if part.strip()))


def _part(part: object) -> str:
    found = as_object(part)
    if as_text(found.get("content_type")).startswith("image"):
        return "*(an image)*"
    return as_text(part) or as_text(found.get("text"))  # an object has the text of what was said aloud
