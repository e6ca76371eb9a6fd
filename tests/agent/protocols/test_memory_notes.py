"""What a model writes with the memory tool are notes: found by search, kept in the trash, never torn or lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault


def refs(kb: KnowledgeBase, query: str) -> list[str]:
    return [hit.ref for hit in kb.search(query, backend="fts5").hits]


def create(memory: MemoryToolProtocol, name: str, text: str) -> str:
    return memory.answer({"command": "create", "path": f"/memories/{name}", "file_text": text}).text


def view(memory: MemoryToolProtocol, name: str) -> str:
    return memory.answer({"command": "view", "path": f"/memories/{name}"}).text


def replace(memory: MemoryToolProtocol, name: str, old: str, new: str) -> str:
    return memory.answer({"command": "str_replace", "path": f"/memories/{name}", "old_str": old, "new_str": new}).text


def test_a_created_file_is_a_note_that_search_and_its_own_path_find(
    kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol
) -> None:
    names = {
        "deploy": "memories/deploy.md",
        "v1.2": "memories/v1.2.md",
        "ops/deploy.txt": "memories/ops/deploy.txt.md",
        "old.markdown": "memories/old.markdown",
    }
    for number, (name, path) in enumerate(names.items()):
        create(memory, name, f"The pool{number} takes traffic first.\n")
        ref = "memory:" + path.removeprefix("memories/").removesuffix(".md")

        assert refs(kb, f"pool{number} traffic")[0] == ref
        assert kb.note(ref).body == f"The pool{number} takes traffic first.\n"
        assert view(memory, name).endswith(f"     1\tThe pool{number} takes traffic first.")
    assert vault.notes() == sorted(names.values())


def test_no_file_is_created_where_the_vault_has_as_many_notes_as_it_may_have(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_MOST_NOTES", "1")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = MemoryToolProtocol(kb)
        create(memory, "oak", "Oaks live long.\n")
        assert "this vault has 1 notes, and may have 1: forget some first" in create(memory, "elm", "Elms.\n")

    assert vault.notes() == ["memories/oak.md"]


def test_the_index_is_up_to_date_after_every_command(kb: KnowledgeBase, memory: MemoryToolProtocol) -> None:
    kb.sync()
    create(memory, "a.txt", "Harbour lights\n")
    create(memory, "b/c.md", "Kettle\n")
    replace(memory, "a.txt", "Harbour", "Orchard")
    memory.answer({"command": "insert", "path": "/memories/a.txt", "insert_line": 1, "insert_text": "Glacier"})
    memory.answer({"command": "rename", "old_path": "/memories/b", "new_path": "/memories/d"})
    memory.answer({"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/d/e.txt"})
    create(memory, "gone.md", "Violin\n")
    memory.answer({"command": "delete", "path": "/memories/gone.md"})

    found = {query: refs(kb, query) for query in ("harbour", "orchard", "glacier", "kettle", "violin")}
    report = kb.sync()

    moved = ["memory:d/e.txt"]
    assert found == {"harbour": [], "orchard": moved, "glacier": moved, "kettle": ["memory:d/c"], "violin": []}
    assert (report.added, report.changed, report.removed) == ([], [], [])


def test_an_edit_keeps_every_other_byte_of_a_persons_note(vault: Vault, memory: MemoryToolProtocol) -> None:
    text = "\ufeff---\r\ntitle: 'Blue'   # ours\r\nodd: [1,2]\r\n---\r\nBlue first.\r\n\r\nGreen follows.\r\n"
    vault.write("memories/blue.md", text)
    vault.write("memories/old.md", b"caf\xe9\nblue\n")
    create(memory, "mine.md", "one\r\ntwo\r\n")

    seen = view(memory, "blue.md")
    replace(memory, "blue.md", "Blue first.\n\nGreen", "Blue first.\n\nThen green")
    replace(memory, "old.md", "blue", "gr\u00fcn")

    assert "\r" not in seen
    assert "     2\ttitle: 'Blue'   # ours\n" in seen
    assert vault.path("memories/blue.md").read_bytes().decode() == text.replace("Green", "Then green")
    assert "not UTF-8" in view(memory, "old.md")
    assert vault.path("memories/old.md").read_bytes() == b"caf\xe9\nblue\n"
    replace(memory, "mine.md", "one\ntwo", "one\ntwo\nthree")
    assert vault.path("memories/mine.md").read_bytes() == b"---\nprovenance: agent\n---\none\r\ntwo\r\nthree\r\n"


def test_a_model_can_neither_exceed_nor_raise_the_limit_of_a_note(memory: MemoryToolProtocol, vault: Vault) -> None:
    text = "---\nlimit: 20\n---\nPaint the bridge.\n"
    vault.write("memories/task.md", text)
    refused = "Error: /memories/task.md has a limit of 20 characters: leave it, and shorten the text"

    assert replace(memory, "task.md", "bridge", "bridge and the tower") == refused
    assert replace(memory, "task.md", "limit: 20", "limit: 2000") == refused
    assert vault.read("memories/task.md") == text
    replace(memory, "task.md", "bridge", "tower")
    assert "Paint the tower." in vault.read("memories/task.md")


def test_a_model_can_write_frontmatter_but_not_another_author(kb: KnowledgeBase, memory: MemoryToolProtocol) -> None:
    plain = "---\nJust a line\n---\nBlue.\n"
    texts = {
        "a": "---\ntags: [ops]\n---\nBlue.\n",
        "b": "---\ntags: [ops]\nprovenance: user\n---\nBlue.\n",
        "c": "---\n# nothing\n---\nBlue.\n",
        "d": plain,
    }
    for name, text in texts.items():
        create(memory, f"{name}.md", text)

    claim = replace(memory, "a.md", "provenance: agent", "provenance: user")

    notes = {name: kb.note(f"memory:{name}") for name in texts}
    assert {note.provenance for note in notes.values()} == {"agent"}
    assert [note.tags for note in notes.values()] == [("ops",), ("ops",), (), ()]
    assert [note.body for note in notes.values()] == ["Blue.\n", "Blue.\n", "Blue.\n", plain]
    assert claim == "Error: `provenance` says who wrote a note: leave it as it is"


def test_a_model_cannot_undo_that_a_note_is_never_loaded(memory: MemoryToolProtocol, vault: Vault) -> None:
    vault.write("memories/pier.md", "---\nloading: never\nprovenance: agent\n---\nThe pier is closed.\n")

    refused = replace(memory, "pier.md", "loading: never\n", "")

    assert refused.startswith("Error: `loading` adds a note to prompts, which only the user decides")
    assert replace(memory, "pier.md", "closed", "open").startswith("The memory file has been edited")


# -- many at once -----------------------------------------------------------------------------------------------------


def together(works: list[Callable[[], str]]) -> list[str]:
    answers: list[str] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], str]) -> None:
        start.wait()
        answers.append(work())

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def test_of_many_creates_and_renames_to_one_name_one_wins_and_nothing_is_lost(
    vault: Vault, memory: MemoryToolProtocol
) -> None:
    made = together([lambda n=n: create(memory, ("race.txt", "Race.txt")[n % 2], f"writer {n}") for n in range(8)])
    for number in range(8):
        create(memory, f"n{number}.md", f"text {number}")

    def rename(number: int) -> str:
        command = {"command": "rename", "old_path": f"/memories/n{number}.md", "new_path": "/memories/one.md"}
        return memory.answer(command).text

    renamed = together([lambda n=n: rename(n) for n in range(8)])

    assert sum(answer.startswith("File created") for answer in made) == 1
    assert sum(answer.startswith("Successfully renamed") for answer in renamed) == 1
    assert renamed.count("Error: The destination /memories/one.md already exists") == 7
    assert len(vault.notes()) == 1 + 8


INSERT = """
import sys
from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.agent.protocols.test_memory_notes import insert_lines
with KnowledgeBase.open(*sys.argv[1:]) as kb:
    print("ready", flush=True)
    insert_lines(MemoryToolProtocol(kb), "right")
"""


def insert_lines(memory: MemoryToolProtocol, who: str) -> None:
    for number in range(10):
        command = {"command": "insert", "path": "/memories/log.txt", "insert_line": 1, "insert_text": f"{who}{number}"}
        assert memory.answer(command).text == "The file /memories/log.txt has been edited."


@pytest.mark.slow
def test_two_processes_insert_into_one_file_and_nothing_is_lost(
    kb: KnowledgeBase, vault: Vault, data_dir: Path, memory: MemoryToolProtocol
) -> None:
    create(memory, "log.txt", "start\n")
    command = [sys.executable, "-c", INSERT, str(vault.root), str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as other:
        assert other.stdout
        assert other.stdout.readline() == b"ready\n"
        insert_lines(memory, "left")

    assert other.returncode == 0
    lines = kb.note("memory:log.txt").body.split()
    assert sorted(lines) == sorted(["start", *(f"{who}{n}" for who in ("left", "right") for n in range(10))])
