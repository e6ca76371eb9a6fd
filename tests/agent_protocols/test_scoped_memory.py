"""A vault's memories as flat, versioned files in scopes: the plain Python under the harness's memory store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.receipts import MOST_KEPT, Receipt, Receipts
from co_cli.service.scoped_memory import Matches, Operation, OperationReusedError, ScopedMemory, alias_of
from tests.safety.fake_secrets import make
from tests.vault import Vault


@pytest.fixture
def memory(kb: KnowledgeBase) -> ScopedMemory:
    return ScopedMemory(kb)


def search(memory: ScopedMemory, query: str, prefix: str = "main/", limit: int = 10) -> Matches:
    return memory.search(prefix, query, limit, 1_000, 4_000)


def version_of(memory: ScopedMemory, path: str) -> str:
    stored = memory.read(path, 1)
    assert stored is not None
    return stored.version


def test_another_scope_is_a_folder_that_sees_only_itself(memory: ScopedMemory, vault: Vault) -> None:
    memory.write("main/MEMORY.md", "Tea for everybody.\n", None)
    memory.write("alice/main/MEMORY.md", "Tea for Alice.\n", None)
    memory.write("alice/MEMORY.md", "Tea for the house of Alice.\n", None)

    assert vault.notes() == ["memories/MEMORY.md", "memories/alice/MEMORY.md", "memories/alice/main/MEMORY.md"]
    assert memory.paths("", 10) == ["alice/MEMORY.md", "alice/main/MEMORY.md", "main/MEMORY.md"]
    for prefix in ("main/", "alice/", "alice/main/"):
        assert [match.path for match in search(memory, "tea", prefix).matches] == [f"{prefix}MEMORY.md"]
    assert search(memory, "tea", "bob/").matches == []


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


@pytest.mark.parametrize(("path", "why"), [("main/Plan.md", "only in case"), ("main/.a.md", "is hidden")])
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

    few = memory.search("main/", "glacier story", 3, 1_000, 4_000)
    short = memory.search("main/", "glacier story", 8, 1_000, 100)
    everything = memory.search("main/", "glacier story", 20, 1_000, 40_000)
    capped = memory.search("main/", "glacier story", 20, 5, 40_000)

    assert (len(few.matches), few.truncated) == (3, True)
    assert sum(len(match.path) - 5 + len(match.snippet) for match in short.matches) <= 100
    assert short.truncated
    assert (len(everything.matches), everything.scanned, everything.truncated) == (8, 8, False)
    assert capped.scanned == 5


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


def test_an_operation_that_comes_back_with_other_arguments_is_refused(memory: ScopedMemory) -> None:
    memory.write("main/a.md", "tea\n", None, Operation("one", "tea"))

    with pytest.raises(OperationReusedError):
        memory.repeated(Operation("one", "coffee"))
    with pytest.raises(OperationReusedError):
        memory.delete("main/a.md", version_of(memory, "main/a.md"), Operation("one", "coffee"))


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


@pytest.mark.parametrize("damage", ["", "[]", "{", "null", '["f"]'])
def test_a_damaged_receipt_is_none(tmp_path: Path, damage: str) -> None:
    receipts = Receipts(str(tmp_path), "vault")
    receipts.put("one", Receipt("f", "main/a.md", "v", False, True))
    (file,) = (tmp_path / "memory-operations").rglob("*.json")
    file.write_text(damage)

    assert receipts.get("one") is None
    receipts.put("one", Receipt("f", "main/a.md", "w", False, True))
    assert receipts.get("one") == Receipt("f", "main/a.md", "w", False, True)


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
