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


ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "view of a file numbers its lines in six columns and a tab": (
        {"command": "view", "path": "/memories/twice.md"},
        "Here's the content of /memories/twice.md with line numbers:\n     1\tblue\n     2\tgreen\n     3\tblue",
    ),
    "view of a range": (
        {"command": "view", "path": "/memories/notes.md", "view_range": [2, 3]},
        "Here's the content of /memories/notes.md with line numbers:\n     2\ttwo\n     3\tthree",
    ),
    "view of a range to the end": (
        {"command": "view", "path": "/memories/notes.md", "view_range": [5, -1]},
        "Here's the content of /memories/notes.md with line numbers:\n     5\tfive\n     6\tsix",
    ),
    "view of a range that ends behind the file": (
        {"command": "view", "path": "/memories/notes.md", "view_range": [6, 99]},
        "Here's the content of /memories/notes.md with line numbers:\n     6\tsix",
    ),
    "view of a range that came as text": (
        {"command": "view", "path": "/memories/notes.md", "view_range": "[1, 1]"},
        "Here's the content of /memories/notes.md with line numbers:\n     1\tone",
    ),
    "view of an empty file": (
        {"command": "view", "path": "/memories/empty.md"},
        "Here's the content of /memories/empty.md with line numbers:\n",
    ),
    "view of a folder": (
        {"command": "view", "path": "/memories/projects"},
        LISTING.format("/memories/projects")
        + "\n5.5K\t/memories/projects\n5.5K\t/memories/projects/apollo.md\n9B\t/memories/projects/deep/"
        + "\n9B\t/memories/projects/deep/er.md",
    ),
    "view of everything lists two levels": (
        {"command": "view", "path": "/memories"},
        LISTING.format("/memories")
        + "\n5.6K\t/memories\n0B\t/memories/empty.md\n28B\t/memories/notes.md\n5.5K\t/memories/projects/"
        + "\n5.5K\t/memories/projects/apollo.md\n9B\t/memories/projects/deep/\n16B\t/memories/twice.md",
    ),
    "view of what is not there": (
        {"command": "view", "path": "/memories/nowhere.md"},
        "The path /memories/nowhere.md does not exist. Please provide a valid path.",
    ),
    "view of lines that the file does not have": (
        {"command": "view", "path": "/memories/notes.md", "view_range": [9, 12]},
        "Error: Invalid `view_range` parameter: [9, 12]. "
        "It should be two line numbers within the range of lines of the file: [1, 6]",
    ),
    "view of a range that is none": (
        {"command": "view", "path": "/memories/notes.md", "view_range": [1]},
        "Error: Invalid `view_range` parameter: [1]. "
        "It should be two line numbers within the range of lines of the file: [1, 6]",
    ),
    "create": (
        {"command": "create", "path": "/memories/new.md", "file_text": "hello\n"},
        "File created successfully at: /memories/new.md",
    ),
    "create in folders that are not there yet": (
        {"command": "create", "path": "/memories/a/b/new.txt", "file_text": "hello\n"},
        "File created successfully at: /memories/a/b/new.txt",
    ),
    "create of what exists": (
        {"command": "create", "path": "/memories/notes.md", "file_text": "hello\n"},
        "Error: File /memories/notes.md already exists",
    ),
    "create of what exists as a folder": (
        {"command": "create", "path": "/memories/projects", "file_text": "hello\n"},
        "Error: File /memories/projects already exists",
    ),
    "create of the folder of all": (
        {"command": "create", "path": "/memories", "file_text": "hello\n"},
        "Error: File /memories already exists",
    ),
    "create below a file": (
        {"command": "create", "path": "/memories/notes.md/more.md", "file_text": "hello\n"},
        "Error: Path /memories/notes.md/more.md leads through the file /memories/notes.md",
    ),
    "create without a text": (
        {"command": "create", "path": "/memories/new.md"},
        "Error: create needs file_text, a text",
    ),
    "str_replace shows the lines around the change": (
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "four", "new_str": "4"},
        f"{EDITED}\n     2\ttwo\n     3\tthree\n     4\t4\n     5\tfive\n     6\tsix",
    ),
    "str_replace over several lines": (
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "two\nthree", "new_str": "2\n2.5\n3"},
        f"{EDITED}\n     1\tone\n     2\t2\n     3\t2.5\n     4\t3\n     5\tfour\n     6\tfive",
    ),
    "str_replace without a new text removes the old one": (
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "one\n"},
        f"{EDITED}\n     1\ttwo\n     2\tthree\n     3\tfour",
    ),
    "str_replace in what is not there": (
        {"command": "str_replace", "path": "/memories/nowhere.md", "old_str": "a", "new_str": "b"},
        "Error: The path /memories/nowhere.md does not exist. Please provide a valid path.",
    ),
    "str_replace in a folder": (
        {"command": "str_replace", "path": "/memories/projects", "old_str": "a", "new_str": "b"},
        "Error: The path /memories/projects does not exist. Please provide a valid path.",
    ),
    "str_replace of a text that does not stand there": (
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "Four", "new_str": "4"},
        "No replacement was performed, old_str `Four` did not appear verbatim in /memories/notes.md.",
    ),
    "str_replace of nothing": (
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "", "new_str": "4"},
        "No replacement was performed, old_str `` did not appear verbatim in /memories/notes.md.",
    ),
    "str_replace of a text that stands there twice": (
        {"command": "str_replace", "path": "/memories/twice.md", "old_str": "blue", "new_str": "red"},
        "No replacement was performed. Multiple occurrences of old_str `blue` in lines: 1, 3. "
        "Please ensure it is unique",
    ),
    "insert": (
        {"command": "insert", "path": "/memories/notes.md", "insert_line": 2, "insert_text": "two and a half\n"},
        "The file /memories/notes.md has been edited.",
    ),
    "insert at a line that came as text": (
        {"command": "insert", "path": "/memories/notes.md", "insert_line": "2", "insert_text": "two and a half"},
        "The file /memories/notes.md has been edited.",
    ),
    "insert in what is not there": (
        {"command": "insert", "path": "/memories/nowhere.md", "insert_line": 0, "insert_text": "a"},
        "Error: The path /memories/nowhere.md does not exist",
    ),
    "insert in a folder": (
        {"command": "insert", "path": "/memories/projects", "insert_line": 0, "insert_text": "a"},
        "Error: The path /memories/projects does not exist",
    ),
    "insert behind the last line": (
        {"command": "insert", "path": "/memories/notes.md", "insert_line": 7, "insert_text": "a"},
        "Error: Invalid `insert_line` parameter: 7. It should be within the range of lines of the file: [0, 6]",
    ),
    "insert before the first line": (
        {"command": "insert", "path": "/memories/notes.md", "insert_line": -1, "insert_text": "a"},
        "Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 6]",
    ),
    "insert without a line": (
        {"command": "insert", "path": "/memories/notes.md", "insert_text": "a"},
        "Error: Invalid `insert_line` parameter: None. It should be within the range of lines of the file: [0, 6]",
    ),
    "delete": ({"command": "delete", "path": "/memories/notes.md"}, "Successfully deleted /memories/notes.md"),
    "delete of a folder": (
        {"command": "delete", "path": "/memories/projects"},
        "Successfully deleted /memories/projects",
    ),
    "delete of what is not there": (
        {"command": "delete", "path": "/memories/nowhere.md"},
        "Error: The path /memories/nowhere.md does not exist",
    ),
    "delete of everything": (
        {"command": "delete", "path": "/memories/"},
        "Error: Cannot delete the /memories directory itself",
    ),
    "rename": (
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/old/notes.md"},
        "Successfully renamed /memories/notes.md to /memories/old/notes.md",
    ),
    "rename of a folder": (
        {"command": "rename", "old_path": "/memories/projects", "new_path": "/memories/archive"},
        "Successfully renamed /memories/projects to /memories/archive",
    ),
    "rename of what is not there": (
        {"command": "rename", "old_path": "/memories/nowhere.md", "new_path": "/memories/a.md"},
        "Error: The path /memories/nowhere.md does not exist",
    ),
    "rename to what exists": (
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/twice.md"},
        "Error: The destination /memories/twice.md already exists",
    ),
    "rename to a folder": (
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/projects"},
        "Error: The destination /memories/projects already exists",
    ),
    "rename to itself": (
        {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/notes.md"},
        "Error: The destination /memories/notes.md already exists",
    ),
    "rename of a folder into itself": (
        {"command": "rename", "old_path": "/memories/projects", "new_path": "/memories/projects/old"},
        "Error: /memories/projects cannot be moved into itself",
    ),
    "rename of everything": (
        {"command": "rename", "old_path": "/memories", "new_path": "/memories/old"},
        "Error: Cannot rename the /memories directory itself",
    ),
    "rename without a destination": (
        {"command": "rename", "old_path": "/memories/notes.md"},
        "Error: rename needs a new_path, such as /memories/notes.md",
    ),
    "a command that is none": (
        {"command": "forget", "path": "/memories/notes.md"},
        "Error: Unknown command: forget. The commands are view, create, str_replace, insert, delete, rename.",
    ),
    "no command at all": (
        {},
        "Error: Unknown command: None. The commands are view, create, str_replace, insert, delete, rename.",
    ),
}
SUCCESSES = ("Here", "File created", "The memory file", "The file /", "Successfully")


@pytest.mark.parametrize("name", ANSWERS)
def test_a_command_is_answered_in_the_words_of_the_protocol(
    name: str, files: Vault, memory: MemoryToolProtocol
) -> None:
    command, expected = ANSWERS[name]

    answer = memory.answer(command)

    assert answer.text == expected
    assert answer.refused == (not expected.startswith(SUCCESSES))


@pytest.mark.parametrize("name", [name for name in ANSWERS if not ANSWERS[name][1].startswith(SUCCESSES)])
def test_a_refused_command_changes_nothing(name: str, files: Vault, memory: MemoryToolProtocol) -> None:
    before = {path: files.read(path) for path in files.files()}

    memory.call(ANSWERS[name][0])

    assert {path: files.read(path) for path in files.files()} == before


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("a\nb\n", 0, "x\n", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb\n", 1, "x", "a\nx\nb\n"),
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
