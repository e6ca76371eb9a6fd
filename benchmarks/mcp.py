"""What `co mcp` costs: CPU until a client can use it, beside importing its SDK alone, and tokens of a model's context.

Clients wait a few seconds at most. Tokens are OpenAI's (`o200k_base`) if tiktoken can load them, else estimates.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.cold import CO
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault
from co_cli.errors import KnowledgeError
from co_cli.tools import TOOLS, Toolbox
from co_cli.tools.budget import estimate_tokens

REPEATS = 7
GOAL = 1.2
INITIALIZE = {
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
    described = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in TOOLS]
    with bench_vault(0) as vault, vault.open() as kb:
        toolbox = Toolbox(kb)
        saves = [toolbox.call("save_memory", {"content": fact}) for fact in FACTS.strip().splitlines()]
        recalls = [toolbox.call("recall_memory", {"query": asked}) for asked in QUESTIONS.strip().splitlines()]
    plain = [count(saved.text) for saved in saves if not saved.data["related"]]
    related = [count(saved.text) for saved in saves if saved.data["related"]]
    return [
        BenchRow("nine tools, in every request", count(json.dumps(described, separators=(",", ":"))), unit),
        BenchRow(f"{len(saves)} saves together", sum(plain) + sum(related), unit),
        BenchRow(f"a receipt, the median of {len(plain)}", median(plain), unit),
        BenchRow(f"a receipt with related memories, the median of {len(related)}", median(related), unit),
        BenchRow(f"{len(recalls)} recalls together", sum(count(found.text) for found in recalls), unit),
        BenchRow("a recall, the median", median(count(found.text) for found in recalls), unit),
    ]


def token_counter() -> tuple[Callable[[str], int], str]:
    """Counts tokens, and what they are."""
    try:
        import tiktoken  # comes with pydantic-ai-slim[openai]

        encoding = tiktoken.get_encoding("o200k_base")  # which it downloads once
    except (ImportError, OSError):
        return estimate_tokens, "tokens, estimated"
    return lambda text: len(encoding.encode(text)), "tokens"


def cpu_until_answered(
    command: Sequence[str], requests: Sequence[Mapping[str, Any]], environment: dict[str, str], folder: str
) -> float:
    """The CPU time of a program until it has answered these requests; then it is killed. Without any, until it ends."""
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for number, request in enumerate(requests):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if '"result"' not in answer:
                process.kill()
                raise KnowledgeError(f"co mcp did not answer: {answer or process.stderr.read().strip()}")
        if requests:
            process.kill()
        elif process.wait():
            raise KnowledgeError(f"{' '.join(command)} failed: {process.stderr.read().strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
