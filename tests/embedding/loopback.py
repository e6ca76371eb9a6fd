"""Real HTTP servers on 127.0.0.1 that speak the wire formats of embedding services, with faults on demand.

Vectors come from the embedded static model, so that meaning can be tested through the genuine clients.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import struct
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy  # noqa: F401  # the model sums with it once it is loaded, and a last bit would change between two requests

from co_cli.embedding.static import StaticEmbedder
from tests.json_server import JsonServer

SLOW_SECONDS = 60.0


class Loopback(JsonServer):
    """`faults` are used up one a request; None answers well."""

    path = "/"
    key_header = "Authorization"

    def __init__(self) -> None:
        self.faults: list[str | None] = []
        self.keys: list[str] = []
        self.written = 0
        """Bytes of endless answers."""
        self._model = StaticEmbedder()
        super().__init__()

    def vectors(self, texts: Sequence[str], dimensions: int) -> list[list[float]]:
        """The static model's numbers, then zeros up to `dimensions`; a constant for a text without meaning."""
        found = self._model.embed(texts, "document")
        numbers = [struct.unpack("<256f", vector) if vector else (0.0625,) * 256 for vector in found]
        return [[*values, *[0.0] * 768][:dimensions] for values in numbers]

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        if handler.path != self.path:
            self.send(handler, 404, b"404 page not found")
            return
        self.requests.append(request)
        self.keys.append(handler.headers.get(self.key_header, "").removeprefix("Bearer "))
        fault = self.faults.pop(0) if self.faults else None
        body = json.dumps(self.body(request, fault)).encode()
        if fault is None or fault in ("wrong dimensions", "nan", "infinity", "zeros", "one vector too few", "words"):
            self.send(handler, 200, body)
        elif fault == "slow":
            self.released.wait(SLOW_SECONDS)
            self.send(handler, 200, body)
        elif fault == "truncated":
            self.send(handler, 200, body[: len(body) // 2])
        elif fault == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[:100])
        elif fault in ("endless", "drips", "drips its head"):
            self._go_on(handler, fault)
        elif fault == "packed":
            bomb = gzip.compress(b" " * 20_000_000, 1)
            self.send(handler, 200, bomb, {"Content-Encoding": "gzip"})
        elif fault == "dies":
            handler.close_connection = True
            threading.Thread(target=self.close).start()
        else:
            self._refuse(handler, fault)

    def _go_on(self, handler: BaseHTTPRequestHandler, fault: str) -> None:
        """Write until the client hangs up: at full speed, or a byte now and then, in the body or in the headers."""
        with contextlib.suppress(OSError):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            handler.wfile.write(head + (b"X-Slow: " if fault == "drips its head" else b"\r\n{"))
            while not self.released.wait(0 if fault == "endless" else 0.05):
                handler.wfile.write(b" " * (100_000 if fault == "endless" else 1))
                handler.wfile.flush()
                self.written += 100_000 if fault == "endless" else 1
        handler.close_connection = True

    def body(self, request: dict[str, Any], fault: str | None) -> dict[str, Any]:
        raise NotImplementedError

    def _faulty_vectors(self, request: dict[str, Any], fault: str | None) -> list[list[float]]:
        vectors = self.vectors(request["input"], request.get("dimensions", 768))
        if fault == "wrong dimensions":
            return [vector[:100] for vector in vectors]
        if fault == "nan":
            vectors[0][3] = float("nan")
        if fault == "infinity":
            vectors[0][3] = float("inf")
        if fault == "zeros":
            vectors[-1] = [0.0] * len(vectors[-1])
        if fault == "words":
            vectors[-1] = ["oak"] * len(vectors[-1])  # pyright: ignore[reportArgumentType]
        return vectors[:-1] if fault == "one vector too few" else vectors

    def _refuse(self, handler: BaseHTTPRequestHandler, fault: str) -> None:
        """`429 2` is status 429 with `retry-after: 2`."""
        status, _, seconds = fault.partition(" ")
        headers = {"retry-after": seconds} if seconds else {}
        said = f"refused with {status}:\nwho is {self.keys[-1]}?"
        self.send(handler, int(status), json.dumps({"error": self._complaint(said)}).encode(), headers)

    def _complaint(self, said: str) -> Any:
        return said


class OllamaServer(Loopback):
    """`POST /api/embed`."""

    path = "/api/embed"

    def body(self, request: dict[str, Any], fault: str | None) -> dict[str, Any]:
        return {
            "model": request["model"],
            "embeddings": self._faulty_vectors(request, fault),
            "total_duration": 14_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": 8,
        }


class OpenAIServer(Loopback):
    """`POST /v1/embeddings`, numbers in base64 when the client asks for it, as the genuine one does."""

    path = "/v1/embeddings"

    def __init__(self) -> None:
        super().__init__()
        self.url += "/v1"

    def body(self, request: dict[str, Any], fault: str | None) -> dict[str, Any]:
        vectors = self._faulty_vectors(request, fault)
        as_base64 = request.get("encoding_format") == "base64" and fault != "words"
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": _base64(vector) if as_base64 else vector,
            }
            for at, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 8, "total_tokens": 8}
        return {"object": "list", "data": data, "model": request["model"], "usage": usage}

    def _complaint(self, said: str) -> Any:
        return {"message": said, "type": "error", "param": None, "code": None}


class VoyageServer(Loopback):
    """`POST /v1/embeddings` of Voyage."""

    path = "/v1/embeddings"

    def __init__(self) -> None:
        super().__init__()
        self.url += "/v1"

    def body(self, request: dict[str, Any], fault: str | None) -> dict[str, Any]:
        vectors = self._faulty_vectors(request, fault)
        as_base64 = request.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": at, "embedding": _base64(vector) if as_base64 else vector}
            for at, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": data, "model": request["model"], "usage": {"total_tokens": 8}}


class GeminiServer(Loopback):
    """`POST /v1/models/MODEL:batchEmbedContents` of the Gemini API; older clients call its version v1beta."""

    path = "/v1/models/gemini-embedding-001:batchEmbedContents"
    key_header = "x-goog-api-key"

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        handler.path = handler.path.replace("/v1beta/", "/v1/")
        super().answer(handler, request)

    def body(self, request: dict[str, Any], fault: str | None) -> dict[str, Any]:
        texts = [one["content"]["parts"][0]["text"] for one in request["requests"]]
        return {"embeddings": [{"values": vector} for vector in self._faulty_vectors({"input": texts}, fault)]}

    def _complaint(self, said: str) -> Any:
        return {"message": said, "status": "ERROR", "code": 400}


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
