"""What happened in the vault, for the page: sessions of agents, conversations, and what was asked, given and saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from co_cli.activity.agent_sessions import AgentSession, list_sessions, session_entries
from co_cli.activity.extracted import FacetRow, facets
from co_cli.activity.feed import Entry, FeedQuery, Kind, read_feed
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, UnknownRefError
from co_cli.ground.hits import Filters
from co_cli.index.stored import StoredNote
from co_cli.notes.dates import read_moment
from co_cli.notes.note import Note
from co_cli.notes.refs import without_lines
from co_cli.notes.transcripts import SpokenTurn, is_assistant, is_tool, read_turns
from co_cli.notes.wikilinks import find_links
from co_cli.server.rendering import render
from co_cli.server.routes import route
from co_cli.sources.origin import CHECKPOINT
from co_cli.upkeep.usage import memories_by_day, usage_of

SHOWN_STATES = ("proposed", "saved", "known")
"""Of what was understood from a conversation."""


class FeedAsked(BaseModel):
    """Which part of the activity."""

    kind: Sequence[Kind] = ("asked", "given", "saved")
    front_end: str | None = None
    before: float | None = None
    """Continue here: `next` of the page before."""
    limit: int = Field(30, ge=1, le=10_000)


class Feed(NamedTuple):
    """What happened, newest first."""

    entries: list[Entry]
    titles: dict[str, str]
    """Of the notes that they name, as far as these exist."""
    next: float | None
    query_log: str
    """The setting: on, no-text or off."""


class StatsAsked(BaseModel):
    """Of which days, and how many rows in each list."""

    days: int = 30
    limit: int = Field(10, ge=1, le=500)


class SessionsAsked(BaseModel):
    """How many sessions."""

    limit: int = Field(20, ge=1, le=1_000)


class OneSession(BaseModel):
    id: str


class OneConversation(BaseModel):
    """A conversation or a checkpoint, by its ref or its name, and which of its turns."""

    ref: str
    offset: int = Field(0, ge=0)
    limit: int = Field(200, ge=1, le=1_000)


class Sessions(NamedTuple):
    """Sessions of agents, the last active first."""

    sessions: list[AgentSession]
    total: int
    conversations: dict[str, str]
    """The refs of those that were kept, by the id of the session."""
    query_log: str


class ConversationLine(NamedTuple):
    """A conversation or a checkpoint in one line."""

    ref: str
    title: str
    created: float | None
    agent: str
    """Of a checkpoint, its model."""


class ShownTurn(NamedTuple):
    """What somebody said in a conversation."""

    speaker: str
    role: Literal["person", "agent", "tool"]
    at: float | None
    html: str
    given: Sequence[str]
    """Refs of the notes that were added to the prompt of this answer."""
    first: int
    """Its lines in the file."""
    last: int


class ShownProposal(NamedTuple):
    """A memory that follows from a conversation."""

    key: str
    text: str
    kind: str
    state: str
    """proposed, saved or known"""
    ref: str | None
    """The memory that it became, or that says it already; of a proposal, the one that it replaces."""
    first: int
    last: int


class ShownConversation(NamedTuple):
    """A conversation as a chat."""

    ref: str
    title: str
    agent: str
    project: str
    session: str | None
    turns: list[ShownTurn]
    total: int
    """Turns of all of it."""
    proposals: list[ShownProposal]
    titles: dict[str, str]


class ShownSession(NamedTuple):
    """Everything that happened in a session, oldest first."""

    session: AgentSession
    entries: list[Entry]
    titles: dict[str, str]
    stopped: list[str]
    """Refs of the notes that are marked `loading: never` since."""
    talk: ShownConversation | None
    """What was said, if the conversation was kept."""


@route("GET", "/activity")
def list_activity(kb: LocalKnowledgeBase, asked: FeedAsked) -> Feed:
    """List what was asked, given to agents and saved, newest first."""
    query = FeedQuery(asked.kind, asked.front_end, asked.before or inf, asked.limit)
    with kb.activity.written().reading() as connection:
        entries, more = read_feed(connection, kb.root, query)
    return Feed(entries, _titles(kb, _refs(entries)), more, kb.settings.query_log)


@route("GET", "/activity/sessions")
def list_agent_sessions(kb: LocalKnowledgeBase, asked: SessionsAsked) -> Sessions:
    """List the sessions of agents, with what each was given and saved."""
    with kb.activity.written().reading() as connection:
        found = list_sessions(connection, kb.root)
    shown = found[: asked.limit]
    named = {
        note.frontmatter.get("session"): note.ref for note in _kept(kb, *(session.conversation for session in shown))
    }
    kept = {session.id: named[session.conversation] for session in shown if session.conversation in named}
    return Sessions(shown, len(found), kept, kb.settings.query_log)


@route("GET", "/activity/sessions/{id:path}")
def show_agent_session(kb: LocalKnowledgeBase, asked: OneSession) -> ShownSession:
    """Show the prompts of a session, what each was given and why, what tools found and saved, and the answers."""
    with kb.activity.written().reading() as connection:
        found = session_entries(connection, kb.root, asked.id)
    if found is None:
        raise InvalidInputError(
            f"there is no session {asked.id} among the latest: it is too old, or the log was cleared"
        )
    session, entries = found
    kept = _kept(kb, session.conversation)
    talk = _conversation(kb, kept[0].ref, 0, 1_000) if kept else None
    named = _notes(kb, _refs(entries))
    stopped = [note.ref for note in named if note.frontmatter.get("loading") == "never"]
    return ShownSession(session, entries, {note.ref: note.title for note in named}, stopped, talk)


@route("GET", "/activity/stats")
def show_stats(kb: LocalKnowledgeBase, asked: StatsAsked) -> dict[str, Any]:
    """Show searches per day, unanswered questions and use, as `co feedback stats --json` does."""
    return usage_of(kb.vault, asked.days, asked.limit).as_object()


@route("GET", "/activity/memories")
def count_memories(kb: LocalKnowledgeBase) -> dict[str, int]:
    """Count the memories that were written on each day, as `2026-11-15`; other days have none."""
    return memories_by_day(kb.vault)


@route("GET", "/conversations")
def list_conversations(kb: LocalKnowledgeBase, asked: SessionsAsked) -> list[ConversationLine]:
    """List conversations that were kept and checkpoints, newest first."""
    kept = kb.index.notes.docs(Filters(("conversation",), roots=(kb.root,)), asked.limit)
    lines = [
        ConversationLine(note.ref, note.title, note.created, str(note.frontmatter.get("agent") or "")) for note in kept
    ]
    lines += [
        ConversationLine(saved.ref, saved.title, read_moment(saved.created), saved.model)
        for saved in kb.checkpoints.all()
    ]
    return sorted(lines, key=lambda line: -(line.created or 0.0))[: asked.limit]


@route("GET", "/conversations/{ref:path}")
def show_conversation(kb: LocalKnowledgeBase, asked: OneConversation) -> ShownConversation:
    """Show a conversation or a checkpoint turn by turn, with the memories that follow from it."""
    return _conversation(kb, asked.ref, asked.offset, asked.limit)


def _conversation(kb: LocalKnowledgeBase, ref: str, offset: int, limit: int) -> ShownConversation:
    try:
        note = kb.note(ref)
    except UnknownRefError:
        if ":" in ref:
            raise
        note = kb.note(f"conversation:{ref}")
    if note.source != "conversation" and not note.ref.startswith(f"{CHECKPOINT}:"):
        raise InvalidInputError(f"{note.ref} is not a conversation: open it as a note")
    turns, agent = read_turns(note.body, note.body_line), str(note.metadata.get("agent") or "")
    shown = [_shown_turn(note, agent, turn) for turn in turns[offset : offset + limit]]
    with kb.activity.written().reading() as connection:
        found = [facet for facet in facets(connection, kb.root) if facet.path == note.path]
    proposals = [_shown_proposal(facet) for facet in found if facet.state in SHOWN_STATES]
    refs = {ref for turn in shown for ref in turn.given} | {proposal.ref for proposal in proposals if proposal.ref}
    project, session = (str(note.metadata.get(name) or "") for name in ("project", "session"))
    return ShownConversation(
        note.ref, note.title, agent, project, session or None, shown, len(turns), proposals, _titles(kb, refs)
    )


def _shown_turn(note: Note, agent: str, turn: SpokenTurn) -> ShownTurn:
    answers = is_assistant(turn.speaker) or turn.speaker == agent
    role = "tool" if is_tool(turn.speaker) else "agent" if answers else "person"
    first = turn.last - turn.text.count("\n")
    said = replace(note, body=turn.text, body_line=first, links=find_links(turn.text), sections=None)
    return ShownTurn(turn.speaker, role, turn.at, render(said, {}), turn.given, turn.line, turn.last)


def _shown_proposal(facet: FacetRow) -> ShownProposal:
    ref = facet.detail.get("known") if facet.state == "proposed" else facet.ref
    return ShownProposal(facet.id, facet.text, facet.kind, facet.state, ref, facet.first_line, facet.last_line)


def _kept(kb: LocalKnowledgeBase, *sessions: str | None) -> list[StoredNote]:
    """The conversations of these sessions that were kept."""
    found: list[StoredNote] = []
    for session in dict.fromkeys(filter(None, sessions)):
        filters = Filters(("conversation",), fields=(("session", session),), roots=(kb.root,))
        found += kb.index.notes.docs(filters, 1)
    return found


def _refs(entries: Iterable[Entry]) -> set[str]:
    return {note.ref for entry in entries for note in entry.notes}


def _titles(kb: LocalKnowledgeBase, refs: Iterable[str]) -> dict[str, str]:
    return {note.ref: note.title for note in _notes(kb, refs)}


def _notes(kb: LocalKnowledgeBase, refs: Iterable[str]) -> list[StoredNote]:
    """Those that exist."""
    return list(kb.index.notes.find("ref", *sorted({without_lines(ref) for ref in refs})))
