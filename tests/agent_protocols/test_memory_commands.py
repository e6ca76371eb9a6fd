"""Every command of Anthropic's memory tool and every error that it documents, word for word.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from co_cli.service.memory_protocol import MemoryToolProtocol, size_text
from tests.vault import Vault

LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"


@pytest.fixture
def files(vault: Vault) -> Vault:
    vault.write("memories/notes.md", "one\ntwo\nthree\nfour\nfive\nsix\n")
    vault.write("memories/twice.md", "blue\ngreen\nblue\n")
    vault.write("memories/projects/apollo.md", "x" * 5632)
    vault.write("memories/projects/deep/er.md", "far down\n")
    vault.write("memories/empty.md", "")
    return vault


def on(command: str, name: str = "notes.md", **more: Any) -> dict[str, Any]:
    return {"command": command, "path": f"/memories/{name}".rstrip("/"), **more}


def rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": f"/memories{old}", "new_path": f"/memories{new}"}


SEEN = "Here's the content of /memories/notes.md with line numbers:\n"
RANGE = "It should be two line numbers within the range of lines of the file: [1, 6]"
LINES = "It should be within the range of lines of the file: [0, 6]"
NAMES = "The commands are view, create, str_replace, insert, delete, rename."
NOWHERE = "The path /memories/nowhere.md does not exist"
ANSWERS: list[tuple[dict[str, Any], str]] = [
    (on("view", view_range=[2, 3]), SEEN + "     2\ttwo\n     3\tthree"),
    (on("view", view_range=[5, -1]), SEEN + "     5\tfive\n     6\tsix"),
    (on("view", view_range="[6, 99]", path="/memories//./notes"), SEEN.replace(".md", "") + "     6\tsix"),
    (on("view", "empty.md"), SEEN.replace("notes", "empty")),
    (
        on("view", ""),
        LISTING.format("/memories")
        + "\n5.6K\t/memories\n0B\t/memories/empty.md\n28B\t/memories/notes.md\n5.5K\t/memories/projects/"
        + "\n5.5K\t/memories/projects/apollo.md\n9B\t/memories/projects/deep/\n16B\t/memories/twice.md",
    ),
    (on("view", "nowhere.md"), f"{NOWHERE}. Please provide a valid path."),
    (on("view", view_range=[9, 12]), f"Error: Invalid `view_range` parameter: [9, 12]. {RANGE}"),
    (on("view", view_range=[1]), f"Error: Invalid `view_range` parameter: [1]. {RANGE}"),
    (on("create", "a/b/new.txt", file_text="hello\n"), "File created successfully at: /memories/a/b/new.txt"),
    (on("create", file_text="hello\n"), "Error: File /memories/notes.md already exists"),
    (on("create", "projects", file_text="hello\n"), "Error: File /memories/projects already exists"),
    (on("create", "", file_text="hello\n"), "Error: File /memories already exists"),
    (
        on("create", "notes.md/more.md", file_text="hello\n"),
        "Error: Path /memories/notes.md/more.md leads through the file /memories/notes.md",
    ),
    (on("create", "new.md"), "Error: create needs file_text"),
    (on("create", "new.md", file_text=["a"]), "Error: file_text: Input should be a valid string"),
    (
        on("str_replace", old_str="two\nthree", new_str="2\n2.5\n3"),
        f"{EDITED}\n     1\tone\n     2\t2\n     3\t2.5\n     4\t3\n     5\tfour\n     6\tfive",
    ),
    (on("str_replace", old_str="one\n"), f"{EDITED}\n     1\ttwo\n     2\tthree\n     3\tfour"),
    (on("str_replace", "nowhere.md", old_str="a"), f"Error: {NOWHERE}. Please provide a valid path."),
    (
        on("str_replace", "projects", old_str="a"),
        "Error: The path /memories/projects does not exist. Please provide a valid path.",
    ),
    (
        on("str_replace", old_str="Four", new_str="4"),
        "No replacement was performed, old_str `Four` did not appear verbatim in /memories/notes.md.",
    ),
    (
        on("str_replace", old_str="", new_str="4"),
        "No replacement was performed, old_str `` did not appear verbatim in /memories/notes.md.",
    ),
    (
        on("str_replace", "twice.md", old_str="blue", new_str="red"),
        "No replacement was performed. Multiple occurrences of old_str `blue` in lines: 1, 3. "
        "Please ensure it is unique",
    ),
    (on("insert", insert_line="2", insert_text="2.5"), "The file /memories/notes.md has been edited."),
    (on("insert", "nowhere.md", insert_line=0, insert_text="a"), f"Error: {NOWHERE}"),
    (on("insert", insert_line=7, insert_text="a"), f"Error: Invalid `insert_line` parameter: 7. {LINES}"),
    (on("insert", insert_line=-1, insert_text="a"), f"Error: Invalid `insert_line` parameter: -1. {LINES}"),
    (on("insert", insert_text="a"), "Error: insert needs insert_line"),
    (on("delete"), "Successfully deleted /memories/notes.md"),
    (on("delete", "projects"), "Successfully deleted /memories/projects"),
    (on("delete", "nowhere.md"), f"Error: {NOWHERE}"),
    (on("delete", ""), "Error: Cannot delete the /memories directory itself"),
    (rename("/notes.md", "/old/notes.md"), "Successfully renamed /memories/notes.md to /memories/old/notes.md"),
    (rename("/projects", "/archive"), "Successfully renamed /memories/projects to /memories/archive"),
    (rename("/nowhere.md", "/a.md"), f"Error: {NOWHERE}"),
    (rename("/notes.md", "/twice.md"), "Error: The destination /memories/twice.md already exists"),
    (rename("/notes.md", "/notes.md"), "Error: The destination /memories/notes.md already exists"),
    (rename("/notes.md", ""), "Error: The destination /memories already exists"),
    (rename("/projects", "/projects/old"), "Error: /memories/projects cannot be moved into itself"),
    (rename("", "/old"), "Error: Cannot rename the /memories directory itself"),
    (
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": None},
        "Error: rename needs a new_path, such as /memories/notes.md",
    ),
    (on("forget"), f"Error: Unknown command: forget. {NAMES}"),
    ({}, f"Error: Unknown command: None. {NAMES}"),
]
SUCCESSES = ("Here", "File created", "The memory file", "The file /", "Successfully")


@pytest.mark.parametrize(("command", "expected"), ANSWERS)
def test_a_command_is_answered_in_the_words_of_the_protocol_and_a_refused_one_changes_nothing(
    command: dict[str, Any], expected: str, files: Vault, memory: MemoryToolProtocol
) -> None:
    before = {path: files.read(path) for path in files.files()}

    answer = memory.answer(command)

    assert answer.text == expected
    assert answer.refused == (not expected.startswith(SUCCESSES))
    if answer.refused:
        assert {path: files.read(path) for path in files.files()} == before


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("a\nb\n", 0, "x\n", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 1, "x\ny", "a\nx\ny\nb\n"),
        ("a\nb", 1, "x", "a\nx\nb"),
        ("a\nb", 2, "x", "a\nb\nx\n"),
        ("", 0, "x", "x\n"),
        ("a\n", 1, "", "a\n\n"),
        ("a\r\nb\r\n", 1, "x\n", "a\r\nx\r\nb\r\n"),
    ],
)
def test_inserted_lines_stand_after_the_line_that_was_named(
    before: str, line: int, text: str, after: str, vault: Vault, memory: MemoryToolProtocol
) -> None:
    vault.write("memories/a.md", before)

    memory.call({"command": "insert", "path": "/memories/a.md", "insert_line": line, "insert_text": text})

    assert vault.read("memories/a.md") == after


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (512, "512B"), (1023, "1023B"), (1024, "1K"), (5632, "5.5K"), (1_258_291, "1.2M"), (3 << 40, "3072G")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_file_of_too_many_lines_is_not_shown(memory: MemoryToolProtocol, vault: Vault) -> None:
    vault.write("memories/long.md", "\n" * 1_000_000)

    answer = memory.call({"command": "view", "path": "/memories/long.md"})

    assert answer == "File /memories/long.md exceeds maximum line limit of 999,999 lines."


def test_a_long_file_is_shown_in_part_and_says_how_to_see_the_rest(memory: MemoryToolProtocol, vault: Vault) -> None:
    lines = [f"line {number} " + "x" * 90 for number in range(1, 1001)]
    vault.write("memories/long.md", "\n".join(lines) + "\n")
    seen: list[str] = []
    following = 1

    while following <= 1000:
        answer = memory.call({"command": "view", "path": "/memories/long.md", "view_range": [following, 1000]})
        assert len(answer) < 41_000
        shown = [row for row in answer.split("\n")[1:] if "\t" in row]
        seen += [row.partition("\t")[2] for row in shown]
        following += len(shown)
        if following <= 1000:
            assert answer.endswith(f"lines {following} to 1000 are not shown: use view_range [{following}, 1000])")

    assert seen == lines


def test_a_line_that_is_too_long_for_a_view_is_cut_and_said_to_be(memory: MemoryToolProtocol, vault: Vault) -> None:
    vault.write("memories/long.md", "y" * 50_000 + "\nshort\n")

    first = memory.call({"command": "view", "path": "/memories/long.md"})
    only = memory.call({"command": "view", "path": "/memories/long.md", "view_range": [2, 2]})

    assert first.endswith("(the rest of line 1, and lines 2 to 2 are not shown: use view_range [2, 2])")
    assert only.endswith("     2\tshort")


def test_a_folder_of_very_many_files_shows_the_newest_and_says_how_many_are_left_out(
    memory: MemoryToolProtocol, vault: Vault
) -> None:
    for number in range(520):
        file = vault.write(f"memories/note-{number:03}.md", "x")
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))

    answer = memory.call({"command": "view", "path": "/memories"})

    rows = answer.split("\n")
    assert rows[-1] == "(20 entries that changed longer ago are not shown: view a folder of /memories)"
    assert "1B\t/memories/note-519.md" in rows
    assert "1B\t/memories/note-020.md" in rows
    assert "1B\t/memories/note-019.md" not in rows
    assert len(rows) == 1 + 1 + 500 + 1


def test_hidden_items_and_node_modules_are_not_listed(memory: MemoryToolProtocol, vault: Vault) -> None:
    vault.write("memories/a.md", "x")
    vault.write("memories/.secret.md", "x")
    vault.write("memories/node_modules/pack.md", "x")

    answer = memory.call({"command": "view", "path": "/memories"})

    assert answer.split("\n")[1:] == ["1B\t/memories", "1B\t/memories/a.md"]


def test_a_text_that_stands_in_very_many_places_is_refused_at_once_and_briefly(
    memory: MemoryToolProtocol, vault: Vault
) -> None:
    vault.write("memories/long.md", "a b a b a\n" * 150_000)
    started = time.process_time()

    answer = memory.answer({"command": "str_replace", "path": "/memories/long.md", "old_str": "a", "new_str": "b"})

    assert answer.refused
    assert "in lines: 1, 2, 3, " in answer.text
    assert "50 and 149,950 more. Please ensure it is unique" in answer.text
    assert time.process_time() - started < 10
