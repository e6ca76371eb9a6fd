"""Exports that are cut off, of the wrong shape, too large, or hostile: one line a trouble, and the rest comes in."""

from __future__ import annotations

import json
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co
from tests.exchange.exports import gpt_conversation, gpt_node, mooring, write_json, write_zip
from tests.vault import Vault


def talk(identity: str, title: Any, **more: Any) -> dict[str, Any]:
    return {**gpt_conversation(identity, title, gpt_node("u", "root", "user", f"Hello {identity}")), **more}


def test_a_file_that_is_cut_off_gives_what_came_before(co: Co, vault: Vault, tmp_path: Path) -> None:
    whole = json.dumps([talk("a", "First"), talk("b", "Second"), talk("c", "Third")])
    path = tmp_path / "conversations.json"
    path.write_text(whole[: whole.index("Third") + 20], "utf-8")

    ran = co("import", "chatgpt", str(path), "--yes")

    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "conversations.json: item 3: it ends in the middle" in ran.err
    assert vault.notes() == ["articles/chatgpt/first.md", "articles/chatgpt/second.md"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("[", "item 1: it ends in the middle"),
        ("[1 2]", "no JSON after item 1: '2' stands where a comma should"),
        ("{'a': 1}" + " " * 100, "item 1: no JSON (expecting property name"),
        ("<html>not found</html>" + " " * 100, "item 1: no JSON (expecting value)"),
        ("[" * 100_000, "item 1: nested too deep"),
        ('{"a": ' * 50_000, "item 1: nested too deep"),
        ("true", "item 1: neither a conversation (no mapping) nor a memory"),
        ("[[1], null]", "item 1: neither a conversation"),
        ('{"title": "x"}', "item 1: neither a conversation"),
        ("9" * 10_000, "item 1: neither a conversation"),
    ],
)
def test_a_wrong_file_is_told_on_one_line(co: Co, vault: Vault, tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content, "utf-8")

    ran = co("import", "chatgpt", str(path), "--yes")

    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err
    assert all(line.startswith("co: ") and "conversations.json" in line for line in ran.err.splitlines())
    assert vault.notes() == []


@pytest.mark.parametrize(
    ("dates", "created"),
    [
        ({"create_time": 1_700_000_000}, "2023-11-14T22:13:20Z"),
        ({"create_time": 1_700_000_000_000}, "2023-11-14T22:13:20Z"),
        ({"create_time": "2024-02-29T12:00:00.123456+00:00"}, "2024-02-29T12:00:00Z"),
        ({"create_time": "2024-02-29T12:00:00Z"}, "2024-02-29T12:00:00Z"),
    ],
)
def test_dates_are_read_as_they_come(co: Co, vault: Vault, tmp_path: Path, dates: Any, created: str) -> None:
    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [talk("a", "Dated", **dates)]), "--yes")

    assert f"created: {created}\n" in vault.read("articles/chatgpt/dated.md")


@pytest.mark.parametrize(
    "date", [None, 0, "", "soon", [], float("inf"), float("nan"), -1e300, 1e300, True, "2024-13-45"]
)
def test_what_is_no_date_is_no_reason_to_stop(co: Co, vault: Vault, tmp_path: Path, date: Any) -> None:
    path = write_json(tmp_path / "conversations.json", [talk("a", "Undated", create_time=date, update_time=date)])

    ran = co("import", "chatgpt", path, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert "updated" not in vault.read("articles/chatgpt/undated.md")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("🚤⚓️🌊", "note"),
        ("⚓️ Boats", "boats"),
        ("شراع أبيض", "شراع-أبيض"),
        ("x" * 500, "x" * 60),
        ("日本語の" * 100, None),
        ("a/../../b\\c\0d", "a-b-cd"),
        ("\ud83d half", "half"),
        (None, "hello-a"),
        ("  \n ", "hello-a"),
        ({"no": "text"}, "hello-a"),
        ("CON", "con-note"),
    ],
)
def test_any_title_gives_a_name(co: Co, vault: Vault, tmp_path: Path, title: Any, name: str | None) -> None:
    ran = co("import", "chatgpt", write_json(tmp_path / "conversations.json", [talk("a", title)]), "--yes")

    assert (ran.code, ran.err) == (0, "")
    (path,) = vault.notes()
    assert name is None or path == f"articles/chatgpt/{name}.md"
    assert co("import", "chatgpt", str(tmp_path / "conversations.json"), "--json").json["counts"]["unchanged"] == 1


def test_half_an_emoji_becomes_a_question_mark(co: Co, vault: Vault, tmp_path: Path) -> None:
    tree = gpt_conversation("a", "Half", gpt_node("u", "root", "user", "a \ud83d b \U0001f600 \u202e c"))

    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree]), "--yes")

    assert "a ? b \U0001f600 \u202e c" in vault.read("articles/chatgpt/half.md")


