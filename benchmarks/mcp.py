"""What `co mcp` costs: CPU until a client can use it, beside importing its SDK alone, and tokens of a model's context.

Clients wait a few seconds at most. Tokens are OpenAI's (`o200k_base`) if tiktoken can load them, else estimates.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from statistics import median
from typing import IO, Any, NamedTuple

from benchmarks.cold import CO, child_seconds
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault
from co_cli.ground.errors import KnowledgeError
from co_cli.tools import TOOLS, Toolbox
from co_cli.tools.budget import estimate_tokens

REPEATS = 7
GOAL = 1.2
LONGEST, LONGEST_PROBLEM = 300.0, 500
"""Seconds that a server has for an answer, and characters of its stderr that are shown."""
INITIALIZE: dict[str, Any] = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmarks", "version": "1"},
    },
}
LIST_TOOLS = {"method": "tools/list"}
FACTS = """
Bo prefers metric units.
Ana prefers imperial units.
The door code is 4711.
We deploy on Tuesdays at 3 pm.
The staging database listens on port 5432.
The production database listens on port 5433.
Priya reviews changes to the billing service.
The user lives in Lisbon with two cats.
The user is allergic to peanuts.
Release 2.1 shipped on 4 March 2026.
Line length is 100 characters in this project.
The contract with Acme ends on 2027-01-31.
Pull requests need two approvals.
The main branch is called trunk.
Tests run on Python 3.11 and 3.12.
The weekly sync happens on Mondays at 10.
Invoices go to accounts@acme.example by e-mail.
The user drinks coffee with oat milk.
The API allows 100 requests a minute.
Backups of gull run at dawn.
Never deploy on Fridays.
Mara's birthday is on 3 May.
The office wifi is slow on rainy days in the north wing.
The door code is 8254.
We deploy on Thursdays at 2 pm.
The user lives in Porto with two cats.
Pull requests need one approval.
The weekly sync happens on Wednesdays at 11.
Release 2.2 shipped on 9 April 2026.
The API allows 500 requests a minute.
"""
"""Thirty things to save. Some replace earlier ones."""
QUESTIONS = """
which units does Bo prefer
what about Ana and units
how do I open the door
when do we deploy
port of the staging database
who reviews billing changes
where does the user live
does the user have an allergy
when did release 2.1 ship
how long may a line be
when does the contract with Acme end
how many approvals does a pull request need
name of the main branch
which Python versions are tested
when is the weekly sync
where do invoices go
how does the user take coffee
rate limit of the API
when do backups run
may we deploy on Friday
when is Mara's birthday
why is the wifi slow
port of the production database
what pets does the user have
what shipped in April
code style of this project
food that the user cannot eat
who is Priya
what is the password of the router
how tall is the Eiffel Tower
"""
"""Thirty questions; the last two have no answer."""
RECALL = {
    "method": "tools/call",
    "params": {"name": "recall_memory", "arguments": {"query": "who approved the late refund for the customer"}},
}


def bench_mcp(notes: int, bar: Bar | None = None, repeats: int = REPEATS, warm: int = 1) -> list[BenchRow]:
    """`warm` rounds come first and do not count: they compile, and fill the file cache."""
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark needs the CPU time of child processes, which Windows does not report")
    with bench_vault(notes, bar) as vault:
        yardstick = [sys.executable, "-c", "import mcp.server"]
        server = [*CO, "mcp"]
        tasks: dict[str, tuple[list[str], tuple[dict[str, Any], ...]]] = {
            "import": (yardstick, ()),
            "initialised": (server, (INITIALIZE,)),
            "tools": (server, (INITIALIZE, LIST_TOOLS)),
            "recall": (server, (INITIALIZE, LIST_TOOLS, RECALL)),
        }
        taken: dict[str, list[float]] = {name: [] for name in tasks}
        for number in range(warm + repeats):
            for name, (command, requests) in tasks.items():
                seconds = cpu_until_answered(command, requests, vault.environment, vault.folder)
                if number >= warm:
                    taken[name].append(seconds)
    cost = {name: median(values) for name, values in taken.items()}
    bare = cost["import"]
    return [
        BenchRow('python -c "import mcp.server" (CPU)', round(bare * 1000, 1), "ms", 1.0),
        BenchRow(
            "co mcp until it is initialised",
            round(cost["initialised"] * 1000, 1),
            "ms",
            cost["initialised"] / bare,
            GOAL,
        ),
        BenchRow("co mcp until its tools are listed", round(cost["tools"] * 1000, 1), "ms", cost["tools"] / bare),
        BenchRow(
            f"co mcp until {notes:,} notes were asked", round(cost["recall"] * 1000, 1), "ms", cost["recall"] / bare
        ),
        *token_rows(),
    ]


def token_rows() -> list[BenchRow]:
    """What the nine tools cost in every request, and what thirty saves and thirty recalls answer."""
    count, unit = token_counter()
    listed = [{"name": tool.name, "description": tool.description, "inputSchema": tool.parameters} for tool in TOOLS]
    with bench_vault(0) as vault, vault.open() as kb:
        toolbox = Toolbox(kb)
        saves = [toolbox.call("save_memory", {"content": fact}) for fact in FACTS.strip().splitlines()]
        recalls = [toolbox.call("recall_memory", {"query": asked}) for asked in QUESTIONS.strip().splitlines()]
    plain = [count(saved.text) for saved in saves if not saved.data["related"]]
    related = [count(saved.text) for saved in saves if saved.data["related"]]
    return [
        BenchRow("nine tools, in every request", count(tool_list(listed)), unit),
        BenchRow(f"{len(saves)} saves together", sum(plain) + sum(related), unit),
        BenchRow(f"a receipt, the median of {len(plain)}", median(plain), unit),
        BenchRow(f"a receipt with related memories, the median of {len(related)}", median(related), unit),
        BenchRow(f"{len(recalls)} recalls together", sum(count(found.text) for found in recalls), unit),
        BenchRow("a recall, the median", median(count(found.text) for found in recalls), unit),
    ]


def tool_list(tools: Sequence[Mapping[str, Any]]) -> str:
    """What a client puts into every request about the tools of a server."""
    fields = {"name": "name", "description": "description", "parameters": "inputSchema"}
    described = [{name: tool.get(field, "") for name, field in fields.items()} for tool in tools]
    return json.dumps(described, separators=(",", ":"))


def token_counter() -> tuple[Callable[[str], int], str]:
    """Counts tokens, and what they are."""
    try:
        import tiktoken  # comes with pydantic-ai-slim[openai]

        encoding = tiktoken.get_encoding("o200k_base")  # which it downloads once
    except (ImportError, OSError):
        return estimate_tokens, "tokens, estimated"
    return lambda text: len(encoding.encode(text)), "tokens"


class McpServer(NamedTuple):
    """A process that speaks MCP over stdin and stdout."""

    process: subprocess.Popen[str]
    stderr: IO[str]

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request. Raises KnowledgeError if there is none in time."""
        assert self.process.stdout is not None
        id = time.monotonic_ns()
        self._send({"id": id, "method": method, "params": params or {}})
        if method == "initialize":
            self._send({"method": "notifications/initialized"})
        limit = threading.Timer(LONGEST, self.process.kill)
        limit.start()
        try:
            answers: Iterator[dict[str, Any]] = map(json.loads, self.process.stdout)
            answer = next((answer for answer in answers if answer.get("id") == id), dict[str, Any]())
        finally:
            limit.cancel()
        if "result" not in answer:
            self.stderr.seek(0)
            problem = answer.get("error") or self.stderr.read().strip()[-LONGEST_PROBLEM:]
            raise KnowledgeError(f"{self.process.args} did not answer {method}: {problem}")
        return answer["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # then the answer is missing, and its stderr says why
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self.process.stdin.flush()


@contextmanager
def mcp_server(command: Sequence[str], environment: dict[str, str], folder: str) -> Generator[McpServer]:
    """It is killed in the end."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stderr,  # a pipe that nobody reads would block it
        subprocess.Popen(
            command, env=environment, cwd=folder, text=True, errors="replace", stderr=stderr, **pipes
        ) as process,
    ):
        try:
            yield McpServer(process, stderr)
        finally:
            process.kill()


def cpu_until_answered(
    command: Sequence[str], requests: Sequence[Mapping[str, Any]], environment: dict[str, str], folder: str
) -> float:
    """The CPU time of a program until it has answered these requests; then it is killed. Without any, until it ends."""
    import resource  # not on Windows

    if not requests:
        return child_seconds([*command], environment, folder)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with mcp_server(command, environment, folder) as server:
        for request in requests:
            server.ask(request["method"], request.get("params"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
