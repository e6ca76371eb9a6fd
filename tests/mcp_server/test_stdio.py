"""`co mcp` as a process: what it writes, what it imports, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest
from mcp import MCPError

from benchmarks.cold import CO as SCRIPT
from benchmarks.mcp import GOAL, INITIALIZE, cpu_until_answered
from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.mcp_server.talking import MODERN, Place, Process, over_stdio

AGENT_LIBRARIES = {"pydantic_ai", "openai", "ollama", "numpy", "rich", "prompt_toolkit", "fastmcp", "onnxruntime"}


def test_standard_output_carries_the_protocol_and_nothing_else_until_the_client_hangs_up(place: Place) -> None:
    place.vault.write("memories/odd.md", "Line one.\r\nLine\u2028two, \x85 three.\n\n日本語 🦦")
    server = place.start()
    server.initialise()
    server.say("this is no JSON\n")
    server.say('{"jsonrpc": "2.0", "id": 77, "method": "no/such/method"}\n')
    unknown = server.hear()
    saved = server.call("save_memory", content="Oaks live long.")
    wrong = server.call("recall_memory")
    halved = server.call("save_memory", content="Half an otter \ud83e swims.")
    odd = server.ask("resources/read", uri="co://memory/odd")["result"]["contents"][0]

    ended = server.end()

    assert unknown["error"]["code"] == -32601
    assert saved["structuredContent"]["outcome"] == "created"
    assert wrong["isError"]
    assert "Half an otter ? swims." in place.vault.read(halved["structuredContent"]["path"])
    assert odd["text"] == "Line one.\nLine two,   three.\n\n日本語 🦦"  # no sign in it ends a line of the protocol
    assert ended == (0, "", "")


def test_it_ends_when_nobody_ever_speaks(place: Place) -> None:
    assert place.start().end() == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_what_it_acknowledged_is_kept(place: Place, how: signal.Signals) -> None:
    server = place.start()
    server.initialise()
    for number in range(12):
        server.send("tools/call", name="save_memory", arguments={"content": f"{number} geese flew {number * 7} miles."})
    first = server.hear()

    code, out, err = server.end(how)

    assert (code, err) == (0, "")
    acknowledged = [first, *map(json.loads, out.splitlines())]
    receipts = [answer["result"]["structuredContent"] for answer in acknowledged]
    for answer, receipt in zip(acknowledged, receipts, strict=True):
        number = answer["id"] - 2
        assert f"{number} geese flew {number * 7} miles." in place.vault.read(receipt["path"])
    with KnowledgeBase.open(place.vault.root, place.folder / "data") as kb:
        assert not [path for path in place.vault.files() if path.endswith(".tmp")]
        assert [finding for finding in kb.doctor() if finding.level == "error"] == []


def test_a_vault_that_is_not_there_is_one_line_before_any_handshake(place: Place, tmp_path: Path) -> None:
    server = place.start("--vault", str(tmp_path / "nowhere"))

    code, out, err = server.end()

    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "co init" in err


def test_it_imports_no_agent_library_and_no_model(place: Place) -> None:
    place.vault.write("memories/oak.md", "Oaks live long.")
    command = [sys.executable, "-X", "importtime", *SCRIPT[1:], "mcp"]
    server = Process(command, place.environment, place.folder)
    server.initialise()
    server.ask("tools/list")

    code, _, err = server.end()

    seen = set(re.findall(r"^import time:.*\|\s*(\S+)$", err, re.MULTILINE))
    assert code == 0
    assert {"mcp.server", "co_cli.mcp.server", "co_cli.tools.toolbox"} <= seen
    assert {name.split(".")[0] for name in seen} & AGENT_LIBRARIES == set()
    assert not [name for name in seen if name.startswith(("co_cli.agent", "co_cli.chat", "co_cli.embedding.model"))]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the CPU time of a child")
def test_its_start_costs_no_more_than_promised(place: Place) -> None:
    """This guards against a heavy import; `python -m benchmarks mcp` measures it properly."""
    folder, environment = str(place.folder), place.environment

    sdk = cpu_until_answered([sys.executable, "-c", "import mcp.server"], (), environment, folder)
    ours = cpu_until_answered([*SCRIPT, "mcp"], (INITIALIZE,), environment, folder)

    assert ours < GOAL * sdk


def test_a_client_of_the_newest_protocol_is_answered_too_and_offered_only_the_chosen_tools(place: Place) -> None:
    with over_stdio(
        place, "--read-only", "--tools", "recall_memory, search_knowledge, save_memory", mode=MODERN
    ) as talk:
        assert talk.client.protocol_version == "2026-07-28"
        names = {tool.name for tool in talk.list_tools().tools}
        prompts = {prompt.name for prompt in talk.list_prompts().prompts}
        instructions = talk.client.instructions
        with pytest.raises(MCPError, match="there is no tool 'forget_memory' here"):
            talk.call_tool("forget_memory", {"ref": "memory:x"})

    assert names == {"recall_memory", "search_knowledge"}
    assert prompts == {"what_do_you_know"}
    assert "recall_article" not in instructions
    assert "save_memory" not in instructions


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("--tools", "recall"), "there is no tool recall"),
        (("--tools", " , "), "--tools takes names"),
        (("--tools", "save_memory", "--read-only"), "no tool is left"),
        (("--port", "9000"), "only means something with --http"),
        (("--token-file", "x", "--host", "::1"), "--host, --token-file only means something with --http"),
        (("--http", "--port", "70000"), "between 0 and 65535"),
        (("--http", "--host", "0.0.0.0"), "set a token of yours first"),
        (("--print-config", "emacs"), "claude-code"),
        (("--print-config", "claude-desktop", "--http"), "leave --http out"),
        (("--print-config", "cursor", "--http", "--port", "0"), "needs one that stays"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(co: Co, arguments: tuple[str, ...], cure: str) -> None:
    ran = co("mcp", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert cure in ran.err
    assert len(ran.err.splitlines()) == 1