def test_an_empty_conversation_is_left_out_without_a_fuss(co: Co, vault: Vault, tmp_path: Path) -> None:
    ran = co(
        "import", "chatgpt", write_json(tmp_path / "conversations.json", [gpt_conversation("a", "Empty")]), "--yes"
    )

    assert (ran.code, ran.err) == (0, "")
    assert "Empty: nobody says anything in it" in ran.out
    assert vault.notes() == []


def test_a_tree_that_bites_its_tail_ends(co: Co, vault: Vault, tmp_path: Path) -> None:
    tree = mooring()
    tree["mapping"]["u1"]["parent"] = "a1"

    ran = co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree]), "--yes")

    assert ran.code == 0
    assert len(vault.notes()) == 1


def test_a_conversation_that_is_too_long_for_a_note_is_told(co: Co, vault: Vault, tmp_path: Path) -> None:
    tree = gpt_conversation("a", "Long", gpt_node("u", "root", "user", "word " * 401_000))

    ran = co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree, talk("b", "Short")]), "--yes")

    assert ran.code == 2
    assert "item 1: 2," in ran.err
    assert "(the setting knowledge_max_note_bytes)" in ran.err
    assert vault.notes() == ["articles/chatgpt/short.md"]


def test_a_zip_bomb_is_refused(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w") as stream,
    ):
        for _ in range(35):
            stream.write(b" " * 1_000_000)
    assert path.stat().st_size < 200_000

    ran = co("import", "chatgpt", str(path), "--yes")

    assert (ran.code, ran.out) == (2, "")
    assert "refused as a zip bomb" in ran.err


def test_a_zip_that_lies_about_its_sizes_is_told(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = Path(write_zip(tmp_path / "liar.zip", {"note.md": "words " * 1_000, "other.md": "fine"}))
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02")
    struct.pack_into("<L", data, place + 24, 10)  # the first entry's size in the directory
    path.write_bytes(data)

    ran = co("import", "obsidian", str(path), "--yes")

    assert ran.err.count("\n") == ran.err.count("co: ")
    assert "articles/liar/other.md" in vault.notes()


@pytest.mark.parametrize("cut", [10, 100, 300])
def test_a_zip_that_is_cut_off_is_told(co: Co, tmp_path: Path, cut: int) -> None:
    path = Path(write_zip(tmp_path / "half.zip", {"conversations.json": [mooring()]}))
    path.write_bytes(path.read_bytes()[:cut])

    ran = co("import", "chatgpt", str(path), "--yes")

    assert (ran.code, ran.out) == (2, "")
    assert "half.zip: no zip, or only a part of one; download it again" in ran.err


def test_a_damaged_member_is_told_and_the_others_are_read(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = Path(write_zip(tmp_path / "hurt.zip", {"a.md": "first " * 300, "b.md": "second " * 300}))
    data = bytearray(path.read_bytes())
    data[45:50] = b"\xff" * 5
    path.write_bytes(data)

    ran = co("import", "obsidian", str(path), "--yes")

    assert ran.code == 2
    assert ran.err.startswith("co: a.md: ")
    assert vault.notes() == ["articles/hurt/b.md"]


def test_links_are_not_followed(co: Co, vault: Vault, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("SECRET")
    root = tmp_path / "brain"
    root.mkdir()
    (root / "note.md").write_text("fine")
    (root / "link.md").symlink_to(secret)
    (root / "loop").symlink_to(root)
    entry = zipfile.ZipInfo("link.md")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr(entry, str(secret))
        archive.writestr("note.md", "fine too")

    ran = co("import", "obsidian", str(root), str(tmp_path / "zipped.zip"), "--yes")

    assert ran.code == 2
    assert [line.split(": ")[1] for line in ran.err.splitlines()] == ["loop", "link.md", "link.md"]
    assert vault.notes() == ["articles/brain/note.md", "articles/zipped/note.md"]


def test_a_broken_line_of_jsonl_leaves_the_others(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"memory": "One"}\n{"memory": \n\n[1]\n{"memory": "Caf\xe9"}\r\n{"memory": ""}\n')

    ran = co("import", "mem0", str(path), "--yes")

    assert ran.code == 2
    assert [line.split(": ")[1].rpartition(", ")[2] for line in ran.err.splitlines()] == ["line 2", "item 4"]
    assert vault.notes() == ["memories/caf.md", "memories/one.md"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("chatgpt", "nowhere.zip"), "nowhere.zip: there is no such file or folder"),
        (("chatgpt", ""), "an empty name: there is no such file or folder"),
        (("chatgpt", "."), "no conversations.json in it"),
        (("claude", "."), "nothing of Claude's in it"),
        (("mem0", "."), "no .json or .jsonl in it"),
        (("obsidian", "one.md"), "name the folder that it lies in"),
        (("notion", "x"), "argument FORMAT: invalid choice: 'notion'"),
        (("chatgpt",), "the following arguments are required: FILE|DIR"),
    ],
)
def test_a_mistake_is_one_line(co: Co, home: Path, arguments: tuple[str, ...], problem: str) -> None:
    (home / "one.md").write_text("one")
    if arguments[-1] == ".":
        (home / "one.md").unlink()

    ran = co("import", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert problem in ran.err
