"""What a model does with the memory tool happens to notes: found by search, kept in the trash, never torn."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import MemoryToolProtocol
from co_cli.settings import load_settings
from tests.rights import can_obey, obey_permissions
from tests.vault import Vault


def refs(kb: KnowledgeBase, query: str) -> list[str]:
    return [hit.ref for hit in kb.search(query, backend="fts5").hits]


@pytest.mark.parametrize(
    ("path", "file", "ref", "listed"),
    [
        ("/memories/deploy.md", "memories/deploy.md", "memory:deploy", "/memories/deploy.md"),
        ("/memories/deploy.txt", "memories/deploy.txt.md", "memory:deploy.txt", "/memories/deploy.txt"),
        ("/memories/deploy.xml", "memories/deploy.xml.md", "memory:deploy.xml", "/memories/deploy.xml"),
        ("/memories/deploy", "memories/deploy.md", "memory:deploy", "/memories/deploy.md"),
        ("/memories/v1.2", "memories/v1.2.md", "memory:v1.2", "/memories/v1.2.md"),
        ("/memories/ops/deploy.txt", "memories/ops/deploy.txt.md", "memory:ops/deploy.txt", "/memories/ops/deploy.txt"),
        (
            "/memories/deploy.markdown",
            "memories/deploy.markdown",
            "memory:deploy.markdown",
            "/memories/deploy.markdown",
        ),
    ],
)
def test_what_a_model_creates_is_a_note_and_is_found_by_search_and_by_its_own_path(
    path: str, file: str, ref: str, listed: str, kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol
) -> None:
    memory.call({"command": "create", "path": path, "file_text": "The blue pool takes traffic first.\n"})

    assert vault.notes() == [file]
    assert refs(kb, "blue pool traffic") == [ref]
    assert kb.note(ref).body == "The blue pool takes traffic first.\n"
    assert memory.call({"command": "view", "path": path}).endswith("     1\tThe blue pool takes traffic first.")
    assert memory.call({"command": "view", "path": "/memories"}).endswith(f"\t{listed}")
    assert memory.call({"command": "view", "path": listed}).endswith("     1\tThe blue pool takes traffic first.")


def test_a_sync_finds_nothing_left_to_do_after_every_command(
    kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol
) -> None:
    kb.sync()
    memory.call({"command": "create", "path": "/memories/a.txt", "file_text": "Harbour lights\n"})
    memory.call({"command": "create", "path": "/memories/b/c.md", "file_text": "Kettle\n"})
    memory.call({"command": "str_replace", "path": "/memories/a.txt", "old_str": "Harbour", "new_str": "Orchard"})
    memory.call({"command": "insert", "path": "/memories/a.txt", "insert_line": 1, "insert_text": "Glacier"})
    memory.call({"command": "rename", "old_path": "/memories/b", "new_path": "/memories/d"})
    memory.call({"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/d/e.txt"})
    memory.call({"command": "create", "path": "/memories/gone.md", "file_text": "Violin\n"})
    memory.call({"command": "delete", "path": "/memories/gone.md"})

    found = {query: refs(kb, query) for query in ("harbour", "orchard", "glacier", "kettle", "violin")}
    report = kb.sync()

    assert found == {
        "harbour": [],
        "orchard": ["memory:d/e.txt"],
        "glacier": ["memory:d/e.txt"],
        "kettle": ["memory:d/c"],
        "violin": [],
    }
    assert (report.added, report.changed, report.removed) == ([], [], [])


def test_a_deleted_file_can_be_restored(kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol) -> None:
    memory.call({"command": "create", "path": "/memories/ops/deploy.txt", "file_text": "Blue first.\n"})
    memory.call({"command": "create", "path": "/memories/ops/rollback.txt", "file_text": "Green last.\n"})
    memory.call({"command": "delete", "path": "/memories/ops"})

    assert vault.notes() == []
    assert refs(kb, "blue") == []
    kb.restore("memory:ops/deploy.txt")

    assert refs(kb, "blue") == ["memory:ops/deploy.txt"]
    assert memory.call({"command": "view", "path": "/memories/ops/deploy.txt"}).endswith("     1\tBlue first.")


def test_with_overwrite_the_old_version_goes_to_the_trash(kb: KnowledgeBase, vault: Vault) -> None:
    memory = MemoryToolProtocol(kb, overwrite=True)
    vault.write("memories/plan.md", "---\ntags: [ops]\n---\nThe old plan.\n")
    kb.sync()

    answer = memory.call({"command": "create", "path": "/memories/plan.md", "file_text": "The new plan.\n"})

    assert answer == "File created successfully at: /memories/plan.md"
    assert refs(kb, "new plan") == ["memory:plan"]
    assert refs(kb, "old") == []
    ((kept, home),) = kb.store.trashed()
    assert home == "memories/plan.md"
    assert vault.read(kept) == "---\ntags: [ops]\n---\nThe old plan.\n"


def test_a_persons_note_is_seen_and_edited_as_it_is(
    kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol
) -> None:
    text = "\ufeff---\r\ntitle: 'Blue'   # ours\r\nodd: [1,2]\r\n---\r\nBlue first.\r\n\r\nGreen follows.\r\n"
    vault.write("memories/blue.md", text)

    seen = memory.call({"command": "view", "path": "/memories/blue.md"})
    memory.call(
        {
            "command": "str_replace",
            "path": "/memories/blue.md",
            "old_str": "Blue first.\n\nGreen",
            "new_str": "Blue first.\n\nThen green",
        }
    )

    assert "\r" not in seen
    assert "     2\ttitle: 'Blue'   # ours\n" in seen
    assert (vault.root / "memories/blue.md").read_bytes().decode() == text.replace("Green", "Then green")
    assert kb.note("memory:blue").title == "Blue"


def test_bytes_that_are_no_utf_8_survive_an_edit(vault: Vault, memory: MemoryToolProtocol) -> None:
    vault.write("memories/old.md", b"caf\xe9\nblue\n")

    seen = memory.call({"command": "view", "path": "/memories/old.md"})
    memory.call({"command": "str_replace", "path": "/memories/old.md", "old_str": "blue", "new_str": "gr\u00fcn"})

    assert "caf\ufffd" in seen
    assert (vault.root / "memories/old.md").read_bytes() == b"caf\xe9\ngr\xc3\xbcn\n"


@pytest.mark.parametrize("data", [b"\xff\xfea\0b\0", b"a\0b"])
def test_what_is_not_text_is_refused(data: bytes, vault: Vault, memory: MemoryToolProtocol) -> None:
    vault.write("memories/odd.md", data)

    assert memory.call({"command": "view", "path": "/memories/odd.md"}) == "Error: /memories/odd.md is not UTF-8 text"
    assert memory.call({"command": "insert", "path": "/memories/odd.md", "insert_line": 0, "insert_text": "x"}) == (
        "Error: /memories/odd.md is not UTF-8 text"
    )
    assert (vault.root / "memories/odd.md").read_bytes() == data


def test_a_note_that_would_be_too_long_for_the_index_is_refused(vault: Vault, data_dir: Path) -> None:
    flags = {"vault": str(vault.root), "data_dir": str(data_dir), "knowledge_max_note_bytes": "1000"}
    with KnowledgeBase.open(settings=load_settings(flags)) as kb:
        memory = MemoryToolProtocol(kb)
        memory.call({"command": "create", "path": "/memories/a.txt", "file_text": "short"})
        created = memory.call({"command": "create", "path": "/memories/b.txt", "file_text": "x" * 2000})
        added = memory.call(
            {"command": "insert", "path": "/memories/a.txt", "insert_line": 1, "insert_text": "x" * 980}
        )

    expected = "Error: /memories/{} would have {} bytes; the limit is 1,000: split it into several files"
    assert created == expected.format("b.txt", "2,026")
    assert added == expected.format("a.txt", "1,013")
    assert vault.notes() == ["memories/a.txt.md"]


# -- who said it ------------------------------------------------------------------------------------------------------


def test_what_a_model_writes_says_so_and_the_model_does_not_see_it(
    kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol
) -> None:
    memory.call({"command": "create", "path": "/memories/a.txt", "file_text": "one\ntwo\n"})
    memory.call({"command": "insert", "path": "/memories/a.txt", "insert_line": 1, "insert_text": "one and a half"})

    assert vault.read("memories/a.txt.md") == "---\nprovenance: agent\n---\none\none and a half\ntwo\n"
    assert kb.note("memory:a.txt").provenance == "agent"
    assert memory.call({"command": "view", "path": "/memories/a.txt"}) == (
        "Here's the content of /memories/a.txt with line numbers:\n     1\tone\n     2\tone and a half\n     3\ttwo"
    )


@pytest.mark.parametrize(
    "text",
    [
        "---\ntags: [ops]\n---\nBlue.\n",
        "---\ntags: [ops]\nprovenance: user\n---\nBlue.\n",
        "---\n# nothing\n---\nBlue.\n",
    ],
)
def test_frontmatter_of_the_models_own_counts_and_says_who_wrote_it(
    text: str, kb: KnowledgeBase, memory: MemoryToolProtocol
) -> None:
    memory.call({"command": "create", "path": "/memories/a.md", "file_text": text})

    note = kb.note("memory:a")
    assert note.provenance == "agent"
    assert note.body == "Blue.\n"
    assert note.tags == (("ops",) if "ops" in text else ())


def test_text_that_only_looks_like_frontmatter_stays_text(kb: KnowledgeBase, memory: MemoryToolProtocol) -> None:
    text = "---\nJust a line\n---\nBlue.\n"
    memory.call({"command": "create", "path": "/memories/a.md", "file_text": text})

    assert kb.note("memory:a").body == text
    assert kb.note("memory:a").provenance == "agent"


def test_a_model_cannot_say_that_somebody_else_wrote_it(kb: KnowledgeBase, memory: MemoryToolProtocol) -> None:
    memory.call({"command": "create", "path": "/memories/a.md", "file_text": "---\ntags: [ops]\n---\nBlue.\n"})

    answer = memory.call(
        {
            "command": "str_replace",
            "path": "/memories/a.md",
            "old_str": "provenance: agent",
            "new_str": "provenance: user",
        }
    )

    assert answer == "Error: `provenance` says who wrote a note: leave it as it is"
    assert kb.note("memory:a").provenance == "agent"


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


def test_of_many_creates_of_one_file_one_wins(kb: KnowledgeBase, vault: Vault, memory: MemoryToolProtocol) -> None:
    def create(number: int) -> Callable[[], str]:
        path = "/memories/race.txt" if number % 2 else "/memories/Race.txt"
        return lambda: memory.call({"command": "create", "path": path, "file_text": f"writer {number}"})

    answers = together([create(number) for number in range(16)])

    assert sum(answer.startswith("File created") for answer in answers) == 1
    assert sum(answer.lower() == "error: file /memories/race.txt already exists" for answer in answers) == 15
    assert len(vault.notes()) == 1


def test_of_many_renames_to_one_name_one_wins_and_no_file_is_lost(vault: Vault, memory: MemoryToolProtocol) -> None:
    for number in range(8):
        memory.call({"command": "create", "path": f"/memories/n{number}.md", "file_text": f"text {number}"})

    def rename(number: int) -> Callable[[], str]:
        return lambda: memory.call(
            {"command": "rename", "old_path": f"/memories/n{number}.md", "new_path": "/memories/one.md"}
        )

    answers = together([rename(number) for number in range(8)])

    assert sum(answer.startswith("Successfully renamed") for answer in answers) == 1
    assert answers.count("Error: The destination /memories/one.md already exists") == 7
    assert len(vault.notes()) == 8


def test_two_processes_append_to_one_file_and_nothing_is_lost(
    kb: KnowledgeBase, vault: Vault, data_dir: Path, memory: MemoryToolProtocol
) -> None:
    memory.call({"command": "create", "path": "/memories/log.txt", "file_text": "start\n"})
    code = """
