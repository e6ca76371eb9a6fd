"""What the tools promise, as an agent of pydantic-ai meets it: over its own MCP client, and with the capability."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic_ai import Agent

from co_cli.agent import Knowledge
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.tools.budget import estimate_tokens
from tests.agent.scripted import Script
from tests.folder import Vault
from tests.mcp.talking import Place

TOOLS = "default,save_conversation"


class Asked:
    """An agent whose model calls one tool in each run, and what it is told."""

    def __init__(self, vault: Vault, run: Callable[[Script], Any]) -> None:
        self.vault, self._run, self.progress = vault, run, list[float]()

    def __call__(self, tool: str, **arguments: Any) -> str:
        script = Script([(tool, arguments)], "Done.")
        self._run(script)
        self.offered = {tool.name: tool.parameters_json_schema for tool in script.infos[-1].function_tools}
        return script.told


@pytest.fixture(scope="module", params=["mcp", "capability"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    place = Place(tmp_path_factory.mktemp("asked"))
    place.environment["CO_CAPTURE"] = "keep"
    if request.param == "capability":
        with KnowledgeBase.open(settings=load_settings({}, place.environment)) as kb:
            knowledge = Knowledge(knowledge_base=kb, tools=TOOLS.split(","), context=False, private=True)
            yield Asked(place.vault, lambda script: Agent(script.model, capabilities=[knowledge]).run_sync("Go on."))
        return
    mcp = pytest.importorskip(
        "pydantic_ai.mcp", reason="pydantic-ai's MCP client is not installed", exc_type=ImportError
    )
    from fastmcp.client.transports import StdioTransport

    command = ["-m", "co_cli", "mcp", "--tools", TOOLS]
    server = StdioTransport(sys.executable, command, env=place.environment, cwd=str(place.folder))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        found.progress.append(progress)

    toolset = mcp.MCPToolset(server, init_timeout=60, progress_handler=note)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(toolset):
        found = Asked(place.vault, lambda script: portal.call(Agent(script.model, toolsets=[toolset]).run, "Go on."))
        yield found


@pytest.mark.slow
def test_schemas_name_no_ranking_options_and_no_object_without_properties(asked: Asked) -> None:
    told = asked("recall_memory", query="oaks", profile="rrf")

    assert "ignored" not in told
    assert len(asked.offered) == 10
    for schema in asked.offered.values():
        assert not {"weights", "profile"} & schema["properties"].keys()
        assert all(field.get("type") != "object" or field["properties"] for field in schema["properties"].values())


def test_answers_are_short_and_only_the_same_subject_is_related(asked: Asked) -> None:
    plain = asked("save_memory", content="Bo prefers metric units.")
    other = asked("save_memory", content="Ana prefers imperial units.")
    replaced = asked("save_memory", content="Bo prefers imperial units.")
    found = asked("recall_memory", query="which units does Ana prefer", limit=1)

    assert estimate_tokens(plain) <= 30
    assert "supersedes=" not in other
    assert 'supersedes=["memory:bo-prefers-metric-units"]' in replaced
    assert estimate_tokens(replaced) <= 120
    assert estimate_tokens(found[found.index("<note") :]) <= 45


def test_forgetting_says_what_is_valid_again(asked: Asked) -> None:
    asked("save_memory", content="The gate code is 1111.", title="Gate one")
    asked("save_memory", content="The gate code is 2222.", title="Gate two", supersedes=["memory:gate-one"])

    told = asked("forget_memory", ref="memory:gate-two")

    assert "Valid again, because it superseded them: memory:gate-one." in told
    assert "call forget_memory with each" in told


def test_a_ref_of_lines_survives_an_edit_above_them(asked: Asked) -> None:
    kiln = "# Kiln\n\nIt stands in the yard.\n\n## Glazing\n\nGlaze at 1,240 degrees, and wait nine hours to cool.\n"
    asked.vault.write("articles/kiln.md", kiln)
    found = asked("recall_article", query="glaze degrees wait hours to cool")
    ref = re.findall(r'ref="(article:kiln#L[^"]+)"', found)[0]

    asked.vault.write("articles/kiln.md", f"---\nupdated: 2026-02-02\nowner: Ana\n---\n{kiln}")

    told = asked("read_note", ref=ref)
    assert "Glaze at 1,240 degrees" in told
    assert "when the ref was given" in told


def test_lists_have_pages_and_show_what_changed(asked: Asked) -> None:
    for name in ("Ash", "Birch", "Cedar"):
        asked("save_memory", content=f"{name} grows by the canal.", title=name, tags=["canal"])

    first = asked("list_memories", tags=["canal"], limit=2)
    rest = asked("list_memories", tags=["canal"], limit=2, offset=2)

    assert first.startswith("2 of 3 memories, newest first; offset=2 lists more.")
    names = re.findall(r"memory:(\w+) ", first), re.findall(r"memory:(\w+) ", rest)
    assert [len(page) for page in names] == [2, 1]
    assert {*names[0], *names[1]} == {"ash", "birch", "cedar"}
    assert asked("list_memories", tags=["canal"], since="1h").count(" · created ") == 3
    assert asked("list_memories", since="2100-01-01").startswith("0 of 0 notes changed since 2100-01-01")


def test_a_note_is_edited_and_moved_and_an_unknown_argument_is_named(asked: Asked) -> None:
    asked("save_memory", content="Runs the harbour.", title="Ines Vale", kind="entity")
    asked.vault.write("memories/works.md", "See [[entities/ines-vale]].\n")

    told = asked("update_memory", ref="entity:ines-vale", aliases=["Inés"], type="person", path="people/", colour="red")

    assert told.startswith("updated entity:people/ines-vale (")
    assert "Not arguments of update_memory, ignored: colour" in told
    assert asked.vault.read("memories/works.md") == "See [[entities/people/ines-vale]].\n"
    shown = asked("read_note", ref="entity:people/ines-vale")
    assert 'type="person"' in shown
    assert 'aliases="Inés"' in shown


def test_conversations_with_an_invented_session_stay_apart(asked: Asked) -> None:
    refs: list[str] = []
    for text in ("Which pool goes first?", "Do we have tea?"):
        turns = [{"role": "user", "text": text}, {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}]
        told = asked("save_conversation", turns=turns, session="session-1")
        refs += re.findall(r"kept 2 turns in (\S+);", told)

    assert len(set(refs)) == 2
    kept = asked.vault.read(f"conversations/{refs[0].removeprefix('conversation:')}.md")
    assert "Yes." in kept
    assert time.strftime("%Y-%m-%d", time.gmtime()) in kept


def test_a_file_that_was_just_written_is_found_by_the_next_recall(asked: Asked) -> None:
    for number in range(6):
        asked.vault.write(f"memories/lantern-{number}.md", f"Lantern {number} hangs in boathouse {number}.")

        assert f"Lantern {number} hangs" in asked("recall_memory", query=f"lantern {number} boathouse {number}")


@pytest.mark.slow
def test_a_long_article_is_saved_and_progress_is_reported(asked: Asked, request: pytest.FixtureRequest) -> None:
    parts = (f"## Part {number}\n\nFerry {number} leaves the pier at noon.\n\n" for number in range(20_000))

    told = asked("save_article", content="".join(parts), title="Ferries")

    assert told.startswith("created article:ferries (")
    if "mcp" in request.node.callspec.id:
        assert asked.progress
        assert asked.progress == sorted(asked.progress)
