"""`co web` and `co serve` as processes of their own, and what `co serve` logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.server.browser import PATIENCE, wait_for

QUIETLY = {"CO_KNOWLEDGE_READER": "off", "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static"}
"""Settings that tests have unless they say otherwise."""
RUN = "from co_cli.cli.app import run\nrun()\n"


class Serving:
    """A `co serve` process, and what it logged until now."""

    def __init__(self, environment: dict[str, str], before: str = "", arguments: Sequence[str] = ()) -> None:
        """`before`: what Python runs first."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", before + RUN, "serve", "--port", "0", *arguments],
            env={**os.environ, **QUIETLY, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._raw: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        wait_for(lambda: any("url" in line for line in self.lines) or self.process.poll() is not None)
        self.url: str = next(line["url"] for line in self.lines if "url" in line)

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._raw.append(line)
            self.lines.append(json.loads(line))

    @property
    def text(self) -> str:
        return "".join(self._raw)

    def client(self, secret: str = "", **headers: str) -> httpx2.Client:
        sent = {"Authorization": f"Bearer {secret}", **headers} if secret else headers
        return httpx2.Client(base_url=self.url, headers=sent, verify=False, timeout=PATIENCE)

    def line(self, **wanted: object) -> dict[str, Any]:
        """The only line with these values, as soon as it is there."""
        return wait_for(lambda: [one for one in self.lines if wanted.items() <= one.items()])[-1]

    def traces(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "trace" in line]


@contextmanager
def serving(environment: dict[str, str], before: str = "", arguments: Sequence[str] = ()) -> Iterator[Serving]:
    server = Serving(environment, before, arguments)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@contextmanager
def web_process(*options: str) -> Iterator[tuple[str, str]]:
    """A running `co web`: the address of its API, and the code to sign in with."""
    command = [sys.executable, "-m", "co_cli", "web", "--no-open", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        patience = threading.Timer(2 * PATIENCE, process.kill)  # a missing event should fail, not hang
        patience.start()
        try:
            assert process.stderr
            address = urlsplit(process.stderr.readline().split()[-1])
            yield f"http://{address.netloc}/api/v1", address.fragment.removeprefix("code=")
        finally:
            patience.cancel()
            process.kill()
