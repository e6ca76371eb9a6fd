"""A web server on loopback that answers byte for byte what a test wants, and listeners that count who knocks."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Wire = socket.socket


class Asked(NamedTuple):
    """One request as it came."""

    target: str
    headers: dict[str, str]


Answer = bytes | Callable[[Wire, Asked], None]


class Listener:
    """Takes connections on a loopback address and counts them; `answer` is for those who have something to say."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.accepted = 0
        self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((address, port))
        self._socket.listen(16)
        self.address, self.port = address, self._socket.getsockname()[1]
        self.closing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def answer(self, wire: Wire) -> None:
        """A plain listener only hangs up."""

    def close(self) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):  # wakes the one who accepts
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                wire, _ = self._socket.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire: Wire) -> None:
        with wire, contextlib.suppress(OSError):
            self.answer(wire)


class WebServer(Listener):
    """`routes` says what each path answers: bytes as they go over the wire, or a function that writes them."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.routes: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        super().__init__(address, port)
        self.url = f"http://{self.address}:{self.port}"

    def answer(self, wire: Wire) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = wire.recv(65_536)
            if not data:
                return
            head += data
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in lines if line)
        asked = Asked(first.split(" ")[1], {name.lower(): value for name, _, value in pairs})
        self.asked.append(asked)
        answer = self.routes.get(asked.target, response(b"not here", status="404 Not Found"))
        if isinstance(answer, bytes):
            wire.sendall(answer)
        else:
            answer(wire, asked)

    def page(self, path: str, body: str | bytes, **headers: str) -> str:
        """Serve a page, and say where."""
        self.routes[path] = response(body.encode() if isinstance(body, str) else body, **headers)
        return self.url + path

    def redirect(self, path: str, target: str, status: str = "302 Found") -> str:
        self.routes[path] = response(b"", status=status, location=target)
        return self.url + path


def response(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """An answer as it goes over the wire; `content_type="..."` becomes a header, an empty one is left out."""
    named = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body))}
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def article(title: str, *paragraphs: str) -> str:
    """A page with a title and some text."""
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    head = f"<!doctype html><html><head><title>{title}</title></head>"
    return f"{head}<body><main><h1>{title}</h1>{body}</main></body></html>"


def endless(start: bytes, piece: bytes, pause: float = 0.0) -> Callable[[Wire, Asked], None]:
    """Answers with `start`, then with `piece` again and again, until the other side has had enough."""

    def answer(wire: Wire, _: Asked) -> None:
        wire.sendall(start)
        for _ in pieces(60.0):
            wire.sendall(piece)
            if pause:
                time.sleep(pause)

    return answer


def pieces(seconds: float) -> Iterator[None]:
    """For a minute at most: a test that goes wrong must end as well."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


class Names:
    """A resolver: names to addresses, each question counted. Several answers are given in turn, the last for good."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(turns) for name, turns in answers.items()}
        self.questions: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.questions.append(host)
        turns = self.answers.get(host)
        if not turns:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return turns.pop(0) if len(turns) > 1 else turns[0]
