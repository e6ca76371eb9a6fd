"""A conversation of pydantic-ai as a checkpoint, and back: its messages as JSON, and what a note says about them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

from co_cli.agent.injection import TOOL_NAMES, parts_of, spoken_turns, tool_returns
from co_cli.conversations.checkpoints import LISTS, Checkpoint
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import moment_text
from co_cli.notes.subjects import title_from
from co_cli.notes.transcripts import USER, render_turns
from co_cli.retrieval.query import parse

MOST = 12
"""Keywords, topics, entities, tools and files of each kind."""
LONGEST_TURN, MOST_TURNS = 600, 40
"""Of the conversation in the note: characters of a turn, and the last turns."""
FILE_KEYS = ("path", "file", "file_path", "filename", "ref")
"""Arguments of tools that name a file or a note."""


def save_checkpoint(
    kb: LocalKnowledgeBase,
    messages: Sequence[ModelMessage],
    title: str | None = None,
    description: str | None = None,
    keywords: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
) -> Checkpoint:
    """Save a conversation to continue from. What is not said about it is taken from its messages."""
    turns = [turn for turn in spoken_turns(messages) if turn.text.strip()]
    asked = [turn.text for turn in turns if turn.speaker == USER]
    if not asked:
        raise InvalidInputError("there is nothing to save: no question was asked yet")
    values = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    typed = [word.casefold() for text in asked for word in parse(text, operators=False).spelled]
    words = Counter(word for word in typed if not word.isdigit())
    found = {
        "keywords": keywords or [word for word, _ in words.most_common(MOST)],
        "topics": topics or [tag for tag, _ in Counter(_tags(messages)).most_common(MOST)],
        "entities": _named(kb, "\n".join(turn.text for turn in turns)),
        "tools": [part.tool_name for part in _calls(messages)],
        "files": list(_files(messages)),
    }
    models = [message.model_name for message in messages if isinstance(message, ModelResponse) and message.model_name]
    fields: dict[str, object] = {
        "description": " ".join((description or asked[0]).split())[:LONGEST_TURN],
        "created": moment_text(time.time()),
        "model": models[-1] if models else None,
        "session": next((message.conversation_id for message in reversed(messages) if message.conversation_id), None),
        **{key: list(dict.fromkeys(found[key]))[:MOST] for key in LISTS},
    }
    said = [turn._replace(text=turn.text[:LONGEST_TURN]) for turn in turns[-MOST_TURNS:]]
    return kb.checkpoints.save(title or title_from(asked[0]), render_turns(said), values, fields)


def load_checkpoint(kb: LocalKnowledgeBase, name: str) -> list[ModelMessage]:
    """The messages of a checkpoint, for `message_history`. Raises InvalidInputError for a vault that is not trusted."""
    values = kb.checkpoints.messages(name)
    try:
        return ModelMessagesTypeAdapter.validate_python(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise InvalidInputError(
            f"the messages of {name} are not those of a conversation ({problem}): remove it"
        ) from None


def _calls(messages: Sequence[ModelMessage]) -> Iterator[ToolCallPart]:
    return (part for message in messages for part in message.parts if isinstance(part, ToolCallPart))


def _files(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for part in _calls(messages):
        given = part.args_as_dict().items()
        yield from (value for key, value in given if key in FILE_KEYS and isinstance(value, str) and value)


def _tags(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """The tags of the notes that tools found."""
    for part in tool_returns(messages, lambda name: name.endswith(TOOL_NAMES)):
        for hit in parts_of(part.metadata, "hits"):
            yield from map(str, parts_of(hit, "tags"))


def _named(kb: LocalKnowledgeBase, text: str) -> list[str]:
    """The entities of the vault whose names are in the text."""
    titles = (note.title for note in kb.notes("entity"))
    return [title for title in titles if re.search(rf"\b{re.escape(title)}\b", text, re.IGNORECASE)]
