"""Transcripts of sessions: Claude Code, Codex, Gemini CLI, Qwen Code, opencode, and JSON Lines of turns from anywhere.

Each becomes one conversation: what people and models said, without tools, thoughts and what programs added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from co_cli.ground.values import moment_text
from co_cli.importers import items
from co_cli.importers.archive import Export
from co_cli.importers.items import Entry, Item, as_list, as_object, as_text, first_text
from co_cli.notes.dates import read_moment
from co_cli.notes.secrets import redact, reveals_secret
from co_cli.notes.subjects import title_from
from co_cli.notes.transcripts import USER, SpokenTurn, merged, participants, render_turns, speaker_of, user_name

Lines = Iterable[dict[str, object]]
LINES = re.compile(r"\.(?:jsonl|ndjson)$", re.I)
FILES = re.compile(r"\.(?:jsonl|json)$", re.I)
WHOLE = ("gemini", "opencode")
"""Clients that also have sessions as one JSON object."""
ADDED = re.compile(
    r"<(system-reminder|task-notification|(?:local-command|command|bash)-\w+|ide_\w+|session_context"
    r"|hook_(?:additional_)?context|qwen:[\w-]+"
    r"|state_snapshot|user_instructions|environment_context|INSTRUCTIONS)>.*?(?:</\1>|\Z)"
    r"|^# AGENTS\.md instructions for .*\Z",
    re.S,
)
"""What the clients put into a person's turn."""
NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary")
"""Marks of Claude Code's lines: of a subagent, of a program, and a summary by the model in the user's name."""
SPOKEN = ("text", "input_text", "output_text", None)
"""The kinds of parts with words. Gemini and Qwen name none."""
QWEN_SPOKEN = ("real_user", "assistant_output", None)
GEMINI_PROJECT = re.compile(r"(?:^|/)([^/]+)/chats/[^/]+$")
SPEAKER = ("role", "speaker", "sender", "from", "author", "type")
TEXT = ("text", "content", "message", "body")
TIME = ("time", "timestamp", "at", "date", "created_at", "create_time", "created", "ts")
SESSION = ("session", "session_id", "sessionId", "conversation_id", "conversation", "thread_id")


def conversation(
    place: str, identity: str, folder: str, turns: Iterable[SpokenTurn], title: str = "", **fields: object
) -> Item:
    """Consecutive messages of one speaker are one turn. The first question is the title, if there is no other."""
    said = merged(turns)
    asked = next((turn.text for turn in said if turn.speaker == USER), said[0].text if said else "")
    times = [turn.at for turn in said if turn.at is not None]
    dates = {"created": moment_text(min(times))} if times else {}
    known = {key: value for key, value in fields.items() if value}
    about = {**dates, **known, "participants": participants(said), "session": identity}
    if asked.strip() and (not title or reveals_secret(title, asked)):
        title = title_from(redact(asked))
    return Item(place, identity, "conversation", render_turns(said), title, "conversation", folder, fields=about)


class Transcript(NamedTuple):
    """What its lines say; those from its middle may lack everything but the turns."""

    turns: Sequence[SpokenTurn]
    id: str = ""
    cwd: str = ""
    title: str = ""


def _read_claude_code(lines: Lines) -> Transcript:
    found = [line for line in lines if not any(line.get(mark) is True for mark in NOT_SAID)]
    turns = [
        SpokenTurn(speaker_of(as_text(line["type"])), _spoken(as_object(line.get("message"))), _moment(line))
        for line in found
        if line.get("type") in ("user", "assistant")
    ]
    title = next((text for line in reversed(found) if (text := first_text(line, "summary"))), "")
    return Transcript(turns, _first(found, "sessionId"), _first(found, "cwd"), title)


def _read_codex(lines: Lines) -> Transcript:
    turns: list[SpokenTurn] = []
    identity = cwd = ""
    for line in lines:
        payload = as_object(line.get("payload")) or line
        if line.get("type") == "session_meta" or ("type" not in line and "instructions" in line):
            identity, cwd = first_text(payload, "id"), first_text(payload, "cwd")
        role = as_text(payload.get("role"))
        if payload.get("type") == "message" and role in ("user", "assistant"):
            turns.append(SpokenTurn(speaker_of(role), _spoken(payload), _moment(line)))
    return Transcript(turns, identity, cwd)


def _read_gemini(lines: Lines) -> Transcript:
    """A message is written again when its tools have answered. `$set` has what the program sent, not what was said."""
    found = list(lines)
    if any(line.get("kind", "main") != "main" for line in found):  # of a subagent
        return Transcript(())
    said: dict[str, SpokenTurn] = {}
    for line in found:
        if back := first_text(line, "$rewindTo"):  # the person took it back
            known = [*said]
            said = {key: said[key] for key in known[: known.index(back)]} if back in said else {}
        for message in [as_object(inner) for inner in as_list(line.get("messages"))] or [line]:
            if message.get("type") in ("user", "gemini"):
                turn = SpokenTurn(speaker_of(as_text(message["type"])), _spoken(message), _moment(message))
                said[first_text(message, "id") or str(len(said))] = turn
    return Transcript(list(said.values()), _first(found, "sessionId"))


