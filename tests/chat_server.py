"""A real HTTP server on 127.0.0.1 that speaks the chat protocol of OpenAI and Ollama, from a script of turns.

    with ChatServer([calls(("recall_memory", {"query": "deploys"})), text("Blue ", "first.")]) as server:
        ...  # OLLAMA_BASE_URL=server.url, model `ollama:qwen3`; server.requests is what the client sent

Each request takes the next turn of the script. A request with `stream` gets it as server-sent events, chunk by chunk,
tool calls with their arguments in pieces, as a genuine server does; any other gets it as one JSON object. A turn can be
held back: `text("one ", HOLD, "two")` stops until `server.release()`, and `server.held` is set when it does.
`text("one ", CUT)` closes the connection in the middle of the answer.
When the script is used up, the server answers with status 500 and says so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.json_server import JsonServer

HOLD = "\0hold"
CUT = "\0cut"
PIECE = 7
"""Characters of a tool call's arguments that travel in one event: never whole, and never at a good place."""


class Turn(NamedTuple):
    """One answer of the model."""

    chunks: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    """Tool names, each with its arguments as the JSON text that the model wrote."""
    status: int = 200


def text(*chunks: str) -> Turn:
    return Turn(chunks=chunks)


def calls(*calls: tuple[str, Mapping[str, Any] | str], before: Sequence[str] = ()) -> Turn:
    """Tool calls in one response; arguments that are a text are sent as they are, however broken."""
    written = tuple((name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls)
    return Turn(chunks=tuple(before), calls=written)


def fails(status: int) -> Turn:
    return Turn(status=status)


class ChatServer(JsonServer):
    """Answers `POST /v1/chat/completions`."""

    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self.turns = list(turns)
        self.held = threading.Event()
        self._lock = threading.Lock()
        super().__init__()
        self.url += "/v1"

    def play(self, *turns: Turn) -> None:
        """A new script for the same server, which has heard nothing yet and holds turns back again."""
        self.turns, self.requests = list(turns), []
        self.held.clear()
        self.released.clear()

    def release(self) -> None:
        """Let every held turn go on, now and later."""
        self.released.set()

    def said(self, role: str, request: int = -1) -> str:
        """What the messages of this role said in a request (the last one), joined."""
        found: list[str] = []
        for message in self.requests[request]["messages"]:
            if message["role"] == role:
                content = message.get("content") or ""
                found += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        return "\n".join(found)

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            turn = self.turns.pop(0) if self.turns else Turn(status=500)
        if turn.status != 200:
            error = {"error": {"message": f"status {turn.status}, as the script wants it"}}
            self.send(handler, turn.status, json.dumps(error).encode())
        elif request.get("stream"):
            with suppress(OSError):  # the client hung up, as one does that was told to stop
                self._stream(handler, request, turn, number)
        else:
            self.send(handler, 200, json.dumps(self._whole(request, turn, number)).encode())

    def _whole(self, request: dict[str, Any], turn: Turn, number: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._spoken(turn)) or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": f"call_{number}_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for at, (name, arguments) in enumerate(turn.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
        return {**_head(request, number, "chat.completion"), "choices": [choice], "usage": USAGE}

    def _stream(self, handler: BaseHTTPRequestHandler, request: dict[str, Any], turn: Turn, number: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        head = _head(request, number, "chat.completion.chunk")

        def send(delta: dict[str, Any], finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            _event(handler, {**head, "choices": [choice]})

        send({"role": "assistant", "content": ""})
        for chunk in self._spoken(turn):
            if chunk == CUT:
                return
            send({"content": chunk})
        for at, (name, arguments) in enumerate(turn.calls):
            call = {"index": at, "id": f"call_{number}_{at}", "type": "function"}
            send({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
            for start in range(0, len(arguments), PIECE):
                piece = arguments[start : start + PIECE]
                send({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        send({}, _finish(turn))
        if (request.get("stream_options") or {}).get("include_usage"):
            _event(handler, {**head, "choices": [], "usage": USAGE})
        handler.wfile.write(b"data: [DONE]\n\n")

    def _spoken(self, turn: Turn) -> Iterator[str]:
        """The chunks, one after the other, waiting where the script says so."""
        for chunk in turn.chunks:
            if chunk == HOLD:
                self.held.set()
                self.released.wait(300)
            else:
                yield chunk


USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def _head(request: dict[str, Any], number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": request["model"]}


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _event(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    handler.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
    handler.wfile.flush()
