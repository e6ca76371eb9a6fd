"""Transcripts of sessions: Claude Code, Codex, and JSON Lines of turns from anywhere.

Each becomes one conversation: what people and models said, without tools, thoughts and what programs added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from co_cli.importers import items
from co_cli.importers.archive import Export
from co_cli.importers.items import Entry, Item, as_list, as_object, as_text, first_text
from co_cli.notes.dates import read_moment
from co_cli.notes.new_note import title_from
from co_cli.notes.secrets import redact, reveals_secret
from co_cli.notes.transcripts import USER, SpokenTurn, merged, participants, render_turns, speaker_of, user_name
from co_cli.values import moment_text

LINES = re.compile(r"\.(?:jsonl|ndjson)$", re.I)
ADDED = re.compile(
    r"<(system-reminder|task-notification|(?:local-command|command|bash)-\w+|ide_\w+"
    r"|user_instructions|environment_context|INSTRUCTIONS)>.*?(?:</\1>|\Z)"
    r"|^# AGENTS\.md instructions for .*\Z",
    re.S,
)
"""What Claude Code and Codex put into a person's turn."""
NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary")
"""Marks of Claude Code's lines: of a subagent, of a program, and a summary by the model in the user's name."""
SPOKEN = ("text", "input_text", "output_text")
SPEAKER = ("role", "speaker", "sender", "from", "author", "type")
TEXT = ("text", "content", "message", "body")
TIME = ("time", "timestamp", "at", "date", "created_at", "create_time", "ts")
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


def read_claude_code(export: Export) -> Iterator[Entry]:
    """`~/.claude/projects`, one of its folders, or one session. Those of subagents are left out."""
    for place, lines in _files(export):
        found = [line for line in lines if not any(line.get(mark) is True for mark in NOT_SAID)]
        title = next((text for line in reversed(found) if (text := first_text(line, "summary"))), "")
        turns = [
            SpokenTurn(speaker_of(as_text(line["type"])), _spoken(as_object(line.get("message"))), _moment(line))
            for line in found
            if line.get("type") in ("user", "assistant")
        ]
        about = {key: next(filter(None, (first_text(line, key) for line in found)), "") for key in ("sessionId", "cwd")}
        if any(turn.text for turn in turns):
            identity = about["sessionId"] or os.path.basename(place)
            project = os.path.basename(about["cwd"].rstrip("/\\"))
            yield conversation(place, identity, "claude-code", turns, title, agent="Claude Code", project=project)


def read_codex(export: Export) -> Iterator[Entry]:
    """`~/.codex/sessions`, one of its folders, or one `rollout-….jsonl`."""
    for place, lines in _files(export):
        turns: list[SpokenTurn] = []
        identity, cwd = os.path.splitext(os.path.basename(place))[0], ""
        for line in lines:
            payload = as_object(line.get("payload")) or line
            if line.get("type") == "session_meta" or ("type" not in line and "instructions" in line):
                identity, cwd = first_text(payload, "id") or identity, first_text(payload, "cwd")
            role = as_text(payload.get("role"))
            if payload.get("type") == "message" and role in ("user", "assistant"):
                turns.append(SpokenTurn(speaker_of(role), _spoken(payload), _moment(line)))
        if any(turn.text for turn in turns):
            project = os.path.basename(cwd.rstrip("/\\"))
            yield conversation(place, identity, "codex", turns, agent="Codex", project=project)


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


def _files(export: Export) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The objects of each file of JSON Lines."""
    for place, group in groupby(export.values(LINES), lambda pair: pair[0].rpartition(", item ")[0]):
        yield place, [as_object(value) for _, value in group]


def _spoken(message: dict[str, object]) -> str:
    """The text of a message, without what programs added to it."""
    content = message.get("content")
    blocks = [as_object(block) for block in as_list(content)]
    texts = [as_text(block.get("text")) for block in blocks if block.get("type") in SPOKEN] or [as_text(content)]
    return "\n\n".join(filter(None, (ADDED.sub("", text).strip() for text in texts)))


def _moment(line: dict[str, object]) -> float | None:
    found = next(filter(None, (items.moment_of(line.get(key)) for key in TIME)), None)
    return None if found is None else read_moment(found)
