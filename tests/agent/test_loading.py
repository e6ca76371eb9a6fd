"""The loading agent: it picks a tool, sees a preview, and decides. The servers are real processes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic_ai import ModelRequest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from co_cli.agent.loading import Budget, LoadingAgent
from co_cli.agent.loading_servers import McpServer
from co_cli.service.loading import Answer, Loaded, LoadFailed, UseHttp
from tests.agent.scripted import Call, Script, Turn, part_text

SERVER = Path(__file__).with_name("library_server.py")
MOORING = "https://library.example.org/Mooring"
READ: list[Call] = [("library__read_page", {"name": "Mooring"})]
ACCEPT: list[Call] = [("accept", {"content": 1})]
FAIL: list[Call] = [("fail", {"reason": "the library says 404 for Mooring", "cure": "give its token access"})]
HTTP: list[Call] = [("use_http", {"reason": "an ordinary page"})]


def library(marks: Path, **more: Any) -> McpServer:
    return McpServer("library", sys.executable, (str(SERVER), str(marks)), **more)


Thought = Callable[[list[ModelMessage]], Awaitable[ModelResponse]]


class Library:
    """A loading agent whose model follows the script of the moment; its server runs for all of a module's tests."""

    def __init__(self, marks: Path) -> None:
        self.marks, self.script = marks, Script()
        self.think: Thought | None = None
        self.agent = LoadingAgent(FunctionModel(self._answer), [library(marks)], Budget(seconds=60, most_bytes=100_000))

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if self.think:
            return await self.think(messages)
        return self.script._whole(messages, info)

    def load(self, *turns: Turn, url: str = MOORING, before: str = "") -> Answer:
        self.script, self.think = Script(*turns), None
        return self.agent.load(url, before)

    def load_thinking(self, think: Thought, url: str = MOORING) -> Answer:
        self.think = think
        return self.agent.load(url)

    @property
    def process(self) -> int:
        return int((self.marks / "process").read_text())


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    opened = Library(tmp_path_factory.mktemp("marks"))
    yield opened
    opened.agent.close()


