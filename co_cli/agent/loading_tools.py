"""MCP servers into tools that a model may call: only those that read, or that the person listed; never more.

A server that cannot be started or reached is told about, and the others go on without it. A call that fails, a server
that crashes in the middle and an answer that never comes are texts that the model can act on.
"""

from __future__ import annotations

import asyncio
import logging
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, TextIO, cast

import anyio
import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult
from mcp_types import Tool as McpTool

from co_cli.agent.loading_servers import McpServer

logging.getLogger("mcp").addHandler(logging.NullHandler())
"""A server that prints a greeting on standard output is no reason to show a person a traceback."""
START_SECONDS = 30.0
"""A server that is a package may be downloaded by its first start."""
CALL_SECONDS = 30.0
END_SECONDS = 8.0
"""More than the library needs to end a process that does not want to; what takes longer is a connection."""
MOST_PAGES = 20
"""Of a listing of tools: a server that never ends it is not waited for."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_500
LONGEST_WORDS = 200


class OfferedTool(NamedTuple):
    """One tool of one server, as it is offered to a model."""

    name: str
    """As the model calls it: `wiki__read_page`."""
    origin: str
    """As people and notes say it: `wiki/read_page`."""
    description: str
    parameters: dict[str, Any]
    tool: str
    link: _Link

    async def call(self, arguments: Mapping[str, Any]) -> CallToolResult:
        """Raises ToolTrouble, which says what happened in words."""
        try:
            with anyio.fail_after(CALL_SECONDS):
                return await self.link.connection.call_tool(self.tool, dict(arguments))
        except TimeoutError:
            self.link.doubtful = True
            raise ToolTrouble(f"{self.origin} did not answer within {CALL_SECONDS:g} seconds") from None
        except Exception as error:  # a server may answer with anything, or die
            self.link.doubtful = not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED
            raise ToolTrouble(f"{self.origin} failed: {in_words(error)}") from error
        except BaseException:  # the time of the whole is over, or the person has had enough
            self.link.doubtful = True
            raise


class ToolTrouble(Exception):
    """A call that came to nothing."""


class Offer(NamedTuple):
    """What can be used, and what could not be made to work."""

    tools: tuple[OfferedTool, ...]
    troubles: tuple[str, ...]


class Connections:
    """The servers, started together by the first need and kept until `close`. Belongs to one event loop."""

    def __init__(self, servers: Sequence[McpServer], most_bytes: int) -> None:
        self._servers, self._most_bytes = servers, most_bytes
        self._links: list[_Link] = []

    async def offer(self, patience: float = START_SECONDS) -> Offer:
        """What can be used now. A server that died since is started again; one that never came is not."""
        self._links = self._links or [_Link(server, self._most_bytes) for server in self._servers]
        for place, link in enumerate(self._links):
            if link.doubtful:
                await link.end()
                self._links[place] = link = _Link(link.server, link.most_bytes)
            link.start()
        with anyio.move_on_after(patience):
            for link in self._links:
                await link.ready.wait()
        troubles = [link.trouble(patience) for link in self._links]
        tools = [tool for link in self._links for tool in link.tools]
        return Offer(_with_own_names(tools), tuple(filter(None, troubles)))

    async def close(self) -> None:
        for link in self._links:
            link.stop.set()
        for link in self._links:
            await link.end()


class _Link:
    """One server in a task of its own, so that what happens to it happens to nobody else."""

    def __init__(self, server: McpServer, most_bytes: int) -> None:
        self.server, self.most_bytes = server, most_bytes
        self.ready, self.stop = anyio.Event(), anyio.Event()
        self.tools: list[OfferedTool] = []
        self.doubtful = False
        """A call went wrong in a way that a working server would have told."""
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._scope = anyio.CancelScope()
        self._missing: list[str] = []
        self._error: Exception | None = None
        self._late = self._said = ""

    @property
    def connection(self) -> Client:
        if self._client is None:
            raise ConnectionError(f"the MCP server {self.server.name} is gone")
        return self._client

    def start(self) -> None:
        self._task = self._task or asyncio.create_task(self._run(), name=f"co-mcp-{self.server.name}")

    async def end(self) -> None:
        self.stop.set()
        if self._task and not (await asyncio.wait({self._task}, timeout=END_SECONDS))[0]:
            self._scope.cancel()
            await self._task

    async def _run(self) -> None:
        """From its start to its end. A failure is kept, not raised."""
        with self._scope, tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                async with AsyncExitStack() as stack:
                    client = await stack.enter_async_context(await self._made(errors, stack))
                    allowed, self._missing = _allowed(self.server, await _listed(client))
                    self.tools = [_offered(self, tool) for tool in allowed]
                    self._client = client
                    self.ready.set()
                    await self.stop.wait()
            except Exception as error:  # whatever keeps one server from working, the others may be enough
                self._error = error
            finally:
                self._client = None
                errors.seek(0)
                self._said = next((line for line in reversed(errors.read().splitlines()) if line.strip()), "")
                self.ready.set()

    def trouble(self, patience: float) -> str:
        """What keeps this server from being used, in words. One that is not ready by now is given up."""
        who = f"the MCP server {self.server.name}"
        said = f" (it said: {_short(self._said)})" if self._said else ""
        if not self.ready.is_set():
            self._scope.cancel()
            self._late = f"{who} did not answer within {patience:g} seconds"
        if self._late:
            return self._late
        if isinstance(self._error, FileNotFoundError) and self.server.command:
            return f"{who} cannot be started: there is no command {self.server.command}"
        if self._error:
            return f"{who} cannot be {'reached' if self.server.url else 'started'}: {in_words(self._error)}{said}"
        if self._missing:
            return f"{who} has no tool {', '.join(self._missing)}, which its list of tools names"
        if not self.tools:
            return f'{who} has no tool that says that it only reads: list those that you trust as "tools"'
        return ""

    async def _made(self, errors: TextIO, stack: AsyncExitStack) -> Client:
        server = self.server
        if server.url:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=dict(server.headers), timeout=CALL_SECONDS)
            )
            most = 4 * self.most_bytes + 100_000  # JSON escapes, and a document may be there twice: as text and as data
            return Client(streamable_http_client(server.url, http_client=http, max_sse_event_size=most))
        command = StdioServerParameters(
            command=server.command,
            args=list(server.args),
            env=dict(server.env),
            cwd=server.cwd,
            encoding_error_handler="replace",  # one wrong byte must not end the conversation
        )
        return Client(stdio_client(command, errlog=errors))


async def _listed(client: Client) -> list[McpTool]:
    found: list[McpTool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _allowed(server: McpServer, listed: Sequence[McpTool]) -> tuple[list[McpTool], list[str]]:
    """Those that the person listed, whatever they do; else those that say that they only read."""
    if server.tools is None:
        return [tool for tool in listed if tool.annotations and tool.annotations.read_only_hint], []
    names = {tool.name for tool in listed}
    missing = [name for name in server.tools if name not in names]
    return [tool for tool in listed if tool.name in server.tools], missing


def _offered(link: _Link, tool: McpTool) -> OfferedTool:
    server = link.server
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server.name}__{tool.name}")[:LONGEST_NAME]
    description = (tool.description or tool.title or "")[:LONGEST_DESCRIPTION]
    origin = f"{server.name}/{tool.name}"
    return OfferedTool(name, origin, description, tool.input_schema, tool.name, link)


def _with_own_names(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """Names that became alike when they were shortened get a number."""
    taken: set[str] = set()
    named: list[OfferedTool] = []
    for tool in tools:
        name, number = tool.name, 1
        while name in taken:
            number += 1
            name = f"{tool.name[: LONGEST_NAME - 4]}_{number}"
        taken.add(name)
        named.append(tool._replace(name=name))
    return tuple(named)


def in_words(error: BaseException) -> str:
    """The innermost reason, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = _short(str(error))
    if isinstance(error, MCPError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_WORDS else f"{line[: LONGEST_WORDS - 1].rstrip()}…"
