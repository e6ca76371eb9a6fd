"""A toolbox and its vault, as a server of the MCP SDK: tools, resources, prompts, completion.

The low-level server, because our tools bring their own schemas: the high-level one derives them from signatures and
rejects the arguments that `Toolbox.call` forgives. The core is synchronous, so every request runs in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from co_cli import __version__
from co_cli.errors import KnowledgeError, NoteMissingError, UnknownRefError
from co_cli.logbook import in_log, logger
from co_cli.mcp.prompts import instructions, offered, write_prompt
from co_cli.mcp.resources import (
    MOST_VALUES,
    complete_name,
    complete_topic,
    describe,
    list_page,
    open_resource,
    uri_of,
)
from co_cli.tools import Tool, Toolbox
from co_cli.tools.fencing import clean, one_line

NAME = "co-cli"
TEMPLATES = {"memory": "co://memory/{+slug}", "article": "co://article/{+path}"}
MARKDOWN = "text/markdown"
THREADS = 8
LONGEST_ERROR = 1_000
EXACT = ("ref", "rest", "cut", "path", "trash")
"""Keys of an answer whose values open something and so must stay as they are."""

log = logger("mcp")

Context = ServerRequestContext[Any]
Answer = TypeVar("Answer")


class McpDoor:
    """What a client can ask for. `server` answers; `busy` counts the requests that are still being answered."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox, self.kb = toolbox, toolbox.kb
        self.busy = 0
        self._tools = {tool.name: tool for tool in toolbox.tools}
        self._threads: anyio.CapacityLimiter | None = None
        self.server: Server[Any] = Server(
            NAME,
            version=__version__,
            title="co-cli",
            description="A memory and a library in Markdown files that you own, searched by words and meaning.",
            instructions=instructions(toolbox),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )

    # -- tools ------------------------------------------------------------------------------------------------------

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        try:
            self.toolbox.freshener.ensure(0.0)  # begins a sync and does not wait: the first call finds it done
        except Exception:
            log.exception("the sync failed")  # the tools are there all the same; one that needs the index will say so
        return types.ListToolsResult(tools=[described(tool) for tool in self._tools.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        name = params.name
        if name not in self._tools:
            raise MCPError(types.INVALID_PARAMS, _unknown("tool", name, list(self._tools)))
        try:
            result = await self._run(self.toolbox.call, name, params.arguments)
        except KnowledgeError as error:
            return failed(str(error))
        except Exception as error:
            log.exception("%s failed", name)
            return failed(f"{name} failed unexpectedly ({_line(error)}){in_log()}; `co doctor` looks for what is wrong")
        return types.CallToolResult(
            content=[types.TextContent(text=result.text)], structured_content=harmless(result.data)
        )

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        tool = self._tools.get(name)
        return tool.parameters if tool else None

    # -- resources --------------------------------------------------------------------------------------------------

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        page = await self._ask(list_page, self.kb, self.toolbox.freshener, params.cursor if params else None)
        resources = [
            types.Resource(
                uri=uri_of(note.ref),
                name=one_line(note.ref),
                title=one_line(note.title),
                description=one_line(describe(note)),
                mime_type=MARKDOWN,
            )
            for note in page.notes
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=page.cursor)

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        told = {"memory": "A memory: one thing worth remembering.", "article": "An article: a longer document."}
        templates = [
            types.ResourceTemplate(
                name=source,
                title=source.capitalize(),
                uri_template=template,
                description=told[source],
                mime_type=MARKDOWN,
            )
            for source, template in TEMPLATES.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            opened = await self._ask(open_resource, self.kb, self.toolbox.freshener, uri)
        except NoteMissingError as error:
            raise MCPError(types.INTERNAL_ERROR, clean(str(error))) from None
        except UnknownRefError as error:
            closest = [uri_of(ref) for ref in error.closest]
            hint = f"did you mean {', '.join(closest)}?" if closest else "resources/list shows what there is"
            data = {"uri": one_line(uri), "closest": closest}
            raise MCPError(types.INVALID_PARAMS, f"there is no note {one_line(uri)}: {hint}", data) from None
        meta = {"co-cli/ref": opened.note.ref, "co-cli/provenance": one_line(opened.note.provenance)}
        contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=clean(opened.text), _meta=meta)
        return types.ReadResourceResult(contents=[contents])

    # -- prompts ----------------------------------------------------------------------------------------------------

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompts = [
            types.Prompt(
                name=prompt.name,
                title=prompt.title,
                description=prompt.description,
                arguments=[types.PromptArgument(**argument._asdict()) for argument in prompt.arguments],
            )
            for prompt in offered(self.toolbox)
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = await self._ask(write_prompt, self.toolbox, params.name, params.arguments)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        description = next(prompt.description for prompt in offered(self.toolbox) if prompt.name == params.name)
        return types.GetPromptResult(description=description, messages=[message])

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        typed, values = params.argument.value, list[str]()
        if isinstance(params.ref, types.ResourceTemplateReference):
            source = next((source for source, template in TEMPLATES.items() if template == params.ref.uri), None)
            if source:
                values = await self._ask(complete_name, self.kb, source, typed)
        elif params.argument.name == "topic":
            values = await self._ask(complete_topic, self.kb, typed)
        shown = values[:MOST_VALUES]
        return types.CompleteResult(
            completion=types.Completion(values=shown, total=len(values), has_more=len(values) > len(shown))
        )

    # -- threads ----------------------------------------------------------------------------------------------------

    async def _ask(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Run it in a thread; what goes wrong is an error of the protocol, in one line. An unknown ref stays one."""
        try:
            return await self._run(function, *arguments)
        except UnknownRefError:
            raise
        except KnowledgeError as error:
            code = types.INVALID_PARAMS if error.exit_code == 2 else types.INTERNAL_ERROR
            raise MCPError(code, one_line(str(error))) from None
        except Exception as error:
            log.exception("%s failed", function.__name__)
            raise MCPError(types.INTERNAL_ERROR, f"failed unexpectedly ({_line(error)}){in_log()}") from None

    async def _run(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Run it in a thread that nobody abandons: what has begun to be written is written to its end."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        with self._answering():
            return await anyio.to_thread.run_sync(function, *arguments, limiter=self._threads)

    @contextmanager
    def _answering(self) -> Generator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1

    @contextmanager
    def watching(self) -> Generator[None]:
        """Keep the index up to the files while somebody is served."""
        self.toolbox.freshener.watch()
        try:
            yield
        finally:
            self.toolbox.freshener.close()

    async def drained(self, seconds: float) -> bool:
        """Wait until nothing is being answered, no longer than this."""
        with anyio.move_on_after(seconds):
            while self.busy:
                await anyio.sleep(0.005)
        return not self.busy


def described(tool: Tool) -> types.Tool:
    """A tool as the protocol describes it. Nothing here reaches beyond the vault: the world is closed."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.returns,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def failed(message: str) -> types.CallToolResult:
    line = one_line(message)
    text = line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR // 2]} ... {line[-LONGEST_ERROR // 2 :]}"
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def harmless(value: Any, key: str = "") -> Any:
    """Structured output is shown to models too, by some clients instead of the text: stored text stays data there."""
    if isinstance(value, dict):
        return {name: harmless(item, str(name)) for name, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [harmless(item, key) for item in value]  # type: ignore[reportUnknownVariableType]
    return clean(value) if isinstance(value, str) and key not in EXACT else value


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
    return f"there is no {what} {one_line(name)!r} here: {hint}"


def _line(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:300]
