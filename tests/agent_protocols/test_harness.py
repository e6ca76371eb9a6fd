"""A vault as the memory store of pydantic-ai's harness: versioned files in scopes, and its genuine `Memory`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, ModelMessage, ToolReturnPart

from co_cli.agent.harness import OperationReusedError, ScopedMemory, VaultMemoryStore
from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script, Turn
from tests.safety.fake_secrets import make
from tests.vault import Vault

installed = pytest.mark.skipif(
    importlib.util.find_spec("pydantic_ai_harness") is None,
    reason='the harness is an extra: pip install "co-cli[harness]"',
)
TEA = SimpleNamespace(id="run-1-call-1", fingerprint="append tea")


@pytest.fixture
def scoped(kb: KnowledgeBase) -> ScopedMemory:
    return ScopedMemory(kb)


def search(memory: ScopedMemory, query: str, prefix: str = "main/") -> list[str]:
    return [path for path, _, _ in memory.search(prefix, query, 10, 4_000)[0]]


def version_of(memory: ScopedMemory, path: str) -> str:
    stored = memory.read(path, 1)
    assert stored is not None
    return stored[1]


def test_a_scope_is_a_folder_that_sees_only_itself(scoped: ScopedMemory, vault: Vault) -> None:
    scoped.write("main/MEMORY.md", "Tea for everybody.\n", None)
    scoped.write("alice/main/MEMORY.md", "Tea for Alice.\n", None)
    scoped.write("alice/MEMORY.md", "Tea for the house of Alice.\n", None)
    vault.write("memories/main/hidden.md", "The name of the home scope hides this tea.")

    assert scoped.paths("") == ["alice/MEMORY.md", "alice/main/MEMORY.md", "main/MEMORY.md"]
    assert vault.files()[:2] == ["memories/MEMORY.md", "memories/alice/MEMORY.md"]
    for prefix in ("main/", "alice/", "alice/main/"):
        assert search(scoped, "tea", prefix) == [f"{prefix}MEMORY.md"]
    assert search(scoped, "tea", "bob/") == []


def test_a_change_needs_the_current_version(scoped: ScopedMemory, vault: Vault) -> None:
    first = scoped.write("main/a.md", "one\n", None).version
    second = scoped.write("main/a.md", "two\n", first).version

    for text, version in (("three\n", first), ("three\n", None), (None, first)):
        with pytest.raises(NoteConflictError):
            scoped.write("main/a.md", text, version)
    vault.write("memories/a.md", "two, says an editor\n")
    with pytest.raises(NoteConflictError):
        scoped.write("main/a.md", "three\n", second)

    assert vault.read("memories/a.md") == "two, says an editor\n"


def test_a_delete_goes_to_the_trash(scoped: ScopedMemory, kb: KnowledgeBase) -> None:
    version = scoped.write("main/a.md", "Blue.\n", None).version

    assert scoped.write("main/a.md", None, version) == (None, False, True)

    assert scoped.read("main/a.md", 10) is None
    assert search(scoped, "blue") == []
    assert [home for _, home in kb.store.trashed()] == ["memories/a.md"]
    assert scoped.write("main/a.md", None, None).existed is False


def test_paths_that_lead_elsewhere_are_refused(scoped: ScopedMemory, vault: Vault) -> None:
    wrong = ["main/../a.md", "../a.md", "/etc/passwd", "main//a.md", "main/a b.md", "main/.", "main/ü.md", "a.md", ""]
    for path in (*wrong, "main/.a.md", "main/_2e__2e__2f_secret.md"):
        with pytest.raises(InvalidInputError):
            scoped.write(path, "x", None)
    vault.write("secret.md", "x")
    scoped.write("main/a_2f__2e__2e__2f_secret.md", "mine", None)

    assert vault.read("secret.md") == "x"
    assert vault.files() == ["memories/a_2f__2e__2e__2f_secret.md", "secret.md"]


def test_a_name_that_the_harness_cannot_spell_is_escaped(scoped: ScopedMemory, vault: Vault) -> None:
    names = ["übung.md", "日本語.md", "two words.md", "-dash.md", "a..b.md", "old.markdown"]
    for name in names:
        vault.write(f"memories/{name}", "Glacier.\n")

    paths = scoped.paths("main/")
    assert sorted(search(scoped, "glacier")) == paths
    for path in paths:
        assert path.isascii()
        assert ".." not in path
        scoped.write(path, "Harbour.\n", version_of(scoped, path))

    assert vault.notes() == sorted(f"memories/{name}" for name in names)
    assert {vault.read(f"memories/{name}") for name in names} == {"Harbour.\n"}


def test_a_repeated_operation_is_not_done_twice(scoped: ScopedMemory, kb: KnowledgeBase, vault: Vault) -> None:
    first = scoped.write("main/a.md", "tea\n", None, TEA)
    again = scoped.write("main/a.md", "tea\ntea\n", first.version, TEA)
    scoped.write("main/a.md", "coffee\n", first.version)

    assert again == first._replace(replayed=True)
    assert ScopedMemory(kb).replayed(TEA) == again
    assert scoped.replayed(SimpleNamespace(id="another", fingerprint="append tea")) is None
    assert vault.read("memories/a.md").endswith("---\ncoffee\n")
    with pytest.raises(OperationReusedError):
        scoped.write("main/a.md", None, version_of(scoped, "main/a.md"), SimpleNamespace(id=TEA.id, fingerprint="x"))


def test_the_version_of_a_masked_text_is_that_of_what_was_written(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    token = make("ghp_{A36}")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = ScopedMemory(kb)
        first = memory.write("main/bot.md", f"The bot pushes with {token}.\n", None, TEA)
        again = memory.write("main/bot.md", f"The bot pushes with {token}.\n", None, TEA)
        second = memory.write("main/bot.md", f"The bot pulls with {token}.\n", first.version)

        assert again == first._replace(replayed=True)
        assert second.version == version_of(memory, "main/bot.md")
    assert token not in vault.read("memories/bot.md")
    assert caplog.messages == ["main/bot.md: 1 secret masked before it was written"] * 2


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
