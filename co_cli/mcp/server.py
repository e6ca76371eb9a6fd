"""Offer a toolbox and its vault as an MCP server: tools, notes as resources, and prompts.

The tools bring their own schemas and validation, so the SDK's low-level server is used. The core is synchronous: each
request runs in a worker thread.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError

from co_cli.agent.facet_model import background
from co_cli.ground.errors import InvalidInputError, KnowledgeError, UnknownRefError
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import OWN_SOURCES
from co_cli.http.http_server import HALF
from co_cli.notes.dates import read_moment
from co_cli.notes.encoding import decode
from co_cli.notes.excerpts import excerpt
from co_cli.notes.logbook import in_log, logger
from co_cli.notes.refs import lines_of, without_lines
from co_cli.notes.store import NoteStore
from co_cli.tools.fencing import GUIDE, clean, one_line, plain_ref
from co_cli.tools.guidance import instructions, vault_name
from co_cli.tools.prompt_notes import render_notes
from co_cli.tools.tool import ToolResult
from co_cli.tools.toolbox import Toolbox
from co_cli.version import __version__

SCHEME = "co://"
TEMPLATES = {source: f"{SCHEME}{source}/{{+path}}" for source in OWN_SOURCES}
MARKDOWN = "text/markdown"
LISTED = 200
"""Notes in one page of `resources/list`."""
THREADS = 8
PROGRESS_SECONDS = 0.5
NAMES = ("ref", "rest", "cut", "path", "trash", "files", "valid_again")
"""Keys of structured output whose values open something: they are encoded, not escaped."""
GIVEN_NAMES = ("ref", "supersedes", "path", "target")
"""Arguments that take such values."""
ENCODED = re.compile(r"%[0-9A-F]{2}")
LONGEST = 500
"""Characters of a prompt's argument."""

REMEMBER = """\
Look back over this conversation and save what will matter in later ones with the tool save_memory.{focus}
- One memory per thing: a preference, a decision with its reason, a correction, a fact about people or work.
- Write full sentences that make sense without this conversation: names, not pronouns; dates, not "yesterday".
- No secrets, no small talk, no guesses, nothing that can be looked up.
- If you have recall_memory, check first whether it is already known; correct outdated notes with update_memory.
- Save only what I said or what we agreed on. Do not save text from files, web pages or tools.
Then list what you saved, one line each, with refs."""

WHAT_DO_YOU_KNOW = """\
What do you know about this: {topic}

Answer briefly from the notes below and nothing else, and name the ref behind each statement.
If they do not answer it, say that nothing is noted about it.
If something was cut or could not be searched, search again with search_knowledge or open a note with read_note.
{guide}

{notes}"""

PROMPTS = {
    "save_memory": types.Prompt(
        name="remember_conversation",
        title="Remember this conversation",
        description="Save what will matter later from this conversation, one memory per thing.",
        arguments=[
            types.PromptArgument(
                name="focus", description="What matters most, such as `decisions` or a project.", required=False
            )
        ],
    ),
    "search_knowledge": types.Prompt(
        name="what_do_you_know",
        title="What do you know about ...",
        description="Answer from the notes of the vault, with refs, and say so if they hold nothing.",
        arguments=[types.PromptArgument(name="topic", description="A topic, a name or a question.", required=True)],
    ),
    "": types.Prompt(
        name="context",
        title="Notes to keep in mind",
        description="The notes marked `loading: always`, and those that are clearly about a task.",
        arguments=[
            types.PromptArgument(name="task", description="What the conversation is about.", required=False),
        ],
    ),
}
"""Each prompt with the tool that it needs."""

log = logger("mcp")

Answer = TypeVar("Answer")
Request = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None


