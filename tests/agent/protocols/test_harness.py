"""A vault as the memory store of pydantic-ai's harness: versioned files in scopes, and its genuine `Memory`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, ModelMessage, ToolReturnPart
from pydantic_ai.exceptions import ModelRetry

from co_cli.agent.harness import VaultMemoryStore
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.agent.protocols.harness_types import INSTALLED, types
from tests.agent.scripted import Script, Turn
from tests.folder import Vault
from tests.safety.fake_secrets import make

installed = pytest.mark.skipif(not INSTALLED, reason='the harness is an extra: pip install "co-cli[harness]"')
TEA = types.MemoryOperation("run-1-call-1", "append tea")


class Store:
    """The store, called without an event loop."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.store = VaultMemoryStore(knowledge_base=kb)

    def do(self, call: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        return anyio.run(partial(call, *given, **named))

    def write(self, path: str, text: str | None, version: str | None, operation: Any = None) -> Any:
        given = {"expected_version": version, "operation": operation}
        if text is None:
            return self.do(self.store.delete, path, **given)
        return self.do(self.store.write, path, text, **given)

    def version(self, path: str) -> str:
        return self.do(self.store.read, path, max_chars=1).version

    def paths(self, prefix: str = "") -> list[str]:
        return self.do(self.store.list_paths, prefix, limit=100)

    def search(self, query: str, prefix: str = "main/") -> list[str]:
        bounds = {"max_files": 100, "max_chars": 4_000, "max_file_chars": 4_000}
        return [match.path for match in self.do(self.store.search, prefix, query, limit=10, **bounds).matches]


@pytest.fixture
def scoped(kb: KnowledgeBase) -> Store:
    return Store(kb)


def test_a_scope_is_a_folder_that_sees_only_itself(scoped: Store, vault: Vault) -> None:
    scoped.write("main/MEMORY.md", "Tea for everybody.\n", None)
    scoped.write("alice/main/MEMORY.md", "Tea for Alice.\n", None)
    scoped.write("alice/MEMORY.md", "Tea for the house of Alice.\n", None)
    vault.write("memories/main/hidden.md", "The name of the home scope hides this tea.")

    assert scoped.paths() == ["alice/MEMORY.md", "alice/main/MEMORY.md", "main/MEMORY.md"]
    assert vault.files()[:2] == ["memories/MEMORY.md", "memories/alice/MEMORY.md"]
    for prefix in ("main/", "alice/", "alice/main/"):
        assert scoped.search("tea", prefix) == [f"{prefix}MEMORY.md"]
    assert scoped.search("tea", "bob/") == []


def test_a_change_needs_the_current_version(scoped: Store, vault: Vault) -> None:
    first = scoped.write("main/a.md", "one\n", None).version
    second = scoped.write("main/a.md", "two\n", first).version

    for text, version in (("three\n", first), ("three\n", None), (None, first)):
        with pytest.raises(types.MemoryConflictError):
            scoped.write("main/a.md", text, version)
    vault.write("memories/a.md", "two, says an editor\n")
    with pytest.raises(types.MemoryConflictError):
        scoped.write("main/a.md", "three\n", second)

    assert vault.read("memories/a.md") == "two, says an editor\n"


def test_a_delete_goes_to_the_trash(scoped: Store, kb: KnowledgeBase) -> None:
    version = scoped.write("main/a.md", "Blue.\n", None).version

    assert scoped.write("main/a.md", None, version) == types.MemoryMutation(None, False, True)

    assert scoped.paths() == []
    assert scoped.search("blue") == []
    assert [home for _, home in kb.store.trashed()] == ["memories/a.md"]
    assert scoped.write("main/a.md", None, None).existed is False


def test_paths_that_lead_elsewhere_are_refused(scoped: Store, vault: Vault) -> None:
    wrong = ["main/../a.md", "../a.md", "/etc/passwd", "main//a.md", "main/a b.md", "main/.", "main/ü.md", "a.md", ""]
    for path in (*wrong, "main/.a.md", "main/a\0.md"):
        with pytest.raises(ModelRetry):
            scoped.write(path, "x", None)
    vault.write("secret.md", "x")
    for name in ("_2e__2e__2f_secret.md", "a_2f__2e__2e__2f_secret.md"):
        scoped.write(f"main/{name}", "mine", None)

    assert vault.read("secret.md") == "x"
    assert vault.files() == ["memories/_2e__2e__2f_secret.md", "memories/a_2f__2e__2e__2f_secret.md", "secret.md"]


def test_a_name_that_the_harness_cannot_spell_is_escaped(scoped: Store, vault: Vault) -> None:
    names = ["übung.md", "日本語.md", "two words.md", "-dash.md", "a..b.md", "old.markdown"]
    for name in names:
        vault.write(f"memories/{name}", "Glacier.\n")

    paths = scoped.paths("main/")
    assert sorted(scoped.search("glacier")) == paths
    for path in paths:
        assert path.isascii()
        assert ".." not in path
        scoped.write(path, "Harbour.\n", scoped.version(path))

    assert vault.notes() == sorted(f"memories/{name}" for name in names)
    assert {vault.read(f"memories/{name}") for name in names} == {"Harbour.\n"}


def test_a_repeated_operation_is_not_done_twice(scoped: Store, kb: KnowledgeBase, vault: Vault) -> None:
    first = scoped.write("main/a.md", "tea\n", None, TEA)
    again = scoped.write("main/a.md", "tea\ntea\n", first.version, TEA)
    scoped.write("main/a.md", "coffee\n", first.version)

    restarted = Store(kb)
    assert again == types.MemoryMutation(first.version, True, first.existed)
    assert restarted.do(restarted.store.get_operation, TEA) == again
    assert restarted.do(restarted.store.get_operation, types.MemoryOperation("another", "append tea")) is None
    assert vault.read("memories/a.md").endswith("---\ncoffee\n")
    with pytest.raises(types.MemoryOperationConflictError):
        scoped.write("main/a.md", None, scoped.version("main/a.md"), types.MemoryOperation(TEA.id, "x"))


def test_the_version_of_a_masked_text_is_that_of_what_was_written(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    token = make("ghp_{A36}")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = Store(kb)
        first = memory.write("main/bot.md", f"The bot pushes with {token}.\n", None)
        second = memory.write("main/bot.md", f"The bot pulls with {token}.\n", first.version)

        assert second.version == memory.version("main/bot.md")
    assert token not in vault.read("memories/bot.md")


# -- with the harness -------------------------------------------------------------------------------------------------


def memory_agent(store: VaultMemoryStore, *turns: Turn, **options: Any) -> tuple[Agent[Any, str], Script]:
    from pydantic_ai_harness.memory import Memory

    script = Script(*turns, "done")
    return Agent(script.model, deps_type=str, capabilities=[Memory(store, **options)]), script


def returned(messages: list[ModelMessage], tool: str) -> list[Any]:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return [part.content for part in parts if part.tool_name == tool]


@installed
def test_memory_writes_appends_corrects_searches_reads_and_deletes(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/sleep.md", "The physician advised more sleep.\n")
    agent, _ = memory_agent(
        VaultMemoryStore(knowledge_base=kb),
        [("write_memory", {"content": "- Anna likes tea"})],
        [("write_memory", {"content": "- Bert likes coffee"})],
        [("write_memory", {"content": "green tea", "old_text": "tea"})],
        [("write_memory", {"content": "Blue takes traffic first.", "file": "deploy"})],
        [("search_memory", {"query": "what did the doctor say"})],
        [("read_memory", {"file": "MEMORY.md"}), ("read_memory", {"file": "sleep"})],
        [("delete_memory", {"file": "deploy.md"})],
        [("search_memory", {"query": "traffic"})],
    )

    messages = agent.run_sync("Hello.", deps="").all_messages()

    statuses = [result["status"] for result in returned(messages, "write_memory")]
    assert statuses == ["created", "appended", "updated", "created"]
    by_meaning, afterwards = returned(messages, "search_memory")
    assert by_meaning["matches"][0]["file"] == "sleep.md"
    assert by_meaning["scanned"] == 3
    assert "deploy.md" not in [match["file"] for match in afterwards["matches"]]
    assert returned(messages, "read_memory") == [
        "- Anna likes green tea\n- Bert likes coffee\n",
        "The physician advised more sleep.\n",
    ]
    assert [home for _, home in kb.store.trashed()] == ["memories/deploy.md"]
    assert kb.note("memory:MEMORY").provenance == "agent"


@installed
@pytest.mark.parametrize("kind", ["ours", "InMemoryStore"])
def test_our_store_and_theirs_answer_alike(kind: str, kb: KnowledgeBase) -> None:
    from pydantic_ai_harness import memory as harness

    store: Any = VaultMemoryStore(knowledge_base=kb) if kind == "ours" else harness.InMemoryStore()
    assert isinstance(store, harness.MemoryStore)
    assert isinstance(store, harness.SearchableMemoryStore)

    async def talk() -> list[Any]:
        operation = harness.MemoryOperation(id="one", fingerprint="tea")
        first = await store.write("main/b.md", "tea and cake\n", expected_version=None, operation=operation)
        again = await store.get_operation(operation)
        second = await store.write("main/b.md", "coffee and cake\n", expected_version=first.version)
        await store.write("main/a.md", "bread\n", expected_version=None)
        await store.write("other/c.md", "cake of another\n", expected_version=None)
        with pytest.raises(harness.MemoryOperationConflictError):
            await store.get_operation(harness.MemoryOperation(id="one", fingerprint="coffee"))
        with pytest.raises(harness.MemoryConflictError):
            await store.write("main/a.md", "coffee\n", expected_version=None)
        with pytest.raises(harness.MemoryConflictError):
            await store.delete("main/a.md", expected_version="another")
        said: list[Any] = [first.existed, second.existed, first.version != second.version]
        said += [again.version == first.version, again.replayed]
        said += [await store.list_paths("main/", limit=10), await store.list_paths("", limit=2)]
        found = await store.search("main/", "cake", limit=10, max_files=1000, max_chars=4000, max_file_chars=65536)
        said += [found.matches[0].path, found.matches[0].snippet.strip(), found.scanned]
        read = await store.read("main/b.md", max_chars=6)
        said += [(read.content, read.version == second.version, read.truncated)]
        said += [(await store.delete("main/b.md", expected_version=second.version)).existed]
        said += [await store.list_paths("main/", limit=10), await store.read("main/b.md", max_chars=5)]
        return said

    both = ["main/a.md", "main/b.md"]
    assert anyio.run(talk) == [
        *(False, True, True, True, True, both, both, "main/b.md", "coffee and cake", 2),
        *(("coffee", True, True), True, ["main/a.md"], None),
    ]
