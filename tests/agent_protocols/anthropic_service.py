"""Anthropic's messages API on loopback, with a script: what goes over the wire is real, the model is not."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Anthropic:
    """Answers one memory command a request, then an end."""

    def __init__(self, commands: list[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.betas: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                service.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                service.betas.append(self.headers.get("anthropic-beta", ""))
                turn = len(service.requests) - 1
                content: dict[str, Any] = {"type": "text", "text": "done"}
                if turn < len(commands):
                    content = {"type": "tool_use", "id": f"t{turn}", "name": "memory", "input": commands[turn]}
                answer = {
                    "id": f"m{turn}",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-sonnet-5-5",
                    "content": [content],
                    "stop_reason": "tool_use" if turn < len(commands) else "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def results(self) -> list[str]:
        """The tool results that came back, in order; some clients repeat them with every request."""
        messages = [message for request in self.requests for message in request["messages"]]
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        found = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
        return [content if isinstance(content, str) else content[0]["text"] for content in found.values()]


COMMANDS = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/tea.txt", "file_text": "Anna likes tea.\n"},
    {"command": "view", "path": "/memories/tea.txt"},
]
RESULTS = [
    "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n"
    "0B\t/memories",
    "File created successfully at: /memories/tea.txt",
    "Here's the content of /memories/tea.txt with line numbers:\n     1\tAnna likes tea.",
]
