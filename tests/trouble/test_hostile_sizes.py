"""Notes that are far too large, too many or broken: bounded time and memory, told, and the others are indexed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.folder import Vault

MOST_MEMORY = 400_000_000
"""Bytes that a process may have which reads such notes; it has 70 million with numpy and nothing to do."""
MEASURE = """
import json, resource, sys, time
from co_cli import KnowledgeBase
started = time.process_time()
with KnowledgeBase.open(*sys.argv[1:3]) as kb:
    report = kb.sync()
    found = [hit.ref for hit in kb.search("oaks live long").hits]
    notes = len(kb.notes())
if sys.platform == "linux":  # getrusage would tell of the process that started this one, too
    with open("/proc/self/status") as status:
        most = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
else:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"found": found, "notes": notes, "skipped": report.skipped, "problems": report.problems,
                  "memory": most, "seconds": time.process_time() - started}))
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 41))


def measured(vault: Vault, data_dir: Path) -> Any:
    """Sync and search in a process of its own, which tells what it took."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(vault.root), str(data_dir)], capture_output=True, timeout=300, check=True
    )
    return json.loads(ran.stdout)


@pytest.fixture
def oaks(vault: Vault) -> Vault:
    vault.write("memories/oak.md", "Oaks live long.")
    return vault


def test_a_note_of_a_hundred_megabytes_costs_nothing_and_is_reported(co: Co, oaks: Vault, data_dir: Path) -> None:
    with oaks.path("articles/huge.md").open("wb") as stream:
        stream.truncate(100_000_000)

    took = measured(oaks, data_dir)

    assert took["found"] == ["memory:oak"]
    assert took["skipped"] == [
        ["articles/huge.md", "100,000,000 bytes; the limit is 2,000,000 (setting knowledge_max_note_bytes)"]
    ]
    assert took["memory"] < 150_000_000
    for command in (("show", "articles/huge.md"), ("edit", "articles/huge.md", "--set", "a=b")):
        ran = co(*command)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "knowledge_max_note_bytes" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a\n" * 200_000, "---\ntags: [" + ", ".join(f"tag{n}" for n in range(10_000)) + "]\n---\nText.\n"],
    ids=["very many lines", "ten thousand tags"],
)
def test_a_note_with_too_much_of_something_is_indexed_in_bounds(oaks: Vault, data_dir: Path, text: str) -> None:
    oaks.write("articles/much.md", text)

    took = measured(oaks, data_dir)

    assert "memory:oak" in took["found"]
    assert took["notes"] == 2
    assert took["memory"] < MOST_MEMORY
    assert took["seconds"] < 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\n" * 100_000 + "\nThe zebra is last.\n", "more than 4,000 sections"),
        ("# a\n\nb\n\n" * 50_000 + "The zebra is last.\n", "more than 4,000 sections"),
        ("|" * 500_000 + "\n" + "|-" * 250_000 + "\n| zebra |\n", "line 1: a table with a first row of 500,000"),
    ],
    ids=["lines of dashes", "headings", "a wide table"],
)
def test_a_note_with_too_many_passages_or_cells_is_reported_and_all_of_it_searched(
    co: Co, oaks: Vault, data_dir: Path, text: str, problem: str
) -> None:
    oaks.write("articles/much.md", text)

    took = measured(oaks, data_dir)

    assert "memory:oak" in took["found"]
    assert [path for path, _ in took["problems"]] == ["articles/much.md"]
    assert problem in took["problems"][0][1]
    assert took["memory"] < 200_000_000
    assert took["seconds"] < 8
    assert "article:much" in co("search", "zebra").out


@pytest.mark.slow
def test_a_text_with_too_many_names_of_passwords_is_refused_and_reported_in_a_second_or_two(
    co: Co, oaks: Vault
) -> None:
    text = "pw=" * 27_000
    started = time.process_time()
    ran = co("remember", "-", stdin=text)

    assert time.process_time() - started < 4
    assert ran.code == 2
    assert "a part with too many names of secrets to be checked (line 1:" in ran.err
    oaks.write("memories/names.md", text)
    co("index", "sync")
    checked = co("doctor")
    assert "names" in checked.out
    assert "a part with too many names of secrets to be checked" in checked.out


def test_broken_notes_of_every_kind_are_reported_and_the_others_indexed(oaks: Vault, data_dir: Path) -> None:
    text = "---\ntitle: Gr\u00fc\u00dfe \u5b57 \U0001f333\n---\nThe ash of Stra\u00dfe.\n"
    broken = {
        "bomb": f"---\n{BOMB}---\nBody.\n".encode(),
        "deep": ("---\nx: " + "[" * 100_000 + "\n---\nBody.\n").encode(),
        "nul": b"Text with \0 a NUL.",
        "nul-later": b"x" * 20_000 + b"\0" + b"y",
        "torn": text.encode()[:17],
        "alone": b"\xff\xfe",
        "surrogate": text.encode() + "\ud83d".encode("utf-8", "surrogatepass"),
        "overlong": b"\xc0\xaf\xe0\x80\xaf" + text.encode(),
        "unended": b"---\n" + b"title: x\n" * 50_000,
        "empty": b"",
    }
    encodings = "utf-8-sig utf-16 utf-16-le utf-16-be utf-32 latin-1 cp1252 shift_jis utf-7"
    broken |= {encoding: text.encode(encoding, "replace") for encoding in encodings.split()}
    for name, data in broken.items():
        oaks.write(f"memories/{name}.md", data)

    took = measured(oaks, data_dir)

    assert "memory:oak" in took["found"]
    told = {path for path, _ in took["skipped"]} | {path for path, _ in took["problems"]}
    sound = {"torn", "utf-8-sig", "utf-16", "utf-7", "nul-later", "unended", "empty"}
    assert {f"memories/{name}.md" for name in broken} - told <= {f"memories/{name}.md" for name in sound}
    assert took["notes"] + len(took["skipped"]) == len(broken) + 1
    assert took["memory"] < MOST_MEMORY


@pytest.mark.parametrize("command", ["index sync", "list", "search ash", "remember 'The lime flowers late.'"])
def test_merge_keys_that_double_forty_times_hang_no_command(co: Co, oaks: Vault, command: str) -> None:
    oaks.write("memories/bomb.md", f"---\n{MERGE_BOMB}---\nThe ash burns well.\n")
    started = time.process_time()

    ran = co(*shlex.split(command))

    assert ran.code == 0
    assert time.process_time() - started < 5
    assert "memories/bomb.md: line 2: `<<` expands to more than 10,000 fields (indexed anyway)" in ran.out + ran.err
    assert "memory:bomb" in co("search", "ash").out


def test_a_command_reports_a_note_with_a_problem_when_it_has_changed(co: Co, oaks: Vault) -> None:
    for name in ("elm", "fir", "yew"):
        oaks.write(f"memories/{name}.md", f"---\ntitle: a: {name}\n---\nA tree.\n")

    first, again = co("search", "oaks"), co("search", "oaks")

    assert first.err.startswith("co: memories/elm.md: line 2: a second `: ` in one line")
    assert first.err.endswith("(indexed anyway); and 2 more, which `co index status` lists\n")
    assert again.err == ""


def test_many_notes_with_one_title_are_all_found_and_more_can_be_saved(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(1, 301):
        name = "same" if number == 1 else f"same-{number}"
        vault.write(f"memories/{name}.md", f"---\ntitle: Same\n---\nNumber{number} of them.\n")
    kb.sync()

    saved = [kb.remember(f"Tree {letter} is another thing.", title="Same") for letter in ("alpha", "beta")]

    assert [one.outcome for one in saved] == ["created", "created"]
    assert all(re.fullmatch("memory:same-[0-9a-f]{8}", one.ref) for one in saved)
    assert [hit.ref for hit in kb.search("number277", backend="fts5").hits] == ["memory:same-277"]
    assert len(kb.search("Same", limit=20).hits) == 20
