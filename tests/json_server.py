"""A real HTTP server on 127.0.0.1 that answers JSON with JSON. Subclasses say what."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class JsonServer:
    """Answers POST requests on an ephemeral port until it is closed; who waits for `released` goes on then."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.answer(self, json.loads(_body(self) or b"{}"))

            def do_GET(self) -> None:
                server.send(self, 404, b"{}")

            do_HEAD = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        raise NotImplementedError

    def send(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    """What the client sent, in chunks or not, compressed or not."""
    if "chunked" in handler.headers.get("Transfer-Encoding", ""):
        data = b""
        while size := int(handler.rfile.readline().strip() or b"0", 16):
            data += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
    else:
        data = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
    return gzip.decompress(data) if handler.headers.get("Content-Encoding") == "gzip" else data
