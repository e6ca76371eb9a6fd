"""Start servers as a client does, and talk to them with the SDK's client from a synchronous test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from co_cli.searching.freshness import BEHIND, UNCHECKED
from tests.folder import Vault
from tests.server.browser import wait_for

CO = (sys.executable, "-m", "co_cli")
TOKEN = "a-token-that-only-tests-know"
HALF_A_CHARACTER = "the text has half of a character (a lone surrogate): send all of it, or leave it out"
LEGACY, MODERN = "legacy", "auto"
"""Client modes: with the handshake of the 2025 protocol, or the newest protocol without one."""


class Place:
    """A vault with its own data folder and home."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.vault = folder, Vault(folder / "vault")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CO_VAULT": str(self.vault.root),
            "CO_DATA_DIR": str(folder / "data"),
            "CO_KNOWLEDGE_READER": "off",
            "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static",
        }

    def start(self, *arguments: str, **variables: str) -> Process:
        return Process([*CO, "mcp", *arguments], {**self.environment, **variables}, self.folder)

    def run(self, *arguments: str) -> None:
        """Another command, to its end."""
        subprocess.run([*CO, *arguments], env=self.environment, cwd=self.folder, check=True, capture_output=True)


class Process(subprocess.Popen[str]):
    """A running `co mcp`; requests and answers are lines."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        super().__init__(command, env=environment, cwd=folder, text=True, encoding="utf-8", **pipes)
        self.number = 0

    def send(self, method: str, **params: Any) -> int:
        self.number += 1
        self.say({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def say(self, message: Any) -> None:
        assert self.stdin is not None
        self.stdin.write(message if isinstance(message, str) else json.dumps(message) + "\n")
        self.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.stdout is not None
        patience = threading.Timer(120, self.kill)  # a missing answer should fail, not hang
        patience.start()
        try:
            return json.loads(self.stdout.readline())
        finally:
            patience.cancel()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = self.send(method, **params)
        answer = self.hear()
        assert answer["id"] == number
        return answer

    def initialise(self) -> dict[str, Any]:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self.ask("initialize", **params)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def end(self, how: signal.Signals | None = None) -> tuple[int, str, str]:
        """Close its input or send a signal. Returns the exit code and the rest of its output."""
        if how is not None:
            self.send_signal(how)
            self.wait(timeout=120)  # its input stays open meanwhile
        out, err = self.communicate(timeout=120)
        return self.returncode, out, err


class Talk:
    """The SDK's client for synchronous tests: `talk.call_tool("save_memory", {...})`."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal, self.client = portal, client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)
        return lambda *arguments, **named: self.portal.call(partial(method, *arguments, **named))

    def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **named: Any) -> Any:
        """What a tool answers. A recall that lacks the newest files, as on a busy machine, is asked for again."""

        def answer() -> Any:
            found = self.portal.call(partial(self.client.call_tool, name, arguments, **named))
            late = any(text in str(found.content) for text in (BEHIND, UNCHECKED))
            return None if late and name.startswith(("recall_", "search_", "list_")) else found

        return wait_for(answer)

    def together(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """Call these tools at once; the answers keep the order."""
        import anyio

        async def all_of_them() -> list[Any]:
            answers: list[Any] = [None] * len(calls)

            async def one(place: int) -> None:
                answers[place] = await self.client.call_tool(*calls[place])

            async with anyio.create_task_group() as tasks:
                for place in range(len(calls)):
                    tasks.start_soon(one, place)
            return answers

        return self.portal.call(all_of_them)


@contextmanager
def connected(client: Callable[[], Client]) -> Generator[Talk]:
    with start_blocking_portal() as portal:
        made = portal.call(_awaited(client))
        with portal.wrap_async_context_manager(made):
            yield Talk(portal, made)


def _awaited(make: Callable[[], Client]) -> Callable[[], Any]:
    async def inside() -> Client:
        return make()

    return inside


def over_stdio(place: Place, *arguments: str, mode: str = LEGACY) -> AbstractContextManager[Talk]:
    parameters = StdioServerParameters(
        command=CO[0], args=[*CO[1:], "mcp", *arguments], env=place.environment, cwd=place.folder
    )
    errors = open(os.devnull, "w")  # noqa: SIM115 - the server keeps it
    return connected(lambda: Client(stdio_client(parameters, errlog=errors), mode=mode))


@contextmanager
def http_server(place: Place, *arguments: str, **variables: str) -> Generator[tuple[Process, str]]:
    """A server and its address."""
    process = place.start("--http", "--port", "0", *arguments, **{"CO_MCP_TOKEN": TOKEN, **variables})
    try:
        assert process.stderr is not None
        told = process.stderr.readline()
        assert told.startswith("co mcp: http://"), told + process.stderr.read()
        yield process, told.split()[2]
    finally:
        if process.poll() is None:
            process.end(signal.SIGTERM)


@contextmanager
def over_http(address: str, mode: str = MODERN, token: str = TOKEN) -> Generator[Talk]:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120, verify=False)
    with connected(lambda: Client(streamable_http_client(address, http_client=http), mode=mode)) as talk:
        yield talk
