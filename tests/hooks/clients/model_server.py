"""A real HTTP server on 127.0.0.1 that is every coding agent's model, from a script of turns.

    with ModelServer([calls(("mcp__co__recall_memory", {"query": "deploys"})), text("Blue first.")]) as server:
        ...  # server.root is the address; server.asked() is what the model was sent

It speaks the protocols of Anthropic, Gemini, and OpenAI (chat and responses), streamed. Requests without tools, with
which clients name sessions and the like, take no turn of the script. When it is used up, the model says "Done.".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.chat_server import ChatServer, Turn, text

Event = dict[str, Any]
DONE = text("Done.")
MODEL = "scripted"
CHOICE = text(
    json.dumps({"reasoning": "short", "model_choice": "flash", "complexity_reasoning": "", "complexity_score": 1})
)
"""With which model Gemini CLI shall answer: it asks a model."""


class ModelServer(ChatServer):
    """Answers whatever a coding agent asks its model."""

    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        super().__init__(turns)
        self.root = self.url.removesuffix("/v1")

    def asked(self) -> str:
        """Everything that the model was sent in requests with tools, as one text."""
        return "\n".join(json.dumps(request, ensure_ascii=False) for request in self.requests)

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        path = handler.path.partition("?")[0]
        turn = DONE
        if "ountTokens" in path or path.endswith("/count_tokens"):
            self.send(handler, 200, b'{"input_tokens": 9, "totalTokens": 9}')
            return
        if request.get("tools"):
            with self._lock:
                self.requests.append(request)
                turn = self.turns.pop(0) if self.turns else DONE
            turn = turn._replace(calls=tuple((_full_name(name, request), given) for name, given in turn.calls))
        number = len(self.requests)
        if path.endswith("/messages"):
            self._send_events(handler, _anthropic(request, turn, number))
        elif path.endswith("/responses"):
            self._send_events(handler, _responses(request, turn, number))
        elif path.endswith("/chat/completions"):
            if request.get("stream"):
                self._stream(handler, request, turn, number)
            else:
                self.send(handler, 200, json.dumps(self._whole(request, turn, number)).encode())
        elif (request.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            self.send(handler, 200, json.dumps(_gemini(CHOICE)).encode())
        elif "streamGenerateContent" in path:
            self._send_events(handler, [_gemini(turn)], named=False)
        elif "generateContent" in path:
            self.send(handler, 200, json.dumps(_gemini(turn)).encode())
        else:
            self.send(handler, 404, b"{}")

    def _send_events(self, handler: BaseHTTPRequestHandler, events: Iterable[Event], named: bool = True) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if named else ""
            handler.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        handler.wfile.flush()


def _full_name(name: str, request: Event) -> str:
    """What the client calls one of our tools, which it may put a prefix before."""
    tools = [inner for tool in request["tools"] for inner in tool.get("functionDeclarations", [tool])]
    named = [str(tool.get("name") or tool.get("function", {}).get("name", "")) for tool in tools]
    hidden = re.findall(rf"mcp__[\w-]+__{name}", json.dumps(request))  # to be found with a tool of the client
    return next((full for full in (*named, *hidden) if full.endswith(name)), name)


def _said(turn: Turn) -> str:
    return "".join(turn.chunks)


def _anthropic(request: Event, turn: Turn, number: int) -> Iterable[Event]:
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": request.get("model", MODEL)}
    usage = {"input_tokens": 20, "output_tokens": 1}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": start}
    blocks: list[tuple[Event, Event]] = []
    if said := _said(turn):
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": said}))
    for at, (name, arguments) in enumerate(turn.calls):
        call = {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": {}}
        blocks.append((call, {"type": "input_json_delta", "partial_json": arguments}))
    for at, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": at, "content_block": block}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    reason = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _gemini(turn: Turn) -> Event:
    parts: list[Event] = [{"text": said}] if (said := _said(turn)) else []
    parts += [{"functionCall": {"name": name, "args": json.loads(arguments)}} for name, arguments in turn.calls]
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}


def _responses(request: Event, turn: Turn, number: int) -> Iterable[Event]:
    output: list[Event] = []
    if said := _said(turn):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        output.append({**message, "content": content})
    for at, (name, arguments) in enumerate(turn.calls):
        call = {"type": "function_call", "id": f"fc_{number}_{at}", "call_id": f"call_{number}_{at}"}
        space, _, bare = name.rpartition("::")
        named = {"name": bare, "namespace": space} if space else {"name": name}
        output.append({**call, **named, "arguments": arguments, "status": "completed"})
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25, **details}
    response: Event = {"id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "model": MODEL}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    for at, item in enumerate(output):
        yield {"type": "response.output_item.added", "output_index": at, "item": item}
        if item["type"] == "message":
            delta = {"type": "response.output_text.delta", "item_id": item["id"], "output_index": at}
            yield {**delta, "content_index": 0, "delta": said}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": output, "usage": usage},
    }