class VaultServer(Server[Any]):
    """Serves one vault. `structured` adds output schemas and structured output to the text of each answer."""

    def __init__(self, toolbox: Toolbox, structured: bool = False) -> None:
        self.toolbox, self.kb, self._structured = toolbox, toolbox.kb, structured
        self.threads = anyio.CapacityLimiter(THREADS)
        names = {tool.name for tool in toolbox.tools}
        self._prompts = {prompt.name: prompt for tool, prompt in PROMPTS.items() if tool in ("", *names)}
        super().__init__(
            "co-cli",
            title=f"co-cli: {vault_name(self.kb)}",
            description="A memory and a library in Markdown files that you own, searched by words and meaning.",
            instructions=instructions(names, False, toolbox.vault),
            version=__version__,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )
        self.middleware.append(refuse_halves)

    async def ask(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Run a function in a thread, to its end even if the client cancels. Errors are one line."""
        try:
            return await anyio.to_thread.run_sync(function, *arguments, limiter=self.threads)
        except KnowledgeError as error:
            code = types.INVALID_PARAMS if error.exit_code == 2 else types.INTERNAL_ERROR
            raise MCPError(code, one_line(str(error))) from None
        except Exception as error:
            log.exception("%s failed", function.__name__)
            reason = one_line(f"{type(error).__name__}: {error}")[:300]
            raise MCPError(types.INTERNAL_ERROR, f"unexpected {reason}{in_log()}") from None

    async def list_tools(self, request: Request, page: Page) -> types.ListToolsResult:
        only_page(page)
        listed = [
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.parameters,
                output_schema=tool.returns if self._structured else None,
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.read_only,
                    destructive_hint=tool.destructive,
                    idempotent_hint=tool.idempotent,
                    open_world_hint=False,
                ),
            )
            for tool in self.toolbox.tools
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(self, request: Request, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        given = {key: decode_names(value) if key in GIVEN_NAMES else value for key, value in arguments.items()}
        answer: ToolResult[dict[str, Any]] | MCPError = MCPError(types.INTERNAL_ERROR, "the call was cancelled")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_progress, request, params.name)
            try:
                answer = await self.ask(self.toolbox.call, params.name, given if self._structured else arguments)
            except MCPError as error:  # for the model to read and correct
                answer = error
            tasks.cancel_scope.cancel()
        if isinstance(answer, MCPError):
            return types.CallToolResult(content=[types.TextContent(text=answer.message)], is_error=True)
        text, data = answer
        if params.name == "save_conversation":
            background.notice(self.kb.local, data["added"])
        structured = escape_texts(data) if self._structured else None
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)

    async def _tell_progress(self, request: Request, tool: str) -> None:
        """Say now and then that a call goes on, to a client that asked for it: its patience may be short."""
        began = anyio.current_time()
        while True:
            await anyio.sleep(PROGRESS_SECONDS)
            seconds = anyio.current_time() - began
            await request.session.report_progress(seconds, message=f"{tool}: {seconds:.1f} s so far")

    async def list_resources(self, request: Request, page: Page) -> types.ListResourcesResult:
        notes, cursor = await self.ask(self._page_of_notes, page.cursor if page else None)
        listed = [
            types.Resource(
                uri=uri_of(note.ref),
                name=one_line(note.ref),
                title=one_line(note.title),
                description=one_line(
                    f"{note.outdated or ''} {note.description} {' '.join(f'#{tag}' for tag in note.tags)}"
                ),
                mime_type=MARKDOWN,
            )
            for note in notes
        ]
        return types.ListResourcesResult(resources=listed, next_cursor=cursor)

    def _page_of_notes(self, cursor: str | None) -> tuple[list[NoteSummary], str | None]:
        """The notes after a cursor, newest first, and the cursor of the next page."""
        self.toolbox.freshener.ensure(self.toolbox.patience)
        if cursor is None:
            notes = self.kb.notes(limit=LISTED + 1)
        else:
            created, last = read_cursor(cursor)
            notes = self.kb.notes(until=created + 1)  # its fraction of a second is not in the cursor
            passed = next((place + 1 for place, note in enumerate(notes) if note.ref == last), 0)
            notes = notes[passed:]  # if the last note is gone, some may come twice: none is left out
        page = notes[:LISTED]
        return page, write_cursor(page[-1]) if len(notes) > LISTED else None

    async def list_templates(self, request: Request, page: Page) -> types.ListResourceTemplatesResult:
        only_page(page)
        listed = [
            types.ResourceTemplate(name=source, title=source.capitalize(), uri_template=template, mime_type=MARKDOWN)
            for source, template in TEMPLATES.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, request: Request, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text = clean(await self.ask(self._read, str(params.uri)))
        content = types.TextResourceContents(uri=params.uri, text=text, mime_type=MARKDOWN)
        return types.ReadResourceResult(contents=[content])

    def _read(self, uri: str) -> str:
        """The file behind a URI as text; only some lines of it if the URI ends in `#L10-24`."""
        ref = plain_ref(uri)
        if not uri.startswith(SCHEME):
            raise UnknownRefError(uri, [])
        self.toolbox.freshener.ensure(self.toolbox.patience)
        kb = self.kb.local
        origin, note = kb.lookup().open(ref)
        if note.source not in OWN_SOURCES or note.ref not in (ref, without_lines(ref)):
            raise UnknownRefError(ref, [note.ref])  # a URI is exact, and names no skill and no file of a folder
        if lines_of(ref):
            return "\n".join(excerpt(ref, note).lines)
        store = kb.store if origin == kb.index.origin else NoteStore(origin.root)  # another tier's
        return decode(store.read(note.path))[0]

    async def list_prompts(self, request: Request, page: Page) -> types.ListPromptsResult:
        only_page(page)
        return types.ListPromptsResult(prompts=[*self._prompts.values()])

    async def get_prompt(self, request: Request, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = await self.ask(self.write_prompt, params.name, params.arguments or {})
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=self._prompts[params.name].description, messages=[message])

    def write_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        if name not in self._prompts:
            raise InvalidInputError(f"there is no prompt {name[:LONGEST]!r} here; there are {', '.join(self._prompts)}")
        for argument in self._prompts[name].arguments or ():
            if argument.required and not arguments.get(argument.name, "").strip():
                raise InvalidInputError(f"{name} needs {argument.name}")
        match name:
            case "remember_conversation":
                focus = one_line(arguments.get("focus", ""), LONGEST)
                return REMEMBER.format(focus=f" Above all: {focus}." if focus else "")
            case "what_do_you_know":
                topic = one_line(arguments["topic"], LONGEST)
                found = self.toolbox.call("search_knowledge", {"query": topic, "detail": "full"})
                return WHAT_DO_YOU_KNOW.format(topic=topic, guide=GUIDE, notes=found.text)
            case _:
                return self.context(arguments.get("task", ""))

    def context(self, task: str) -> str:
        """The notes that every conversation is given, and those about a task."""
        self.toolbox.freshener.ensure(self.toolbox.patience)
        notes = self.kb.always_notes().notes
        notes += self.kb.matching_notes(task, {note.ref for note in notes}).notes
        text, report = render_notes(notes, self.kb.settings.context_tokens)
        self.kb.injected(report["injected"], prompt=task, given=text)
        return text or "No note has to be kept in mind."


async def refuse_halves(ctx: Request, call_next: CallNext) -> HandlerResult:
    """Refuse half a character instead of saving something else for it. A notification has nobody to be told."""
    if ctx.request_id is not None and HALF in json.dumps(ctx.params, ensure_ascii=False, default=str):
        half = "half of a character (a lone surrogate): send all of it, or leave it out"
        raise MCPError(types.INVALID_PARAMS, f"{ctx.method}: the text has {half}")
    return await call_next(ctx)


def only_page(page: Page) -> None:
    """Refuse a cursor of a list that comes whole."""
    if page and page.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "this list has one page: leave out the cursor")


def write_cursor(note: NoteSummary) -> str:
    """The place after a note. It stays where it is while notes are added."""
    return urlsafe_b64encode(f"{note.created} {note.ref}".encode()).decode()


def read_cursor(cursor: str) -> tuple[float, str]:
    """The moment and the ref in a cursor."""
    try:
        created, _, ref = b64decode(cursor, altchars=b"-_", validate=True).decode().partition(" ")
    except ValueError:
        created, ref = "", ""
    moment = read_moment(created)
    if moment is None or not ref:
        raise InvalidInputError("no list of resources gave this cursor: leave it out to start with the first page")
    return moment, ref


def uri_of(ref: str) -> str:
    """`article:guides/deploy` is `co://article/guides/deploy`."""
    source, _, name = ref.partition(":")
    return f"{SCHEME}{source}/{quote(name, safe='/')}"


def escape_texts(value: Any, key: str = "") -> Any:
    """Structured output may be all that a model sees, so stored text in it must not pose as structure."""
    if isinstance(value, dict):  # its keys may be paths, or fields of somebody's frontmatter
        return {encode_name(str(name)): escape_texts(item, str(name)) for name, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [escape_texts(item, key) for item in value]  # type: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    return encode_name(value) if key in NAMES else clean(value)


def encode_name(name: str) -> str:
    """A ref or a path, percent-encoded if it has anything that could pose as structure, or be hidden."""
    harmless = name.isprintable() and "<" not in name and clean(name) == name and not ENCODED.search(name)
    return name if harmless else quote(name, safe="/:#")


def decode_names(given: Any) -> Any:
    """What `encode_name` was given: a path as it is, and a ref as the address that every tool understands."""
    if isinstance(given, list):
        return [decode_names(member) for member in given]  # type: ignore[reportUnknownVariableType]
    if not isinstance(given, str) or encode_name(unquote(given)) != given or not ENCODED.search(given):
        return given
    source, _, name = given.partition(":")
    return f"{SCHEME}{source}/{name}" if source.isalpha() and name else unquote(given)
