"""`co mcp` as a process: its output, its imports, its options, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys

import pexpect
import pytest

from benchmarks.mcp import INITIALIZE, cpu_until_answered
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.cli.screen import terminal
from tests.command import Co
from tests.mcp.talking import CO, HALF_A_CHARACTER, MODERN, Place, over_stdio


@pytest.mark.slow
def test_standard_output_carries_only_the_protocol_until_the_client_hangs_up(place: Place) -> None:
    place.vault.write("memories/odd.md", "Line one.\r\nLine\u2028two, \x85 three.\n\n日本語 🦦")
    server = place.start()
    server.initialise()
    server.say("\nthis is no JSON\n")
    no_json = server.hear()
    server.say('[{"jsonrpc": "2.0", "id": 76, "method": "ping"}]\n')
    no_request = server.hear()
    server.say('{"jsonrpc": "2.0", "id": 77, "method": "no/such/method"}\n')
    unknown = server.hear()
    saved = server.call("save_memory", content="Oaks live long.")
    wrong = server.call("recall_memory")
    half, whole = (
        {"content": f"An otter {sign} swims in C:\\ud83e 🦦.", "title": "Otter"} for sign in ("\ud83e", "🦦")
    )
    halved = server.ask("tools/call", name="save_memory", arguments=half)
    server.call("save_memory", **whole)
    odd = server.ask("resources/read", uri="co://memory/odd")["result"]["contents"][0]
    if sys.platform == "linux":
        assert os.readlink(f"/proc/{server.pid}/fd/0") == os.devnull, "child processes cannot read the requests"

    ended = server.end()

    assert (no_json["id"], no_json["error"]["code"]) == (None, -32700)
    assert (no_request["id"], no_request["error"]["code"]) == (None, -32600)
    assert unknown["error"]["code"] == -32601
    assert saved["content"][0]["text"].startswith("created memory:")
    assert wrong["isError"]
    assert halved["error"] == {"code": -32602, "message": f"tools/call: {HALF_A_CHARACTER}"}
    assert "An otter 🦦 swims in C:\\ud83e 🦦." in place.vault.read("memories/otter.md")
    assert odd["text"] == "Line one.\nLine two,   three.\n\n日本語 🦦"  # nothing in it ends a line of the protocol
    assert ended == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no terminal to open there")
def test_a_person_who_starts_it_on_a_terminal_is_told_how_to_configure_a_client(co: Co) -> None:
    with terminal(co.folder, "mcp") as screen:
        assert screen.expect("co mcp is an MCP server.*--print-config CLIENT.*claude-code.*Ctrl-C ends it") == 0
        screen.sendintr()
        assert screen.expect(pexpect.EOF) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
def test_a_signal_lets_running_saves_finish_and_cuts_none(place: Place) -> None:
    server = place.start()
    server.initialise()
    texts = {number: f"{number} geese flew {number * 7} miles." for number in range(12)}
    for number, content in texts.items():
        server.send("tools/call", name="save_memory", arguments={"content": content, "title": f"goose {number}"})
    first = server.hear()

    code, out, err = server.end(signal.SIGTERM)

    assert (code, err) == (0, "")
    acknowledged = [first, *map(json.loads, out.splitlines())]
    assert len(acknowledged) > 1, "others were running"
    for answer in acknowledged:
        number = answer["id"] - 2
        assert answer["result"]["content"][0]["text"].startswith(f"created memory:goose-{number} ")
        assert f"memories/goose-{number}.md" in place.vault.notes()
    for path in place.vault.notes():
        assert place.vault.read(path).endswith(f"\n{texts[int(path[15:-3])]}\n"), path
    with KnowledgeBase.open(place.vault.root, place.folder / "data") as kb:
        assert not [path for path in place.vault.files() if path.endswith(".tmp")]
        assert [finding for finding in kb.doctor() if finding.level == "error"] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not cut a file that is in use")
def test_a_search_db_that_is_cut_under_a_server_neither_ends_it_nor_hides_a_note(place: Place) -> None:
    for number in range(200):
        place.vault.write(f"memories/oak-{number}.md", f"Oak {number} was planted by gardener{number}.")
    with KnowledgeBase.open(place.vault.root, place.folder / "data") as kb:
        kb.sync()
    database = place.folder / "data" / "search.db"
    server = place.start()
    server.initialise()
    server.call("search_knowledge", query="gardener7")
    server.call("save_memory", content="The dentist is on Elm Street.")  # so vectors are read from the file again
    for size, query in ((database.stat().st_size // 2, "gardener150"), (0, "gardener33")):
        os.truncate(database, size)

        answer = server.call("search_knowledge", query=query)

        assert not answer["isError"], answer
        assert f'ref="memory:oak-{query[8:]}"' in answer["content"][0]["text"]
    assert server.end()[0] == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report the CPU time of child processes")
def test_it_answers_initialize_at_little_more_than_what_importing_the_sdk_costs(place: Place) -> None:
    place.vault.write("memories/oak.md", "Oaks live long.")
    sdk, server = [], []
    for _ in range(4):  # in turn, and the best of each: others may be using this machine
        for taken, command, requests in (
            (sdk, [sys.executable, "-c", "import mcp.server"], ()),
            (server, [*CO, "mcp"], (INITIALIZE,)),
        ):
            taken.append(cpu_until_answered(command, requests, place.environment, str(place.folder)))

    assert min(server) - min(sdk) <= 0.2, (sdk, server)


@pytest.mark.slow
def test_only_the_chosen_tools_are_offered(place: Place) -> None:
    with over_stdio(
        place, "--read-only", "--tools", "recall_memory, search_knowledge, save_memory", mode=MODERN
    ) as talk:
        assert talk.client.protocol_version == "2026-07-28"
        names = {tool.name for tool in talk.list_tools().tools}
        prompts = {prompt.name for prompt in talk.list_prompts().prompts}
        instructions = talk.client.instructions or ""
        refused = talk.call_tool("forget_memory", {"ref": "memory:x"})

    assert names == {"recall_memory", "search_knowledge"}
    assert refused.is_error
    assert "there is no tool 'forget_memory' here" in refused.content[0].text
    assert prompts == {"what_do_you_know", "context"}
    assert "recall_article" not in instructions
    assert "save_memory" not in instructions


def test_wrong_usage_is_one_line_and_exit_code_2(co: Co) -> None:
    for arguments, fix in (
        (("--tools", "recall"), "there is no tool recall"),
        (("--tools", " , "), "no tool is left"),
        (("--tools", "save_memory", "--read-only"), "no tool is left"),
        (("--vault", "/no/such/folder"), "co init"),
        (("--port", "9000", "--host", "::1"), "only work with --http"),
        (("--http", "--port", "70000"), "choose another with --port"),
        (("--http", "--host", "0.0.0.0", "--port", "0"), "needs --allow-host"),
        (("--http", "--host", "0.0.0.0", "--port", "0", "--allow-host", "notes.example"), "set CO_MCP_TOKEN first"),
        (("--print-config", "emacs"), "claude-code"),
        (("--print-config", "claude-desktop", "--http"), "leave out --http"),
    ):
        ran = co("mcp", *arguments)

        assert (ran.code, ran.out) == (2, ""), arguments
        assert fix in ran.err, arguments
        assert len(ran.err.splitlines()) == 1, arguments