import sys
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import MemoryToolProtocol
vault, data_dir, who = sys.argv[1:]
with KnowledgeBase.open(vault, data_dir) as kb:
    memory = MemoryToolProtocol(kb)
    for number in range(10):
        command = {"command": "insert", "path": "/memories/log.txt", "insert_line": 1, "insert_text": f"{who}{number}"}
        assert memory.call(command) == "The file /memories/log.txt has been edited."
"""
    arguments = [sys.executable, "-c", code, str(vault.root), str(data_dir)]
    processes = [subprocess.Popen([*arguments, who]) for who in ("left", "right")]

    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(kb.note("memory:log.txt").body.split()) == 21


def test_an_editor_that_saves_in_between_is_not_overwritten(vault: Vault, memory: MemoryToolProtocol) -> None:
    vault.write("memories/a.md", "Blue.\n")
    file = memory.files.read("memories/a.md")
    vault.write("memories/a.md", "Blue, says the editor.\n")

    with pytest.raises(Exception, match="was changed meanwhile"):
        memory.files.change(file, "Green.\n")

    assert vault.read("memories/a.md") == "Blue, says the editor.\n"


def test_without_an_index_files_are_written_and_found_by_the_next_sync(vault: Vault, data_dir: Path) -> None:
    data_dir.write_text("a file where the folder of search.db should be")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = MemoryToolProtocol(kb)
        answer = memory.call({"command": "create", "path": "/memories/a.txt", "file_text": "Blue."})
        renamed = memory.call({"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/b.txt"})
        deleted = memory.call({"command": "delete", "path": "/memories/b.txt"})
        memory.call({"command": "create", "path": "/memories/c.txt", "file_text": "Blue."})
    data_dir.unlink()

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        found = refs(kb, "blue")

    assert answer == "File created successfully at: /memories/a.txt"
    assert renamed == "Successfully renamed /memories/a.txt to /memories/b.txt"
    assert deleted == "Successfully deleted /memories/b.txt"
    assert found == ["memory:c.txt"]


@pytest.mark.skipif(not can_obey(), reason="permissions do not apply to this user")
def test_a_folder_without_rights_is_reported_without_a_word_about_this_machine(vault: Vault, data_dir: Path) -> None:
    code = """
import json, sys
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import MemoryToolProtocol
with KnowledgeBase.open(*sys.argv[1:]) as kb:
    memory = MemoryToolProtocol(kb)
    print(json.dumps([
        memory.answer({"command": "view", "path": "/memories"}),
        memory.answer({"command": "create", "path": "/memories/a.md", "file_text": "x"}),
        memory.answer({"command": "delete", "path": "/memories/here.md"}),
    ]))
"""
    vault.write("memories/here.md", "x")
    (vault.root / "memories").chmod(0o000)
    try:
        arguments = [sys.executable, "-c", code, str(vault.root), str(data_dir)]
        ran = subprocess.run(arguments, capture_output=True, text=True, check=True, preexec_fn=obey_permissions)
    finally:
        (vault.root / "memories").chmod(0o755)

    assert json.loads(ran.stdout) == [
        ["Error: view failed: Permission denied", True],
        ["Error: create failed: Permission denied", True],
        ["Error: delete failed: Permission denied", True],
    ]