def _read_qwen(lines: Lines) -> Transcript:
    found = list(lines)
    turns = [
        SpokenTurn(speaker_of(as_text(line["type"])), _spoken(as_object(line.get("message"))), _moment(line))
        for line in found
        if line.get("type") in ("user", "assistant") and line.get("provenance") in QWEN_SPOKEN
    ]
    return Transcript(turns, _first(found, "sessionId"), _first(found, "cwd"))


def _read_opencode(lines: Lines) -> Transcript:
    """What `opencode export` prints: one object."""
    turns: list[SpokenTurn] = []
    about: dict[str, object] = {}
    for session in lines:
        about = as_object(session.get("info"))
        if about.get("parentID"):  # of a subagent
            return Transcript(())
        for message in map(as_object, as_list(session.get("messages"))):
            said = as_object(message.get("info"))
            parts = [as_object(part) for part in as_list(message.get("parts"))]
            own = [part for part in parts if not part.get("synthetic") and not part.get("ignored")]
            at = _moment(as_object(said.get("time")))
            turns.append(SpokenTurn(speaker_of(as_text(said.get("role"))), _spoken({"content": own}), at))
    return Transcript(turns, first_text(about, "id"), first_text(about, "directory"), first_text(about, "title"))


class CodingAgent(NamedTuple):
    """What people call it, and how its transcripts are read."""

    name: str
    read: Callable[[Lines], Transcript]


CLIENTS = {
    "claude-code": CodingAgent("Claude Code", _read_claude_code),
    "codex": CodingAgent("Codex", _read_codex),
    "gemini": CodingAgent("Gemini CLI", _read_gemini),
    "qwen": CodingAgent("Qwen Code", _read_qwen),
    "opencode": CodingAgent("opencode", _read_opencode),
}


def read_sessions(client: str, export: Export) -> Iterator[Entry]:
    """A client's folder of sessions, or one of them. Those of subagents are left out."""
    agent, read = CLIENTS[client]
    for place, lines in _files(export, FILES if client in WHOLE else LINES):
        session = read(lines)
        if any(turn.text for turn in session.turns):
            inside = GEMINI_PROJECT.search(place) if client == "gemini" else None
            project = inside[1] if inside else os.path.basename(session.cwd.rstrip("/\\"))
            identity = session.id or os.path.splitext(os.path.basename(place))[0]
            yield conversation(place, identity, client, session.turns, session.title, agent=agent, project=project)


def read_jsonl(export: Export) -> Iterator[Entry]:
    """Turns, one a line: a speaker or role, a text, and perhaps a time and a session."""
    for place, lines in _files(export):
        sessions: dict[str, list[SpokenTurn]] = {}
        titles: dict[str, str] = {}
        speakers: dict[str, list[tuple[str, str]]] = {}
        for number, line in enumerate(lines, 1):
            session = first_text(line, *SESSION) or os.path.splitext(os.path.basename(place))[0]
            author = as_object(line.get("author"))
            role = first_text(line, *SPEAKER) or first_text(author, "role", "name")
            text = first_text(line, *TEXT) or _spoken(line) or _spoken(as_object(line.get("message")))
            if not role or not text:
                yield items.failed(f"{place}, line {number}", f"no turn: one of {', '.join(SPEAKER)} and a text")
                continue
            titles.setdefault(session, first_text(line, "title"))
            name = first_text(line, "name") or first_text(author, "name")
            speakers.setdefault(session, []).append((role, name))
            sessions.setdefault(session, []).append(SpokenTurn(speaker_of(role, name), text, _moment(line)))
        for session, turns in sessions.items():
            yield conversation(place, session, "", turns, titles[session], user=user_name(speakers[session]))


def _files(export: Export, wanted: re.Pattern[str] = LINES) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The objects of each file of JSON Lines."""
    for place, group in groupby(export.values(wanted), lambda pair: pair[0].rpartition(", item ")[0]):
        yield place, [as_object(value) for _, value in group]


def _first(lines: Lines, key: str) -> str:
    return next(filter(None, (first_text(line, key) for line in lines)), "")


def _spoken(message: dict[str, object]) -> str:
    """The text of a message, without what programs added to it."""
    content = message.get("content", message.get("parts"))
    blocks = [as_object(block) for block in as_list(content)]
    said = [block for block in blocks if block.get("type") in SPOKEN and not block.get("thought")]
    texts = [as_text(block.get("text")) for block in said] or [as_text(content)]
    return "\n\n".join(filter(None, (ADDED.sub("", text).strip() for text in texts)))


def _moment(line: dict[str, object]) -> float | None:
    found = next(filter(None, (items.moment_of(line.get(key)) for key in TIME)), None)
    return None if found is None else read_moment(found)
