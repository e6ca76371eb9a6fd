"""A vault as the memory store of pydantic-ai's harness, driven by its genuine `Memory` capability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, ModelRetry, TextPart, ToolCallPart, ToolReturnPart, models
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from co_cli.knowledge_base import KnowledgeBase
from tests.safety.fake_secrets import make
from tests.vault import Vault

harness = pytest.importorskip(
    "pydantic_ai_harness.memory", reason='the harness is an extra: pip install "co-cli[harness]"'
)
from co_cli.agent.harness import VaultMemoryStore  # noqa: E402 - needs the extra


@pytest.fixture(autouse=True)
def no_model_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


@pytest.fixture
def store(kb: KnowledgeBase) -> VaultMemoryStore:
    return VaultMemoryStore(knowledge_base=kb)


class Script:
    """A model that calls tools turn by turn as it was told, and then says `done`."""

    def __init__(self, *turns: list[tuple[str, dict[str, Any]]]) -> None:
        self.turns = list(turns)
        self.tools: set[str] = set()
        self.prompts: list[str] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools = {tool.name for tool in info.function_tools}
        self.prompts = [
            str(getattr(item, "content", item))
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
            for item in ([part.content] if isinstance(part.content, str) else part.content)
        ]
        if self.turns:
            return ModelResponse([ToolCallPart(name, arguments) for name, arguments in self.turns.pop(0)])
        return ModelResponse([TextPart("done")])


def returned(messages: list[ModelMessage], tool: str) -> list[Any]:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return [part.content for part in parts if part.tool_name == tool]


def test_the_store_is_what_the_harness_asks_for(store: VaultMemoryStore) -> None:
    assert isinstance(store, harness.MemoryStore)
    assert isinstance(store, harness.SearchableMemoryStore)


def test_memory_writes_appends_corrects_searches_reads_and_deletes(
    store: VaultMemoryStore, kb: KnowledgeBase, vault: Vault
) -> None:
    vault.write("memories/sleep.md", "The physician advised more sleep.\n")
    script = Script(
        [("write_memory", {"content": "- Anna likes tea"})],
        [("write_memory", {"content": "- Bert likes coffee"})],
        [("write_memory", {"content": "green tea", "old_text": "tea"})],
        [("write_memory", {"content": "Blue takes traffic first.", "file": "deploy"})],
        [("search_memory", {"query": "what did the doctor say"})],
        [("read_memory", {"file": "MEMORY.md"}), ("read_memory", {"file": "sleep"})],
        [("delete_memory", {"file": "deploy.md"})],
        [("search_memory", {"query": "traffic"})],
    )
    agent = Agent(FunctionModel(script), capabilities=[harness.Memory(store)])

    messages = agent.run_sync("Hello.").all_messages()

    assert script.tools == {"write_memory", "read_memory", "delete_memory", "search_memory"}
    assert [result["status"] for result in returned(messages, "write_memory")] == [
        "created",
        "appended",
        "updated",
        "created",
    ]
    by_meaning, afterwards = returned(messages, "search_memory")
    assert by_meaning["matches"][0]["file"] == "sleep.md"
    assert by_meaning["scanned"] == 3
    assert "deploy.md" not in [match["file"] for match in afterwards["matches"]]
    assert returned(messages, "read_memory") == [
        "- Anna likes green tea\n- Bert likes coffee\n",
        "The physician advised more sleep.\n",
    ]
    assert [result["status"] for result in returned(messages, "delete_memory")] == ["deleted"]
    assert vault.notes() == ["memories/MEMORY.md", "memories/sleep.md"]
    assert [home for _, home in kb.store.trashed()] == ["memories/deploy.md"]
    assert kb.note("memory:MEMORY").provenance == "agent"


def test_two_users_do_not_see_each_other(store: VaultMemoryStore, vault: Vault) -> None:
    def run(user: str, *turns: list[tuple[str, dict[str, Any]]]) -> list[ModelMessage]:
        memory = harness.Memory(store, namespace=lambda ctx: ctx.deps)
        agent = Agent(FunctionModel(Script(*turns)), deps_type=str, capabilities=[memory])
        return agent.run_sync("Hello.", deps=user).all_messages()

    run("alice", [("write_memory", {"content": "- Alice likes tea"})])
    run("bob", [("write_memory", {"content": "- Bob likes tea too"})])
    found = returned(run("bob", [("search_memory", {"query": "likes tea"})]), "search_memory")

    assert vault.notes() == ["memories/alice/main/MEMORY.md", "memories/bob/main/MEMORY.md"]
    assert [match["snippet"] for match in found[0]["matches"]] == ["- Bob likes tea too"]
    assert found[0]["scanned"] == 1


def test_parallel_writes_of_one_turn_are_all_kept(store: VaultMemoryStore, vault: Vault, kb: KnowledgeBase) -> None:
    script = Script([("write_memory", {"content": f"- fact number {number}"}) for number in range(6)])
    memory = harness.Memory(store)

    Agent(FunctionModel(script), capabilities=[memory]).run_sync("Hello.")

    lines = kb.note("memory:MEMORY").body.splitlines()
    assert sorted(lines) == [f"- fact number {number}" for number in range(6)]


def test_what_nobody_can_mend_is_no_retry(store: VaultMemoryStore, vault: Vault) -> None:
    vault.root.rename(vault.root.with_name("elsewhere"))

    with pytest.raises(ToolFailed):
        anyio.run(lambda: store.write("main/a.md", "tea", expected_version=None))


def test_conflicts_and_repeated_operations_are_told_in_the_harness_s_own_words(store: VaultMemoryStore) -> None:
    operation = harness.MemoryOperation(id="one", fingerprint="tea")

    async def talk() -> None:
        first = await store.write("main/a.md", "tea\n", expected_version=None, operation=operation)
        assert (first.replayed, first.existed) == (False, False)
        again = await store.get_operation(operation)
        assert (again.version, again.replayed) == (first.version, True)
        assert await store.get_operation(harness.MemoryOperation(id="two", fingerprint="tea")) is None
        with pytest.raises(harness.MemoryOperationConflictError):
            await store.get_operation(harness.MemoryOperation(id="one", fingerprint="coffee"))
        with pytest.raises(harness.MemoryConflictError):
            await store.write("main/a.md", "coffee\n", expected_version=None)
        with pytest.raises(harness.MemoryConflictError):
            await store.delete("main/a.md", expected_version="another")
        with pytest.raises(ModelRetry):
            await store.read("main/../a.md", max_chars=10)
        with pytest.raises(ValueError, match="max_chars must be positive"):
            await store.read("main/a.md", max_chars=0)
        with pytest.raises(ValueError, match="limit must be positive"):
            await store.list_paths(limit=0)
        nothing = await store.search("main/", " ", limit=10, max_files=10, max_chars=10, max_file_chars=10)
        assert nothing == harness.MemorySearchResult(matches=[], scanned=0, truncated=False)
        read = await store.read("main/a.md", max_chars=2)
        assert (read.content, read.version, read.truncated) == ("te", first.version, True)
        gone = await store.delete("main/a.md", expected_version=first.version)
        assert (gone.version, gone.existed) == (None, True)
        assert await store.read("main/a.md", max_chars=2) is None

    anyio.run(talk)


@pytest.mark.parametrize("kind", ["ours", "InMemoryStore"])
def test_our_store_and_theirs_answer_alike(kind: str, kb: KnowledgeBase) -> None:
    store: Any = VaultMemoryStore(knowledge_base=kb) if kind == "ours" else harness.InMemoryStore()

    async def talk() -> list[Any]:
        said: list[Any] = []
        first = await store.write("main/b.md", "tea and cake\n", expected_version=None)
        second = await store.write("main/b.md", "coffee and cake\n", expected_version=first.version)
        await store.write("main/a.md", "bread\n", expected_version=None)
        await store.write("other/c.md", "cake of another\n", expected_version=None)
        said += [first.existed, second.existed, first.version != second.version]
        said += [await store.list_paths("main/", limit=10), await store.list_paths("", limit=2)]
        found = await store.search("main/", "cake", limit=10, max_files=1000, max_chars=4000, max_file_chars=65536)
        said += [found.matches[0].path, found.matches[0].snippet.strip(), found.scanned]
        said += [(await store.delete("main/b.md", expected_version=second.version)).existed]
        said += [await store.list_paths("main/", limit=10), await store.read("main/b.md", max_chars=5)]
        return said

    assert anyio.run(talk) == [
        False,
        True,
        True,
        ["main/a.md", "main/b.md"],
        ["main/a.md", "main/b.md"],
        "main/b.md",
        "coffee and cake",
        2,
        True,
        ["main/a.md"],
        None,
    ]


def test_that_a_secret_was_masked_is_told_in_the_log(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    token = make("ghp_{A36}")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        store = VaultMemoryStore(knowledge_base=kb)
        content = f"The bot pushes with {token}.\n"
        anyio.run(lambda: store.write("main/bot.md", content, expected_version=None))

    assert caplog.messages == ["main/bot.md: 1 secret masked before it was written"]
    assert token not in vault.read("memories/bot.md")
