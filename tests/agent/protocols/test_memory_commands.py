"""Every command of Anthropic's memory tool and every error that it documents, and which paths it refuses.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault

LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
SEEN = "Here's the content of /memories/notes.md with line numbers:\n"
RANGE = "It should be within the range of lines of the file: [1, 6]"
LINES = "It should be within the range of lines of the file: [0, 6]"
NAMES = "'view', 'create', 'str_replace', 'insert', 'delete' or 'rename'"
NOWHERE = "The path /memories/nowhere.md does not exist. Please provide a valid path."
SUCCESSES = ("Here", "File created", "The memory file", "The file /", "Successfully")


def on(command: str, name: str = "notes.md", **more: Any) -> dict[str, Any]:
    return {"command": command, "path": f"/memories/{name}".rstrip("/"), **more}


def rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": f"/memories{old}", "new_path": f"/memories{new}"}


ANSWERS: list[tuple[dict[str, Any], str]] = [
    (on("view", view_range=[2, 3]), SEEN + "     2\ttwo\n     3\tthree"),
    (on("view", view_range=[5, -1]), SEEN + "     5\tfive\n     6\tsix"),
    (on("view", view_range=[6, 99], path="/memories//./notes"), SEEN.replace(".md", "") + "     6\tsix"),
    (on("view", "empty.md"), SEEN.replace("notes", "empty")),
    (
        on("view", ""),
        LISTING.format("/memories")
        + "\n5.6K\t/memories/\n0.0K\t/memories/empty.md\n0.0K\t/memories/notes.md\n5.5K\t/memories/projects/"
        + "\n5.5K\t/memories/projects/apollo.md\n0.0K\t/memories/projects/deep/\n0.0K\t/memories/twice.md",
    ),
    (on("view", "nowhere.md"), f"Error: {NOWHERE}"),
    (on("view", view_range=[9, 12]), f"Error: Invalid `view_range` parameter: [9, 12]. {RANGE}"),
    (on("view", view_range=[1]), "Error: view_range: List should have at least 2 items after validation, not 1"),
    (on("create", "a/b/new.txt", file_text="hello\n"), "File created successfully at: /memories/a/b/new.txt"),
    (on("create", file_text="hello\n"), "Error: File /memories/notes.md already exists"),
    (on("create", "projects", file_text="hello\n"), "Error: File /memories/projects already exists"),
    (on("create", "", file_text="hello\n"), "Error: File /memories already exists"),
    (on("create", "notes.md/more.md", file_text="hello\n"), "Error: create failed: File exists"),
    (on("create", "new.md"), "Error: create needs file_text"),
    (on("create", "new.md", file_text=["a"]), "Error: file_text: Input should be a valid string"),
    (
        on("str_replace", old_str="two\nthree", new_str="2\n2.5\n3"),
        f"{EDITED}\n     1\tone\n     2\t2\n     3\t2.5\n     4\t3\n     5\tfour\n     6\tfive",
    ),
    (on("str_replace", old_str="one\n"), f"{EDITED}\n     1\ttwo\n     2\tthree\n     3\tfour"),
    (on("str_replace", "nowhere.md", old_str="a"), f"Error: {NOWHERE}"),
    (on("str_replace", "projects", old_str="a"), f"Error: {NOWHERE.replace('nowhere.md', 'projects')}"),
    (
        on("str_replace", old_str="Four", new_str="4"),
        "Error: No replacement was performed, old_str `Four` did not appear verbatim in /memories/notes.md.",
    ),
    (
        on("str_replace", "twice.md", old_str="blue", new_str="red"),
        "Error: No replacement was performed. Multiple occurrences of old_str `blue` in lines: 1, 3. "
        "Please ensure it is unique",
    ),
    (on("insert", insert_line="2", insert_text="2.5"), "The file /memories/notes.md has been edited."),
    (on("insert", "nowhere.md", insert_line=0, insert_text="a"), f"Error: {NOWHERE}"),
    (on("insert", insert_line=7, insert_text="a"), f"Error: Invalid `insert_line` parameter: 7. {LINES}"),
    (on("insert", insert_line=-1, insert_text="a"), f"Error: Invalid `insert_line` parameter: -1. {LINES}"),
    (on("delete"), "Successfully deleted /memories/notes.md"),
    (on("delete", "projects"), "Successfully deleted /memories/projects"),
    (on("delete", "nowhere.md"), f"Error: {NOWHERE}"),
    (on("delete", ""), "Error: Cannot delete the /memories directory itself"),
    (rename("/notes.md", "/old/notes.md"), "Successfully renamed /memories/notes.md to /memories/old/notes.md"),
    (rename("/notes.md", "/Notes.md"), "Error: The destination /memories/Notes.md already exists"),
    (rename("/projects", "/archive"), "Successfully renamed /memories/projects to /memories/archive"),
    (rename("/nowhere.md", "/a.md"), f"Error: {NOWHERE}"),
    (rename("/notes.md", "/TWICE.md"), "Error: The destination /memories/TWICE.md already exists"),
    (rename("/notes.md", "/notes.md"), "Error: The destination /memories/notes.md already exists"),
    (rename("/notes.md", ""), "Error: The destination /memories already exists"),
    (rename("/projects", "/projects/old"), "Error: /memories/projects cannot be moved into itself"),
    (rename("", "/old"), "Error: Cannot rename the /memories directory itself"),
    ({"command": "rename", "old_path": "/memories/notes.md"}, "Error: Path must start with /memories, got: "),
    (on("forget"), f"Error: command: Input should be {NAMES}"),
    ({}, "Error: command: Field required"),
]


def test_commands_are_answered_in_the_words_of_the_protocol_and_refused_ones_change_nothing(
    tmp_path: Path, data_dir: Path
) -> None:
    wrong: list[object] = []
    for number, (command, expected) in enumerate(ANSWERS):
        files = Vault(tmp_path / f"vault{number}")
        files.write("memories/notes.md", "one\ntwo\nthree\nfour\nfive\nsix\n")
        files.write("memories/twice.md", "blue\ngreen\nblue\n")
        files.write("memories/projects/apollo.md", "x" * 5632)
        files.write("memories/projects/deep/er.md", "far down\n")
        files.write("memories/empty.md", "")
        before = {path: files.read(path) for path in files.files()}
        with KnowledgeBase.open(files.root, data_dir) as kb:
            answer = MemoryToolProtocol(kb).answer(command)
        unchanged = {path: files.read(path) for path in files.files()} == before
        if answer.text != expected or answer.refused == expected.startswith(SUCCESSES):
            wrong.append((command, answer))
        if answer.refused and not unchanged:
            wrong.append((command, "changed something"))

    assert wrong == []


def test_inserted_lines_follow_the_line_that_was_named(vault: Vault, memory: MemoryToolProtocol) -> None:
    for before, line, text, after in [
        ("a\nb\n", 0, "x\n", "x\na\nb\n"),
        ("a\nb\n", 1, "x\ny", "a\nx\ny\nb\n"),
        ("a\nb", 1, "x", "a\nx\nb"),
        ("a\nb", 2, "x", "a\nb\nx\n"),
        ("", 0, "x", "x\n"),
        ("a\n", 1, "", "a\n\n"),
        ("a\r\nb\r\n", 1, "x\n", "a\r\nx\r\nb\r\n"),
    ]:
        vault.write("memories/a.md", before)
        memory.answer({"command": "insert", "path": "/memories/a.md", "insert_line": line, "insert_text": text})
        assert vault.path("memories/a.md").read_bytes().decode() == after


def test_long_answers_are_cut_and_say_how_to_see_the_rest(memory: MemoryToolProtocol, vault: Vault) -> None:
    lines = [f"line {number} " + "x" * 90 for number in range(1, 1001)]
    vault.write("memories/long.md", "\n".join(lines) + "\n")
    seen: list[str] = []
    while len(seen) < 1000:
        answer = memory.answer(on("view", "long.md", view_range=[len(seen) + 1, 1000])).text
        assert len(answer) < 41_000
        seen += [row.partition("\t")[2] for row in answer.split("\n")[1:] if "\t" in row]
        assert (len(seen) < 1000) is answer.endswith("view the rest with view_range, or one folder at a time.)")
    assert seen == lines

    vault.write("memories/long.md", "y" * 50_000 + "\nshort\n")
    assert len(memory.answer(on("view", "long.md")).text) < 41_000

    vault.write("memories/long.md", "a b a b a\n" * 150_000)
    often = memory.answer(on("str_replace", "long.md", old_str="a", new_str="b"))
    assert often.refused
    assert "in lines: 1, 2, 3, " in often.text
    assert len(often.text) < 1_000


# -- paths ------------------------------------------------------------------------------------------------------------

ESCAPES = [
    *("/memories/../articles/plan.md", "/memories/a/../../../outside.md", "/memories/..", "/../memories/a.md"),
    *("/memories/..\\..\\outside.md", "/memories/a\\b.md", "/memories/%2e%2e/outside.md"),
    *("/memories/%2E%2E%2Foutside.md", "/memories/..%2foutside.md", "/memories/%252e%252e%252foutside.md"),
    *("/memories/%5c..%5coutside.md", "/memories/a\0.md", "/memories/a%00.md", "/memories/a\n.md"),
]
ELSEWHERE = [
    *("/etc/passwd", "/memoriesx/a.md", "memories/a.md", "a.md", "~/a.md", "/", "//memories.example/a.md"),
    *("file:///memories/a.md", "C:/memories/a.md", "/Memories/a.md"),
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
def contents(tmp_path: Path, vault: Vault) -> Callable[[], dict[str, bytes]]:
    """Files in the vault and around it, which nobody may reach."""
    vault.write("memories/here.md", "a here")
    vault.write("articles/plan.md", "a plan")
    (tmp_path / "outside.md").write_text("a secret")

    def read() -> dict[str, bytes]:
        found = (file for file in tmp_path.rglob("*") if file.is_file() and tmp_path / "data" not in file.parents)
        return {file.relative_to(tmp_path).as_posix(): file.read_bytes() for file in found}

    return read


def test_every_command_refuses_paths_that_lead_out_of_memories(
    contents: Callable[[], dict[str, bytes]], memory: MemoryToolProtocol
) -> None:
    before = contents()

    escapes = {path: {memory.answer(command) for command in commands_for(path)} for path in ESCAPES}
    elsewhere = {path: {memory.answer(command) for command in commands_for(path)} for path in ELSEWHERE}

    assert contents() == before
    for path, answers in escapes.items():
        assert all(one.refused and one.text.endswith("would escape /memories directory") for one in answers), path
    assert elsewhere == {path: {(f"Error: Path must start with /memories, got: {path}", True)} for path in ELSEWHERE}


def test_links_hidden_and_excluded_names_are_neither_reached_nor_shown(
    contents: Callable[[], dict[str, bytes]], tmp_path: Path, vault: Vault, data_dir: Path
) -> None:
    paths = ["memories/.hidden.md", "memories/.trash/a.md", "memories/a/.b/c.md", "memories/private/diary.md"]
    for path in paths:
        vault.write(path, "a secret")
    vault.write(".coignore", "memories/private/\n")
    if os.name != "nt":  # where links need rights
        (vault.root / "memories" / "link.md").symlink_to(tmp_path / "outside.md")
        (vault.root / "memories" / "folder").symlink_to(vault.root / "articles")
        paths += [f"memories/{name}" for name in ("link.md", "folder/plan.md", "folder/new.md")]
    before = contents()

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        memory = MemoryToolProtocol(kb)
        listing = memory.answer({"command": "view", "path": "/memories"}).text
        for path in (*paths, "memories/private/new.md"):
            answers = [memory.answer(command).text for command in commands_for(f"/{path}")]
            assert set(answers) == {f"Error: Path /{path} cannot be used: hidden, excluded or a link"}

    assert contents() == before
    assert [row.partition("\t")[2] for row in listing.split("\n")[1:]] == ["/memories/", "/memories/here.md"]
