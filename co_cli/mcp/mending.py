"""Lines that a client sent into messages, also those with half a letter in them.

A text that was cut in the middle of an emoji is written by JavaScript as `\\ud83d`. JSON allows it and UTF-8 does not,
so the SDK drops the whole line, and the client waits for an answer that never comes. Here the half becomes `?`.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

Item = SessionMessage | Exception


class Mended:
    """The SDK's stream of messages, with those that can be mended in the place of their errors."""

    def __init__(self, reading: Any) -> None:
        self._reading = reading

    @property
    def last_context(self) -> Any:
        """Where the SDK looks for the sender's context variables."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> Item:
        return mended(await self._reading.receive())

    async def aclose(self) -> None:
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return mended(await self._reading.__anext__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def mended(item: Item) -> Item:
    """The message that was meant; whatever is no message stays the error that it was."""
    if not isinstance(item, ValidationError):
        return item
    line: object = item.errors(include_url=False)[0]["input"]
    if not isinstance(line, str) or "\\u" not in line:
        return item
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, RecursionError):
        return item
