"""A vault's memories as flat, versioned files in scopes: the plain Python under the harness's memory store."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.receipts import MOST_KEPT, Receipt, Receipts
from co_cli.service.scoped_memory import Changed, Matches, Operation, OperationReusedError, ScopedMemory, alias_of
from tests.safety.fake_secrets import make
from tests.vault import Vault


@pytest.fixture
def memory(kb: KnowledgeBase) -> ScopedMemory:
    return ScopedMemory(kb)


def search(memory: ScopedMemory, query: str, prefix: str = "main/", limit: int = 10) -> Matches:
    return memory.search(prefix, query, limit, 1_000, 4_000, 65_536)


def version_of(memory: ScopedMemory, path: str) -> str:
    stored = memory.read(path, 1)
    assert stored is not None
    return stored.version


def test_the_home_scope_is_the_memories_that_are_there_already(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/blue.md", "---\ntags: [ops]\n---\nBlue first.\n")

    stored = memory.read("main/blue.md", 100)

    assert stored is not None
    assert stored.text == "---\ntags: [ops]\n---\nBlue first.\n"
    assert memory.paths("main/", 10) == ["main/blue.md"]
    assert [match.path for match in search(memory, "blue").matches] == ["main/blue.md"]


def test_another_scope_is_a_folder_that_sees_only_itself(memory: ScopedMemory, vault: Vault) -> None:
    memory.write("main/MEMORY.md", "Tea for everybody.\n", None)
    memory.write("alice/main/MEMORY.md", "Tea for Alice.\n", None)
    memory.write("alice/MEMORY.md", "Tea for the house of Alice.\n", None)

    assert vault.notes() == ["memories/MEMORY.md", "memories/alice/MEMORY.md", "memories/alice/main/MEMORY.md"]
    assert memory.paths("", 10) == ["alice/MEMORY.md", "alice/main/MEMORY.md", "main/MEMORY.md"]
    for prefix in ("main/", "alice/", "alice/main/"):
        assert [match.path for match in search(memory, "tea", prefix).matches] == [f"{prefix}MEMORY.md"]
    assert search(memory, "tea", "bob/").matches == []


def test_a_few_files_of_one_scope_are_found_among_many_of_others(memory: ScopedMemory, vault: Vault) -> None:
    for number in range(120):
        vault.write(f"memories/crowd/n{number}.md", f"Tea tea tea, says number {number}.\n")
    vault.write("memories/alice/quiet.md", "A long text about many things, and once, in passing, about tea as well.\n")

    found = search(memory, "tea", "alice/")

    assert [match.path for match in found.matches] == ["alice/quiet.md"]
    assert (found.scanned, found.truncated) == (1, False)


def test_without_a_home_every_path_is_a_path_in_the_folder(kb: KnowledgeBase, vault: Vault) -> None:
    memory = ScopedMemory(kb, home=None)
    memory.write("main/a.md", "Blue.", None)
    memory.write("b.md", "Green.", None)

    assert vault.notes() == ["memories/b.md", "memories/main/a.md"]
    assert memory.paths("", 10) == ["b.md", "main/a.md"]
    assert [match.path for match in search(memory, "blue").matches] == ["main/a.md"]


def test_a_folder_that_the_name_of_home_hides_is_not_mixed_up_with_it(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/a.md", "Blue.")
    vault.write("memories/main/a.md", "Green.")

    stored = memory.read("main/a.md", 10)

    assert stored is not None
    assert stored.text == "Blue."
    assert memory.paths("", 10) == ["main/a.md"]
    assert "Green." not in [match.snippet for match in search(memory, "green").matches]


def test_a_write_is_found_by_search_before_it_returns_and_says_who_wrote_it(
    memory: ScopedMemory, kb: KnowledgeBase, vault: Vault
) -> None:
    changed = memory.write("main/MEMORY.md", "- Anna likes tea\n", None)

    assert (changed.existed, changed.repeated) == (False, False)
    assert changed.version == version_of(memory, "main/MEMORY.md")
    assert [hit.ref for hit in kb.search("tea").hits] == ["memory:MEMORY"]
    assert kb.note("memory:MEMORY").provenance == "agent"
    stored = memory.read("main/MEMORY.md", 100)
    assert stored is not None
    assert stored.text == "- Anna likes tea\n"


def test_a_change_needs_the_version_that_is_there(memory: ScopedMemory, vault: Vault) -> None:
    first = memory.write("main/a.md", "one\n", None).version
    second = memory.write("main/a.md", "two\n", first).version

    with pytest.raises(NoteConflictError):
        memory.write("main/a.md", "three\n", first)
    with pytest.raises(NoteConflictError):
        memory.write("main/a.md", "three\n", None)
    with pytest.raises(NoteConflictError):
        memory.delete("main/a.md", first)
    vault.write("memories/a.md", "two, says an editor\n")
    with pytest.raises(NoteConflictError):
        memory.write("main/a.md", "three\n", second)

    assert vault.read("memories/a.md") == "two, says an editor\n"


def test_a_delete_goes_to_the_trash(memory: ScopedMemory, kb: KnowledgeBase, vault: Vault) -> None:
    version = memory.write("main/a.md", "Blue.\n", None).version

    changed = memory.delete("main/a.md", version)

    assert (changed.version, changed.existed) == (None, True)
    assert memory.read("main/a.md", 10) is None
    assert search(memory, "blue").matches == []
    assert [home for _, home in kb.store.trashed()] == ["memories/a.md"]
    assert memory.delete("main/a.md", None).existed is False


def test_a_read_gives_the_beginning_and_says_that_there_is_more(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/a.md", "0123456789")

    stored = memory.read("main/a.md", 4)

    assert stored is not None
    assert (stored.text, stored.truncated) == ("0123", True)


def test_line_endings_stay_as_they_are(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/a.md", "one\r\ntwo\r\n")

    stored = memory.read("main/a.md", 100)
    assert stored is not None
    memory.write("main/a.md", stored.text + "three\n", stored.version)

    assert vault.root.joinpath("memories/a.md").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_a_file_that_is_not_utf_8_is_read_and_not_written(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/a.md", b"caf\xe9")

    stored = memory.read("main/a.md", 100)

    assert stored is not None
    assert stored.text == "caf\ufffd"
    with pytest.raises(InvalidInputError, match="not valid UTF-8"):
        memory.write("main/a.md", "new", stored.version)
    assert vault.root.joinpath("memories/a.md").read_bytes() == b"caf\xe9"


@pytest.mark.parametrize(
    "path", ["main/../a.md", "../a.md", "/etc/passwd", "main//a.md", "main/a b.md", "main/.", "main/ü.md", "a.md", ""]
)
def test_a_path_that_is_none_is_refused(path: str, memory: ScopedMemory, vault: Vault) -> None:
    with pytest.raises(InvalidInputError):
        memory.read(path, 10)
    with pytest.raises(InvalidInputError):
        memory.write(path, "x", None)
    assert vault.files() == []


@pytest.mark.parametrize(("path", "why"), [("main/Plan.md", "but for case"), ("main/.a.md", "is hidden")])
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(
    path: str, why: str, memory: ScopedMemory, vault: Vault
) -> None:
    vault.write("memories/plan.md", "Blue.")

    with pytest.raises(InvalidInputError, match=why):
        memory.write(path, "x", None)

    assert vault.files() == ["memories/plan.md"]


@pytest.mark.parametrize(
    "name", ["übung-macht-den-meister.md", "日本語.md", "two words.md", "x" * 90 + ".md", "old.markdown"]
)
def test_a_name_that_cannot_be_spelled_has_an_alias_that_leads_to_its_file(
    name: str, memory: ScopedMemory, vault: Vault
) -> None:
    vault.write(f"memories/{name}", "Glacier.\n")

    (path,) = memory.paths("main/", 10)
    (match,) = search(memory, "glacier").matches
    stored = memory.read(path, 100)
    assert stored is not None
    memory.write(path, stored.text + "Harbour.\n", stored.version)

    assert match.path == path
    assert path.removeprefix("main/") == alias_of(name)
    assert len(path) <= 80 + len("main/")
    assert path.isascii()
    assert vault.notes() == [f"memories/{name}"]
    assert vault.read(f"memories/{name}") == "Glacier.\nHarbour.\n"


def test_a_search_keeps_to_the_characters_and_the_number_that_it_was_given(memory: ScopedMemory, vault: Vault) -> None:
    for number in range(8):
        vault.write(f"memories/n{number}.md", f"Glacier number {number} and a long story about it. " * 20)

    few = memory.search("main/", "glacier story", 3, 1_000, 4_000, 65_536)
    short = memory.search("main/", "glacier story", 8, 1_000, 100, 65_536)
    everything = memory.search("main/", "glacier story", 20, 1_000, 40_000, 65_536)
    partly = memory.search("main/", "glacier story", 20, 1_000, 40_000, 50)
    capped = memory.search("main/", "glacier story", 20, 5, 40_000, 65_536)

    assert (len(few.matches), few.truncated) == (3, True)
    assert sum(len(match.path) - 5 + len(match.snippet) for match in short.matches) <= 100
    assert short.truncated
    assert (len(everything.matches), everything.scanned, everything.truncated) == (8, 8, False)
    assert partly.truncated
    assert capped.scanned == 5


def test_a_search_finds_by_meaning(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/invoice.md", "The invoice is due on Friday.")
    vault.write("memories/sleep.md", "The physician advised more sleep.")
    vault.write("memories/oaks.md", "Oaks live for centuries.")

    assert search(memory, "what did the doctor say").matches[0].path == "main/sleep.md"


def test_a_search_sees_a_file_that_an_editor_saved_a_moment_ago(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/a.md", "Harbour.")

    assert [match.path for match in search(ScopedMemory(kb), "harbour").matches] == ["main/a.md"]


# -- repeated operations -----------------------------------------------------------------------------------------------


def test_an_operation_that_is_repeated_is_not_done_twice(memory: ScopedMemory, kb: KnowledgeBase, vault: Vault) -> None:
    operation = Operation("run-1-call-1", "append tea")
    first = memory.write("main/a.md", "tea\n", None, operation)

    again = memory.write("main/a.md", "tea\ntea\n", first.version, operation)
    after_a_restart = ScopedMemory(kb).repeated(operation)

    assert again == first._replace(repeated=True)
    assert after_a_restart == again
    assert memory.repeated(Operation("run-1-call-2", "append tea")) is None
    assert vault.read("memories/a.md").endswith("---\ntea\n")


def test_an_operation_counts_as_done_also_when_its_file_changed_since(memory: ScopedMemory) -> None:
    operation = Operation("one", "tea")
    first = memory.write("main/a.md", "tea\n", None, operation)
    deletion = Operation("two", "delete")
    memory.write("main/a.md", "coffee\n", first.version)
    memory.delete("main/a.md", version_of(memory, "main/a.md"), deletion)
    memory.write("main/a.md", "juice\n", None)

    assert memory.repeated(operation) == first._replace(repeated=True)
    assert memory.repeated(deletion) == Changed(None, existed=True, repeated=True)


def test_an_operation_that_comes_back_with_other_arguments_is_refused(memory: ScopedMemory) -> None:
    memory.write("main/a.md", "tea\n", None, Operation("one", "tea"))

    with pytest.raises(OperationReusedError):
        memory.repeated(Operation("one", "coffee"))
    with pytest.raises(OperationReusedError):
        memory.delete("main/a.md", version_of(memory, "main/a.md"), Operation("one", "coffee"))


def test_a_repeated_delete_says_that_the_file_was_there(memory: ScopedMemory) -> None:
    version = memory.write("main/a.md", "tea\n", None).version
    operation = Operation("one", "delete")

    assert memory.delete("main/a.md", version, operation).existed
    assert memory.delete("main/a.md", None, operation) == Changed(None, existed=True, repeated=True)


@pytest.mark.parametrize("landed", [True, False])
def test_an_operation_that_was_killed_counts_if_its_change_is_there(
    landed: bool, memory: ScopedMemory, kb: KnowledgeBase, vault: Vault
) -> None:
    operation = Operation("one", "tea")
    changed = memory.write("main/a.md", "tea\n", None, operation)
    receipts = Receipts(kb.settings.data_dir, kb.root)
    receipt = receipts.get("one")
    assert receipt is not None
    receipts.put("one", receipt._replace(done=False))
    if not landed:
        vault.delete("memories/a.md")

    assert memory.repeated(operation) == (changed._replace(repeated=True) if landed else None)


def test_receipts_do_not_pile_up(tmp_path: Path) -> None:
    receipts = Receipts(str(tmp_path), "vault")
    receipts.put("first", Receipt("f", "main/a.md", "v", False, True))
    (folder,) = (tmp_path / "memory-operations").iterdir()
    for number in range(MOST_KEPT):
        (folder / f"{number}.json").write_text("[]")

    receipts.put("last", Receipt("f", "main/a.md", "v", False, False))

    assert len(list(folder.iterdir())) <= MOST_KEPT // 2 + 1
    assert receipts.get("last") is not None


def test_of_many_writers_with_one_version_one_wins(memory: ScopedMemory, vault: Vault) -> None:
    version = memory.write("main/a.md", "start\n", None).version
    won: list[int] = []
    lost: list[int] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        try:
            memory.write("main/a.md", f"writer {number}\n", version)
            won.append(number)
        except NoteConflictError:
            lost.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert (len(won), len(lost)) == (1, 7)
    assert vault.read("memories/a.md").endswith(f"writer {won[0]}\n")


def test_the_plain_python_under_the_doors_imports_neither_pydantic_nor_the_harness() -> None:
    code = (
        "import sys, co_cli.service.memory_protocol, co_cli.service.scoped_memory;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'pydantic', 'pydantic_ai', 'numpy', 'mcp'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("damage", ["", "[]", "{", "null", '["f"]'])
def test_a_damaged_receipt_is_none(tmp_path: Path, damage: str) -> None:
    receipts = Receipts(str(tmp_path), "vault")
    receipts.put("one", Receipt("f", "main/a.md", "v", False, True))
    (file,) = (tmp_path / "memory-operations").rglob("*.json")
    file.write_text(damage)

    assert receipts.get("one") is None
    receipts.put("one", Receipt("f", "main/a.md", "w", False, True))
    assert receipts.get("one") == Receipt("f", "main/a.md", "w", False, True)


def test_a_file_longer_than_a_store_reads_is_said_to_be_cut(memory: ScopedMemory, vault: Vault) -> None:
    vault.write("memories/ascii.md", "zebra " * 20)
    vault.write("memories/wide.md", "é" * 90 + " zebra")

    assert memory.search("main/", "zebra", 10, 100, 4_000, 130).truncated is False
    assert memory.search("main/", "zebra", 10, 100, 4_000, 110).truncated is True


def test_the_version_of_a_text_that_was_masked_is_that_of_what_was_written(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    token = make("ghp_{A36}")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = ScopedMemory(kb)
        first = memory.write("main/bot.md", f"The bot pushes with {token}.\n", None, Operation("one", "f"))
        again = memory.write("main/bot.md", f"The bot pushes with {token}.\n", None, Operation("one", "f"))
        second = memory.write("main/bot.md", f"The bot pulls with {token}.\n", first.version)

        assert token not in vault.read("memories/bot.md")
        assert first.version == again.version
        assert second.version == version_of(memory, "main/bot.md")
        assert (first.masked, again.repeated, second.masked) == (1, True, 1)