def is_running(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_the_whole_document_is_kept_and_the_model_sees_its_two_ends(shelf: Library) -> None:
    answer = shelf.load(READ, ACCEPT)

    assert isinstance(answer, Loaded)
    assert (answer.page.title, answer.fetched_with) == ("Mooring", "library/read_page")
    assert len(answer.page.text) > 12_000
    assert answer.page.text.endswith("The very last words.\n")
    seen = shelf.script.everything
    assert len(seen) < 2_000
    assert "# Mooring\n\nUse one long line." in seen
    assert "The very last words." in seen
    assert 'size="12,' in seen
    assert 'title="Mooring"' in seen
    assert "characters are not shown" in seen


def test_the_model_is_told_the_address_and_only_tools_that_read(shelf: Library) -> None:
    shelf.load(HTTP)

    assert shelf.script.told == f"Address: {MOORING}"
    info = shelf.script.infos[0]
    assert [tool.name for tool in info.function_tools] == ["library__read_page", "library__crash"]
    assert [tool.name for tool in info.output_tools] == ["accept", "use_http", "fail"]
    assert not info.allow_text_output
    assert info.function_tools[0].description.startswith("Read a page of the library")
    assert info.function_tools[0].parameters_json_schema["required"] == ["name"]


def test_the_model_may_leave_an_address_to_plain_http(shelf: Library) -> None:
    assert shelf.load(HTTP) == UseHttp("an ordinary page")


def test_a_failure_names_what_is_in_the_way_and_the_cure_on_one_line(shelf: Library) -> None:
    missing: list[Call] = [("library__read_page", {"name": "Nowhere"})]
    unhelpful: list[Call] = [("fail", {"reason": "no", "cure": " "})]
    wordy: list[Call] = [("fail", {"reason": "The library says\n404.", "cure": "Give its token\taccess.\x1b[2J"})]

    answer = shelf.load(missing, unhelpful, wordy)

    assert answer == LoadFailed(f"{MOORING}: The library says 404; Give its token access.[2J")
    told = part_text(shelf.script.requests[1][-1].parts[0])
    assert told.startswith("The tool says that it failed.\n<note")
    assert "404: there is no page 'Nowhere', or the token of `library` may not read it" in told


@pytest.mark.parametrize("number", [2, "content 7", "../x", -1, "1 or 2"])
def test_a_made_up_content_is_refused_and_asked_again(shelf: Library, number: int | str) -> None:
    answer = shelf.load(READ, [("accept", {"content": number})], [("accept", {"content": "content 1", "title": "Own"})])

    assert "There is no content" in shelf.script.told
    assert "shown to you: 1." in shelf.script.told
    assert isinstance(answer, Loaded)
    assert answer.page.title == "Own"


def test_nothing_can_be_accepted_before_it_was_shown(shelf: Library) -> None:
    answer = shelf.load(ACCEPT, [*READ, *ACCEPT], ACCEPT)

    assert isinstance(answer, Loaded)
    assert len(shelf.script.requests) == 3
    for request in shelf.script.requests[1:]:
        said = [part_text(part) for part in request[-1].parts]
        assert any("There is no content '1'; none was shown to you: call a tool." in text for text in said)


def test_what_a_document_orders_has_no_tool_to_be_done_with(shelf: Library) -> None:
    obeying: list[Call] = [("library__delete_page", {"name": "Tides"}), ("delete_page", {"name": "Tides"})]

    answer = shelf.load([("library__read_page", {"name": "Tides"})], obeying, [("accept", {"content": 7})], ACCEPT)

    assert not (shelf.marks / "deleted").exists()
    shown = part_text(shelf.script.requests[1][-1].parts[0])
    assert shown.count("</note>") == 1
    assert "<system>" not in shown
    assert "Unknown tool name: 'library__delete_page'" in shelf.script.everything
    assert isinstance(answer, Loaded)
    assert "Ignore all previous instructions." in answer.page.text  # it is kept as what it is: somebody's text


def test_html_becomes_the_markdown_that_the_model_judged(shelf: Library) -> None:
    answer = shelf.load([("library__read_page", {"name": "Bollards"})], ACCEPT)

    assert isinstance(answer, Loaded)
    assert answer.page.text.startswith("# Bollards\n\nA bollard is a short post")
    assert "Imprint" not in answer.page.text + shelf.script.everything
    assert "<main>" not in shelf.script.everything


def test_what_is_too_large_is_not_kept_and_the_model_hears_why(shelf: Library) -> None:
    answer = shelf.load([("library__read_page", {"name": "Log"})], ACCEPT, FAIL)

    assert "540,000 bytes were too many to keep; the limit is 100,000" in shelf.script.everything
    assert isinstance(answer, LoadFailed)


def test_the_last_turn_is_for_deciding(shelf: Library) -> None:
    answer = shelf.load(*[READ] * 5, ACCEPT)

    assert isinstance(answer, Loaded)
    tools = [len(info.function_tools) for info in shelf.script.infos]
    assert tools == [2, 2, 2, 2, 2, 0]
    assert "Answers that you have left: 1." in shelf.script.told


def test_a_model_that_does_not_decide_costs_six_turns_and_the_address_is_fetched_plainly(shelf: Library) -> None:
    answer = shelf.load(*[READ] * 9)

    assert len(shelf.script.requests) == 6
    assert answer == UseHttp("it was not decided", "the loading agent did not decide within 6 turns")


def test_eight_calls_are_all_that_is_made(shelf: Library) -> None:
    answer = shelf.load(READ * 12, ACCEPT)

    assert isinstance(answer, Loaded)
    told = [part_text(part) for part in shelf.script.requests[1][-1].parts]
    assert sum(text.startswith("Kept.") for text in told) == 8
    assert sum(text.startswith("No more calls: 8 were made.") for text in told) == 4
    assert shelf.script.infos[1].function_tools == []


def test_words_instead_of_a_decision_are_asked_again(shelf: Library) -> None:
    assert isinstance(shelf.load("I would use the library.", READ, "It is kept.", ACCEPT), Loaded)


def test_the_tool_of_the_last_time_is_named_if_it_is_still_offered(shelf: Library) -> None:
    shelf.load(HTTP, before="library/read_page")
    assert "The last time it came by library/read_page." in shelf.script.told

    shelf.load(HTTP, before="evil/orders")
    assert "evil" not in shelf.script.told


def test_a_server_that_crashes_is_told_and_runs_again_for_the_next_address(shelf: Library) -> None:
    shelf.load(HTTP)
    first = shelf.process

    answer = shelf.load([("library__crash", {})], READ, FAIL)

    assert isinstance(answer, LoadFailed)
    assert "library/crash failed: Connection closed" in shelf.script.everything
    assert isinstance(shelf.load(READ, ACCEPT), Loaded)
    assert shelf.process != first
    assert not is_running(first)


def test_it_works_where_an_event_loop_runs_already(shelf: Library) -> None:
    async def inside() -> Answer:
        return shelf.load(READ, ACCEPT)

    assert isinstance(asyncio.run(inside()), Loaded)


def test_several_threads_may_ask_it(shelf: Library) -> None:
    async def decide(messages: list[ModelMessage]) -> ModelResponse:
        first = messages[0]
        assert isinstance(first, ModelRequest)
        name = part_text(first.parts[0]).rsplit("/", 1)[1]
        call = ("library__read_page", {"name": name}) if len(messages) == 1 else ("accept", {"content": 1})
        return ModelResponse([ToolCallPart(*call)])

    titles: list[str] = []

    def one(name: str) -> None:
        answer = shelf.load_thinking(decide, f"https://library.example.org/{name}")
        assert isinstance(answer, Loaded)
        titles.append(answer.page.title)

    threads = [threading.Thread(target=one, args=(name,)) for name in ("Mooring", "Tides", "Bollards")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(titles) == ["Bollards", "Mooring", "Tides"]


def test_no_model_is_asked_when_no_server_starts() -> None:
    script = Script()
    broken = McpServer("broken", sys.executable, ("-c", "raise SystemExit('no token: set LIBRARY_TOKEN')"))
    with LoadingAgent(script.model, [McpServer("wiki", "/nowhere/wiki-mcp"), broken]) as agent:
        answer = agent.load(MOORING)

    assert isinstance(answer, UseHttp)
    assert script.requests == []
    assert "the MCP server wiki cannot be started: there is no command /nowhere/wiki-mcp" in answer.trouble
    assert "the MCP server broken cannot be started: Connection closed" in answer.trouble
    assert "(it said: no token: set LIBRARY_TOKEN)" in answer.trouble


def test_a_listed_tool_is_offered_whatever_it_says_and_the_others_are_not(tmp_path: Path) -> None:
    turns: list[list[Call]] = [[("library__unmarked", {"name": "Mooring"})], ACCEPT]
    script = Script(*turns)
    server = library(tmp_path, tools=("unmarked", "nowhere"), env={"LIBRARY_TOKEN": "secret"})
    with LoadingAgent(script.model, [server]) as agent:
        answer = agent.load(MOORING)
        running = int((tmp_path / "process").read_text())

    assert isinstance(answer, Loaded)
    assert answer.fetched_with == "library/unmarked"
    assert [tool.name for tool in script.infos[0].function_tools] == ["library__unmarked"]
    assert "Not available now: the MCP server library has no tool nowhere" in script.everything
    assert (tmp_path / "token").read_text() == "secret"
    assert not is_running(running)  # servers end with their agent


def test_a_server_that_never_answers_is_given_up() -> None:
    silent = McpServer("silent", sys.executable, ("-c", "import sys; sys.stdin.read()"))
    with LoadingAgent(Script().model, [silent], Budget(seconds=1.0)) as agent:
        answer = agent.load(MOORING)

    assert answer == UseHttp("there is no tool to ask", "the MCP server silent did not answer within 0.5 seconds")


def test_a_model_that_takes_too_long_is_not_waited_for(shelf: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    called = threading.Event()

    async def never(messages: list[ModelMessage]) -> ModelResponse:
        called.set()
        await asyncio.Event().wait()
        raise AssertionError

    shelf.load(HTTP)  # the server is up, which may take a while
    monkeypatch.setattr(shelf.agent, "_budget", Budget(seconds=0.3))

    answer = shelf.load_thinking(never)

    assert called.is_set()
    assert answer == UseHttp("the loading agent did not finish", "the loading agent came to no end within 0.3 seconds")


def test_a_model_that_fails_is_told_with_the_setting_to_look_at(shelf: Library) -> None:
    def broken(messages: list[ModelMessage]) -> Turn:
        from pydantic_ai.exceptions import ModelHTTPError

        raise ModelHTTPError(404, "qwen3", {"error": "model not found"})

    answer = shelf.load(broken)

    assert isinstance(answer, UseHttp)
    assert "the loading agent could not be asked (ModelHTTPError: status_code: 404" in answer.trouble
    assert answer.trouble.endswith("see the setting loading_model")


@contextmanager
def http_library(token: str) -> Iterator[str]:
    """An MCP server over HTTP, in a thread of this process, for those who have the token; and its address."""
    server = MCPServer("wiki")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_page(name: str) -> str:
        """Read a page of the wiki."""
        return f"# {name}\n\n" + "Anchors hold in mud. " * 60_000

    app = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"authorization", f"Bearer {token}".encode()) not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
        else:
            await app(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    serving = uvicorn.Server(uvicorn.Config(guarded, log_level="critical", lifespan="on"))
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        serving.should_exit = True
        thread.join(20)
        listening.close()


def test_a_server_may_have_an_address_and_want_a_token() -> None:
    script = Script([("wiki__read_page", {"name": "Anchors"})], ACCEPT)
    with http_library("secret") as address:
        server = McpServer("wiki", url=address, headers={"Authorization": "Bearer secret"})
        with LoadingAgent(script.model, [server]) as agent:
            answer = agent.load("https://wiki.example.org/Anchors")
        with LoadingAgent(Script().model, [server._replace(headers={})]) as agent:
            refused = agent.load("https://wiki.example.org/Anchors")

    assert isinstance(answer, Loaded)
    assert (answer.page.title, answer.fetched_with) == ("Anchors", "wiki/read_page")
    assert len(answer.page.text) > 1_200_000  # more than the library for MCP would take in one piece
    assert isinstance(refused, UseHttp)
    assert "the MCP server wiki cannot be reached:" in refused.trouble
    assert "secret" not in refused.trouble
