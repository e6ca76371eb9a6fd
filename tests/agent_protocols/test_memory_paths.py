"""Whatever path a model sends, the memory tool stays below `/memories`, and never makes two names that look alike."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import MemoryToolProtocol
from co_cli.settings import load_settings
from tests.vault import Vault

ESCAPES = [
    "/memories/../articles/plan.md",
    "/memories/../../outside.md",
    "/memories/a/../../../outside.md",
    "/memories/..",
    "/../memories/a.md",
    "/memories/..\\..\\outside.md",
    "/memories/a\\b.md",
    "/memories/%2e%2e/outside.md",
    "/memories/%2E%2E%2Foutside.md",
    "/memories/..%2foutside.md",
    "/memories/%252e%252e%252foutside.md",
    "/memories/%5c..%5coutside.md",
    "/memories/a\0.md",
    "/memories/a%00.md",
    "/memories/a\n.md",
]
ELSEWHERE = [
    "/etc/passwd",
    "/memoriesx/a.md",
    "memories/a.md",
    "a.md",
    "~/a.md",
    "/",
    "//memories.example/a.md",
    "file:///memories/a.md",
    "C:/memories/a.md",
    "/Memories/a.md",
]


def commands_for(path: str) -> list[dict[str, object]]:
    return [
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "mine"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "b"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/taken.md"},
        {"command": "rename", "old_path": "/memories/here.md", "new_path": path},
    ]


@pytest.fixture
def around(tmp_path: Path, vault: Vault) -> Path:
    """Files that nobody may reach."""
    vault.write("memories/here.md", "a here")
    vault.write("articles/plan.md", "a plan")
    (tmp_path / "outside.md").write_text("a secret")
    return tmp_path


def contents(around: Path) -> dict[str, bytes]:
    """Every file but the index."""
    found = (file for file in around.rglob("*") if file.is_file() and around / "data" not in file.parents)
    return {file.relative_to(around).as_posix(): file.read_bytes() for file in found}


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_would_lead_out_is_refused_by_every_command(
    path: str, around: Path, memory: MemoryToolProtocol
) -> None:
    before = contents(around)

    answers = [memory.answer(command) for command in commands_for(path)]

    assert all(answer.refused for answer in answers)
    assert {answer.text.endswith("would escape /memories directory") for answer in answers} == {True}
    assert contents(around) == before


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_path_elsewhere_is_refused_by_every_command(path: str, around: Path, memory: MemoryToolProtocol) -> None:
    before = contents(around)

    answers = [memory.call(command) for command in commands_for(path)]

    assert set(answers) == {f"Error: Path must start with /memories, got: {path}"}
    assert contents(around) == before


@pytest.mark.parametrize("path", [None, "", "  "])
def test_what_is_no_path_is_refused_with_an_example(path: str | None, memory: MemoryToolProtocol) -> None:
    assert memory.call({"command": "view", "path": path}) == "Error: view needs a path, such as /memories/notes.md"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_neither_followed_nor_shown_nor_removed(
    around: Path, vault: Vault, memory: MemoryToolProtocol
) -> None:
    (vault.root / "memories" / "link.md").symlink_to(around / "outside.md")
    (vault.root / "memories" / "folder").symlink_to(vault.root / "articles")
    before = contents(around)

    for path in ("/memories/link.md", "/memories/folder/plan.md", "/memories/folder", "/memories/folder/new.md"):
        for command in commands_for(path):
            answer = memory.answer(command)
            assert answer.refused, command
            assert "secret" not in answer.text
            assert "a plan" not in answer.text
    listing = memory.call({"command": "view", "path": "/memories"})

    assert contents(around) == before
    assert "link" not in listing
    assert "folder" not in listing
    assert memory.call({"command": "create", "path": "/memories/folder/new.md", "file_text": "x"}) == (
        "Error: Path /memories/folder/new.md leads through a link"
    )


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("elsewhere", ["elsewhere", "linked/articles"])
def test_a_memories_folder_that_is_a_link_is_not_followed(elsewhere: str, tmp_path: Path, data_dir: Path) -> None:
    (tmp_path / elsewhere).mkdir(parents=True)
    (tmp_path / elsewhere / "a.md").write_text("a secret")
    (tmp_path / "linked").mkdir(exist_ok=True)
    (tmp_path / "linked" / "memories").symlink_to(tmp_path / elsewhere)

    with KnowledgeBase.open(tmp_path / "linked", data_dir) as kb:
        memory = MemoryToolProtocol(kb)
        answers = [memory.answer(command) for path in ("/memories", "/memories/a.md") for command in commands_for(path)]

    assert all(answer.refused and "secret" not in answer.text for answer in answers)
    assert os.listdir(tmp_path / elsewhere) == ["a.md"]


def test_names_that_differ_only_in_case_are_one_name(vault: Vault, memory: MemoryToolProtocol) -> None:
    vault.write("memories/Plan.md", "a plan")
    vault.write("memories/projects/a.md", "x")

    assert memory.call({"command": "create", "path": "/memories/plan.md", "file_text": "x"}) == (
        "Error: File /memories/Plan.md already exists"
    )
    assert memory.call({"command": "create", "path": "/memories/Projects/b.md", "file_text": "x"}) == (
        "Error: File /memories/projects already exists"
    )
    assert memory.call(
        {"command": "rename", "old_path": "/memories/projects/a.md", "new_path": "/memories/PLAN.md"}
    ) == ("Error: The destination /memories/Plan.md already exists")
    assert memory.call({"command": "view", "path": "/memories/plan.md"}) == (
        "The path /memories/plan.md does not exist. Please provide a valid path."
    )
    assert vault.notes() == ["memories/Plan.md", "memories/projects/a.md"]


def test_the_case_of_a_name_can_be_changed(vault: Vault, memory: MemoryToolProtocol) -> None:
    memory.call({"command": "create", "path": "/memories/plan.md", "file_text": "a plan"})

    answer = memory.call({"command": "rename", "old_path": "/memories/plan.md", "new_path": "/memories/Plan.md"})

    assert answer == "Successfully renamed /memories/plan.md to /memories/Plan.md"
    assert vault.notes() == ["memories/Plan.md"]


def test_a_name_is_found_in_either_normal_form(vault: Vault, memory: MemoryToolProtocol) -> None:
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    vault.write(f"memories/{decomposed}/menu.md", "soup")

    assert memory.call({"command": "view", "path": f"/memories/{composed}/menu.md"}).endswith("soup")
    memory.call({"command": "create", "path": f"/memories/{composed}/new/list.md", "file_text": "x"})
    assert memory.call({"command": "create", "path": f"/memories/{composed}/menu.md", "file_text": "x"}).startswith(
        "Error: File"
    )

    assert vault.notes() == [f"memories/{decomposed}/menu.md", f"memories/{decomposed}/new/list.md"]


@pytest.mark.parametrize("path", ["/memories/.hidden.md", "/memories/.trash/a.md", "/memories/a/.b/c.md"])
def test_hidden_names_are_not_there_and_cannot_be_made(path: str, vault: Vault, memory: MemoryToolProtocol) -> None:
    vault.write(path[1:], "a secret")

    assert "does not exist" in memory.call({"command": "view", "path": path})
    assert "does not exist" in memory.call({"command": "delete", "path": path})
    assert memory.call({"command": "create", "path": path, "file_text": "x"}) == (
        f"Error: Path {path} is hidden: a name must not start with a dot"
    )
    assert vault.read(path[1:]) == "a secret"


def test_what_the_vault_excludes_is_not_there_and_cannot_be_made(vault: Vault, data_dir: Path) -> None:
    vault.write(".coignore", "memories/private/\n")
    vault.write("memories/private/diary.md", "a secret")
    vault.write("memories/open.md", "x")

    with KnowledgeBase.open(settings=load_settings({"vault": str(vault.root), "data_dir": str(data_dir)})) as kb:
        memory = MemoryToolProtocol(kb)
        listing = memory.call({"command": "view", "path": "/memories"})
        seen = memory.call({"command": "view", "path": "/memories/private/diary.md"})
        made = memory.call({"command": "create", "path": "/memories/private/more.md", "file_text": "x"})

    assert listing.split("\n")[1:] == ["1B\t/memories", "1B\t/memories/open.md"]
    assert seen == "The path /memories/private/diary.md does not exist. Please provide a valid path."
    assert made == "Error: Path /memories/private/more.md is excluded from this vault"


def test_a_name_that_no_file_system_takes_is_refused_without_a_word_about_this_machine(
    memory: MemoryToolProtocol, vault: Vault
) -> None:
    answer = memory.answer({"command": "create", "path": f"/memories/{'x' * 400}.md", "file_text": "x"})

    assert answer.refused
    assert answer.text.startswith("Error: create failed: ")
    assert str(vault.root) not in answer.text
