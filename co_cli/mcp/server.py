"""Offer a toolbox and its vault as an MCP server: tools, notes as resources, and prompts.

The tools bring their own schemas and validation, so `MCPServer`'s methods are overridden instead of registering
functions. The core is synchronous: each request runs in a worker thread.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import Field

from co_cli.agent.facet_model import background
from co_cli.errors import KnowledgeError, UnknownRefError
from co_cli.logbook import in_log, logger
from co_cli.notes.note import decode, excerpt
from co_cli.notes.refs import lines_of, without_lines
from co_cli.notes.store import NoteStore
from co_cli.summaries import NoteSummary
from co_cli.tools import Toolbox
from co_cli.tools.fencing import GUIDE, clean, one_line, plain_ref
from co_cli.tools.guidance import instructions
from co_cli.tools.prompt_notes import render_notes
from co_cli.values import OWN_SOURCES
from co_cli.version import __version__

SCHEME = "co://"
TEMPLATES = {source: f"{SCHEME}{source}/{{+path}}" for source in OWN_SOURCES}
MARKDOWN = "text/markdown"
LISTED = 200
"""Notes in `resources/list`; every other note can be opened by its URI."""
THREADS = 8
NAMES = ("ref", "rest", "cut", "path", "trash", "files")
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

log = logger("mcp")

Answer = TypeVar("Answer")


class VaultServer(MCPServer[None]):
    """Serves one vault. `structured` adds output schemas and structured output to the text of each answer."""

    def __init__(self, toolbox: Toolbox, structured: bool = False) -> None:
        self.toolbox, self.kb, self._structured = toolbox, toolbox.kb, structured
        self.threads = anyio.CapacityLimiter(THREADS)
        names = {tool.name for tool in toolbox.tools}
        with _own_logging():
            super().__init__(
                "co-cli",
                title="co-cli",
                description="A memory and a library in Markdown files that you own, searched by words and meaning.",
                instructions=instructions(names, context=False),
                version=__version__,
                log_level="WARNING",
                subscriptions=False,
            )
        if "save_memory" in names:
            self.prompt(title="Remember this conversation")(self.remember_conversation)
        if "search_knowledge" in names:
            self.prompt(title="What do you know about ...")(self.what_do_you_know)
        self.prompt(title="Notes to keep in mind")(self.context)

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

    async def list_tools(self) -> list[types.Tool]:
        return [
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

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> types.CallToolResult:
        try:
            given = {key: decode_names(value) if key in GIVEN_NAMES else value for key, value in arguments.items()}
            text, data = await self.ask(self.toolbox.call, name, given if self._structured else arguments)
        except MCPError as error:
            raise ToolError(error.message) from None
        if name == "save_conversation":
            background.notice(self.kb.local, data["added"])
        structured = escape_texts(data) if self._structured else None
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)

    async def list_resources(self) -> list[types.Resource]:
        return [
            types.Resource(
                uri=uri_of(note.ref),
                name=one_line(note.ref),
                title=one_line(note.title),
                description=one_line(
                    f"{note.outdated or ''} {note.description} {' '.join(f'#{tag}' for tag in note.tags)}"
                ),
                mime_type=MARKDOWN,
            )
            for note in await self.ask(self._newest_notes)
        ]

    def _newest_notes(self) -> list[NoteSummary]:
        self.toolbox.freshener.ensure(self.toolbox.patience)
        return self.kb.notes(limit=LISTED)

    async def list_resource_templates(self) -> list[types.ResourceTemplate]:
        return [
            types.ResourceTemplate(name=source, title=source.capitalize(), uri_template=template, mime_type=MARKDOWN)
            for source, template in TEMPLATES.items()
        ]

    async def read_resource(
        self, uri: object, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        return [ReadResourceContents(clean(await self.ask(self._read, str(uri))), mime_type=MARKDOWN)]

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
            return "\n".join(excerpt(ref, note))
        store = kb.store if origin == kb.index.origin else NoteStore(origin.root)  # another tier's
        return decode(store.read(note.path))[0]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> types.GetPromptResult | types.InputRequiredResult:
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:  # the SDK's, for an unknown prompt or a missing argument
            raise MCPError(types.INVALID_PARAMS, one_line(str(error))) from None

    async def remember_conversation(
        self, focus: Annotated[str, Field(description="What matters most, such as `decisions` or a project.")] = ""
    ) -> str:
        """Save what will matter later from this conversation, one memory per thing."""
        return REMEMBER.format(focus=f" Above all: {one_line(focus, LONGEST)}." if focus else "")

    async def what_do_you_know(self, topic: Annotated[str, Field(description="A topic, a name or a question.")]) -> str:
        """Answer from the notes of the vault, with refs, and say so if they hold nothing."""
        topic = one_line(topic, LONGEST)
        found = await self.ask(self.toolbox.call, "search_knowledge", {"query": topic, "detail": "full"})
        return WHAT_DO_YOU_KNOW.format(topic=topic, guide=GUIDE, notes=found.text)

    async def context(self, task: Annotated[str, Field(description="What the conversation is about.")] = "") -> str:
        """The notes marked `loading: always`, and those that are clearly about a task."""
        return await self.ask(self._context, task)

    def _context(self, task: str) -> str:
        self.toolbox.freshener.ensure(self.toolbox.patience)
        notes = self.kb.always_notes().notes
        notes += self.kb.matching_notes(task, {note.ref for note in notes}).notes
        text, report = render_notes(notes, self.kb.settings.context_tokens)
        self.kb.injected(report["injected"])
        return text or "No note has to be kept in mind."


@contextmanager
def _own_logging() -> Generator[None]:
    """The SDK adds a Rich handler to a root logger that has none, and its tracebacks take 600 ms and 26 KB each."""
    root, none = logging.getLogger(), logging.NullHandler()
    root.addHandler(none)
    try:
        yield
    finally:
        root.removeHandler(none)


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
