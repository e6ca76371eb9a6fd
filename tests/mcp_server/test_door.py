"""The server in this process, with the SDK's client: what happens when something breaks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from co_cli.knowledge_base import KnowledgeBase
from co_cli.mcp.server import McpDoor, harmless
from co_cli.settings import load_settings
from co_cli.tools import TOOLS, Toolbox, ToolResult
from co_cli.values import SyncReport
from tests.mcp_server.talking import LEGACY, MODERN
from tests.vault import Vault


class Breaking(Toolbox):
    """A toolbox with a bug: what is asked for `the sky` falls."""

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        if (arguments or {}).get("query") == "the sky":
            raise RuntimeError("it\nfell")
        return super().call(name, arguments)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_a_bug_is_an_error_in_one_line_and_the_server_lives_on(
    kb: KnowledgeBase, vault: Vault, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    async def talk() -> tuple[Any, Any, MCPError]:
        async with Client(McpDoor(Breaking(kb)).server, mode=mode) as client:
            broken = await client.call_tool("recall_memory", {"query": "the sky"})
            with pytest.raises(MCPError) as raised:
                await client.get_prompt("what_do_you_know", {"topic": "the sky"})
            return broken, await client.call_tool("recall_memory", {"query": "oaks"}), raised.value

    with caplog.at_level(logging.ERROR):
        broken, fine, error = anyio.run(talk)

    assert broken.is_error
    assert broken.content[0].text.startswith("recall_memory failed unexpectedly (RuntimeError: it fell)")
    assert (error.code, error.message) == (-32603, "failed unexpectedly (RuntimeError: it fell)")
    assert fine.structured_content["hits"][0]["ref"] == "memory:oak"
    assert [record.getMessage() for record in caplog.records] == ["recall_memory failed", "write_prompt failed"]
    assert all(record.exc_info for record in caplog.records)


class Sick(KnowledgeBase):
    """A knowledge base with a bug in its sync."""

    def sync(self, *_: Any, **__: Any) -> SyncReport:
        raise RuntimeError("no sync today")


def test_the_tools_are_listed_and_a_call_says_why_it_fails_though_no_sync_works(
    vault: Vault, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)})

    async def talk() -> tuple[int, Any, int]:
        with Sick.open(settings=settings) as kb:
            async with Client(McpDoor(Toolbox(kb)).server) as client:
                first = len((await client.list_tools()).tools)
                answer = await client.call_tool("recall_memory", {"query": "oaks"})
                return first, answer, len((await client.list_tools(cache_mode="bypass")).tools)

    first, answer, again = anyio.run(talk)

    assert first == again == len(TOOLS)
    assert "no sync today" in answer.content[0].text


def test_a_cancelled_call_still_writes_its_note_to_the_end(kb: KnowledgeBase, vault: Vault) -> None:
    door = McpDoor(Toolbox(kb))

    async def hang_up() -> None:
        async with Client(door.server, mode=LEGACY) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "save_memory", {"content": "Herons wait.", "title": "Herons"})
            while not door.busy:
                await anyio.sleep(0)
            tasks.cancel_scope.cancel()

    anyio.run(hang_up)

    assert door.busy == 0
    assert vault.notes() in ([], ["memories/herons.md"])
    if vault.notes():
        assert vault.read("memories/herons.md").endswith("Herons wait.\n")


def test_a_very_long_mistake_gives_a_short_error(kb: KnowledgeBase) -> None:
    async def talk() -> Any:
        async with Client(McpDoor(Toolbox(kb)).server) as client:
            return await client.call_tool("read_note", {"ref": "memory:" + "x" * 50_000})

    result = anyio.run(talk)

    assert result.is_error
    assert len(result.content[0].text) < 1_100


def test_refs_stay_as_they_are_while_texts_are_made_harmless() -> None:
    odd = "memory:<system>"

    made = harmless({"hits": [{"ref": odd, "text": "<system>", "tags": ["<user>"], "score": 1.0}], "cut": [odd]})

    assert made == {"hits": [{"ref": odd, "text": "&lt;system>", "tags": ["&lt;user>"], "score": 1.0}], "cut": [odd]}
